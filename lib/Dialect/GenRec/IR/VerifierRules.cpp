//===- VerifierRules.cpp - rules that verifiers share ---------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

std::string rules::typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string rules::numbered(StringRef name, size_t index) {
  return (name + " " + Twine(index)).str();
}

static unsigned elementBit(Type type) {
  if (type.isInteger(1))
    return i1;
  if (type.isSignlessInteger(32))
    return i32;
  if (type.isSignlessInteger(64))
    return i64;
  if (type.isF32())
    return f32;
  if (type.isF64())
    return f64;
  return isa<StringType>(type) ? string : 0;
}

static std::string elementsText(unsigned elements) {
  SmallVector<StringRef> names;
  for (auto [bit, name] : {std::pair<unsigned, StringRef>{i1, "i1"},
                           {i32, "i32"},
                           {i64, "i64"},
                           {f32, "f32"},
                           {f64, "f64"},
                           {string, "!genrec.string"}})
    if (elements & bit)
      names.push_back(name);
  std::string last = names.pop_back_val().str();
  return names.empty() ? last : llvm::join(names, ", ") + " or " + last;
}

Form Form::rows(FlatSymbolRefAttr domain) {
  Form form;
  form.kind = Kind::rows;
  form.domain = domain;
  return form;
}

Form Form::alike(Type type) {
  FlatSymbolRefAttr domain = getRowDomain(type);
  return domain ? rows(domain) : shared();
}

Form Form::shared() {
  Form form;
  form.kind = Kind::shared;
  return form;
}

Form Form::any() { return Form(); }

Form &Form::shape(ArrayRef<int64_t> newSizes) {
  sizes.emplace(newSizes.begin(), newSizes.end());
  return *this;
}

Form &Form::element(unsigned newElements) {
  elements = newElements;
  return *this;
}

Form &Form::element(Type type) {
  exactElement = type;
  return *this;
}

Form &Form::elementOf(Type tensor) {
  return element(cast<RankedTensorType>(tensor).getElementType());
}

bool Form::matches(Type type) const {
  FlatSymbolRefAttr typeDomain = getRowDomain(type);
  if ((kind == Kind::rows && !typeDomain) || (kind == Kind::shared && typeDomain))
    return false;
  if (domain && domain != typeDomain)
    return false;
  Type element = cast<RankedTensorType>(type).getElementType();
  if (exactElement ? exactElement != element : !(elements & elementBit(element)))
    return false;
  if (!sizes)
    return true;
  ArrayRef<int64_t> shape = getRowShape(type);
  return shape.size() == sizes->size() && llvm::all_of(llvm::zip(shape, *sizes), [](auto pair) {
           return std::get<1>(pair) == kFree || std::get<0>(pair) == std::get<1>(pair);
         });
}

std::string Form::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (kind == Kind::any)
    os << "a tensor";
  else if (kind == Kind::shared)
    os << "shared";
  else if (domain)
    os << "rows of " << domain;
  else
    os << "rows of a domain";
  if (sizes) {
    os << (kind == Kind::shared ? " [" : ", [");
    StringRef names = sizes->size() == 1 ? "d" : "nd";
    for (auto [index, size] : llvm::enumerate(*sizes)) {
      os << (index ? ", " : "");
      if (size == kFree)
        os << names[std::min(index, names.size() - 1)];
      else
        os << size;
    }
    os << "] x ";
  } else if (exactElement || elements != anything) {
    os << (kind == Kind::rows ? ", of element type " : " of element type ");
  } else {
    return text;
  }
  if (exactElement)
    os << exactElement;
  else
    os << elementsText(elements);
  return text;
}

LogicalResult rules::expect(Operation *op, Named value, const Form &form, const Twine &reason) {
  if (form.matches(value.type))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << "'" << value.name << "' must be " << form.str();
  if (!reason.isTriviallyEmpty())
    diagnostic << " (" << reason << ")";
  return diagnostic << ", but is " << describe(value.type);
}

LogicalResult rules::expectType(Operation *op, Named value, Type type, const Twine &reason) {
  if (value.type == type)
    return success();
  return op->emitOpError() << "'" << value.name << "' must be " << describe(type) << " (" << reason
                           << "), but is " << describe(value.type);
}

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

