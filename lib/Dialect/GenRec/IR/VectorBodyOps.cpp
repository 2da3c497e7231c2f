//===- VectorBodyOps.cpp - vector ops in the bodies of row kernels --------===//
//
// Ops of the vector dialect are body ops like ours: they say themselves how they are emitted and
// whose elements a lane reads.
//
//===----------------------------------------------------------------------===//

#include "VectorBodyOps.h"

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace genrec;

namespace {

template <typename OpT, BodyKind kind, bool reads>
struct VectorBody : BodyOpInterface::ExternalModel<VectorBody<OpT, kind, reads>, OpT> {
  BodyKind getBodyKind(Operation *) const { return kind; }
  bool readsOtherLanes(Operation *) const { return reads; }
  bool writesOtherLanes(Operation *) const { return false; }
};

/// Floats are combined in registers, other elements one after another from memory.
struct ReductionBody : BodyOpInterface::ExternalModel<ReductionBody, vector::ReductionOp> {
  BodyKind getBodyKind(Operation *) const { return BodyKind::call; }
  bool readsOtherLanes(Operation *op) const {
    return !cast<vector::ReductionOp>(op).getVector().getType().getElementType().isF32();
  }
  bool writesOtherLanes(Operation *) const { return false; }
};

template <typename OpT, BodyKind kind, bool reads> void attach(MLIRContext *context) {
  OpT::template attachInterface<VectorBody<OpT, kind, reads>>(*context);
}

} // namespace

void genrec::attachVectorBodies(MLIRContext *context) {
  vector::ReductionOp::attachInterface<ReductionBody>(*context);
  attach<vector::ExtractStridedSliceOp, BodyKind::address, true>(context);
  attach<vector::ExtractOp, BodyKind::scalar, true>(context);
  attach<vector::BroadcastOp, BodyKind::element, false>(context);
}
