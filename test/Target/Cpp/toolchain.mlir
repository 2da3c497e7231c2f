// REQUIRES: genrec-compile
// RUN: not genrec-compile %S/Inputs/kernel.mlir --cxx=no-such-compiler -o %t 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not genrec-compile %S/Inputs/kernel.mlir --cxx=false -o %t 2>&1 | FileCheck %s --check-prefix=FAILS
// RUN: ls %t.cpp
// RUN: not genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.nowhere -o %t 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not genrec-compile %S/Inputs/kernel.mlir --target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not genrec-compile %S/Inputs/kernel.mlir -O7 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not genrec-compile %t.nofile 2>&1 | FileCheck %s --check-prefix=NOFILE

// MISSING: genrec-compile: error: needs the C++ compiler 'no-such-compiler', which is not there; install clang 22 or name another with --cxx
// FAILS: cannot compile or link the C++ code that genrec made, {{.*}}.cpp. Where neither --cxx nor --march asked for something that does not work, this is a defect of genrec, not of the model
// NOWHERE: cannot read the description of the toolchain, '{{.*}}.nowhere'
// TARGET: target must be cpu, cuda or cuda-emulated, but is 'tpu'
// LEVEL: the level must be -O0, -O1 or -O2, but is -O7
// NOFILE: cannot read '{{.*}}.nofile'
