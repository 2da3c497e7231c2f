// RUN: not genrec-opt %s --genrec-attach-target=target=tpu 2>&1 | FileCheck %s
// CHECK: error: target must be cpu or cuda, but is 'tpu'

// RUN: genrec-opt %s --genrec-attach-target=target=cuda | FileCheck %s --check-prefix=CUDA
// CUDA: module attributes {genrec.target = #genrec<target cuda>}
