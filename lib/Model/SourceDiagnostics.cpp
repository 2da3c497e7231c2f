//===- SourceDiagnostics.cpp - errors shown in the user's source ----------===//

#include "genrec/Model/SourceDiagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace genrec;

static constexpr uint64_t kLargestSource = 16 << 20;
static constexpr llvm::StringLiteral kHelp = "help: ";

/// The file location in `location`, if there is one: looks through names, call sites (the callee)
/// and fused locations (the first).
static FileLineColRange findRange(Location location) {
  FileLineColRange found;
  location->walk([&](Location inner) {
    if ((found = dyn_cast<FileLineColRange>(inner)))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return found;
}

/// "'genrec.add' op mixes …" → "'add' mixes …".
static std::string shorten(StringRef message) {
  std::string text;
  if (message.consume_front("'genrec.")) {
    text = "'";
    auto [name, rest] = message.split("' op ");
    if (rest.empty())
      return text + message.str();
    return text + name.str() + "' " + rest.str();
  }
  return message.str();
}

SourceDiagnosticHandler::SourceDiagnosticHandler(MLIRContext *context, llvm::raw_ostream &os)
    : ScopedDiagnosticHandler(context), context(context), os(os),
      printedOps(context->shouldPrintOpOnDiagnostic()) {
  // The user's source line is more useful than the printed op.
  context->printOpOnDiagnostic(false);
  setHandler([this](Diagnostic &diagnostic) { print(diagnostic); });
}

SourceDiagnosticHandler::~SourceDiagnosticHandler() { context->printOpOnDiagnostic(printedOps); }

void SourceDiagnosticHandler::print(Diagnostic &diagnostic) {
  StringRef severity;
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    severity = "error";
    ++errorCount;
    break;
  case DiagnosticSeverity::Warning:
    severity = "warning";
    break;
  case DiagnosticSeverity::Note:
    severity = "note";
    break;
  case DiagnosticSeverity::Remark:
    severity = "remark";
    break;
  }
  printOne(diagnostic.getLocation(), severity, diagnostic.str());
  SmallVector<std::string> helps;
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string text = note.str();
    if (StringRef(text).starts_with(kHelp))
      helps.push_back(std::move(text));
    else
      printOne(note.getLocation(), "note", text);
  }
  for (const std::string &help : helps)
    os << "  " << help << "\n";
  os.flush();
}

void SourceDiagnosticHandler::printOne(Location location, StringRef severity, StringRef message) {
  FileLineColRange range = findRange(location);
  if (range) {
    os << range.getFilename().getValue();
    if (range.getStartLine() != 0)
      os << ":" << range.getStartLine();
    os << ": ";
  }
  os << severity << ": " << shorten(message) << "\n";
  if (range && range.getStartLine() != 0)
    printSnippet(range);
}

StringRef SourceDiagnosticHandler::getLine(StringRef file, unsigned line) {
  auto [entry, inserted] = files.try_emplace(file);
  if (inserted) {
    llvm::sys::fs::file_status status;
    if (!llvm::sys::fs::status(file, status) &&
        status.type() == llvm::sys::fs::file_type::regular_file &&
        status.getSize() < kLargestSource)
      if (auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false,
                                                    /*RequiresNullTerminator=*/false))
        entry->second = std::move(*buffer);
  }
  if (!entry->second)
    return {};
  StringRef rest = entry->second->getBuffer();
  for (unsigned current = 1; current < line; ++current) {
    size_t end = rest.find('\n');
    if (end == StringRef::npos)
      return {};
    rest = rest.substr(end + 1);
  }
  return rest.take_until([](char c) { return c == '\n' || c == '\r'; });
}

void SourceDiagnosticHandler::printSnippet(FileLineColRange range) {
  StringRef line = getLine(range.getFilename().getValue(), range.getStartLine());
  if (line.trim().empty())
    return;
  os << llvm::format_decimal(range.getStartLine(), 5) << " | " << line << "\n";
  // Counts characters, not bytes: UTF-8 continuation bytes are skipped.
  auto startsCharacter = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  unsigned length = llvm::count_if(line, startsCharacter);
  unsigned begin = range.getStartColumn();
  unsigned end = range.getEndLine() == range.getStartLine() ? range.getEndColumn() : length + 1;
  if (begin == 0 || begin > length)
    return;
  end = std::max(std::min(end, length + 1), begin + 1);
  os << "      | ";
  unsigned column = 1;
  for (char c : line) {
    if (!startsCharacter(c))
      continue;
    if (column++ == begin)
      break;
    os << (c == '\t' ? '\t' : ' ');
  }
  os << std::string(end - begin, '^') << "\n";
}
