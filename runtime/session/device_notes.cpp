//===- device_notes.cpp - What kernels of a step could not go on with -----===//

#include "device_notes.h"

#include "non_finite.h"

#include <cstring>

namespace genrec::rt {

namespace {

std::string describeNonFinite(const StepSlot &slot, const NoteSubject &about,
                              const genrec_row_note &note) {
  const int64_t row = note.place / GENREC_NOTE_REASONS;
  float value;
  std::memcpy(&value, &note.value, sizeof value);
  return slot.describeNonFinite(about.number, value, row / about.rowSize, row % about.rowSize);
}

Error describeNote(const StepSlot &slot, const NoteSubject &about, const genrec_row_note &note) {
  const int64_t row = note.place / GENREC_NOTE_REASONS;
  const int64_t reason = note.place % GENREC_NOTE_REASONS;
  std::string where = about.domain ? slot.describeRow(about.domain, row, note.root) : "";
  switch (about.kind) {
  case NoteSubject::Kind::idBeyondTable:
    return idBeyondTable(slot, about.number, where, note.value);
  case NoteSubject::Kind::idNotInCatalogue:
    return idNotInCatalogue(slot, about.number, where, note.value);
  case NoteSubject::Kind::valueBeyond: {
    RangeRule rule = about.range;
    rule.items = about.items ? about.items->count : -1;
    return valueBeyond(slot, rule, where, &note.value);
  }
  case NoteSubject::Kind::notFinite:
    return notFinite(slot, describeNonFinite(slot, about, note));
  case NoteSubject::Kind::rowNotFinite: // of steps that run once more, which `explain` explains
  case NoteSubject::Kind::failure:
    break;
  }
  return about.domain ? failedRow(slot, about.number, where, about.reasons[reason])
                      : failedOp(slot, about.number, about.reasons[reason]);
}

} // namespace

void DeviceNotes::begin() {
  constexpr auto kBytes = static_cast<int64_t>((kMost + 1) * sizeof(genrec_row_note));
  subjects.clear();
  memory.ensure(kBytes);
  fetched.ensure(kBytes);
  device.fill(memory.data(), GENREC_NO_PLACE & 0xFF, kBytes);
}

genrec_row_note *DeviceNotes::add(StepSlot &slot, const NoteSubject &subject) {
  if (subjects.size() == kMost) { // the last is nobody's
    slot.failure.record("a step looks at more than " + std::to_string(kMost) +
                        " places for rows that it cannot go on with");
    return notes() + kMost;
  }
  subjects.push_back(subject);
  return notes() + subjects.size() - 1;
}

void DeviceNotes::fetch() {
  device.copyOut(fetched.data(), memory.data(),
                 static_cast<int64_t>(subjects.size() * sizeof(genrec_row_note)));
}

void DeviceNotes::explain(StepSlot &slot, size_t number) const {
  const NoteSubject &about = subjects[number];
  const genrec_row_note &note = taken(number);
  if (note.place == GENREC_NO_PLACE)
    return;
  if (about.kind == NoteSubject::Kind::notFinite)
    slot.nonFiniteOrigin = describeNonFinite(slot, about, note);
  else if (about.kind == NoteSubject::Kind::rowNotFinite)
    slot.nonFiniteOrigin = describeNonFiniteRow(slot.state().model, about.number, note.value);
}

void DeviceNotes::report(StepSlot &slot, size_t number) const {
  const genrec_row_note &note = taken(number);
  if (note.place == GENREC_NO_PLACE)
    return;
  const Error error = describeNote(slot, subjects[number], note);
  slot.failure.record(error.what(), error.help());
}

} // namespace genrec::rt
