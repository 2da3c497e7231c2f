//===- Attributes.cpp - verifiers of encodings and initializers -----------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include <cmath>

using namespace mlir;
using namespace genrec;

LogicalResult RowsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  auto complain = [&](StringRef rule) -> LogicalResult {
    InFlightDiagnostic diagnostic = emitError() << "rows of " << getDomain() << " must " << rule
                                                << ", but the tensor is [";
    for (auto [index, size] : llvm::enumerate(shape)) {
      diagnostic << (index ? ", " : "");
      if (ShapedType::isDynamic(size))
        diagnostic << "?";
      else
        diagnostic << size;
    }
    return diagnostic << "] x " << rules::typeText(elementType);
  };
  if (shape.empty() || !ShapedType::isDynamic(shape.front()))
    return complain("have a dynamic first size, the number of rows");
  if (shape.size() > 2)
    return complain("be scalars or vectors: one size per row at most");
  if (shape.size() == 2 && (ShapedType::isDynamic(shape[1]) || shape[1] == 0))
    return complain("have a static size of at least 1 per row");
  bool known = elementType.isSignlessInteger(1) || elementType.isSignlessInteger(32) ||
               elementType.isSignlessInteger(64) || elementType.isF32() || elementType.isF64() ||
               elementType.isBF16() || isa<StringType, RowType>(elementType);
  if (!known)
    return complain("have elements of i1, i32, i64, f32, f64, bf16, !genrec.string or !genrec.row");
  if (shape.size() == 2 && isa<StringType, RowType>(elementType))
    return complain("have one string or table row each");
  return success();
}

LogicalResult InitAttr::verify(function_ref<InFlightDiagnostic()> emitError, InitKind kind,
                               FloatAttr scale) {
  double value = scale.getValueAsDouble();
  if (!std::isfinite(value) || (kind != InitKind::constant && value < 0.0))
    return emitError() << "initializer " << stringifyInitKind(kind) << " must have a finite scale"
                       << (kind == InitKind::constant ? "" : " of at least 0") << ", but has "
                       << scale;
  return success();
}
