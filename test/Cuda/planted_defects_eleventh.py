# ruff: noqa: E501 -- a defect per line
"""What mutants of the eleventh seed showed that tests had no input for."""

from planting import Defect

ELEVENTH = [
    Defect("a size in a text has no digit behind the point", "core/cuda/memory.cu", "CudaStore.OutOfMemory*", "digits.find('.') + 2", "digits.find('.') + 1"),
    Defect("later architectures have no instructions of their own", "core/cuda/find_device.cu", "Seeds/DeviceRanks.AreRefusedWithoutCode*/0", "found >= 90", "found == 90"),
    Defect("any number of ids is looked up at once", "embedding/cuda/store.cu", "CudaStore.MoreIds*", "count >= kMostRows", "false"),
    Defect("parts with room for one entry have none", "embedding/cuda/distinct_rows.cu", "DistinctRows.OfParts*", "capacity > 0", "capacity > 1", behind="unsigned count = 0;"),
    Defect("a single block of columns is not launched", "include/genrec_rt/kernels/cuda/launch.h", "ColumnBodies.OneColumn*", "blocks > 0", "blocks > 1"),
    Defect("the rest beside joined gradients is one word", "include/genrec_rt/kernels/cuda/attention/joined_gradients.h", "AttentionJoined.BehindARest*", "rows->count * restWords", "rows->count"),
    Defect("products of no elements are cut into any number of chunks", "kernels/cuda/sized_products.cu", "SizedProducts.NoRows*", "std::max<int64_t>(p.m.most * p.n.most * 4, 1)", "p.m.most * p.n.most * 4"),
    Defect("gradients of distinct rows are taken for aligned", "kernels/cuda/distinct.cu", "DistinctProducts.GradientsAreAligned*", "reinterpret_cast<uintptr_t>(to) % 16 == 0", "true"),
    Defect("steps of ranks on devices are counted with the one that no batch was left for", "session/session_steps.cpp", "Seeds/DeviceRanks.HaveTheBitsOfOne/0", "count - 1", "count", behind="if (next.slots.empty()) {\n      roundsAhead += ahead.rounds();\n      return "),
    Defect("steps of a device are counted with one that was not run", "session/session_steps.cpp", "Seeds/DeviceSteps.HaveTheBitsOfTheHost/0", "count", "count + 1", behind="if (queued.empty())\n      return "),
    Defect("marks of a profile keep the names of another step", "session/device_profile.cpp", "DevicePromises.ProfiledSteps*", "marks[count].what = what;"),
]  # fmt: skip
