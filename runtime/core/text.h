//===- text.h - Words of error messages --------------------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_TEXT_H
#define GENREC_RT_CORE_TEXT_H

#include <cstdint>
#include <string>
#include <vector>

namespace genrec::rt {

/// 18204 as "18,204".
std::string withThousands(int64_t number);

/// A number as printf's `format` has it.
std::string formatted(const char *format, double value);

/// "a, b, c"; beyond `most` names "a, b and 12 more".
std::string listNames(const std::vector<std::string> &names, size_t most = 40);

/// A word as a shell takes it: in quotes where it needs them.
std::string shellWord(const std::string &word);

/// The candidate with the fewest edits to `name`, or "" where none is near (more
/// than a third of the name's letters).
std::string closestName(const std::string &name, const std::vector<std::string> &candidates);

/// "did you mean 'x'?" or "".
std::string suggestion(const std::string &name, const std::vector<std::string> &candidates);

} // namespace genrec::rt

#endif // GENREC_RT_CORE_TEXT_H
