//===- model_file_test.cpp - model files that are not what they should be -===//
//
// Whatever the bytes: importing gives a verified module or a diagnostic, never a crash.
//
//===----------------------------------------------------------------------===//

#include "genrec/InitAllDialects.h"
#include "genrec/Model/Model.h"
#include "genrec/Model/SourceDiagnostics.h"
#include "genrec/Model/model_generated.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace genrec;

namespace {

class ModelFile : public testing::Test {
protected:
  ModelFile() : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
  }

  /// The file of test/Model/round-trip.mlir, which holds every kind of declaration and attribute,
  /// without its locations.
  std::string everything() {
    OwningOpRef<ModuleOp> module =
        parseSourceFile<ModuleOp>(GENREC_TEST_DIR "/Model/round-trip.mlir", &context);
    EXPECT_TRUE(module);
    std::string bytes;
    llvm::raw_string_ostream os(bytes);
    EXPECT_TRUE(succeeded(exportModel(*module->getOps<ModelOp>().begin(), os)));
    std::unique_ptr<schema::ModelT> model = schema::UnPackModel(bytes.data());
    auto forget = [](auto &list) {
      for (auto &element : list)
        element->location.reset();
    };
    forget(model->domains);
    forget(model->tables);
    forget(model->parameters);
    forget(model->ops);
    return pack(*model);
  }

  /// Imports `bytes`; returns the diagnostics as printed, "" for success.
  std::string import(llvm::StringRef bytes) {
    std::string text;
    llvm::raw_string_ostream os(text);
    SourceDiagnosticHandler handler(&context, os);
    OwningOpRef<ModuleOp> module = importModel(bytes.data(), bytes.size(), "m.genrec", &context);
    EXPECT_EQ(module.get() == nullptr, handler.getErrorCount() > 0) << text;
    return text;
  }

  /// Imports `everything` after `change` was made to it.
  std::string importChanged(const std::function<void(schema::ModelT &)> &change) {
    std::string bytes = everything();
    std::unique_ptr<schema::ModelT> model = schema::UnPackModel(bytes.data());
    change(*model);
    return import(pack(*model));
  }

  static std::string pack(const schema::ModelT &model) {
    flatbuffers::FlatBufferBuilder builder;
    schema::FinishModelBuffer(builder, schema::Model::Pack(builder, &model));
    return std::string(reinterpret_cast<const char *>(builder.GetBufferPointer()),
                       builder.GetSize());
  }

  static schema::OpT &find(schema::ModelT &model, llvm::StringRef name) {
    for (auto &op : model.ops)
      if (op->name == name)
        return *op;
    llvm::report_fatal_error("no such op: " + name);
  }

  static schema::AttributeT &find(schema::OpT &op, llvm::StringRef name) {
    for (auto &attribute : op.attributes)
      if (attribute->name == name)
        return *attribute;
    llvm::report_fatal_error("no such attribute: " + name);
  }

  MLIRContext context;
};

} // namespace

TEST_F(ModelFile, EverythingImports) { EXPECT_EQ(import(everything()), ""); }

TEST_F(ModelFile, EveryPrefixIsRefused) {
  std::string bytes = everything();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer sees a read beyond it.
    std::string prefix = bytes.substr(0, size);
    prefix.shrink_to_fit();
    EXPECT_NE(import(prefix), "") << "prefix of " << size << " of " << bytes.size() << " bytes";
  }
}

TEST_F(ModelFile, FlippedBytesNeverCrash) {
  const std::string bytes = everything();
  std::mt19937_64 random(20241121);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    int flips = 1 + static_cast<int>(random() % 3);
    for (int flip = 0; flip < flips; ++flip)
      damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    refused += !import(damaged).empty();
  }
  // Many flips hit names, numbers or padding and leave a good model; many must not.
  EXPECT_GT(refused, 500);
}

/// Scalars are where a damaged file that is still well-formed does most harm.
TEST_F(ModelFile, OverwrittenWordsNeverCrash) {
  const std::string bytes = everything();
  for (uint32_t word : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu})
    for (size_t at = 0; at + sizeof word <= bytes.size(); at += sizeof word) {
      std::string damaged = bytes;
      std::memcpy(damaged.data() + at, &word, sizeof word);
      import(damaged);
    }
}

TEST_F(ModelFile, MisalignedBytesAreRead) {
  std::string bytes = everything();
  std::string shifted = "x" + bytes;
  EXPECT_EQ(import(llvm::StringRef(shifted).drop_front()), "");
}

