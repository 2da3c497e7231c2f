//===- CppPrinter.cpp - prints EmitC as C++ -------------------------------===//

#include "genrec/Target/Cpp/CppPrinter.h"

#include "CppInlining.h"
#include "CppText.h"

#include "genrec/Target/EmitC/EmitCBuilder.h"

#include "mlir/Support/IndentedOstream.h"

using namespace mlir;
using namespace genrec;

namespace {

/// The precedence of an expression; higher binds tighter.
enum Precedence {
  kConditional = 1,
  kLogicalOr,
  kLogicalAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPostfix
};

struct Expression {
  std::string text;
  int precedence = kPostfix;
};

/// Prints one function.
class FunctionPrinter {
public:
  /// `symbols`: names of the unit.
  FunctionPrinter(emitc::FuncOp function, const llvm::StringSet<> &symbols,
                  raw_indented_ostream &os)
      : function(function), os(os), inlining(function), names(symbols) {}

  LogicalResult print();

private:
  LogicalResult printBlock(Block &block);
  LogicalResult printOp(Operation *op);
  LogicalResult printFor(emitc::ForOp loop);
  LogicalResult printIf(emitc::IfOp op);
  void printVariable(emitc::VariableOp variable);

  /// `value` as an expression, in parentheses if its precedence is below `least`.
  FailureOr<std::string> get(Value value, int least = kConditional);
  FailureOr<Expression> getExpression(Operation *op);
  FailureOr<Expression> getBinary(Operation *op, StringRef symbol, int precedence);
  FailureOr<Expression> getUnary(Operation *op, StringRef symbol);
  FailureOr<Expression> getCall(emitc::CallOpaqueOp call);
  FailureOr<Expression> getLValue(Operation *op);
  FailureOr<Expression> getAddress(emitc::AddressOfOp op);
  std::string name(Value value, StringRef fallback);

  emitc::FuncOp function;
  raw_indented_ostream &os;
  CppInlining inlining;
  CppNames names;
  llvm::DenseMap<Value, std::string> valueNames;
};

} // namespace

