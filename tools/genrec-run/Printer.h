//===- Printer.h - results as text or JSON ----------------------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_RUN_PRINTER_H
#define GENREC_TOOLS_GENREC_RUN_PRINTER_H

#include "genrec/Interpreter/GradientCheck.h"
#include "genrec/Interpreter/Interpreter.h"

namespace genrec::run {

/// What of a run is printed.
enum class Section { losses, outputs, metrics, gradients, parameters, tables, values };

/// The chosen sections of one run as JSON: rows as lists, row shape [] as plain
/// numbers.
llvm::json::Object toJson(ProgramOp program, const interpreter::Results &results,
                          const interpreter::State &state, llvm::ArrayRef<Section> sections);

/// The same, one line per row.
void printText(const llvm::json::Object &results, llvm::raw_ostream &os);

/// What was compared and what differs; false when something does, or when all
/// derivatives of a parameter or table are 0 and `allowZero` is not set.
bool printCheck(const interpreter::GradientCheck &check, bool allowZero, llvm::raw_ostream &os);

} // namespace genrec::run

#endif // GENREC_TOOLS_GENREC_RUN_PRINTER_H