TEST_F(ModelFile, NotAModelFile) {
  EXPECT_EQ(import(""), "m.genrec: error: the file is empty; record the model again\n");
  EXPECT_EQ(
      import("genrec.model @m {}"),
      "m.genrec: error: not a model file: it does not carry the identifier 'GNRC' at byte 4\n");
  std::string bytes = everything();
  EXPECT_EQ(import(llvm::StringRef(bytes).take_front(100)),
            "m.genrec: error: the model file is damaged or cut short (100 bytes); record the model "
            "again\n");
}

TEST_F(ModelFile, NewerVersion) {
  EXPECT_EQ(
      importChanged([](schema::ModelT &model) { model.version = 7; }),
      "m.genrec: error: the model file has version 7, this build of genrec reads up to version "
      "1\n  help: update genrec, or record the model again with the Python package of this "
      "build\n");
  EXPECT_EQ(
      importChanged([](schema::ModelT &model) { model.version = 0; }),
      "m.genrec: error: the model file has version 0, the first version is 1; record the model "
      "again\n");
}

TEST_F(ModelFile, ValueNumbersAreChecked) {
  EXPECT_EQ(
      importChanged(
          [](schema::ModelT &model) { find(model, "truncate").operands[0] = 4000000000u; }),
      "m.genrec: error: 'truncate' uses value 4000000000, but only 2 values are defined before "
      "it\n");
  EXPECT_EQ(importChanged([](schema::ModelT &model) { model.ops.erase(model.ops.begin()); }),
            "m.genrec: error: 'truncate' uses value 1, but only 0 values are defined before it\n");
}

TEST_F(ModelFile, OpsAreChecked) {
  EXPECT_EQ(
      importChanged([](schema::ModelT &model) { find(model, "truncate").name = "frobnicate"; }),
      "m.genrec: error: the model file has op 'frobnicate', which this build of genrec does not "
      "know\n");
  EXPECT_EQ(
      importChanged([](schema::ModelT &model) { find(model, "truncate").name = "row_kernel"; }),
      "m.genrec: error: the model file has 'row_kernel' in its list of ops, where it cannot "
      "stand\n");
  EXPECT_EQ(
      importChanged([](schema::ModelT &model) { find(model, "loss").operand_segments = {1, 1}; }),
      "m.genrec: error: 'loss': size mismatch in attribute conversion: 2 vs 3\n");
  EXPECT_EQ(importChanged(
                [](schema::ModelT &model) { find(model, "loss").operand_segments = {2, 2, 1}; }),
            "m.genrec: error: 'loss' has 2 operands in segments of total size 5\n");
  EXPECT_EQ(
      importChanged([](schema::ModelT &model) { find(model, "linear").operand_segments = {1, 1}; }),
      "m.genrec: error: 'linear' has 2 operands in segments of total size 2, but takes no "
      "segments\n");
}

TEST_F(ModelFile, AttributesAreChecked) {
  auto change = [&](llvm::StringRef op, llvm::StringRef name,
                    const std::function<void(schema::AttributeT &)> &edit) {
    return importChanged([&](schema::ModelT &model) { edit(find(find(model, op), name)); });
  };
  EXPECT_EQ(change("truncate", "count", [](auto &a) { a.name = "cuont"; }),
            "m.genrec: error: 'truncate' has no attribute 'cuont'\n");
  EXPECT_EQ(
      change("truncate", "count", [](auto &a) { a.value.Reset(); }),
      "m.genrec: error: attribute 'count' has no value, or one of a kind that this build does "
      "not know\n");
  EXPECT_EQ(change("truncate", "keep", [](auto &a) { a.value.AsEnumValue()->value = "middle"; }),
            "m.genrec: error: attribute 'keep' is 'middle'; there are 'first', 'last'\n");
  EXPECT_EQ(change("truncate", "keep", [](auto &a) { a.value.AsEnumValue()->kind = "end"; }),
            "m.genrec: error: attribute 'keep' has kind 'end', which this build does not know\n");
  EXPECT_EQ(change("lookup", "table", [](auto &a) { a.value.AsSymbolValue()->name = "nowhere"; }),
            "m.genrec: error: attribute 'table' names 'nowhere', which the model file does not "
            "declare\n");
  EXPECT_EQ(
      change("constant", "value", [](auto &a) { a.value.AsTensorValue()->floats.pop_back(); }),
      "m.genrec: error: a constant of 4 elements comes with 3 numbers\n");
}

