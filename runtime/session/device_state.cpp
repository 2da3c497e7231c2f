//===- device_state.cpp - What all steps of a session share on a device ---===//

#include "device_state.h"

#include "device_graphs.h"
#include "device_stop.h"
#include "genrec_rt/batch.h"

namespace genrec::rt {

std::unique_ptr<DeviceState> DeviceState::make(const genrec_model_desc &model, Communicator *comm) {
  return std::unique_ptr<DeviceState>(model.device ? new DeviceState(model, comm) : nullptr);
}

DeviceState::DeviceState(const genrec_model_desc &model, Communicator *comm) {
  const std::unique_ptr<genrec_rt_device> devices(model.device());
  owned = devices->open(comm);
  stepGraphs = std::make_unique<StepGraphs>(*owned);
  copies = std::make_unique<HostCopies>(*owned);
}

DeviceState::~DeviceState() = default;

void DeviceState::copyIn(void *to, const void *host, int64_t bytes) {
  copies->in(to, host, bytes);
  copies->finish();
}

void DeviceState::stopAtNonFinite(const genrec_model_desc &model) {
  stopper = std::make_unique<DeviceStop>(*owned, model);
  const std::span<const int32_t> updated = stopper->updated();
  copyIn(stopper->updatedOnDevice(), updated.data(), static_cast<int64_t>(updated.size_bytes()));
}

const uint32_t *DeviceState::stoppedFlag() const { return stopper ? stopper->flag() : nullptr; }

void DeviceState::addTable(int64_t floats) {
  zeroRows.push_back(std::make_unique<DeviceMemory>(*owned, "rows of zeros"));
  int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  owned->fill(zeroRows.back()->ensure(bytes), 0, bytes);
}

genrec_parameter DeviceState::addParameter(const genrec_parameter &host, int64_t stateFloats) {
  Parameter parameter{host, host, stateFloats, true,
                      std::make_unique<DeviceMemory>(*owned, "parameters")};
  auto *values = reinterpret_cast<float *>(
      parameter.memory->ensure((host.size + stateFloats) * static_cast<int64_t>(sizeof(float))));
  parameter.device.value = values;
  parameter.device.own = values + (host.own - host.value);
  parameter.device.states = values + host.size;
  parameters.push_back(std::move(parameter));
  return parameters.back().device;
}

void DeviceState::copyOut(Parameter &parameter) {
  constexpr int64_t kFloat = sizeof(float);
  copies->out(parameter.host.value, parameter.device.value, parameter.host.size * kFloat);
  copies->out(parameter.host.states, parameter.device.states, parameter.stateFloats * kFloat);
}

const genrec_parameter &DeviceState::fetchParameter(int32_t number) {
  Parameter &parameter = parameters[number];
  if (!parameter.isGiven) {
    copyOut(parameter);
    copies->finish();
    parameter.isGiven = true;
  }
  return parameter.host;
}

void DeviceState::readParameters() {
  for (Parameter &parameter : parameters)
    if (!parameter.isGiven)
      copyOut(parameter);
  copies->finish();
}

const genrec_parameter &DeviceState::readParameter(int32_t number) const {
  return parameters[number].host;
}

void DeviceState::giveParameters() {
  constexpr int64_t kFloat = sizeof(float);
  for (Parameter &parameter : parameters)
    if (parameter.isGiven) {
      copies->in(parameter.device.value, parameter.host.value, parameter.host.size * kFloat);
      copies->in(parameter.device.states, parameter.host.states, parameter.stateFloats * kFloat);
      parameter.isGiven = false;
    }
  copies->finish();
}

const void *DeviceState::kept(int32_t number, int32_t kind, const void *from) const {
  for (const Array &array : arrays)
    if (array.number == number && array.kind == kind && array.from == from)
      return array.memory->data();
  return nullptr;
}

const void *DeviceState::keep(int32_t number, int32_t kind, const void *from, int64_t bytes) {
  const void *there = from ? kept(number, kind, from) : nullptr;
  if (there || !from)
    return there;
  Array array{number, kind, from, std::make_unique<DeviceMemory>(*owned, "catalogues")};
  copyIn(array.memory->ensure(bytes), from, bytes);
  arrays.push_back(std::move(array));
  return arrays.back().memory->data();
}

namespace {
enum ArrayKind : int32_t { kOffsets, kParent, kIdentity, kValues, kValid, kSlots, kText };
} // namespace

void DeviceState::useCatalogue(int32_t number, const genrec_domain &host, genrec_domain &to) {
  int64_t lists = host.parent_domain ? host.parent_domain->count + 1 : 0;
  to.offsets = static_cast<const int64_t *>(keep(number, kOffsets, host.offsets, lists * 8));
  to.parent = static_cast<const int64_t *>(keep(number, kParent, host.parent, host.count * 8));
  to.identity =
      static_cast<const uint64_t *>(keep(number, kIdentity, host.identity, host.count * 8));
}

const void *DeviceState::keepStrings(int32_t number, const ColumnBatch &column, int64_t count) {
  const auto *strings = reinterpret_cast<const genrec_string *>(column.values.data());
  if (const void *there = kept(number, kValues, strings))
    return there;
  ColumnText text = ColumnText::of(column, strings, count);
  text.device = static_cast<const char *>(keep(number, kText, text.host, text.bytes));
  texts.push_back(text);
  std::vector<genrec_string> moved(static_cast<size_t>(count));
  text.toDevice(strings, count, moved.data());
  Array array{number, kValues, strings, std::make_unique<DeviceMemory>(*owned, "catalogues")};
  const auto bytes = static_cast<int64_t>(moved.size() * sizeof(genrec_string));
  copyIn(array.memory->ensure(bytes), moved.data(), bytes);
  arrays.push_back(std::move(array));
  return arrays.back().memory->data();
}

genrec_column DeviceState::catalogueColumn(int32_t number, const genrec_feature_desc &feature,
                                           const ColumnBatch &column, int64_t rows) {
  const int64_t bytes = rows * rowBytes(feature);
  return {hasBytes(feature.type) ? keepStrings(number, column, bytes / elementBytes(feature.type))
                                 : keep(number, kValues, column.values.data(), bytes),
          static_cast<const uint8_t *>(!feature.nullable ? nullptr
                                       : column.hasNulls
                                           ? keep(number, kValid, column.valid.data(), rows)
                                           : keepAllValid(number, column, rows))};
}

/// Of a column without nulls, known by its values.
const void *DeviceState::keepAllValid(int32_t number, const ColumnBatch &column, int64_t rows) {
  if (const void *there = kept(number, kValid, column.values.data()))
    return there;
  const std::vector<uint8_t> valid(static_cast<size_t>(std::max<int64_t>(rows, 1)), 1);
  Array array{number, kValid, column.values.data(),
              std::make_unique<DeviceMemory>(*owned, "catalogues")};
  const auto bytes = static_cast<int64_t>(valid.size());
  copyIn(array.memory->ensure(bytes), valid.data(), bytes);
  arrays.push_back(std::move(array));
  return arrays.back().memory->data();
}

CatalogueSlots DeviceState::catalogueSlots(int32_t number, const CatalogueSlots &host) {
  const auto bytes = static_cast<int64_t>(host.count * sizeof(CatalogueSlot));
  CatalogueSlots slots = host;
  slots.slots = static_cast<const CatalogueSlot *>(keep(number, kSlots, host.slots, bytes));
  return slots;
}

int64_t DeviceState::parameterBytes() const {
  int64_t bytes = 0;
  for (const Parameter &parameter : parameters)
    bytes += parameter.memory->bytes();
  return bytes;
}

void DeviceState::finish() noexcept {
  try {
    for (DeviceQueue queue : {DeviceQueue::dispatch, DeviceQueue::sums}) {
      owned->use(queue);
      owned->synchronize();
    }
    owned->use(DeviceQueue::compute);
    owned->joinCopies();
    owned->synchronize();
  } catch (const std::exception &) {
    // The device has failed, and nothing is under way.
  }
}

} // namespace genrec::rt
