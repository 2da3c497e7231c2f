//===- genrec-checkpoint.cpp - Looks at checkpoints, fills new ones ---------===//

#include "../../runtime/checkpoint/inspect.h"
#include "../../runtime/core/command_line.h"
#include "genrec/Version.h"
#include "genrec_rt/error.h"

#include <cstdio>
#include <new>

using namespace genrec::rt;

namespace {

struct Flags {
  std::string path, other, table, out, model;
  std::vector<std::string> entries;
  uint64_t seed = 0;
};

void addCommands(CLI::App &app, Flags &flags) {
  const char *kPath = "the checkpoint's folder, or that of a generation: ckpt/step-1200";
  CLI::App *list = app.add_subcommand("list", "the generations of a checkpoint and what they hold");
  list->add_option("checkpoint", flags.path, "the checkpoint's folder")->required();
  CLI::App *verify = app.add_subcommand("verify", "hold every byte to its checksum");
  verify->add_option("checkpoint", flags.path, kPath)->required();
  CLI::App *diff =
      app.add_subcommand("diff", "rows and parameters that differ; status 1 if any do");
  diff->add_option("before", flags.path, kPath)->required();
  diff->add_option("after", flags.other, kPath)->required();
  CLI::App *exporting = app.add_subcommand("export", "write a table as Parquet: id, vector");
  exporting->add_option("checkpoint", flags.path, kPath)->required();
  exporting->add_option("--table", flags.table, "the table's name")->required();
  exporting->add_option("--out", flags.out, "the Parquet file")->required();
  CLI::App *importing = app.add_subcommand(
      "import", "make a checkpoint of step 0 from given values; train --continue goes on with it");
  importing
      ->add_option("values", flags.entries,
                   "as train --init takes them: a safetensors file, the folder of an export or a "
                   "checkpoint, <name>=<path>, <name>=<path>:<its name there>")
      ->required();
  importing->add_option("--model", flags.model, "the model: genrec-compile --emit=shared")
      ->required();
  importing->add_option("--out", flags.out, "the new checkpoint's folder")->required();
  importing->add_option("--seed", flags.seed, "of what is not given (default: 0)");
}

void print(const std::vector<std::string> &lines) {
  for (const std::string &line : lines)
    std::printf("%s\n", line.c_str());
}

int run(const CLI::App &app, const Flags &flags) {
  if (app.got_subcommand("list")) {
    print(listCheckpoint(flags.path));
    return 0;
  }
  if (app.got_subcommand("verify")) {
    bool areWhole = true;
    for (const Verified &one : verifyCheckpoint(flags.path)) {
      print({one.line});
      areWhole &= one.isWhole;
    }
    return areWhole ? 0 : 1;
  }
  if (app.got_subcommand("diff")) {
    std::vector<std::string> lines = compareCheckpoints(flags.path, flags.other);
    print(lines.empty() ? std::vector<std::string>{"the same"} : lines);
    return lines.empty() ? 0 : 1;
  }
  if (app.got_subcommand("export")) {
    int64_t rows = exportTable(flags.path, flags.table, flags.out);
    std::printf("wrote %lld rows to %s\n", static_cast<long long>(rows), flags.out.c_str());
    return 0;
  }
  print(importValues(flags.model, flags.entries, flags.seed, flags.out));
  return 0;
}

int parseAndRun(int argc, char **argv) {
  CLI::App app("Looks at the checkpoints of compiled models, and makes one of given values. Each "
               "command has a "
               "--help of its own.");
  app.set_version_flag("--version",
                       "genrec-checkpoint " GENREC_VERSION ", built with " GENREC_BUILT_WITH);
  app.require_subcommand(1);
  Flags flags;
  addCommands(app, flags);
  checkValues(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return reportParseError("genrec-checkpoint", app, error);
  }
  int status = run(app, flags);
  requirePrinted();
  return status;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return parseAndRun(argc, argv);
  } catch (const Error &error) {
    std::fprintf(stderr, "genrec-checkpoint: error: %s\n", error.what());
    if (!error.help().empty())
      std::fprintf(stderr, "  help: %s\n", error.help().c_str());
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "genrec-checkpoint: error: out of memory\n"
                         "  help: use a machine with more memory\n");
  } catch (const std::exception &error) {
    std::fprintf(stderr, "genrec-checkpoint: error: %s\n", error.what());
  }
  return 1;
}
