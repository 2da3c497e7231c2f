//===- PrecompiledEmulatedUnit.h - What all units for a device include, parsed once -*- C++ -*-===//
//
// For units that the emulator runs (share/genrec/toolchain.json). Units include what they need
// regardless.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cuda/domains.h"
#include "genrec_rt/kernels/cuda/lanes.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/rowbody.h"
#include "genrec_rt/kernels/cuda/segments.h"
#include "genrec_rt/kernels/cuda/step.h"
#include "genrec_rt/kernels/cuda/step_linear.h"
#include "genrec_rt/kernels/cuda/step_rank.h"
#include "genrec_rt/kernels/shared/rowbody.h"
#include "genrec_rt/kernels/shared/rowmath.h"
