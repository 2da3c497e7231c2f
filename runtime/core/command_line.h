//===- command_line.h - What is wrong with a command line --------*- C++ -*-===//
//
// What compiled models and the runtime's tools share of their flags: checks that say
// the rule, and errors in the words of all others.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CORE_COMMAND_LINE_H
#define GENREC_RT_CORE_COMMAND_LINE_H

#include <CLI/CLI.hpp>

#include <string>

namespace genrec::rt {

/// A number above 0, and one of at least 0.
CLI::Validator aboveZero();
CLI::Validator zeroOrMore();

/// A number from `lowest` to `highest`.
CLI::Validator between(double lowest, double highest);

/// Refuses, in all commands of `app`, values that are empty (of a variable of the shell that has
/// none) and whole numbers that do not fit. They are decimal: 010 is ten. Call it once all flags
/// are there.
void checkValues(CLI::App &app);

/// Reports how parsing ended, on stderr as "<program>: error: …" with a help line, or on
/// stdout what --help and --version ask for. Returns the exit status: 0, or 2 for an error.
int reportParseError(const std::string &program, const CLI::App &app, const CLI::ParseError &error);
/// The exit status alone.
int parseErrorStatus(const CLI::ParseError &error);

/// For commands that print their result: a full disk must not lose it unnoticed.
void requirePrinted();

} // namespace genrec::rt

#endif // GENREC_RT_CORE_COMMAND_LINE_H
