//===- runtime_state.h - What all steps of a session share -------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_RUNTIME_STATE_H
#define GENREC_RT_SESSION_RUNTIME_STATE_H

#include "../core/threads.h"
#include "../embedding/catalogue_index.h"
#include "../embedding/global_bound.h"
#include "arena.h"
#include "descriptor.h"
#include "device_state.h"
#include "genrec_rt/session.h"
#include "host_times.h"
#include "parameter_shards.h"
#include "profile.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace genrec::rt {

class LookupCounter;
class Ranks;

/// The rows of a catalogue domain (or of a domain below one), for all steps.
struct CatalogueDomain {
  bool given = false;
  genrec_domain descriptor{};
  DescribedRows rows;
};

/// Handles of a catalogue column in a table: rows never move, so they are looked
/// up once.
struct CatalogueHandles {
  int32_t table;
  const int64_t *ids;
  int64_t count;
  GrowBuffer<float *> rows;
};

} // namespace genrec::rt

/// Tables, parameters and sinks; the `runtime` of every genrec_step.
struct genrec_runtime {
  genrec_runtime(const genrec_model_desc &model, const genrec::rt::SessionOptions &options);
  ~genrec_runtime();

  /// The index of a catalogue column, built at the first call. Safe from the
  /// copy stage of one batch and the compute stage of another.
  const genrec::rt::CatalogueIndex &catalogueIndex(const int64_t *ids, int64_t count);
  /// Scheduled learning rate at `step` for a declared base rate.
  double learningRate(double base, uint64_t step) const;
  /// Whether `ids` is a column of a catalogue.
  bool isCatalogueColumn(const int64_t *ids) const;
  /// The end of training step `step`, at `seconds` of the clock (none: as before): rows leave
  /// tables whose rules send them away. Collective.
  void evict(uint64_t step, std::optional<int64_t> seconds);
  genrec::rt::Device *device() const { return onDevice ? &onDevice->device() : nullptr; }
  /// What stores run on.
  genrec::rt::StoreStream storeStream() const {
    return onDevice ? onDevice->storeStream() : genrec::rt::StoreStream(pool.get());
  }
  const float *zeroRow(int32_t table) const { return zeroRows[table].data(); }

  const genrec_model_desc &model;
  uint64_t seed;
  double clipNorm, clipValue;
  double rateScale = 1; ///< --lr over the model's largest rate
  double largestRate = 0;
  genrec::rt::Schedule schedule;
  bool checkFinite, explainNonFinite;
  std::function<int32_t()> caughtSignal;        ///< see SessionOptions
  std::unique_ptr<genrec::rt::Profile> profile; ///< null without --profile

  std::unique_ptr<genrec_rt_pool, genrec::rt::PoolDeleter> pool;
  /// Of a model for a device; null on the host.
  std::unique_ptr<genrec::rt::DeviceState> onDevice;
  genrec::rt::HostTimes hostTimes; ///< of that
  std::function<void()> whileDeviceWorks; ///< what the host does once all of a step is queued
  /// genrec_rt_thread_scratch there, of each DeviceQueue.
  std::unique_ptr<genrec::rt::DeviceMemory> deviceScratch[2];
  /// By table; tables of one group have one store.
  std::vector<std::shared_ptr<genrec::rt::TableStore>> tables;
  std::vector<char> replicated;                      ///< by table: whether every rank has all rows
  std::vector<genrec::rt::TableStore *> ruledStores; ///< of tables with rules, each once
  std::unique_ptr<genrec::rt::GlobalBound> globalBound; ///< of several ranks
  genrec::rt::StepClock clock;                          ///< of tables with a ttl in seconds
  std::vector<genrec::rt::GrowBuffer<float>> zeroRows;  ///< per table
  /// Who updates which rows of parameters: this rank all, unless ranks share that.
  genrec::rt::ParameterShards shards;
  genrec::rt::GrowBuffer<float> parameterValues;              ///< as `shards` places them
  std::vector<genrec::rt::GrowBuffer<float>> parameterStates; ///< of own rows, by parameter
  std::vector<genrec_parameter> parameters;

  genrec::rt::Batch catalogueRows;                     ///< columns of all catalogues
  std::vector<uint8_t> allValid; ///< of their columns that may have nulls and have none
  std::vector<genrec::rt::CatalogueDomain> catalogues; ///< by domain index
  std::vector<std::unique_ptr<genrec::rt::CatalogueHandles>> handles;

  genrec::rt::Metrics metrics;
  std::vector<genrec::rt::OutputRows> outputs; ///< by portion of this rank, and output
  genrec::rt::OutputRows &output(int32_t portion, int32_t index) {
    return outputs[(portion - firstPortion) * model.output_count + index];
  }

  /// Buffers of the compute stage, and of an update that has others: one portion is in them at a
  /// time.
  genrec::rt::Arena computeArena{device()}, updateArena{device()};
  std::unique_ptr<genrec::rt::Communicator> alone;     ///< of several portions where none was given
  std::unique_ptr<genrec::rt::Communicator> connected; ///< of devices of several ranks
  /// What the portions of a batch have in common; null with one portion on one rank.
  std::unique_ptr<genrec::rt::Ranks> ranks;
  int32_t firstPortion = 0;                           ///< of this rank
  genrec::rt::LookupCounter *lookupCounter = nullptr; ///< of Session::countLookups
  /// One per pool thread. Calls ask from the thread that runs the stage, for all
  /// workers together, so that the others' stay empty.
  std::vector<genrec::rt::GrowBuffer<char>> workerScratch;
  genrec::rt::GrowBuffer<char> blockMemory; ///< of calls that run block by block

private:
  /// Of a model for a device: how it runs there.
  void makeDevice(const genrec::rt::SessionOptions &options);
  void makeTables(const genrec::rt::SessionOptions &options);
  /// The store of table `first` and of those that share it.
  std::shared_ptr<genrec::rt::TableStore>
  makeStore(int32_t first, const genrec::rt::RowRules &rules, int64_t hostRows);
  /// By table: rows that the device keeps of a store in the host's memory; 0: it has all.
  std::vector<int64_t> cachedRows(const genrec::rt::SessionOptions &options) const;
  /// Throws Error, which begins with `refusal` behind the name, where there is none of this name.
  int32_t findTable(const std::string &name, const std::string &refusal) const;
  /// Whether two tables have their rows in one store.
  bool sharesStore(int32_t a, int32_t b) const;
  void chooseReplicas(const genrec::rt::SessionOptions &options);
  void makeParameters(int32_t rank);
  void makeRanks(const genrec::rt::SessionOptions &options);
  void setRates(const genrec::rt::SessionOptions &options);

  struct Index {
    const int64_t *ids;
    std::unique_ptr<genrec::rt::CatalogueIndex> index;
  };
  std::mutex indexMutex;
  std::vector<Index> indices;
};

#endif // GENREC_RT_SESSION_RUNTIME_STATE_H
