//===- RowMapping.h - threads of a row on a device --------------*- C++ -*-===//
//
// How rows and elements of a row kernel are distributed to the threads of a device: the one place
// that decides it (genrec_rt/kernels/cuda/lanes.h has the terms).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWMAPPING_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWMAPPING_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <optional>

namespace genrec {

class EmitCBuilder;

struct RowMapping {
  /// Threads per row: 1, a power of two up to a warp, or a block of 256 or 1,024.
  int64_t lanes = 1;
  /// Neighbouring elements that a lane has together. `lanes` times `pack` is at least 16 where
  /// there are several lanes, so that reductions add in the order of the CPU without leaving
  /// registers.
  int64_t pack = 1;
  /// Elements by which every access to a pack in memory is aligned: 4, 2 or 1.
  int64_t aligned = 1;
  /// Elements of the widest vector that lanes have; 0: the body has scalars alone. Of a row that is
  /// only read in slices, or joined of parts where it is stored, lanes have parts.
  int64_t widest = 0;
  /// Whether the rows of a chunk, whose sums are added up, are worked on at the same time.
  bool isSpread = false;

  /// Whether lanes reduce a row through shared memory: `reducesByMemory` of row_mapping.h.
  bool reducesByMemory() const { return lanes > 32 || (lanes == 32 && pack > 1); }
  /// Bytes by which `size` floats that a row adds to a sum are aligned.
  static int64_t alignAddends(int64_t size) { return size == 1 ? 4 : 16; }
  /// The most threads of a block: `fullBlockThreads` of row_mapping.h.
  int64_t getBlockThreads() const {
    return isSpread && lanes >= 8 ? 256 : std::max<int64_t>(lanes, 128);
  }
};

/// The rule. A lane has about 16 elements of the widest vector:
///
///     scalars, or up to 8 elements     a thread per row
///     up to 256                        4 to 16 threads, as many as have 16 elements each
///     up to 1,024                      a warp
///     more                             a block
///
/// and packs are as wide as all rows and offsets are multiples of.
///
/// Sums over all rows are added in the order of a chunk's rows. The rows are worked on at the same
/// time where all that those of a block add fits into 24 KiB of shared memory, and each adds to a
/// sum once; else one after the other, and their lanes keep the sums.
RowMapping getRowMapping(RowKernelOp kernel);

/// The terms that each row leaves of a scattered sum, which are ordered and added behind the kernel
/// (SumShape of genrec_rt/kernels/cuda/row_mapping.h has the members and the rule).
struct RowTerms {
  int64_t count = 0, width = 1;
  bool isScaled = false;
  bool isRounded = false;                ///< all are multiples of one vector, of bfloat16
  mlir::SmallVector<AccumulateOp> adds;  ///< a vector each, unless `isRounded`
  mlir::SmallVector<int64_t> firstTerms; ///< by add
  /// By add, where `isRounded`: what the vector is multiplied by, or null where the add says it.
  mlir::SmallVector<mlir::Value> scales;

  int64_t getNumber(AccumulateOp add) const { return llvm::find(adds, add) - adds.begin(); }
  /// The scalar that `add` leaves in place of its value: what the vector is multiplied by; null
  /// where its value is read.
  mlir::Value getScale(AccumulateOp add) const {
    return isRounded ? scales[getNumber(add)] : mlir::Value();
  }
  /// The number of the vector that `add` leaves.
  int64_t getVector(AccumulateOp add) const { return isRounded ? 0 : getNumber(add); }
  int64_t countVectors() const { return isRounded ? 1 : adds.size(); }
  /// As template arguments of the functions of scattered_terms.h.
  mlir::SmallVector<mlir::Attribute> getTemplate(const EmitCBuilder &b) const;
};

/// Those of result `result`; nothing where each chunk of rows has a sum of its own.
std::optional<RowTerms> getRowTerms(RowKernelOp kernel, unsigned result);

/// Whether elements of the vector are read by other lanes than those that compute them, so that it
/// must lie in memory.
bool isReadByOtherLanes(mlir::Value vector, const RowMapping &mapping);

/// Whether lanes of a row must meet between phases: they read what others wrote.
bool lanesMeet(RowKernelOp kernel, const RowMapping &mapping);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWMAPPING_H
