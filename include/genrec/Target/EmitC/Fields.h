//===- Fields.h - the initial value of a C struct ---------------*- C++ -*-===//

#ifndef GENREC_TARGET_EMITC_FIELDS_H
#define GENREC_TARGET_EMITC_FIELDS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/Builders.h"

namespace genrec {

/// The initial value of one struct, field by field.
class Fields {
public:
  explicit Fields(mlir::MLIRContext *context) : builder(context) {}

  Fields &text(llvm::StringRef field, llvm::StringRef value) {
    return add(field, builder.getStringAttr(value));
  }
  Fields &integer(llvm::StringRef field, int64_t value) {
    return add(field, builder.getI64IntegerAttr(value));
  }
  Fields &boolean(llvm::StringRef field, bool value) {
    return add(field, builder.getBoolAttr(value));
  }
  Fields &number(llvm::StringRef field, double value) {
    return add(field, builder.getF64FloatAttr(value));
  }
  /// A name that is defined in C++.
  Fields &name(llvm::StringRef field, const llvm::Twine &value) {
    return add(field, mlir::emitc::OpaqueAttr::get(builder.getContext(), value.str()));
  }
  /// Another struct, or an array.
  Fields &add(llvm::StringRef field, mlir::Attribute value) {
    names.push_back(builder.getStringAttr(field));
    values.push_back(value);
    return *this;
  }
  FieldsAttr get() const { return FieldsAttr::get(builder.getContext(), names, values); }

private:
  mlir::Builder builder;
  llvm::SmallVector<mlir::StringAttr> names;
  llvm::SmallVector<mlir::Attribute> values;
};

} // namespace genrec

#endif // GENREC_TARGET_EMITC_FIELDS_H
