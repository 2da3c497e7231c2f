//===- train_open.cpp - What a run of training begins with ----------------===//

#include "../checkpoint/identity.h"
#include "../core/aside_file.h"
#include "../core/text.h"
#include "../session/calibrate.h"
#include "overwriting.h"
#include "patience.h"
#include "training.h"

#include <algorithm>

namespace genrec::rt {

/// Checks before the run that its outputs can be written.
void Training::checkOutputs() const {
  for (const auto &[flag, folder] :
       {std::pair("--checkpoint", &flags.checkpoint), std::pair("--profile", &flags.profile),
        std::pair("--tensorboard", &flags.tensorboard)})
    if (!folder->empty())
      requireFolder(flag, *folder);
  if (!flags.metricsJson.empty())
    requireWritable("--metrics-json", flags.metricsJson);
}

/// Where a table has a ttl in seconds: the flag's clock, else that of the run which goes on, else
/// the machine's.
void Training::chooseClock(SessionOptions &options) {
  const CheckpointReader *from = resumed ? resumed.get() : continued.get();
  std::string saved = from ? from->state().clockSource : "";
  state.clockSource = !flags.clock.empty() ? flags.clock : !saved.empty() ? saved : "machine";
  clockSource = ClockSource::parse(state.clockSource);
  options.clock = clockSource.clock();
}

void Training::tellClock() {
  if (!session->needsClock()) {
    state.clockSource.clear();
    return;
  }
  std::string what = clockSource.kind == ClockSource::Kind::machine
                         ? "the machine's clock (--clock names a column of the data instead)"
                     : clockSource.kind == ClockSource::Kind::steps
                         ? "a step every " + withThousands(clockSource.secondsPerStep) + " seconds"
                         : "column '" + clockSource.column + "', its latest time in each step";
  progress.message("time, for tables with a ttl in seconds: " + what);
}

void Training::openData() {
  DatasetOptions options = datasetOptions(flags, session->threads(), comm);
  const genrec_model_desc *read = &model;
  const genrec_program_desc *program = &session->program(Mode::train);
  if (session->needsClock() && clockSource.kind == ClockSource::Kind::column) {
    timeColumn = std::make_unique<TimeColumn>(model, *program, clockSource, turns[turn], comm);
    read = &timeColumn->description();
    program = &timeColumn->program();
  }
  data = std::make_unique<Dataset>(*read, std::vector{program}, turns[turn], options);
  if (timeColumn)
    data->requireSameType(timeColumn->feature());
  if (data->rows() == 0)
    throw Error(turns[turn].text() + ": the training data has no rows");
}

/// The order of the rows of `of`, of any epoch. Collective.
EpochOptions Training::orderOf(Dataset &of) const {
  EpochOptions options = epochOptions(*session, flags.batch);
  options.shuffle = flags.shuffle;
  options.seed = state.seed;
  if (flags.shuffle) {
    const TrainingState *saved = resumed ? &resumed->state() : nullptr;
    bool isKept = saved && saved->order == kEpochOrder && saved->windowRows > 0;
    int64_t wanted = flags.shuffleWindow > 0 ? flags.shuffleWindow
                     : isKept                ? saved->windowRows
                                             : of.defaultWindow();
    options.windowRows = std::min(wanted, of.rows());
  }
  if (flags.batchTokens > 0) {
    options.batchTokens = flags.batchTokens;
    options.tokenDomain = of.tokenDomain(flags.tokenList);
    of.countTokens(options);
  }
  return options;
}

/// Settles the order of the rows of all epochs of a turn, and tells what the memory for it comes
/// to.
void Training::planEpochs() {
  order = orderOf(*data);
  batchesPerEpoch = data->batches(order);
  if (!work)
    work = std::make_unique<RankWork>(model, comm);
  auto megabytes = [](int64_t bytes) { return withThousands((bytes >> 20) + 1) + " MB"; };
  if (flags.shuffle && order.windowRows < data->rows())
    progress.message("shuffling within windows of at most " + withThousands(order.windowRows) +
                     " of " + withThousands(data->rows()) + " rows (--shuffle-window)");
  if (data->inMemory())
    return;
  std::string limit = withThousands(flags.dataMemoryMegabytes) + " MB";
  progress.message("the data takes about " + megabytes(data->estimatedBytes()) +
                   " decoded, more than --data-memory, " + limit +
                   ": row groups are decoded again in each epoch");
  int64_t bytes = flags.shuffle ? data->windowBytes(order) : 0;
  if (bytes > datasetOptions(flags, 1).memoryBudget)
    progress.message("warning: windows of " + withThousands(order.windowRows) +
                     " rows take about " + megabytes(bytes) +
                     ", one read and one decoded ahead; more than --data-memory, " + limit +
                     ": none is decoded ahead, and a smaller --shuffle-window needs less");
}

void Training::open() {
  checkOutputs();
  openCheckpoint();
  SessionOptions options = sessionOptions(flags, model);
  if (const CheckpointReader *from = resumed ? resumed.get() : continued.get()) {
    const TrainingState &saved = from->state();
    if (!flags.seed)
      options.seed = saved.seed;
    if (flags.portions == 0) // on more ranks, one each
      options.portions = std::max(saved.portions, comm ? comm->getSize() : 1);
    state.firstStep = resumed ? saved.firstStep : saved.step;
  }
  state.seed = options.seed;
  options.comm = comm;
  chooseClock(options);
  session = std::make_unique<Session>(model, options);
  tellClock();
  std::vector<Mode> modes = {Mode::train};
  if (!flags.validation.empty() || flags.evalBeforeTrain)
    modes.push_back(Mode::evaluate);
  openData();
  if (!flags.validation.empty())
    validation = std::make_unique<Dataset>(model, std::vector{&session->program(Mode::evaluate)},
                                           flags.validation,
                                           datasetOptions(flags, session->threads(), comm));
  for (const Dataset *dataset : {data.get(), validation.get()})
    for (size_t i = 0; dataset && i < dataset->notes().size(); ++i)
      progress.message(dataset->notes()[i]);
  if (flags.checkpoint.empty() && flags.progress != "json") // a program has chosen so
    progress.message("what is trained is not saved: --checkpoint <folder> does");
  catalogues = loadCatalogues(*session, flags, modes, progress);
  checkMonitor();
  planEpochs();
  int64_t steps = countSteps();
  session->setScheduleSteps(flags.maxSteps > 0 ? std::min(steps, flags.maxSteps) : steps);
}

/// What a checkpoint says of the data of this turn, and the beginning of it.
void Training::beginTurn() {
  state.batch = flags.batch;
  state.tokenList = flags.tokenList;
  state.batchTokens = flags.batchTokens;
  state.portions = session->portions();
  state.shuffle = flags.shuffle;
  state.dataRows = data->rows();
  state.order = kEpochOrder;
  state.windowRows = order.windowRows;
  state.epoch = 1;
  state.rowsInEpoch = state.batchesInEpoch = 0;
  state.epochLosses.assign(model.loss_count, {});
  if (checkpoint)
    describeTrainingData();
}

void Training::begin() {
  beginTurn();
  if (resumed) {
    resume();
    if (!flags.init.empty())
      progress.message("--init is not read: the run goes on from its checkpoint");
  } else if (continued) {
    continueRun();
  } else if (!flags.init.empty()) {
    reportWarmStart(warmStart(flags.init, *session));
  }
  if (!flags.tensorboard.empty())
    events = std::make_unique<EventFile>(flags.tensorboard, static_cast<int64_t>(state.step));
}

/// Checks the name given to --monitor now, not after the first epoch.
void Training::checkMonitor() const {
  if (flags.patience == 0)
    return;
  std::vector<std::string> names;
  if (model.loss_count > 0)
    names.push_back("loss");
  for (const auto &[name, value] : session->metrics().values())
    names.push_back(name);
  if (std::find(names.begin(), names.end(), flags.monitor) != names.end())
    return;
  std::string near = suggestion(flags.monitor, names);
  throw Error("--monitor " + flags.monitor + ": evaluations do not measure that",
              near + (near.empty() ? "" : " ") + "they measure " + listNames(names));
}

void Training::reportWarmStart(const WarmStart &result) {
  Json filled = Json::array();
  std::vector<std::string> names;
  for (const WarmStart::Filled &one : result.filled) {
    filled.push_back({{"name", one.name}, {"kind", one.isTable ? "table" : "parameter"}});
    if (one.rows > 0)
      filled.back()["rows"] = one.rows;
    filled.back()["from"] = one.source;
    names.push_back(one.name + (one.rows > 0 ? " (" + withThousands(one.rows) + " rows)" : ""));
  }
  warmStarted = {{"entries", flags.init},
                 {"filled", filled},
                 {"not_filled", result.notFilled},
                 {"unused", result.unused}};
  progress.event("init", warmStarted);
  progress.message("starting from given values: " + listNames(names));
  if (!result.notFilled.empty())
    progress.message("not given, so as they start: " + listNames(result.notFilled));
  if (!result.unused.empty())
    progress.message("not used: " + listNames(result.unused));
}

/// Records the identity of the training data and of the catalogues that training reads.
void Training::describeTrainingData() {
  state.data = data->describeFiles("data");
  std::vector<std::string> needed;
  for (int32_t domain : neededCatalogues(*session, {Mode::train}))
    needed.emplace_back(model.domains[domain].name);
  for (const auto &[name, files] : catalogues)
    if (std::find(needed.begin(), needed.end(), name) != needed.end())
      state.data.insert(state.data.end(), files.begin(), files.end());
}

/// Throws where the rows of the epoch that was interrupted cannot be visited as they would have
/// been.
void Training::requireSameOrder(const TrainingState &saved) {
  bool isWithin = saved.batchesInEpoch > 0 && saved.rowsInEpoch < saved.dataRows;
  if (state.shuffle && saved.order != kEpochOrder) {
    if (isWithin)
      throw Error("the checkpoint was saved within epoch " + std::to_string(saved.epoch) +
                      ", by a version of genrec that visited shuffled rows in another order",
                  "resume with that version, or from the end of an epoch (--generation), or start "
                  "anew from its weights with --init");
    progress.message(
        "the checkpoint is of a version of genrec that visited shuffled rows in another "
        "order: further epochs have the order of this version");
  }
  if (state.batchTokens > 0 && isWithin && saved.portions != state.portions)
    throw Error("the checkpoint was saved within epoch " + std::to_string(saved.epoch) +
                    " with --portions " + std::to_string(saved.portions) + ", now it is " +
                    std::to_string(state.portions) + ": the batches of --batch-tokens depend on it",
                "finish the epoch with --portions " + std::to_string(saved.portions) +
                    ", on as many ranks at most");
}

void Training::resume() {
  resumed->restore(*session, RestoreFor::training);
  TrainingState saved = resumed->state();
  if (std::string note = resumed->note(model); !note.empty())
    progress.message(note);
  const std::string anew = continuesInPlace()
                               ? "leave --resume out: --continue begins a new run on this data"
                               : "start anew with --overwrite";
  auto mustBe = [&](const std::string &what, const std::string &was, const std::string &is) {
    if (was != is)
      throw Error("the checkpoint was trained with " + what + " " + was + ", now it is " + is,
                  "resume with what it was trained with, or " + anew);
  };
  auto tokens = [](const TrainingState &of) {
    return of.batchTokens == 0 ? "(none)" : of.tokenList + "=" + std::to_string(of.batchTokens);
  };
  if (std::string differs = dataDifference(saved.data, state.data); !differs.empty())
    throw Error("the checkpoint was trained on other data: " + differs,
                "resume with the data it was trained on, go on with other data by --continue, or "
                "start anew with --overwrite");
  if (session->needsClock() && !saved.clockSource.empty())
    mustBe("--clock", saved.clockSource, state.clockSource);
  mustBe("--seed", std::to_string(saved.seed), std::to_string(state.seed));
  mustBe("--batch-tokens", tokens(saved), tokens(state));
  if (state.batchTokens == 0)
    mustBe("--batch", std::to_string(saved.batch), std::to_string(state.batch));
  mustBe("shuffling", saved.shuffle ? "on" : "off", state.shuffle ? "on" : "off");
  mustBe("data of rows:", std::to_string(saved.dataRows), std::to_string(state.dataRows));
  requireSameOrder(saved);
  if (saved.order == kEpochOrder)
    mustBe("--shuffle-window", std::to_string(saved.windowRows), std::to_string(state.windowRows));
  if (saved.portions != state.portions)
    progress.message("the checkpoint was trained with --portions " +
                     std::to_string(saved.portions) + ", now it is " +
                     std::to_string(state.portions) +
                     ": the run goes on, but its bits will differ from those of one that was not "
                     "interrupted");
  std::vector<DataFile> files = std::move(state.data);
  const int32_t portions = state.portions;
  const int64_t windowRows = state.windowRows;
  std::string clock = std::move(state.clockSource);
  state = saved;
  state.clockSource = std::move(clock);
  state.data = std::move(files); // at the paths of today
  state.portions = portions;
  state.order = kEpochOrder;
  state.windowRows = windowRows;
  resumed.reset();
  history = Json::parse(saved.history);
  before = Json::parse(saved.before);
  for (const Json &record : history)
    if (record.contains("evaluation"))
      lastEvaluation = record["evaluation"];
  progress.message("resuming at step " + withThousands(static_cast<int64_t>(state.step)) +
                   ", epoch " + std::to_string(state.epoch) + ", row " +
                   withThousands(state.rowsInEpoch));
}

} // namespace genrec::rt
