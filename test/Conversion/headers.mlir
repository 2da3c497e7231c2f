// RUN: genrec-opt %s --genrec-lower-to-emitc | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-lower-to-emitc | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: genrec-opt %S/Inputs/prefetch.mlir --genrec-lower-to-emitc | FileCheck %s --check-prefix=PREFETCH
// RUN: not genrec-opt %S/Inputs/prefetch.mlir --genrec-attach-target=target=cuda --genrec-lower-to-emitc 2>&1 | FileCheck %s --check-prefix=MISSING

// The headers of called functions are included. A function that both targets have is declared by a header of each.

// One that a target has not is an error at the call.
// PREFETCH: emitc.include "genrec_rt/kernels/cpu/rowbody.h"
// MISSING: prefetch.mlir:3:3: error: op calls 'kernels::prefetchRow', which has no CUDA form yet

// CHECK: emitc.include "genrec_rt/abi.h"
// CPU-NEXT: emitc.include "genrec_rt/kernels/cpu/rowbody.h"
// CUDA-NEXT: emitc.include "genrec_rt/kernels/cuda/rowbody.h"
// CHECK-NEXT: emitc.include "genrec_rt/kernels/shared/rowmath.h"
// CHECK-NOT: emitc.include
emitc.func @exp_of_sum(%x: !emitc.ptr<f32>) -> f32 {
  %sum = emitc.call_opaque "kernels::rowSum"(%x) {template_args = [4]} : (!emitc.ptr<f32>) -> f32
  %exp = emitc.call_opaque "kernels::exp"(%sum) : (f32) -> f32
  emitc.return %exp : f32
}
