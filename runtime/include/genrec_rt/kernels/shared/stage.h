//===- stage.h - How stages of a model are compiled ---------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_SHARED_STAGE_H
#define GENREC_RT_KERNELS_SHARED_STAGE_H

/// A stage is one long function that calls kernels, once per step. Optimising it makes nothing
/// faster, and takes longer than all kernels of a model of hundreds of columns together.
#if defined(__clang__)
#define GENREC_STAGE __attribute__((optnone))
#else
#define GENREC_STAGE __attribute__((optimize(0)))
#endif

#endif // GENREC_RT_KERNELS_SHARED_STAGE_H
