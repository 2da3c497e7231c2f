//===- calibrate.cpp - The calibrate command ------------------------------===//

#include "../session/calibrate.h"
#include "commands.h"
#include "genrec_rt/device.h"

#include <cstdio>

namespace genrec::rt {

int runCalibrate(const genrec_model_desc &model, const Flags &flags) {
  const std::string path = flags.out.empty() ? rooflinePath(model.device) : flags.out;
  const Roofline roofline =
      model.device ? std::unique_ptr<genrec_rt_device>(model.device())->open(nullptr)->calibrate()
                   : calibrate(flags.threads);
  saveRoofline(roofline, path);
  std::printf("%swritten to %s\n", describeRoofline(roofline).c_str(), path.c_str());
  return 0;
}

} // namespace genrec::rt
