// A precompiled header of the description is for just its flags and its compiler: what changes one drops it.
// REQUIRES: genrec-compile
// UNSUPPORTED: sanitizer
// RUN: sed -E 's#"compiler": "/[^"]*clang[^"]*"#"compiler": "/bin/true"#; s#"precompiled": "[^"]*"#"precompiled": "unit.pch"#; s#"link":#"precompiled": "model.pch", "link":#' %build/share/genrec/toolchain.json > %t.json
// RUN: genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.json --emit=object -v -o %t.o 2>&1 | FileCheck %s --check-prefix=OWN
// RUN: genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.json --march=native --emit=object -v -o %t.o 2>&1 | FileCheck %s --check-prefix=OWN
// RUN: genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.json --march=x86-64-v3 --emit=object -v -o %t.o 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.json -O0 --emit=object -v -o %t.o 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.json --cxx=/bin/true --emit=object -v -o %t.o 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.json --emit=shared -v -o %t.so 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.json --target=cuda-emulated --emit=object -v -o %t.o 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: genrec-compile %S/Inputs/kernel.mlir --toolchain=%t.json --target=cuda-emulated --cxx=/bin/true --emit=object -v -o %t.o 2>&1 | FileCheck %s --check-prefix=NONE

// OWN: /bin/true {{.*}}-include-pch model.pch
// UNIT: /bin/true {{.*}}-include-pch unit.pch
// NONE: /bin/true
// NONE-NOT: -include-pch
