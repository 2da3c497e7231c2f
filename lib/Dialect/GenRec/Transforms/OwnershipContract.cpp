//===- OwnershipContract.cpp - what a program reads and trains ------------===//

#include "OwnershipContract.h"

#include "genrec/Dialect/GenRec/IR/ColumnTags.h"

using namespace mlir;
using namespace genrec;

/// Adds the members of the merged table `table` whose keys are in `keys`.
static void addMembers(TableOp table, Value keys, Names &names) {
  if (auto merged = keys.getDefiningOp<MergedKeysOp>())
    names.insert(merged.getTables().begin(), merged.getTables().end());
  auto transform = keys.getDefiningOp<TransformColumnsOp>();
  if (!transform)
    return;
  ArrayRef<Attribute> members = table.getMembersAttr().getValue();
  for (const TransformColumnsOp::Column &column : transform.getColumns()) {
    if (transform->getResult(column.result) != keys)
      continue;
    std::optional<ColumnTag> tag = getColumnTag(transform, column);
    uint64_t number =
        tag ? static_cast<uint64_t>(tag->value >> table.getKeyBits()) : members.size();
    if (number < members.size())
      names.insert(members[number]);
  }
}

Names genrec::collectReadTables(ProgramOp program) {
  Names names;
  auto add = [&](FlatSymbolRefAttr name, Value ids) {
    TableOp table = lookupTable(program, name);
    if (table && table.getMembersAttr())
      addMembers(table, ids, names);
    else
      names.insert(name);
  };
  for (Operation &op : program.getBody().front())
    if (auto read = dyn_cast<TableReadOpInterface>(op))
      add(read.getReadTable(), read.getReadKeys());
  return names;
}

Names genrec::collectReadColumns(ProgramOp program) {
  Names names;
  for (auto feature : program.getBody().front().getOps<FeatureOp>())
    names.insert(
        StringAttr::get(program.getContext(), feature.getDomain().getType().getDomain().getValue() +
                                                  ": " + feature.getColumn()));
  return names;
}

void genrec::writeOwnershipContract(ProgramOp program) {
  SmallVector<Attribute> trained;
  for (auto update : program.getBody().front().getOps<UpdateTableOp>()) {
    llvm::SmallPtrSet<Value, 8> lists(update.getIds().begin(), update.getIds().end());
    trained.append(lists.size(), update.getTableAttr());
  }
  auto write = [&](StringRef name, ArrayRef<Attribute> names) {
    if (!names.empty())
      program->setAttr(name, ArrayAttr::get(program.getContext(), names));
  };
  write(GenRecDialect::ColumnsAttrHelper::getNameStr(), collectReadColumns(program).getArrayRef());
  write(GenRecDialect::TablesAttrHelper::getNameStr(), collectReadTables(program).getArrayRef());
  write(GenRecDialect::TrainsAttrHelper::getNameStr(), trained);
}