/// Advice on how to move two values to one domain.
static std::string mixingAdvice(Operation *op, Named left, Named right) {
  FlatSymbolRefAttr leftDomain = getRowDomain(left.type), rightDomain = getRowDomain(right.type);
  auto fanOut = [](Named value, FlatSymbolRefAttr domain) {
    return ("fan '" + value.name + "' out to @" + domain.getValue() + " with genrec.fanout").str();
  };
  if (isAncestor(op, leftDomain, rightDomain))
    return fanOut(left, rightDomain);
  if (isAncestor(op, rightDomain, leftDomain))
    return fanOut(right, leftDomain);
  return "bring both into one domain with genrec.fanout, genrec.pool or genrec.derive";
}

LogicalResult rules::expectSameDomain(Operation *op, ArrayRef<Named> values) {
  const Named *first = nullptr;
  for (const Named &value : values) {
    FlatSymbolRefAttr domain = getRowDomain(value.type);
    if (!domain)
      continue;
    if (!first) {
      first = &value;
      continue;
    }
    if (FlatSymbolRefAttr firstDomain = getRowDomain(first->type); firstDomain != domain)
      return op->emitOpError() << "mixes rows of " << firstDomain << " and " << domain << ": '"
                               << first->name << "' has " << describe(first->type) << " and '"
                               << value.name << "' has " << describe(value.type) << "; "
                               << mixingAdvice(op, *first, value);
  }
  return success();
}

FlatSymbolRefAttr rules::parentOf(Operation *scope, FlatSymbolRefAttr domain,
                                  SymbolTableCollection *symbols) {
  DomainOp declaration = lookupDomain(scope, domain, symbols);
  return declaration ? declaration.getParentAttr() : FlatSymbolRefAttr();
}

bool rules::isInProgram(Operation *op) { return op->getParentOfType<ProgramOp>() != nullptr; }

LogicalResult rules::expectKind(Operation *op, StringRef name, FlatSymbolRefAttr domain,
                                ArrayRef<DomainKind> kinds, SymbolTableCollection *symbols) {
  if (!isInProgram(op))
    return success();
  DomainOp declaration = lookupDomain(op, domain, symbols);
  assert(declaration && "the program's verifier rejects undeclared domains");
  if (llvm::is_contained(kinds, declaration.getKind()))
    return success();
  std::string allowed = llvm::join(llvm::map_range(kinds, stringifyDomainKind), " or ");
  InFlightDiagnostic diagnostic =
      op->emitOpError() << "'" << name << "' must be of a domain of kind " << allowed << ", but "
                        << domain << " is of kind " << stringifyDomainKind(declaration.getKind());
  diagnostic.attachNote(declaration.getLoc()) << "domain declared here";
  return diagnostic;
}

FailureOr<int64_t> rules::expectProduct(Operation *op, Type x, Type weight, bool transposed,
                                        Value bias) {
  if (failed(expect(op, {"x", x}, Form::rows().vector().element(floats))))
    return failure();
  SmallVector<int64_t> weightShape{getRowSize(x), kFree};
  if (transposed)
    std::swap(weightShape[0], weightShape[1]);
  if (failed(expect(op, {"weight", weight}, Form::shared().shape(weightShape).elementOf(x),
                    "a " + Twine(transposed ? "column" : "row") + " per column of 'x'")))
    return failure();
  int64_t width = getRowShape(weight)[transposed ? 0 : 1];
  if (bias &&
      failed(expect(op, {"bias", bias.getType()}, Form::shared().shape({width}).elementOf(x),
                    "an element per column of the result")))
    return failure();
  return width;
}

LogicalResult rules::expectPoolTarget(Operation *op, PoolKind kind, FlatSymbolRefAttr from,
                                      FlatSymbolRefAttr to, SymbolTableCollection *symbols) {
  if (!isInProgram(op))
    return success();
  if (kind == PoolKind::sum ? isAncestor(op, to, from, symbols) : parentOf(op, from, symbols) == to)
    return success();
  StringRef place = kind == PoolKind::sum ? "an ancestor" : "the parent";
  return op->emitOpError() << "pools by " << stringifyPoolKind(kind) << " into " << place << " of "
                           << from << ", which " << to << " is not";
}

