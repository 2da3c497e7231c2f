# ruff: noqa: E501 -- a defect per line
"""Defects of what emitted stages call kernels by: sizes, strides and domains that are handed over. Whole models show them."""

from planting import Defect, seen

KERNELS, SESSION = "include/genrec_rt/kernels/cuda/", "session/device_"
ATTENTION = "attention/step_attention.h"


def many(name: str, file: str, old: str, new: str, behind: str = "") -> Defect:
    return seen("many", name, KERNELS + file, old, new, behind)


def moved(name: str, old: str, new: str, behind: str = "", file: str = "lists.h") -> Defect:
    return seen("moved", name, KERNELS + file, old, new, behind)


GLUE = [
    many("a weight's gradient has 256 rows", "step_linear.h", "contraction.capacity = rows->capacity;", "contraction.capacity = std::min<int64_t>(rows->capacity, 256);"),
    many("nothing keeps what an activation is applied to", "step_linear.h", "product.pre = HasPre ? pre : nullptr;", "product.pre = nullptr;"),
    many("excluded items count", "step_rank.h", "ranked.excluding = excluding ? excluding->device : nullptr;", "ranked.excluding = nullptr;"),
    many("64 items are excluded", "step_rank.h", "ranked.excludedCapacity = excluding ? excluding->capacity : 0;", "ranked.excludedCapacity = 64;"),
    seen("unscored", "no score is NaN", KERNELS + "step_rank.h", "ranked.nanNote = genrec_rt_note_failure(step, op, nullptr, kNaNOfItems);", ";"),
    many("temperatures are 1", "step_in_batch.h", "1 / temperature", "1.0f"),
    many("softmax is over 256 rows of a batch", "step_in_batch.h", "rows->capacity", "256"),
    many("distinct rows have the weight's next row", "step_distinct.h", "cuda::multiplyDistinct(product, y, ldY, scratch, streamOf(step));",
         "auto other = product; other.weight += N; cuda::multiplyDistinct(other, y, ldY, scratch, streamOf(step));"),
    many("times are those of the events themselves", ATTENTION, "result.nextEventTime = args.nextEventTime;", ";"),
    many("every event sees the whole list", ATTENTION, "result.window = args.window;", ";"),
    moved("nobody sees the context", "result.contextual = args.contextual;", ";", file=ATTENTION),
    moved("targets are seen", "result.targets = args.targets;", ";", file=ATTENTION),
    moved("gradients of pairs have 256 rows", "cuda::addPairs(second->device, domain->device, width, x, ldX, out, second->capacity,\n                 streamOf(step));",
          "cuda::addPairs(second->device, domain->device, width, x, ldX, out, 256, streamOf(step));"),
    moved("a tile begins where its list does", "Last", "false", behind="cuda::tileRows(lists->device, count, "),
    moved("every row draws the numbers of one", "domain ? domain->capacity : 1", "1", file="picked_rows.h"),
    seen("many", "a row alone is there, of columns without nulls", SESSION + "batch.cpp", "mostValid = std::max(mostValid, rows.capacity);", "mostValid = 1;"),
    seen("moved", "nothing is there of a catalogue's column without nulls", SESSION + "state.cpp", "1", "0", behind="valid(static_cast<size_t>(std::max<int64_t>(rows, 1)), "),
    seen("moved", "flags of a catalogue's column are kept anew in every step", SESSION + "state.cpp", "column.values.data()", "nullptr", behind="Array array{number, kValid, "),
]  # fmt: skip