std::string FunctionPrinter::name(Value value, StringRef fallback) {
  StringRef wanted = getUserName(value.getLoc());
  std::string result = names.make(wanted.empty() ? fallback : wanted);
  valueNames[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

FailureOr<std::string> FunctionPrinter::get(Value value, int least) {
  if (auto known = valueNames.find(value); known != valueNames.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  if (!op || !inlining.isInlined(op))
    return emitError(value.getLoc(), "is used before it is printed");
  FailureOr<Expression> expression = getExpression(op);
  if (failed(expression))
    return failure();
  return expression->precedence < least ? "(" + expression->text + ")" : expression->text;
}

FailureOr<Expression> FunctionPrinter::getBinary(Operation *op, StringRef symbol, int precedence) {
  FailureOr<std::string> lhs = get(op->getOperand(0), precedence);
  FailureOr<std::string> rhs = get(op->getOperand(1), precedence + 1);
  if (failed(lhs) || failed(rhs))
    return failure();
  return Expression{*lhs + " " + symbol.str() + " " + *rhs, precedence};
}

FailureOr<Expression> FunctionPrinter::getUnary(Operation *op, StringRef symbol) {
  // `--x` would be a decrement.
  FailureOr<std::string> operand = get(op->getOperand(0), symbol == "-" ? kPostfix : kUnary);
  if (failed(operand))
    return failure();
  return Expression{symbol.str() + *operand, kUnary};
}

static FailureOr<std::string> getTemplateArgument(Attribute argument, Operation *op) {
  if (auto type = dyn_cast<TypeAttr>(argument))
    return getCppType(type.getValue());
  if (auto text = dyn_cast<emitc::OpaqueAttr>(argument))
    return text.getValue().str();
  if (isa<IntegerAttr>(argument))
    return getCppConstant(argument, Type());
  return op->emitOpError() << "has a template argument without a C++ form: " << argument;
}

FailureOr<Expression> FunctionPrinter::getCall(emitc::CallOpaqueOp call) {
  if (call.getArgs())
    return call.emitOpError("has attributes among its arguments, which genrec never makes");
  std::string text = call.getCallee().str();
  if (std::optional<ArrayAttr> arguments = call.getTemplateArgs()) {
    SmallVector<std::string> parts;
    for (Attribute argument : *arguments) {
      FailureOr<std::string> part = getTemplateArgument(argument, call);
      if (failed(part))
        return failure();
      parts.push_back(*part);
    }
    text += "<" + llvm::join(parts, ", ") + ">";
  }
  SmallVector<std::string> operands;
  for (Value operand : call.getOperands()) {
    FailureOr<std::string> part = get(operand);
    if (failed(part))
      return failure();
    operands.push_back(*part);
  }
  return Expression{text + "(" + llvm::join(operands, ", ") + ")", kPostfix};
}

FailureOr<Expression> FunctionPrinter::getLValue(Operation *op) {
  if (auto global = dyn_cast<emitc::GetGlobalOp>(op))
    return Expression{global.getName().str(), kPostfix};
  if (auto subscript = dyn_cast<emitc::SubscriptOp>(op)) {
    FailureOr<std::string> base = get(subscript.getValue(), kPostfix);
    if (failed(base))
      return failure();
    for (Value index : subscript.getIndices()) {
      FailureOr<std::string> part = get(index);
      if (failed(part))
        return failure();
      *base += "[" + *part + "]";
    }
    return Expression{*base, kPostfix};
  }
  if (isa<emitc::DereferenceOp>(op))
    return getUnary(op, "*");
  auto member = cast<emitc::MemberOp>(op);
  Value of = member.getOperand();
  StringRef accessor = ".";
  // (*p).field is printed as p->field, and (&x)->field as x.field.
  if (auto pointer = of.getDefiningOp<emitc::DereferenceOp>()) {
    of = pointer.getPointer();
    accessor = "->";
    auto address = of.getDefiningOp<emitc::AddressOfOp>();
    if (address && inlining.isInlined(address)) {
      of = address.getReference();
      accessor = ".";
    }
  }
  FailureOr<std::string> base = get(of, kPostfix);
  if (failed(base))
    return failure();
  return Expression{*base + accessor.str() + member.getMember().str(), kPostfix};
}

FailureOr<Expression> FunctionPrinter::getAddress(emitc::AddressOfOp op) {
  // &array[0] is printed as array.
  if (auto subscript = op.getReference().getDefiningOp<emitc::SubscriptOp>()) {
    auto index = subscript.getIndices()[0].getDefiningOp<emitc::ConstantOp>();
    auto zero = index ? dyn_cast<IntegerAttr>(index.getValue()) : IntegerAttr();
    if (zero && zero.getValue().isZero() && isa<emitc::ArrayType>(subscript.getValue().getType())) {
      FailureOr<std::string> base = get(subscript.getValue(), kPostfix);
      if (failed(base))
        return failure();
      return Expression{*base, kPostfix};
    }
  }
  return getUnary(op, "&");
}

static std::pair<StringRef, int> getOperator(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::pair<StringRef, int>>(op)
      .Case<emitc::AddOp>([](auto) { return std::pair("+", kSum); })
      .Case<emitc::SubOp>([](auto) { return std::pair("-", kSum); })
      .Case<emitc::MulOp>([](auto) { return std::pair("*", kProduct); })
      .Case<emitc::DivOp>([](auto) { return std::pair("/", kProduct); })
      .Case<emitc::RemOp>([](auto) { return std::pair("%", kProduct); })
      .Case<emitc::BitwiseAndOp>([](auto) { return std::pair("&", kBitAnd); })
      .Case<emitc::BitwiseOrOp>([](auto) { return std::pair("|", kBitOr); })
      .Case<emitc::BitwiseXorOp>([](auto) { return std::pair("^", kBitXor); })
      .Case<emitc::BitwiseLeftShiftOp>([](auto) { return std::pair("<<", kShift); })
      .Case<emitc::BitwiseRightShiftOp>([](auto) { return std::pair(">>", kShift); })
      .Case<emitc::LogicalAndOp>([](auto) { return std::pair("&&", kLogicalAnd); })
      .Case<emitc::LogicalOrOp>([](auto) { return std::pair("||", kLogicalOr); })
      .Case([](emitc::CmpOp cmp) -> std::pair<StringRef, int> {
        switch (cmp.getPredicate()) {
        case emitc::CmpPredicate::eq:
          return {"==", kEquality};
        case emitc::CmpPredicate::ne:
          return {"!=", kEquality};
        case emitc::CmpPredicate::lt:
          return {"<", kRelation};
        case emitc::CmpPredicate::le:
          return {"<=", kRelation};
        case emitc::CmpPredicate::gt:
          return {">", kRelation};
        case emitc::CmpPredicate::ge:
          return {">=", kRelation};
        case emitc::CmpPredicate::three_way:
          return {"", 0};
        }
        llvm_unreachable("every comparison is handled");
      })
      .Default([](Operation *) { return std::pair(StringRef(), 0); });
}

FailureOr<Expression> FunctionPrinter::getExpression(Operation *op) {
  if (auto constant = dyn_cast<emitc::ConstantOp>(op)) {
    std::string text = getCppConstant(constant.getValue(), constant.getType());
    return Expression{text, text[0] == '-' ? kUnary : kPostfix};
  }
  if (auto literal = dyn_cast<emitc::LiteralOp>(op))
    return Expression{literal.getValue().str(), kPostfix};
  if (isPlaceOrConstant(op))
    return getLValue(op);
  if (auto load = dyn_cast<emitc::LoadOp>(op)) {
    FailureOr<std::string> place = get(load.getOperand(), kUnary);
    if (failed(place))
      return failure();
    return Expression{*place, kPostfix};
  }
  if (auto call = dyn_cast<emitc::CallOpaqueOp>(op))
    return getCall(call);
  if (auto address = dyn_cast<emitc::AddressOfOp>(op))
    return getAddress(address);
  if (auto cast = dyn_cast<emitc::CastOp>(op))
    return getUnary(op, "(" + getCppType(cast.getType()) + ")");
  if (isa<emitc::UnaryMinusOp>(op))
    return getUnary(op, "-");
  if (isa<emitc::LogicalNotOp>(op))
    return getUnary(op, "!");
  if (isa<emitc::BitwiseNotOp>(op))
    return getUnary(op, "~");
  if (isa<emitc::ConditionalOp>(op)) {
    FailureOr<std::string> condition = get(op->getOperand(0), kLogicalOr);
    FailureOr<std::string> onTrue = get(op->getOperand(1), kLogicalOr);
    FailureOr<std::string> onFalse = get(op->getOperand(2), kLogicalOr);
    if (failed(condition) || failed(onTrue) || failed(onFalse))
      return failure();
    return Expression{*condition + " ? " + *onTrue + " : " + *onFalse, kConditional};
  }
  auto [symbol, precedence] = getOperator(op);
  if (symbol.empty())
    return op->emitOpError("has no C++ form");
  return getBinary(op, symbol, precedence);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void FunctionPrinter::printVariable(emitc::VariableOp variable) {
  std::string title = name(variable.getResult(), "t");
  auto array = dyn_cast<emitc::ArrayType>(variable.getType());
  if (array && array.getElementType().isIntOrFloat())
    os << "alignas(64) ";
  os << getCppDeclaration(variable.getType(), title, false, false);
  std::string value = getCppConstant(variable.getValue(), Type());
  if (!value.empty())
    os << " = " << value;
  os << ";\n";
}

LogicalResult FunctionPrinter::printFor(emitc::ForOp loop) {
  FailureOr<std::string> begin = get(loop.getLowerBound()), end = get(loop.getUpperBound(), kShift);
  FailureOr<std::string> step = get(loop.getStep());
  if (failed(begin) || failed(end) || failed(step))
    return failure();
  Value variable = loop.getInductionVar();
  names.enterScope();
  std::string i = name(variable, "i");
  os << "for (" << getCppType(variable.getType()) << " " << i << " = " << *begin << "; " << i
     << " < " << *end << "; ";
  if (*step == "1")
    os << "++" << i;
  else
    os << i << " += " << *step;
  os << ") {\n";
  os.indent();
  if (failed(printBlock(*loop.getBody())))
    return failure();
  names.leaveScope();
  os.unindent() << "}\n";
  return success();
}

LogicalResult FunctionPrinter::printIf(emitc::IfOp op) {
  FailureOr<std::string> condition = get(op.getCondition());
  if (failed(condition))
    return failure();
  os << "if (" << *condition << ") {\n";
  os.indent();
  if (failed(printBlock(op.getThenRegion().front())))
    return failure();
  os.unindent() << "}\n";
  if (op.getElseRegion().empty())
    return success();
  os << "else {\n";
  os.indent();
  if (failed(printBlock(op.getElseRegion().front())))
    return failure();
  os.unindent() << "}\n";
  return success();
}

LogicalResult FunctionPrinter::printOp(Operation *op) {
  if (isa<emitc::YieldOp>(op) || inlining.isInlined(op))
    return success();
  if (auto loop = dyn_cast<emitc::ForOp>(op))
    return printFor(loop);
  if (auto condition = dyn_cast<emitc::IfOp>(op))
    return printIf(condition);
  if (auto variable = dyn_cast<emitc::VariableOp>(op)) {
    printVariable(variable);
    return success();
  }
  if (auto verbatim = dyn_cast<emitc::VerbatimOp>(op)) {
    os << verbatim.getValue() << "\n";
    return success();
  }
  if (auto assign = dyn_cast<emitc::AssignOp>(op)) {
    FailureOr<std::string> place = get(assign.getVar()), value = get(assign.getValue());
    if (failed(place) || failed(value))
      return failure();
    os << *place << " = " << *value << ";\n";
    return success();
  }
  if (auto end = dyn_cast<emitc::ReturnOp>(op)) {
    if (!end.getOperand())
      return success();
    FailureOr<std::string> value = get(end.getOperand());
    if (failed(value))
      return failure();
    os << "return " << *value << ";\n";
    return success();
  }
  FailureOr<Expression> expression = getExpression(op);
  if (failed(expression))
    return failure();
  if (op->getNumResults() == 0) {
    os << expression->text << ";\n";
    return success();
  }
  if (op->use_empty() && !isa<emitc::CallOpaqueOp>(op))
    return success();
  Value result = op->getResult(0);
  std::string title = name(result, "t");
  os << getCppDeclaration(result.getType(), title, op->hasAttr(kConstAttrName),
                          op->hasAttr(kRestrictAttrName))
     << " = " << expression->text << ";\n";
  return success();
}

LogicalResult FunctionPrinter::printBlock(Block &block) {
  names.enterScope();
  for (Operation &op : block)
    if (failed(printOp(&op)))
      return failure();
  names.leaveScope();
  return success();
}

LogicalResult FunctionPrinter::print() {
  if (std::optional<ArrayAttr> specifiers = function.getSpecifiers())
    for (Attribute specifier : *specifiers)
      os << cast<StringAttr>(specifier).getValue() << " ";
  FunctionType type = function.getFunctionType();
  os << getCppDeclaration(type.getNumResults() ? type.getResult(0)
                                               : emitc::OpaqueType::get(type.getContext(), "void"),
                          function.getSymName(), false, false);
  SmallVector<std::string> arguments;
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    arguments.push_back(
        getCppDeclaration(argument.getType(), name(argument, "arg"),
                          static_cast<bool>(function.getArgAttr(number, kConstAttrName)),
                          static_cast<bool>(function.getArgAttr(number, kRestrictAttrName))));
  }
  os << "(" << llvm::join(arguments, ", ") << ") {\n";
  os.indent();
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("must have one block to be printed");
  if (failed(printBlock(function.getBody().front())))
    return failure();
  os.unindent() << "}\n";
  return success();
}

//===----------------------------------------------------------------------===//
// The translation unit
//===----------------------------------------------------------------------===//

static void printGlobal(emitc::GlobalOp global, raw_indented_ostream &os) {
  os << (global->hasAttr(kDeviceAttrName) ? "__device__ " : "")
     << (global->hasAttr(kConstexprAttrName) ? "inline constexpr " : "");
  os << (global.getExternSpecifier() ? "extern " : "")
     << (global.getStaticSpecifier() ? "static " : "");
  os << getCppDeclaration(global.getType(), global.getSymName(), global.getConstSpecifier(), false);
  if (std::optional<Attribute> value = global.getInitialValue())
    os << " = " << getCppConstant(*value, Type());
  if (Attribute fields = global->getAttr(kFieldsAttrName))
    os << " = " << getCppInitializer(fields, /*isOuter=*/true);
  os << ";\n";
}

LogicalResult genrec::printCpp(ModuleOp module, llvm::raw_ostream &stream, StringRef banner) {
  raw_indented_ostream os(stream);
  if (!banner.empty())
    os << "// " << banner << "\n\n";
  llvm::StringSet<> symbols;
  for (auto symbol : module.getOps<SymbolOpInterface>())
    symbols.insert(symbol.getName());
  bool afterComment = true;
  for (Operation &op : *module.getBody()) {
    if (auto include = dyn_cast<emitc::IncludeOp>(op)) {
      bool isStandard = include.getIsStandardInclude();
      os << "#include " << (isStandard ? "<" : "\"") << include.getInclude()
         << (isStandard ? ">" : "\"") << "\n";
      afterComment = false;
      continue;
    }
    if (!afterComment)
      os << "\n";
    afterComment = false;
    if (auto verbatim = dyn_cast<emitc::VerbatimOp>(op)) {
      os << verbatim.getValue() << "\n";
      afterComment = true;
    } else if (auto global = dyn_cast<emitc::GlobalOp>(op)) {
      printGlobal(global, os);
    } else if (auto function = dyn_cast<emitc::FuncOp>(op)) {
      if (failed(FunctionPrinter(function, symbols, os).print()))
        return failure();
    } else {
      return op.emitOpError("is left at the end of lowering and has no C++ form");
    }
  }
  return success();
}