Operation *rules::makerOf(Operation *op, FlatSymbolRefAttr domain) {
  auto program = op->getParentOfType<ProgramOp>();
  Value value = program ? lookupDomainValue(program, domain) : Value();
  return value ? value.getDefiningOp() : nullptr;
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>> rules::broadcast(ArrayRef<Named> values) {
  SmallVector<int64_t> shape;
  for (const Named &value : values) {
    ArrayRef<int64_t> next = getRowShape(value.type);
    if (next.empty())
      continue;
    if (!shape.empty() && ArrayRef<int64_t>(shape) != next)
      return failure();
    shape.assign(next.begin(), next.end());
  }
  return shape;
}

LogicalResult rules::expectUnary(Operation *op, unsigned elements) {
  return expect(op, {"x", op->getOperand(0).getType()}, Form::any().element(elements));
}

LogicalResult rules::expectElementwise(Operation *op, ArrayRef<Named> operands, Named result,
                                       Type resultElement) {
  if (failed(expectSameDomain(op, operands)))
    return failure();
  FailureOr<SmallVector<int64_t>> shape = broadcast(operands);
  if (failed(shape)) {
    InFlightDiagnostic diagnostic = op->emitOpError()
                                    << "needs operands of one row shape, or of row shape []:";
    for (auto [index, operand] : llvm::enumerate(operands))
      diagnostic << (index ? ", '" : " '") << operand.name << "' is " << describe(operand.type);
    return diagnostic;
  }
  FlatSymbolRefAttr domain;
  for (const Named &operand : operands)
    if (FlatSymbolRefAttr next = getRowDomain(operand.type))
      domain = next;
  Form form = domain ? Form::rows(domain) : Form::shared();
  return expect(op, result, form.shape(*shape).element(resultElement), "what the operands give");
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult rules::expectNotEmpty(Operation *op, StringRef attribute, StringRef name) {
  if (!name.empty())
    return success();
  return op->emitOpError() << "'" << attribute << "' must not be empty";
}

LogicalResult rules::expectRange(Operation *op, StringRef attribute, int64_t value, int64_t low,
                                 int64_t high) {
  if (low <= value && value <= high)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << "'" << attribute << "' must be ";
  if (high == std::numeric_limits<int64_t>::max())
    diagnostic << "at least " << low;
  else
    diagnostic << low << " to " << high;
  return diagnostic << ", but is " << value;
}

/// A double with up to six digits.
static std::string numberText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

LogicalResult rules::expectNotNegative(Operation *op, StringRef attribute, double value) {
  if (std::isfinite(value) && value >= 0.0)
    return success();
  return op->emitOpError() << "'" << attribute << "' must be finite and at least 0, but is "
                           << numberText(value);
}

LogicalResult rules::expectFinite(Operation *op, StringRef attribute, double value) {
  if (std::isfinite(value))
    return success();
  return op->emitOpError() << "'" << attribute << "' must be finite, but is " << numberText(value);
}

LogicalResult rules::expectPositive(Operation *op, StringRef attribute, double value) {
  if (std::isfinite(value) && value > 0.0)
    return success();
  return op->emitOpError() << "'" << attribute << "' must be finite and greater than 0, but is "
                           << numberText(value);
}

LogicalResult rules::expectRate(Operation *op, StringRef attribute, double value) {
  if (value >= 0.0 && value < 1.0)
    return success();
  return op->emitOpError() << "'" << attribute << "' must be in [0, 1), but is "
                           << numberText(value);
}

LogicalResult rules::expectStream(Operation *op, int64_t stream) {
  return expectRange(op, "stream", stream, 0);
}

LogicalResult rules::expectEdges(Operation *op, ArrayRef<double> edges) {
  constexpr size_t kMaxEdges = 4096;
  if (edges.empty() || edges.size() > kMaxEdges)
    return op->emitOpError() << "'edges' must have 1 to " << kMaxEdges << " values, but has "
                             << edges.size();
  for (auto [index, edge] : llvm::enumerate(edges))
    if (std::isnan(edge) || (index > 0 && edge <= edges[index - 1]))
      return op->emitOpError() << "'edges' must ascend, but value " << index << " does not";
  return success();
}

LogicalResult rules::expectIds(Operation *op, Value ids, Value valid) {
  Named idsNamed{"ids", ids.getType()};
  if (failed(expect(op, idsNamed, Form::rows().scalar().element(i64))))
    return failure();
  if (!valid)
    return success();
  Named validNamed{"valid", valid.getType()};
  if (failed(expectSameDomain(op, {idsNamed, validNamed})))
    return failure();
  return expect(op, validNamed, Form::alike(ids.getType()).scalar().element(i1));
}
