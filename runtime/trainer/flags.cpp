//===- flags.cpp - What a compiled model is asked to do -------------------===//

#include "flags.h"

#include "commands.h"
#include "flag_entries.h"
#include "flag_rules.h"

#include "../core/command_line.h"
#include "genrec_rt/roofline.h"

namespace genrec::rt {

namespace {

const char *kData = "Parquet files: files, folders and patterns, one by one or separated by commas "
                    "(a path that has a comma of its own is taken as it stands)";

void addData(CLI::App &app, Flags &flags, std::vector<std::string> &catalogues) {
  app.add_option("--data", flags.data.entries, kData)->required()->take_all();
  app.add_option(
         "--catalogue", catalogues,
         "name=file for a catalogue of the model; may be repeated. Without it the file that "
         "the model names is read")
      ->take_all();
  app.add_option("--batch", flags.batch, "rows of the root domain per step")
      ->check(aboveZero())
      ->capture_default_str();
  app.add_option("--data-memory", flags.dataMemoryMegabytes,
                 "megabytes of decoded data to keep; larger data is decoded again each epoch")
      ->check(aboveZero())
      ->capture_default_str();
}

void addRunning(CLI::App &app, Flags &flags) {
  app.add_option("--threads", flags.threads,
                 "threads that compute (default: the cores / ranks here)")
      ->check(aboveZero());
  app.add_option("--comm", flags.comm,
                 "what connects this process to others: mpi, none, or auto (mpi where mpirun, "
                 "mpiexec or srun started several)")
      ->check(CLI::IsMember({"auto", "mpi", "none"}))
      ->capture_default_str();
  app.add_option("--comm-patience", flags.commPatience,
                 "seconds after which a rank that others wait for counts as lost, and the run ends")
      ->check(aboveZero())
      ->capture_default_str();
  app.add_option("--progress", flags.progress,
                 "auto (a bar on a terminal, lines elsewhere), bar, lines, json (one object per "
                 "line) or none")
      ->check(CLI::IsMember({"auto", "bar", "lines", "json", "none"}))
      ->capture_default_str();
  app.add_flag("--check-finite", flags.checkFinite,
               "stop at the first NaN or infinity and name the op that made it (slow)");
}

/// Of commands that run many steps.
void addSteps(CLI::App &app, Flags &flags) {
  addRunning(app, flags);
  app.add_option("--log-every", flags.logEvery, "report every so many steps (default: by time)")
      ->check(zeroOrMore());
}

void addOptimization(CLI::App &app, Flags &flags) {
  app.add_option("--lr", flags.learningRate,
                 "the model's largest learning rate becomes this; others keep their ratio to it")
      ->check(zeroOrMore());
  app.add_option("--schedule", flags.schedule, "constant, linear or cosine (default: the model's)")
      ->check(CLI::IsMember({"constant", "linear", "cosine"}));
  app.add_option("--warmup", flags.warmup, "steps of linear warm-up")->check(zeroOrMore());
  app.add_option("--schedule-steps", flags.scheduleSteps,
                 "the step at which a decaying schedule ends (default: the last one)")
      ->check(zeroOrMore());
  app.add_option("--schedule-final", flags.scheduleFinal,
                 "the factor of the learning rate at the end of the schedule")
      ->check(between(0, 1));
  app.add_option("--clip-norm", flags.clipNorm,
                 "clip gradients to this global norm instead of the model's; 0: off")
      ->check(zeroOrMore());
  app.add_option("--clip-value", flags.clipValue,
                 "clip gradients to [-x, x] instead of to the model's bounds; 0: off")
      ->check(zeroOrMore());
}

CLI::Option *addGeneration(CLI::App &app, Flags &flags) {
  return app.add_option("--generation", flags.generation,
                        "one of the states that the checkpoint keeps, as step-1200 (default: the "
                        "newest)");
}

void addPortions(CLI::App &app, Flags &flags) {
  app.add_option("--portions", flags.portions,
                 "pieces that a batch is cut into, at least one per rank (default: as many as "
                 "ranks). The same number gives the same bits on any number of ranks")
      ->check(aboveZero());
  app.add_option(
         "--overlap", flags.overlap,
         "what several ranks do beside the step before: none, keys (ids to the owners of "
         "their rows), rows (and rows that the step before does not update), or auto (rows, "
         "but none where all ranks are on one machine). Results are the same")
      ->check(CLI::IsMember({"auto", "none", "keys", "rows"}))
      ->capture_default_str();
}

void addReplicas(CLI::App &app, Flags &flags, const std::string &unlessGiven) {
  app.add_option(
         "--replicate", flags.replicate,
         "tables, separated by commas, of which every one of several ranks keeps all rows "
         "instead of those that it owns: it then finds them without the others, and gradients "
         "go to all; or none" +
             unlessGiven + ". Results are the same")
      ->delimiter(',')
      ->take_all();
}

/// Of `train`, which may choose by itself.
void addChosenReplicas(CLI::App &app, Flags &flags) {
  flags.replicate = {"auto"};
  addReplicas(app, flags,
              "; or auto (default): tables are chosen while training goes on, by what their "
              "exchanges cost");
  app.add_option("--replica-memory", flags.replicaMemoryMegabytes,
                 "MB of each rank that tables chosen by --replicate auto may take (default: a "
                 "twentieth of its memory)")
      ->check(aboveZero());
}

void addDenseGradients(CLI::App &app, Flags &flags) {
  app.add_option(
         "--early-gradients", flags.earlyGradients,
         "whether gradients of dense parameters travel between ranks while the backward pass "
         "goes on, in buckets: on, off, or auto (as is faster in the first 40 steps). Results "
         "are the same")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_flag(
      "--shard-optimizer", flags.shardOptimizer,
      "each of several ranks keeps the optimizer states of some rows of the dense parameters "
      "only, updates these, and gets the values of the others. Results are the same; a step "
      "makes one round more");
}

/// Of models that run on a device.
void addHostTables(CLI::App &app, const genrec_model_desc &model,
                   std::vector<std::string> &hostTables) {
  if (model.device && model.table_count)
    app.add_option(
           "--host-tables", hostTables,
           "tables, separated by commas, whose rows are in the host's memory instead of the "
           "device's, each with the number of rows that the device keeps of it, as "
           "user=1000000. Results are the same. genrec-compile --explain --world=1 --ids "
           "--device-memory says what pays")
        ->delimiter(',')
        ->take_all();
}

void addCapture(CLI::App &app, const genrec_model_desc &model, Flags &flags) {
  if (model.device)
    app.add_option("--capture", flags.capture,
                   "whether steps that repeat what they queue on the device are captured once and "
                   "launched as a whole (CUDA graphs): on or off. Results are the same")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
}

void addRowTravel(CLI::App &app, Flags &flags) {
  auto addWire = [&](const char *name, std::string &wire, const std::string &what) {
    app.add_option(name, wire,
                   what + " travel between ranks: f32 as they are, bf16 rounded to the nearest, "
                          "in half of the bytes. Those that stay on a rank are not rounded, so "
                          "results depend on the number of ranks")
        ->check(CLI::IsMember({"f32", "bf16"}))
        ->capture_default_str();
  };
  addWire("--row-wire", flags.rowWire, "how values of table rows");
  addWire("--gradient-wire", flags.gradientWire, "how gradients of table rows");
  app.add_option("--deduplicate", flags.deduplicate,
                 "who of several ranks handles equal ids of a step once: both, requester (the rank "
                 "that looks them up), owner (of their rows), none. To measure what it saves: only "
                 "both and requester give the bits of one rank")
      ->check(CLI::IsMember({"both", "requester", "owner", "none"}))
      ->capture_default_str();
}

/// What training reads, in which order.
void addPasses(CLI::App &train, Flags &flags, FlagEntries &entries) {
  train.add_option("--validation", flags.validation.entries, "data to evaluate on, as --data")
      ->take_all();
  train.add_option("--epochs", flags.epochs, "passes over the data")
      ->check(aboveZero())
      ->capture_default_str();
  train.add_option("--max-steps", flags.maxSteps, "stop after so many optimizer steps in all")
      ->check(aboveZero());
  train.add_option("--seed", flags.seed,
                   "of initial values, order, dropout and negatives (default: 0)");
  train.add_flag("--shuffle,!--no-shuffle", flags.shuffle,
                 "visit the rows in an order by (seed, epoch) (default), or as they are");
  train
      .add_option("--shuffle-window", flags.shuffleWindow,
                  "rows that are shuffled together (default: all where they take about 4 GiB "
                  "decoded, else those of about 2 GiB)")
      ->check(aboveZero());
  train.add_option("--batch-tokens", entries.batchTokens,
                   "list=tokens: batches of about so many entries of a list instead of --batch "
                   "rows, cut into portions of about equal tokens, as history=76800");
  train.add_option(
      "--clock", flags.clock,
      "what gives steps their times, for tables with a ttl in seconds: machine (unless said), "
      "a column of the data (time, or with a unit time:s, :ms, :us, :ns), steps:60 for "
      "a step every 60 seconds");
}

/// What training saves, and what it goes on from.
void addSaves(CLI::App &train, Flags &flags) {
  train.add_option(
      "--checkpoint", flags.checkpoint,
      "folder to save to: after each epoch, at the end and on SIGTERM, SIGINT or SIGHUP");
  train.add_option("--checkpoint-every", flags.checkpointEvery, "save every so many steps, too")
      ->check(aboveZero());
  train
      .add_option(
          "--checkpoint-full-every", flags.checkpointFullEvery,
          "of so many saves one is full; the others hold the rows that changed since the save "
          "before, and need those before them, which are kept")
      ->check(aboveZero())
      ->capture_default_str();
  CLI::Option *resume = train.add_flag(
      "--resume", flags.resume,
      "go on from the checkpoint, to the same bits as without the interruption; where there is "
      "none, begin");
  train.add_option(
      "--continue", flags.continued,
      "go on with the checkpoint in this folder on other data: tables, optimizer states and "
      "steps are kept, epochs begin at 1. Saves to --checkpoint, which may be the same folder");
  train
      .add_flag("--overwrite", flags.overwrite,
                "begin anew where there is a checkpoint: the first save replaces it")
      ->excludes(resume);
  train.add_option("--keep", flags.keep, "how many of the newest saved states to keep")
      ->check(aboveZero())
      ->capture_default_str();
  addGeneration(train, flags);
}

/// When training evaluates, and what it does with that.
void addEvaluations(CLI::App &train, Flags &flags) {
  train.add_option("--eval-every", flags.evalEvery, "evaluate every so many epochs; 0: at the end")
      ->check(zeroOrMore())
      ->capture_default_str();
  train.add_option("--eval-epochs", flags.evalEpochs, "evaluate after these epochs, as 80,85,90")
      ->delimiter(',')
      ->take_all();
  train.add_flag("--eval-before-train", flags.evalBeforeTrain,
                 "train on the files of --data one after another, --epochs passes over each, and "
                 "evaluate each before the model has seen it");
  train
      .add_option("--eval-batch", flags.evaluationBatch,
                  "rows per step of an evaluation (default: --batch)")
      ->check(aboveZero());
  train
      .add_option(
          "--patience", flags.patience,
          "stop after so many evaluations in a row that did not improve --monitor; the state of "
          "the best one is kept in <checkpoint>/best")
      ->check(aboveZero());
  train
      .add_option("--monitor", flags.monitor,
                  "what --patience watches in the evaluations: loss, or a metric's name, as hr@10")
      ->capture_default_str();
}

/// What training writes beside its checkpoint.
void addReports(CLI::App &train, Flags &flags) {
  train.add_option(
      "--tensorboard", flags.tensorboard,
      "folder for TensorBoard: losses and learning rate every --log-every steps (10 unless "
      "given), evaluations");
  train.add_option("--profile", flags.profile,
                   "print where the time of the steps went, op by op, and write profile.json and "
                   "trace.json (for ui.perfetto.dev) to this folder");
  train.add_option("--metrics-json", flags.metricsJson,
                   "write configuration, history, final metrics and timings to this file");
}

void addTrain(CLI::App &app, const genrec_model_desc &model, Flags &flags, FlagEntries &entries) {
  CLI::App *train = app.add_subcommand("train", "train the model, evaluate it on the way");
  addData(*train, flags, entries.catalogues);
  addPasses(*train, flags, entries);
  addOptimization(*train, flags);
  addPortions(*train, flags);
  addChosenReplicas(*train, flags);
  addDenseGradients(*train, flags);
  addRowTravel(*train, flags);
  train
      ->add_option("--init", flags.init,
                   "start from weights, by name: the folder of an export or of a checkpoint, or a "
                   "safetensors file (tables as <table>.ids and <table>.values). <name>=<path> is "
                   "for one table or parameter, from these, a .npy array or a Parquet table of "
                   "ids and vectors; <name>=<path>:<its name there> renames it. May be repeated")
      ->take_all();
  addSaves(*train, flags);
  train->add_flag("--allow-nonfinite", flags.allowNonFinite,
                  "go on where a loss or a weight is a NaN or an infinity, and save it");
  addEvaluations(*train, flags);
  addReports(*train, flags);
  addSteps(*train, flags);
  addHostTables(*train, model, entries.hostTables);
  addCapture(*train, model, flags);
}

/// The checkpoint that a command reads; a model of transforms alone needs none.
void addCheckpoint(CLI::App &app, const genrec_model_desc &model, Flags &flags) {
  app.add_option("--checkpoint", flags.checkpoint, "folder of the checkpoint")
      ->required(model.parameter_count + model.table_count > 0);
  addGeneration(app, flags);
}

void addEvaluate(CLI::App &app, const genrec_model_desc &model, Flags &flags, FlagEntries &entries) {
  CLI::App *evaluate = app.add_subcommand("evaluate", "measure a checkpoint on data");
  addData(*evaluate, flags, entries.catalogues);
  addCheckpoint(*evaluate, model, flags);
  evaluate->add_option("--metrics-json", flags.metricsJson, "write the metrics to this file");
  addSteps(*evaluate, flags);
  addPortions(*evaluate, flags);
  addReplicas(*evaluate, flags, " (default)");
  addHostTables(*evaluate, model, entries.hostTables);
}

void addPredict(CLI::App &app, const genrec_model_desc &model, Flags &flags, FlagEntries &entries) {
  CLI::App *predict = app.add_subcommand("predict", "write the model's outputs for each row");
  addData(*predict, flags, entries.catalogues);
  addCheckpoint(*predict, model, flags);
  predict
      ->add_option("--out", flags.out,
                   "Parquet file to write; a folder, with a file for "
                   "each, where outputs are rows of several domains")
      ->required();
  predict
      ->add_option("--keys", flags.keys,
                   "columns of the data to pass through, as user,request.id (default: the row's "
                   "position, as column row)")
      ->delimiter(',')
      ->take_all();
  addSteps(*predict, flags);
  addPortions(*predict, flags);
  addReplicas(*predict, flags, " (default)");
  addHostTables(*predict, model, entries.hostTables);
}

void addExport(CLI::App &app, const genrec_model_desc &model, Flags &flags, FlagEntries &entries) {
  CLI::App *exporting =
      app.add_subcommand("export", "write item vectors, parameters and tables as safetensors");
  addCheckpoint(*exporting, model, flags);
  exporting->add_option("--out", flags.out, "folder to write to")->required();
  exporting
      ->add_option("--catalogue", entries.catalogues, "name=file for a catalogue; may be repeated")
      ->take_all();
  addRunning(*exporting, flags);
  addHostTables(*exporting, model, entries.hostTables);
}

void addInfo(CLI::App &app, Flags &flags, FlagEntries &entries) {
  CLI::App *info = app.add_subcommand("info", "what the model is made of and what it reads");
  info->add_flag("--json", flags.json, "as JSON");
  info->add_option("--data", flags.data.entries,
                   std::string(kData) + ": tell how large batches of them are, and the flags by "
                                        "which genrec-compile --explain predicts memory")
      ->take_all();
  info->add_option("--catalogue", entries.catalogues, "name=file for a catalogue; may be repeated")
      ->take_all();
  info->add_option("--ids-out", flags.idsOut,
                   "with --data, write how many rows look up each id of every table, after the "
                   "model's own transforms, for genrec-compile --explain --world --ids")
      ->needs("--data");
  info->add_option("--batch", flags.batch, "rows of the root domain per step, with --data")
      ->check(aboveZero())
      ->capture_default_str();
}

void addCalibrate(CLI::App &app, const genrec_model_desc &model, Flags &flags) {
  CLI::App *calibrate = app.add_subcommand(
      "calibrate",
      "measure for " +
          std::string(model.device ? "some seconds what the GPU"
                                   : "two seconds what this machine") +
          " can do at most, which profiles and genrec-compile --explain predict times from");
  calibrate->add_option("--out", flags.out,
                        "the file (default: " + rooflinePath(model.device) + ")");
  if (!model.device)
    calibrate
        ->add_option("--threads", flags.threads, "threads to measure with (default: all cores)")
        ->check(aboveZero());
}

Flags::Command commandOf(const CLI::App &app) {
  if (app.got_subcommand("train"))
    return Flags::Command::train;
  if (app.got_subcommand("evaluate"))
    return Flags::Command::evaluate;
  if (app.got_subcommand("predict"))
    return Flags::Command::predict;
  if (app.got_subcommand("export"))
    return Flags::Command::exportTensors;
  if (app.got_subcommand("calibrate"))
    return Flags::Command::calibrate;
  return Flags::Command::info;
}

} // namespace

ParsedFlags parseFlags(const genrec_model_desc &model, int argc, const char *const *argv,
                       bool tells) {
  ParsedFlags parsed;
  FlagEntries entries;
  CLI::App app("Compiled model '" + std::string(model.name) +
               "'. Each command has a --help of its own.");
  app.set_version_flag("--version", std::string(model.name) + ", compiled by " +
                                        (model.compiler ? model.compiler : "genrec"));
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  addTrain(app, model, parsed.flags, entries);
  addEvaluate(app, model, parsed.flags, entries);
  addPredict(app, model, parsed.flags, entries);
  addExport(app, model, parsed.flags, entries);
  addInfo(app, parsed.flags, entries);
  addCalibrate(app, model, parsed.flags);
  checkValues(app);
  try {
    app.parse(argc, argv);
    takeEntries(entries, model, parsed.flags);
    parsed.flags.command = commandOf(app);
    requireActingFlags(*app.get_subcommands().front(), parsed.flags, model);
  } catch (const CLI::ParseError &error) {
    parsed.exitStatus = tells ? reportParseError(model.name, app, error) : parseErrorStatus(error);
  }
  return parsed;
}

Flags withoutReports(Flags flags) {
  flags.progress = "none";
  flags.metricsJson.clear();
  flags.tensorboard.clear();
  flags.isProfiled = !flags.profile.empty();
  flags.profile.clear();
  return flags;
}

} // namespace genrec::rt
