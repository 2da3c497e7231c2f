# ruff: noqa: E501 -- a defect per line
"""Defects of a session that whole models show, on the emulated device: the small models of the unit tests have nothing that these change.

test/EndToEnd/test_planted_sessions.py is their judge.
"""

from planted_defects_glue import GLUE
from planting import Defect, seen

SESSION, EXCHANGE = "session/device_", "ranks/cuda/row_exchange.cu"


def alone(name: str, old: str, new: str = ";", behind: str = "", file: str = "step.cpp") -> Defect:
    return seen("alone", name, SESSION + file, old, new, behind)


def slot(name: str, old: str, new: str = ";", behind: str = "", runs: str = "alone") -> Defect:
    return seen(runs, name, "session/step_slot.cpp", old, new, behind)


def ranks(name: str, old: str, new: str = ";", behind: str = "", file: str = "ranks.cpp") -> Defect:
    return seen("ranks", name, SESSION + file, old, new, behind)


MODELS = [
    # Queues and graphs.
    alone("a dispatch stage is in the default stream", "slot.stream = device.stream();", "slot.stream = nullptr;", behind="slot.columns = batch.columns.data();"),
    alone("steps of other counts have one graph", "key.add(batch.isMade(static_cast<ptrdiff_t>(i)) ? domain.count : 0);"),
    alone("what was captured serves every key", "graph->key == key", "(graph->key == key || !graph->pieces.empty())", file="graphs.cpp"),
    alone("a graph's steps have the learning rate of the first", "*scalar.pinned = slot.stepScalar(scalar.kind, scalar.argument);"),
    slot("a captured step has the bound of values for that of norms", "return static_cast<float>(shared.clipNorm);", "return static_cast<float>(shared.clipValue);"),
    alone("fixed rows are forgotten", "batch.keepFixedRows();"),
    # Lookups of a step.
    alone("an evaluation inserts rows", "slot.mode == static_cast<int32_t>(Mode::train)", "(slot.mode >= 0)"),
    alone("a row is admitted by the step before", "static_cast<int64_t>(slot.step)", "(static_cast<int64_t>(slot.step) - 1)"),
    alone("temporary rows stay", "usesTemporary[table] = 1;"),
    alone("gradients of nothing go anywhere", "from.zeros = state.zeroRow(from.table);"),
    seen("later", "merged ids that are null count", SESSION + "step.cpp", "from.valid = valid[part];"),
    seen("later", "tables that share a store have one key", SESSION + "step.cpp", "device.writeKeys(from, table.key, keys,\n                     leaving.note({NoteSubject::Kind::idBeyondTable, tables[part], of[part]}));",
          "device.writeKeys(from, 0, keys,\n                     leaving.note({NoteSubject::Kind::idBeyondTable, tables[part], of[part]}));"),
    alone("ids that are null are looked up", "from.valid = valid;"),
    alone("rounded rows have no identity", "shared.model.tables[table].rounding != GENREC_ROW_STOCHASTIC", "true"),
    seen("later", "lookups of compute do not wait for those of dispatch", SESSION + "step.cpp", "state.noteLookedUp();"),
    # Batches.
    alone("a batch has the seed of the first", "mirrorStep.seed = slot.seed;", file="batch.cpp"),
    alone("a batch has the number of no step", "mirrorStep.step = slot.step;", file="batch.cpp"),
    alone("what has no nulls is null", "std::memset(to, 1, bytes);", "std::memset(to, 0, bytes);", file="batch.cpp"),
    alone("lists of a batch have the length of the first", "kind == GENREC_DOMAIN_CATALOGUE ? from.max_length : batch.longest[i]", "from.max_length", file="batch.cpp"),
    alone("a batch has room for the texts of its last column alone", "layout->pieces.back().text = &texts.back();", "layout->pieces.back().text = &texts.front();", file="batch.cpp"),
    alone("the texts of a batch lack their last byte", "layout->add(text.host, text.bytes, text.bytes, text.device);", "layout->add(text.host, text.bytes - 1, text.bytes, text.device);", file="batch.cpp"),
    alone("a list has no domain above on the device", "mirror[i].parent_domain = domainsOnDevice + (above - domains.data());", file="batch.cpp"),
    # Parameters and catalogues.
    alone("rows of zeros are not cleared", "owned->fill(zeroRows.back()->ensure(bytes), 0, bytes);", "zeroRows.back()->ensure(bytes);", file="state.cpp"),
    alone("catalogues have no nulls", "keep(number, kValid, column.valid.data(), rows)", "keepAllValid(number, column, rows)", file="state.cpp"),
    alone("strings of a catalogue point to the host", "text.toDevice(strings, count, moved.data());", "std::copy(strings, strings + count, moved.begin());", file="state.cpp"),
    # Slots.
    slot("a slot keeps the mode of its first program", "mode = program.mode;"),
    slot("a slot keeps its first step's number", "step = stepNumber;"),
    slot("what a slot dispatched is dispatched", "onDevice->forget();"),
    slot("a rank waits for its first portion", "portions.back()->onDevice->await();", "portions.front()->onDevice->await();", runs="portions"),
    slot("a portion's buffers stay in the memory of another's", "placement.placedAt == base", "(placement.placedAt != nullptr)"),
    # Reports.
    alone("a metric has the keys of no rows", "report.key = fetch(key, rows);", file="reports.cpp"),
    alone("a metric weighs lists by their first rows", "fetch(weight, desc.per_list ? roomOf(domain->parent_domain) : rows)", "fetch(weight, 1)", file="reports.cpp"),
    alone("an output's nulls are those of rows", "report.valid = fetch(valid, rows * (desc.nulls == GENREC_NULLS_ELEMENTS ? width : 1));", "report.valid = nullptr;", file="reports.cpp"),
    alone("lists of a launched step are not fetched", "for (const FetchedDomain &fetched : recorded.domains)\n    useFetched(fetched);", file="reports.cpp"),
    alone("lists that the device makes have no offsets on the host", "host.offsets = fetched.offsets;", file="reports.cpp"),
    alone("the offset behind the last list is not fetched", "above->capacity + 1", "above->capacity", file="reports.cpp"),
    alone("a domain is fetched without those above it", "domain = domain->parent_domain", "domain = nullptr", file="reports.cpp"),
    alone("labels of a metric are never null", "report.valid = fetch(valid, rows);", "report.valid = nullptr;", file="reports.cpp"),
    alone("an output has nulls for its rows alone", "report.valid = fetch(valid, rows * (desc.nulls == GENREC_NULLS_ELEMENTS ? width : 1));", "report.valid = fetch(valid, rows);", file="reports.cpp"),
    seen("late", "what a launched step notes is lost", SESSION + "reports.cpp", "notes.repeat(subject);"),
    alone("domains of the step before are fetched", "std::fill(isFetched.begin(), isFetched.end(), 0);", file="reports.cpp"),
    # Ranks.
    seen("ranks", "a store's values lie where another's do", EXCHANGE, "layout.begins[store] = layout.floats();", "layout.begins[store] = layout.values;"),
    ranks("sums of dispatch are left out", "sums->reduce(on);"),
    ranks("a norm counts parameters of one rank", "of.travels = travels(ofParameters[i]);", "of.travels = !ofParameters[i];"),
    seen("replicas", "a norm counts parameters of all ranks", SESSION + "ranks.cpp", "of.travels = travels(ofParameters[i]);", "of.travels = true;"),
    seen("replicas", "a norm counts rows of replicas on each rank", SESSION + "ranks.cpp", "of.counts = ownedRows(slot.numberOf(owned[i]));", "of.counts = nullptr;"),
    ranks("shared parameters come from one rank", "rowsOf + begins[other]", "rowsOf + begins[other == 0 ? 0 : other - 1]", behind="const float *from ="),
    ranks("parameters are shared in the default stream", "comm.exchange(send, receive, {CommMemory::Kind::device, device.stream()});", "comm.exchange(send, receive, {CommMemory::Kind::device, nullptr});"),
    ranks("shared parameters lack the last float", "device.copyUnlessStopped(rows, from, floats, stopped);", "device.copyUnlessStopped(rows, from, floats - 1, stopped);"),
    ranks("sums travel before all portions have given theirs", "!ahead || !isDispatched || !ofParameters || !sums->isWhole(number)", "!ahead || !isDispatched || !ofParameters"),
    ranks("collected rows have no identity", "slots.front()->onDevice->identifyRows(table, collected(table).rows, countCollected(table),\n                                        owned->device);"),
    # The next step, beside this one.
    ranks("the next step is in the slots of this one", "turn = 1 - turn;", file="ahead.cpp"),
    ranks("portions of the next step are in the opposite order", "taken.push_back(place.slot);", "taken.insert(taken.begin(), place.slot);", file="ahead.cpp"),
    ranks("the last portion of the next step alone is dispatched", "slot->runDispatch();", "taken.back()->runDispatch();", file="ahead.cpp"),
    seen("laters", "updates of portions that meet are not captured", SESSION + "step.cpp", "slot.meetsPortions() && !isUpdating", "slot.meetsPortions()"),
    seen("laters", "an update has no end", SESSION + "step.cpp", "isUpdating = false;", behind="isUpdating = false;\n    throw;"),
    seen("ranks", "ids of 64 bits are beyond their table", "embedding/cuda/device.cu", "isThere && from.idBits < 64", "isThere"),
    seen("ranks", "a row by itself is missing", "embedding/cuda/device.cu", "count > 0", "count > 1", behind="void chooseMissing("),
    # What is noted.
    seen("refused", "merged ids have all bits", SESSION + "step.cpp", "from.idBits = table.id_bits;"),
    *GLUE,
]  # fmt: skip
