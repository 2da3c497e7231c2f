//===- parameter_shards.h - Ranks share updates of parameters ----*- C++ -*-===//
//
// ZeRO, stage 1 (Rajbhandari et al., arXiv:1910.02054): each rank keeps the optimizer states of
// some rows of the dense parameters, updates those, and gets the new values of the others. Every
// rank has all values.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_PARAMETER_SHARDS_H
#define GENREC_RT_SESSION_PARAMETER_SHARDS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/comm.h"

#include <span>
#include <vector>

namespace genrec::rt {

/// Which rank updates which rows of which parameter, and where values lie: in one block, those that
/// are trained first, in their order. So what a rank updates is contiguous, and travels as it is.
class ParameterShards {
public:
  struct Rows {
    int64_t first = 0, count = 0;
  };

  /// Cuts the rows of all trained parameters, in their order, into one run per rank, of about as
  /// many floats of values and states; a row is not cut. 1 rank: it updates all.
  ParameterShards(const genrec_model_desc &model, int32_t ranks);

  bool areShared() const { return ranks > 1; }
  int32_t countRanks() const { return ranks; }
  /// Whether an update rule changes it.
  bool isTrained(int32_t parameter) const { return parameters[parameter].isTrained; }
  int64_t countFloats(int32_t parameter) const {
    return parameters[parameter].rows * parameters[parameter].width;
  }
  /// Floats of a row.
  int64_t width(int32_t parameter) const { return parameters[parameter].width; }
  /// Rows of rank `rank`, which follow those of the rank before.
  Rows of(int32_t parameter, int32_t rank) const {
    const int64_t *bounds = parameters[parameter].bounds.data() + rank;
    return {bounds[0], bounds[1] - bounds[0]};
  }

  /// Rank r has rows bounds[r] to bounds[r + 1] - 1.
  std::span<const int64_t> bounds(int32_t parameter) const { return parameters[parameter].bounds; }

  /// Floats of the block of all values.
  int64_t countFloats() const { return floats; }
  /// Where a parameter's value begins in it: at a multiple of 64 bytes.
  int64_t start(int32_t parameter) const { return parameters[parameter].start; }
  /// The new values of all rows, into `block`, of which this rank has updated its own. Returns how
  /// many bytes came. Collective.
  int64_t gather(Communicator &comm, float *block);

private:
  struct Parameter {
    int64_t rows, width, start = 0;
    bool isTrained;
    std::vector<int64_t> bounds; ///< of rows, by rank
  };
  void cutRows(const genrec_model_desc &model);
  void placeValues(const genrec_model_desc &model);

  int32_t ranks;
  std::vector<Parameter> parameters;
  int64_t floats = 0;
  std::vector<int64_t> cuts; ///< rank r updates the floats cuts[r] to cuts[r + 1] - 1 of the block
  std::vector<SendPart> send;
  std::vector<ReceivePart> receive;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_PARAMETER_SHARDS_H
