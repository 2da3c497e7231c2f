//===- device_stop.cpp - Steps that change nothing behind a NaN -----------===//

#include "device_stop.h"

namespace genrec::rt {

DeviceStop::DeviceStop(Device &device, const genrec_model_desc &model)
    : device(device), ofDomains(device, "domains of updates"), stopped(device, "stopped steps") {
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (model.domains[i].parameter > 0)
      numbers.push_back(i);
  ofDomains.ensure(static_cast<int64_t>(numbers.size() * sizeof(int32_t)));
  stopped.ensure(sizeof(uint32_t));
  clear();
}

void DeviceStop::report(const float *sum, const float *weight, float *to, genrec_domain *domains) {
  device.reportLoss({.sum = sum,
                     .weight = weight,
                     .to = to,
                     .stopped = word(),
                     .domains = domains,
                     .updated = reinterpret_cast<const int32_t *>(ofDomains.data()),
                     .updatedCount = static_cast<int32_t>(numbers.size())});
}

} // namespace genrec::rt
