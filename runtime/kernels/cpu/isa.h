//===- isa.h - What the machine's processor has -----------------*- C++ -*-===//
//
// The runtime's own kernels are built twice: the baseline in <name>.cpp and
// AVX-512 in <name>.avx512.cpp, both from <name>_impl.h. <name>.cpp picks one
// table of functions for the life of the process.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ISA_H
#define GENREC_RT_KERNELS_CPU_ISA_H

namespace genrec::rt::kernels {

inline bool machineHasAvx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ISA_H
