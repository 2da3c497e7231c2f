//===- Names.cpp - user names and source lines ----------------------------===//

#include "genrec/Analysis/Names.h"

#include "genrec/Dialect/GenRec/IR/NumberedNames.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace genrec;

StringRef genrec::getUserName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().getValue();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = getUserName(part); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return getUserName(call.getCallee());
  return "";
}

FileLineColLoc genrec::getUserLocation(Location loc) {
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return file;
  if (auto name = dyn_cast<NameLoc>(loc))
    return getUserLocation(name.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (FileLineColLoc file = getUserLocation(part))
        return file;
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return getUserLocation(call.getCallee());
  return {};
}

std::string genrec::describeLocation(Location loc) {
  FileLineColLoc file = getUserLocation(loc);
  if (!file)
    return "";
  StringRef name = llvm::sys::path::filename(file.getFilename().getValue());
  return (name + ":" + Twine(file.getLine())).str();
}

std::string genrec::makeIdentifier(StringRef name) {
  std::string result;
  for (char c : name)
    result += llvm::isAlnum(c) ? c : '_';
  if (result.empty() || llvm::isDigit(result[0]))
    result.insert(result.begin(), '_');
  return result;
}

std::string genrec::makeUnique(const std::string &name, llvm::StringSet<> &taken) {
  std::string unique = name;
  for (uint64_t number = 2; !taken.insert(unique).second; ++number)
    unique = nameWithNumber(name, number);
  return unique;
}

std::string genrec::quoteText(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    if (llvm::isPrint(c) || static_cast<unsigned char>(c) >= 0x80)
      result += c;
    else
      llvm::raw_string_ostream(result) << llvm::format("\\%03o", c);
  }
  return result + "\"";
}
