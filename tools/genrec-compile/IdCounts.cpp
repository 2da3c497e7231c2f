//===- IdCounts.cpp - which ids data look up ------------------------------===//

#include "IdCounts.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace genrec;
using llvm::StringRef;

static llvm::Expected<IdStatistics> readCounts(StringRef path, StringRef shown) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError("--ids " + shown + ": " + file.getError().message());
  return IdStatistics::parse((*file)->getBuffer(), shown);
}

static llvm::Error makeTemporary(StringRef suffix, llvm::SmallString<128> &path) {
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("genrec-ids", suffix, path))
    return llvm::createStringError("cannot make a temporary file: " + error.message());
  return llvm::Error::success();
}

llvm::Expected<IdStatistics> genrec::readIdStatistics(const CompilerOptions &options,
                                                      mlir::MLIRContext &context) {
  StringRef data = options.idsOf;
  if (data.ends_with(".json"))
    return readCounts(data, data);
  llvm::SmallString<128> binary, counts;
  if (llvm::Error error = makeTemporary("", binary))
    return error;
  llvm::FileRemover removeBinary(binary);
  if (llvm::Error error = makeTemporary("json", counts))
    return error;
  llvm::FileRemover removeCounts(counts);
  CompilerOptions apart = options;
  apart.explanation.clear();
  apart.emission = Emission::binary;
  apart.output = std::string(binary);
  apart.target = "cpu";       // no device may be here
  apart.mergesTables = false; // lookups of merged tables cannot be told apart
  apart.keepsSource = false;
  if (llvm::Error error = compile(apart, context))
    return error;
  std::string message;
  std::vector<StringRef> words = {binary, "info", "--json", "--data", data, "--ids-out", counts};
  for (const std::string &catalogue : options.catalogues) {
    words.push_back("--catalogue");
    words.push_back(catalogue);
  }
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(), std::nullopt};
  int status = llvm::sys::ExecuteAndWait(binary, words, std::nullopt, redirects, 0, 0, &message);
  if (status != 0)
    return llvm::createStringError(message.empty() ? "the ids of " + data + " were not counted"
                                                   : message);
  return readCounts(counts, data);
}
