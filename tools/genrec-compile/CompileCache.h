//===- CompileCache.h - products of unchanged models ------------*- C++ -*-===//
//
// A folder of products by what they were made from: the model's bytes, the compiler itself, the
// toolchain with the runtime's headers and libraries, and the options. An entry is a product and
// the checksum of its bytes; one that does not agree is as good as absent, and is written anew.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TOOLS_GENREC_COMPILE_COMPILECACHE_H
#define GENREC_TOOLS_GENREC_COMPILE_COMPILECACHE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SHA256.h"

#include <string>

namespace genrec {

/// $GENREC_CACHE, else the folder genrec/compiled of $XDG_CACHE_HOME or ~/.cache. Empty where none
/// of them is set.
std::string getDefaultCacheFolder();

/// Adds up what a product depends on.
class CacheKey {
public:
  /// Pieces are told apart: "ab", "c" is not "a", "bc".
  void add(llvm::StringRef piece);
  /// The bytes of a file; a missing one counts as such.
  void addFile(llvm::StringRef path);
  /// Every file below a folder, by its path in it.
  void addFolder(llvm::StringRef folder);
  std::string get();

private:
  llvm::SHA256 hash;
};

class CompileCache {
public:
  /// An empty folder switches the cache off.
  explicit CompileCache(std::string folder) : folder(std::move(folder)) {}

  /// Puts the product of `key` at `output`; false where it is not there or damaged.
  bool fetch(llvm::StringRef key, llvm::StringRef output) const;
  /// Keeps `product`. Whatever fails leaves the cache without it: a cache is no reason to fail.
  void keep(llvm::StringRef key, llvm::StringRef product) const;

private:
  std::string getPath(llvm::StringRef key) const;
  void removeOldest() const;

  std::string folder;
};

} // namespace genrec

#endif // GENREC_TOOLS_GENREC_COMPILE_COMPILECACHE_H