TEST_F(ModelFile, TypesAreChecked) {
  auto change = [&](llvm::StringRef op, const std::function<void(schema::TypeT &)> &edit) {
    return importChanged([&](schema::ModelT &model) { edit(*find(model, op).results[0]); });
  };
  EXPECT_EQ(change("lookup", [](auto &type) { type.domain = "nowhere"; }),
            "m.genrec: error: the model file declares no domain 'nowhere'\n");
  EXPECT_EQ(change("lookup", [](auto &type) { type.domain = "movie"; }),
            "m.genrec: error: the model file declares no domain 'movie'\n");
  EXPECT_EQ(change("lookup", [](auto &type) { type.shape = {-4}; }),
            "m.genrec: error: sizes must be at least 1, got -4\n");
  EXPECT_EQ(change("lookup", [](auto &type) { type.shape = {int64_t(1) << 62, 8}; }),
            "m.genrec: error: a shape with more than 2^40 elements (a size of it is "
            "4611686018427387904)\n");
  EXPECT_EQ(change("lookup", [](auto &type) { type.shape = {1, 1, 1, 1, 1}; }),
            "m.genrec: error: a shape of rank 5, at most 4 is possible\n");
  EXPECT_EQ(
      change("lookup", [](auto &type) { type.element = static_cast<schema::ElementType>(99); }),
      "m.genrec: error: element type number 99, which this build does not know\n");
}

TEST_F(ModelFile, DeclarationsAreChecked) {
  EXPECT_EQ(importChanged([](schema::ModelT &model) { model.name.clear(); }),
            "m.genrec: error: the model has no name\n");
  EXPECT_EQ(importChanged([](schema::ModelT &model) { model.tables[0]->name = "history"; }),
            "m.genrec: error: a table is named 'history', but so is a domain; names of domains, "
            "tables and parameters must differ\n");
  EXPECT_EQ(importChanged([](schema::ModelT &model) { model.tables[0]->name = "main"; }),
            "m.genrec: error: a table is named 'main', which is the program's name; choose "
            "another\n");
  EXPECT_EQ(
      importChanged([](schema::ModelT &model) { model.tables[0]->init->kind = "chaos"; }),
      "m.genrec: error: unknown initializer 'chaos'; there are 'zeros', 'constant', 'normal', "
      "'truncated_normal', 'uniform', 'xavier_uniform', 'xavier_normal'\n");
  EXPECT_EQ(
      importChanged([](schema::ModelT &model) { model.tables[0]->optimizer->kind = "magic"; }),
      "m.genrec: error: unknown optimizer 'magic'; there are 'sgd', 'adagrad', 'adam', "
      "'adamw', 'rowwise_adagrad', 'rmsprop'\n");
  EXPECT_EQ(importChanged([](schema::ModelT &model) { model.clip_norm = NAN; }),
            "m.genrec: error: clipping bounds must be finite and not negative, got nan\n");
}

TEST_F(ModelFile, BrokenRulesAreShownInTheUsersSource) {
  std::string path = testing::TempDir() + "/genrec_model_file_test.py";
  std::ofstream(path) << "import genrec\n\tß = item(event.movie) + bias\n";
  auto place = [&](schema::ModelT &model) {
    auto location = std::make_unique<schema::LocationT>();
    location->file = path;
    location->line = 2;
    location->column = 6;
    location->end_column = 23;
    location->name = "ß";
    schema::OpT &op = find(model, "derive");
    op.location = std::move(location);
    op.results[0]->domain = "history";
  };
  EXPECT_EQ(
      importChanged(place),
      path + ":2: error: 'derive' 'result' must be rows of @event, [] x i64 (x's rows in another "
             "domain), but is rows of @history, [] x i64\n"
             "    2 | \tß = item(event.movie) + bias\n"
             "      | \t    ^^^^^^^^^^^^^^^^^\n");
}

TEST_F(ModelFile, LocationsOfStrangeFilesAreNotOpened) {
  for (const char *path : {"/dev/zero", "/", "/nonexistent/model.py"}) {
    std::string text = importChanged([&](schema::ModelT &model) {
      auto location = std::make_unique<schema::LocationT>();
      location->file = path;
      location->line = 1;
      location->column = 1;
      find(model, "derive").location = std::move(location);
      find(model, "derive").results[0]->domain = "history";
    });
    EXPECT_TRUE(
        llvm::StringRef(text).starts_with((llvm::Twine(path) + ":1: error: 'derive'").str()));
    EXPECT_FALSE(llvm::StringRef(text).contains(" | ")) << text;
  }
}
