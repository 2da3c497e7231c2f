//===- attention_giants.h - Lists that are cut into pieces ------*- C++ -*-===//
//
// One list is one thread's work, unless it is most of what there is to do: then its
// queries, and in backward its keys, are cut into pieces of a fixed size. Which
// lists are cut depends on the lengths alone, so results have the same bits at any
// number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ATTENTION_GIANTS_H
#define GENREC_RT_KERNELS_CPU_ATTENTION_GIANTS_H

#include "genrec_rt/kernels/cpu/attention_common.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// Rows of a piece: a multiple of the vector, of the query block of backward and of
/// every tile height, and so many that packing the keys per piece costs little.
inline constexpr int64_t kGiantPiece = 480;

/// The giants among the lists: more than two pieces long, and with more than one
/// part in kGiantShare of all pairs of queries and keys (a pool of more threads
/// than that would idle). None with `mayCut` off: masks of context and targets look
/// at the whole list.
class GiantLists {
public:
  explicit GiantLists(const AttentionArgs &args, bool mayCut = true)
      : args(args), mayCut(mayCut) {
    for (int64_t list = 0; list < args.parents; ++list)
      pairs += pairsOf(list);
  }

  bool contains(int64_t list) const {
    return mayCut && lengthOf(list) > 2 * kGiantPiece &&
           pairsOf(list) * kGiantShare > pairs;
  }

  /// Calls `body(list, pieces)` for each, in order.
  template <class Body> void forEach(const Body &body) const {
    for (int64_t list = 0; list < args.parents; ++list)
      if (contains(list))
        body(list, (lengthOf(list) + kGiantPiece - 1) / kGiantPiece);
  }

private:
  static constexpr double kGiantShare = 32;

  int64_t lengthOf(int64_t list) const {
    return args.offsets[list + 1] - args.offsets[list];
  }
  double pairsOf(int64_t list) const {
    return static_cast<double>(lengthOf(list)) *
           static_cast<double>(lengthOf(list));
  }

  const AttentionArgs &args;
  bool mayCut;
  double pairs = 0;
};

/// Piece `index` of a giant.
struct GiantPiece {
  int64_t head;
  KeyRange rows;

  GiantPiece(const AttentionArgs &args, int64_t list, int64_t index) {
    int64_t length = args.offsets[list + 1] - args.offsets[list];
    int64_t pieces = (length + kGiantPiece - 1) / kGiantPiece;
    head = index / pieces;
    rows.low = index % pieces * kGiantPiece;
    rows.high = rows.low + kGiantPiece < length ? rows.low + kGiantPiece : length;
  }
};

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ATTENTION_GIANTS_H
