// RUN: not genrec-opt %s --genrec-outline-kernels=target=tpu 2>&1 | FileCheck %s
// CHECK: error: target must be cpu or cuda, but is 'tpu'
