//===- PrecompiledDraft.h - What all models for the CPU include, parsed once -*- C++ -*-===//
//
// For models that tests compile without optimisation. They include what they need regardless.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/domains.h"
#include "genrec_rt/kernels/cpu/launch.h"
#include "genrec_rt/kernels/cpu/rowbody.h"
#include "genrec_rt/kernels/cpu/segments.h"
#include "genrec_rt/kernels/cpu/step_linear.h"
#include "genrec_rt/kernels/cpu/step_rank.h"
#include "genrec_rt/kernels/shared/rowbody.h"
#include "genrec_rt/kernels/shared/rowmath.h"
