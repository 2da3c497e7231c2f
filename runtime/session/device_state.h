//===- device_state.h - What all steps of a session share on a device -*- C++ -*-===//

#ifndef GENREC_RT_SESSION_DEVICE_STATE_H
#define GENREC_RT_SESSION_DEVICE_STATE_H

#include "column_text.h"
#include "device_memory.h"
#include "genrec_rt/batch.h"
#include "genrec_rt/kernels/shared/catalogue_slots.h"
#include "host_copies.h"

#include <memory>
#include <utility>
#include <vector>

namespace genrec::rt {

class DeviceStop;
class StepGraphs;

/// The device of a model, with parameters, catalogues and the tables' rows of zeros in its memory.
/// Null in a session of a model for the host.
class DeviceState {
public:
  ~DeviceState();
  /// Waits for all that is queued, before a session gives memory back.
  void finish() noexcept;
  /// Null where the model runs on the host. Throws Error where there is no device for each rank of
  /// `comm`; null: this process alone. Collective.
  static std::unique_ptr<DeviceState> make(const genrec_model_desc &model,
                                           Communicator *comm = nullptr);

  Device &device() { return *owned; }
  /// What stores on the device run on.
  StoreStream storeStream() const {
    return StoreStream::ofDevice(owned->streamOf(DeviceQueue::dispatch));
  }

  /// Stages behind dispatch have used a store: `takeLookedUp` is true once then.
  void noteLookedUp() { lookedUp = true; }
  bool takeLookedUp() { return std::exchange(lookedUp, false); }

  /// Lookups of a step follow the step before, whose rows they may send away from the device.
  void noteHostTables() { hasHostTables = true; }
  bool lookupsFollow() const { return hasHostTables; }

  /// Whether steps that repeat are captured, and what was.
  bool capturesSteps() const { return captures; }
  void setCaptures(bool on) { captures = on; }
  StepGraphs &graphs() { return *stepGraphs; }

  /// Makes losses that are not finite stop steps.
  void stopAtNonFinite(const genrec_model_desc &model);
  /// Null where they do not.
  DeviceStop *stop() const { return stopper.get(); }
  const uint32_t *stoppedFlag() const;

  /// Of tables in their order: its row of zeros.
  void addTable(int64_t floats);
  float *zeroRow(int32_t table) const { return reinterpret_cast<float *>(zeroRows[table]->data()); }

  /// Of parameters in their order: the host's values and so many floats of states, which go to the
  /// device before the next step. Returns where they are there.
  genrec_parameter addParameter(const genrec_parameter &host, int64_t stateFloats);
  /// Brings a parameter's values to the host's memory, which may then be changed until the next
  /// step.
  const genrec_parameter &fetchParameter(int32_t number);
  /// Brings all of them there to be read, until the next step, and what is there of one: the device
  /// keeps what it has.
  void readParameters();
  const genrec_parameter &readParameter(int32_t number) const;
  /// Takes to the device what the host was given.
  void giveParameters();

  /// The arrays of a catalogue's domain and a catalogue's column on the device.
  void useCatalogue(int32_t number, const genrec_domain &host, genrec_domain &to);
  genrec_column catalogueColumn(int32_t number, const genrec_feature_desc &feature,
                                const ColumnBatch &column, int64_t rows);
  /// The texts of the catalogues' columns of strings.
  const std::vector<ColumnText> &catalogueTexts() const { return texts; }

  /// A catalogue's index, of the ids in column `number`.
  CatalogueSlots catalogueSlots(int32_t number, const CatalogueSlots &host);

  int64_t parameterBytes() const;

private:
  struct Parameter {
    genrec_parameter host, device;
    int64_t stateFloats;
    bool isGiven; ///< to the host, which may have changed it
    std::unique_ptr<DeviceMemory> memory;
  };
  struct Array {
    int32_t number, kind; ///< of the domain or feature, and which of its arrays
    const void *from;
    std::unique_ptr<DeviceMemory> memory;
  };

  DeviceState(const genrec_model_desc &model, Communicator *comm);
  /// Copies what stays: done when it returns.
  void copyIn(void *to, const void *host, int64_t bytes);
  /// Begins to bring a parameter to the host's memory.
  void copyOut(Parameter &parameter);
  /// What `keep` has copied; null for what it has not.
  const void *kept(int32_t number, int32_t kind, const void *from) const;
  const void *keep(int32_t number, int32_t kind, const void *from, int64_t bytes);
  const void *keepAllValid(int32_t number, const ColumnBatch &column, int64_t rows);
  const void *keepStrings(int32_t number, const ColumnBatch &column, int64_t count);

  std::unique_ptr<Device> owned;
  std::unique_ptr<StepGraphs> stepGraphs;
  std::unique_ptr<DeviceStop> stopper;
  bool lookedUp = false, hasHostTables = false, captures = true;
  std::vector<std::unique_ptr<DeviceMemory>> zeroRows;
  std::vector<Parameter> parameters;
  std::vector<Array> arrays;
  std::vector<ColumnText> texts;
  std::unique_ptr<HostCopies> copies;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_STATE_H
