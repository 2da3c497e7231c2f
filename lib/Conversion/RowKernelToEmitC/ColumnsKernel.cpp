//===- ColumnsKernel.cpp - the kernel of a launch of columns --------------===//

#include "ColumnsKernel.h"

#include "genrec/Target/EmitC/Fields.h"
#include "genrec_rt/device_limits.h"

using namespace mlir;
using namespace genrec;

emitc::FuncOp genrec::emitColumnsKernel(const EmitCBuilder &b, StringRef name,
                                        ArrayRef<Attribute> bodies, ArrayRef<ColumnShape> columns) {
  int64_t pointers = 0, most = 0;
  for (const ColumnShape &column : columns) {
    pointers += column.pointers;
    most = std::max(most, column.pointers);
  }
  // Where one launch cannot pass all columns, launchColumns makes several.
  auto room = static_cast<int64_t>(columns.size());
  if (rt::columnBytes(room, pointers) > rt::kMostColumnBytes) {
    room = std::min(room, rt::kSomeColumns);
    pointers = std::max(rt::kSomeColumnPointers, most); // one has them all in one launch
    while (room > 1 && rt::columnBytes(room, pointers) > rt::kMostColumnBytes)
      room /= 2;
  }
  std::string type = "__grid_constant__ const kernels::Columns<" + std::to_string(room) + ", " +
                     std::to_string(pointers) + ">";
  Type types[] = {b.pointer(b.opaque("const genrec_step")), b.opaque(type)};
  auto function =
      emitc::FuncOp::create(b.builder, b.loc, name, b.builder.getFunctionType(types, {}));
  std::string bounds = "__launch_bounds__(" + std::to_string(rt::kColumnThreads) + ")";
  function.setSpecifiersAttr(b.builder.getStrArrayAttr({"extern \"C\"", "__global__", bounds}));
  Block *entry = function.addEntryBlock();
  SmallVector<Attribute> arguments;
  for (Attribute body : bodies)
    arguments.push_back(b.templateName(cast<FlatSymbolRefAttr>(body).getValue()));
  {
    OpBuilder::InsertionGuard guard(b.builder);
    b.builder.setInsertionPointToStart(entry);
    for (auto [argument, title] :
         llvm::zip(entry->getArguments(), ArrayRef<StringRef>{"step", "columns"}))
      argument.setLoc(NameLoc::get(b.builder.getStringAttr(title), b.loc));
    b.callVoid("kernels::runColumns", entry->getArguments(), arguments);
    emitc::ReturnOp::create(b.builder, b.loc, Value());
  }
  return function;
}

void genrec::emitColumnShapes(const EmitCBuilder &b, StringRef name,
                              ArrayRef<ColumnShape> columns) {
  SmallVector<Attribute> shapes;
  for (const ColumnShape &column : columns) {
    Fields fields(b.getContext());
    fields.integer("program", column.program).integer("rows", column.rows);
    fields.integer("pointers", column.pointers).integer("domain", column.domain);
    if (column.parts >= 0)
      fields.integer("leaves", column.leaves).integer("parts", column.parts);
    shapes.push_back(fields.get());
  }
  auto count = static_cast<int64_t>(shapes.size());
  b.constexprGlobal(name, emitc::ArrayType::get({count}, b.opaque("kernels::ColumnShape")),
                    b.builder.getArrayAttr(shapes));
}
