//===- row_travel.h - How table rows travel between ranks -------*- C++ -*-===//

#ifndef GENREC_RT_ROW_TRAVEL_H
#define GENREC_RT_ROW_TRAVEL_H

namespace genrec::rt {

/// What differs between ways of moving the rows of sharded tables. Other ways than the default one
/// cost time, to measure what is saved, or exactness, to save bytes.
struct RowTravel {
  /// A key travels once per rank and step. Else once per entry, and so do its row and gradients:
  /// the owner adds those that the requester would have added, in another order.
  bool requestersDeduplicate = true;
  /// A key that several ranks ask for is found once. Else once for each; results are the same.
  bool ownersDeduplicate = true;
  /// Values, and sums of gradients, travel as bf16, rounded to the nearest, ties to even. Those
  /// that stay on a rank are not rounded.
  bool bf16Values = false, bf16Sums = false;

  /// Whether the number of ranks changes no bits.
  bool keepsBits() const { return requestersDeduplicate && !bf16Values && !bf16Sums; }
};

} // namespace genrec::rt

#endif // GENREC_RT_ROW_TRAVEL_H
