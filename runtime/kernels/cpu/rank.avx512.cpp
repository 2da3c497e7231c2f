//===- rank.avx512.cpp - Scans over a catalogue for AVX-512 ---------------===//

#include "rank_impl.h"

namespace genrec::rt::kernels {

const RankScan &avx512RankScan() { return kRankScan; }

} // namespace genrec::rt::kernels
