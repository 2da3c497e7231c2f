//===- callees_test.cpp - what emitted code calls exists ------------------===//
//
// The closed list of callees against the runtime's headers: each header, alone, declares what the
// list says it does. Numbers and types of arguments are checked wherever emitted code is compiled.
//
//===----------------------------------------------------------------------===//

#include "genrec/Target/Cpp/Toolchain.h"
#include "genrec/Target/EmitC/Callees.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <sstream>

using namespace genrec;

namespace {

/// What only device code includes: no C++ compiler reads it.
bool isForDevicesOnly(llvm::StringRef header) { return header.contains("/kernels/cuda/"); }

std::map<std::string, std::vector<std::string>> getCalleesByHeader() {
  std::map<std::string, std::vector<std::string>> headers;
  for (const Callee &callee : getCallees()) {
    EXPECT_FALSE(callee.header.empty() && callee.cudaHeader.empty()) << callee.name.str();
    for (llvm::StringRef header : {callee.header, callee.cudaHeader})
      if (!header.empty() && header != kLanguageHeader)
        headers[header.str()].push_back(callee.name.str());
  }
  return headers;
}

TEST(Callees, AreListedOnce) {
  llvm::StringSet<> names;
  for (const Callee &callee : getCallees())
    EXPECT_TRUE(names.insert(callee.name).second) << callee.name.str();
}

/// Compiles `source` without making anything of it; what the compiler said, or nothing.
std::string compile(const Toolchain &toolchain, const std::string &source) {
  llvm::SmallString<128> path;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("genrec-callees", "cpp", path));
  std::ofstream(path.c_str()) << source;
  std::string output = std::string(path) + ".o";
  llvm::Error error = toolchain.make(Product::object, path, output, false);
  llvm::sys::fs::remove(path);
  llvm::sys::fs::remove(output);
  return llvm::toString(std::move(error));
}

TEST(Callees, AreDeclaredByTheirHeaders) {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, reinterpret_cast<void *>(&compile));
  llvm::Expected<Toolchain> toolchain = Toolchain::load(Toolchain::getDefaultPath(self));
  ASSERT_TRUE(bool(toolchain)) << llvm::toString(toolchain.takeError());
  toolchain->setOptimization("-O0");
  for (const auto &[header, names] : getCalleesByHeader()) {
    if (isForDevicesOnly(header))
      continue;
    std::string source = "#include \"" + header + "\"\nnamespace names {\n";
    for (const std::string &name : names)
      source +=
          "using " +
          (llvm::StringRef(name).starts_with("kernels::") ? "genrec::rt::" + name : "::" + name) +
          ";\n";
    EXPECT_EQ(compile(*toolchain, source + "}\n"), "") << header;
  }
  EXPECT_NE(
      compile(
          *toolchain,
          "#include \"genrec_rt/kernels/shared/hash.h\"\nusing genrec::rt::kernels::hashMd5;\n"),
      "")
      << "a name that no header declares must not compile";
}

TEST(Callees, OfDevicesAreDeclaredInTheirHeader) {
  for (const auto &[header, names] : getCalleesByHeader()) {
    if (!isForDevicesOnly(header))
      continue;
    std::ifstream file(GENREC_TEST_DIR "/../runtime/include/" + header);
    ASSERT_TRUE(file) << header << " is not there";
    std::stringstream text;
    text << file.rdbuf();
    for (const std::string &name : names) {
      std::string plain = name.substr(name.rfind(':') + 1);
      EXPECT_TRUE(std::regex_search(text.str(), std::regex("\\b" + plain + "\\s*[(;]")))
          << plain << " in " << header;
    }
  }
}

} // namespace
