//===- calibrate.cpp - The calibrate command ------------------------------===//

#include "../session/calibrate.h"
#include "commands.h"
#include "genrec_rt/device.h"
#include "genrec_rt/error.h"

namespace genrec::rt {

int runCalibrate(const genrec_model_desc &model, const Flags &flags) {
  std::unique_ptr<Device> device;
  if (model.device)
    device = std::unique_ptr<genrec_rt_device>(model.device())->open(nullptr);
  if (device && device->info().isEmulated && flags.out.empty())
    throw Error("an emulated device is as fast as this machine lets it be: its limits are not kept",
                "calibrate a model compiled with --target=cuda on a GPU; or pass --out <file>");
  calibrateInto(flags.out, device != nullptr, device ? device->info().name : processorName(),
                [&] { return device ? device->calibrate() : calibrate(flags.threads); });
  return 0;
}

} // namespace genrec::rt
