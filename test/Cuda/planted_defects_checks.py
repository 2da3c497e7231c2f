# ruff: noqa: E501 -- a defect per line
"""Defects that whole models show: of what a step looks at (ids, labels, scores, values that are not finite) and of what its notes say;
of tables that are frozen or in the host's memory, of texts, and of ids that depend on rows of ids that a step has made.
"""

from planting import seen

SESSION = "session/device_"
SLOT = "session/step_slot.cpp"
CHECKS, NOTES = SESSION + "checks.cpp", SESSION + "notes.cpp"

FINITE = """device.checkFinite({values, domain ? domain->device : nullptr, roomOf(domain), rowSize, stride},
                     note(subject));"""

CHECKED = [
    # What may be whatever it is: nulls, rows of no weight, labels in their range.
    seen("checked", "ids of a catalogue that are null are looked for", CHECKS, "from.valid = valid;"),
    seen("checked", "labels of no weight are looked at", CHECKS, "range.weight = weight;"),
    seen("checked", "labels that are null are looked at", CHECKS, "range.valid = valid;"),
    seen("checked", "labels above 0 are too great", CHECKS, "range.high = rule.high;"),
    # What is refused, and what is said of it.
    seen("missing", "ids may be missing in a catalogue", CHECKS, "device.resolveIds(idsOf(domain, ids, valid), slots, rows, missing);",
         "device.resolveIds(idsOf(domain, ids, valid), slots, rows, nullptr);"),
    seen("scored", "labels may be of items that there are not", CHECKS, "range.items = items ? items->device : nullptr;"),
    seen("scored", "a catalogue has as many rows as are not known", NOTES, "rule.items = about.items ? about.items->count : -1;"),
    seen("infinite", "values that must be finite are one row", CHECKS, FINITE, FINITE.replace("domain ? domain->device : nullptr", "nullptr")),
    seen("infinite", "a value that is not finite is in a row of its own", CHECKS, "subject.rowSize = rowSize;"),
    seen("infinite", "the element of a value is its row", NOTES, "row % about.rowSize", "row / about.rowSize"),
    seen("infinite", "rows of values are counted by elements", NOTES, "row / about.rowSize", "row"),
    seen("unranked", "the first reason is told", NOTES, "note.place % GENREC_NOTE_REASONS", "0"),
    seen("unranked", "a failure is of no row", CHECKS, "subject.reasons = reasons;", "subject.reasons = reasons; subject.domain = nullptr;"),
    seen("unranked", "a row of a list is one of the data", NOTES, "slot.describeRow(about.domain, row, note.root)", "slot.describeRow(about.domain, row, row)"),
    # Tables.
    seen("checked", "a frozen table has new rows", SESSION + "step.cpp", "desc.optimizer.kind != GENREC_OPTIMIZER_FROZEN", "true"),
    seen("hosted", "rows of the step before leave a cache while it updates them", SESSION + "step.cpp",
         "if (state.takeLookedUp() || (state.lookupsFollow() && !slot.rankStep))\n    device.follow(DeviceQueue::dispatch, DeviceQueue::compute);",
         "if (state.takeLookedUp()) device.follow(DeviceQueue::dispatch, DeviceQueue::compute);"),
    # Lookups that are counted.
    seen("counted", "counts are read while dispatch makes lists", SESSION + "step.cpp", "device.follow(DeviceQueue::compute, DeviceQueue::dispatch);", behind="void DeviceStep::endWithDispatch() {"),
    seen("counted", "nulls are counted", SESSION + "reports.cpp", "report.valid = fetch(valid, domain->capacity);"),
    seen("counted", "nobody waits for a step that only counts", SLOT, "finishOnDevice({&self, 1});", behind="onDevice->endWithDispatch();"),
    # Rows that a profile counts.
    seen("profiled", "lists that only a profile wants are not fetched", SESSION + "step.cpp", "leaving.countRows();"),
    # Texts.
    seen("alone", "a text is in the column of the one before", SESSION + "batch.cpp", "strings[i].size > 0 && !(text && text->has(strings[i]))", "strings[i].size > 0 && !text"),
    seen("portions", "texts of a portion are those of the first", SESSION + "reports.cpp", "shared.output(slot.portion, report.number)", "shared.output(0, report.number)"),
    # Ranks.
    seen("laters", "lookups of the compute stage have one fetch", SESSION + "ranks.cpp", "isGathering = false;", behind="void DeviceRanks::fetchLate() {"),
    seen("laters", "what the first fetch has sent is counted", SESSION + "ranks.cpp", "for (Fetch &fetch : begun())\n    fetch.rows->end();", "fetches.front().rows->end();"),
    seen("laters", "rows of the first store alone are joined", SESSION + "updates.cpp", "store < static_cast<int32_t>(stores.size())", "store < 1"),
    seen("ranks", "shared parameters are not counted", SESSION + "ranks.cpp", "sums->getReceivedBytes() + sharedBytes", "sums->getReceivedBytes()"),
]  # fmt: skip
