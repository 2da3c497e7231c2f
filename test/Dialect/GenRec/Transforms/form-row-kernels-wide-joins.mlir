// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-form-row-kernels{wide-joins=true}))' | FileCheck %s
// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-form-row-kernels))' | FileCheck %s --check-prefix=FUSED
// RUN: genrec-compile %s --target=cuda --emit=mlir -o - | FileCheck %s
// RUN: genrec-compile %s --emit=mlir -o - | FileCheck %s --check-prefix=FUSED

// A device makes the 16 parts of a row side by side, in a kernel that makes nothing else; what reads the row reads it from
// memory. The join of 15 stays with what reads it. On the CPU all is one kernel.

// CHECK: %[[WIDE:.*]] = genrec.row_kernel
// CHECK-COUNT-16: math.exp
// CHECK: %[[ROW:.*]] = genrec.row_concat
// CHECK-NEXT: genrec.row_yield %[[ROW]] : vector<16xf32>
// CHECK: genrec.row_kernel
// CHECK-SAME: %[[WIDE]]) attributes
// CHECK-NOT: math.exp
// CHECK-NOT: genrec.row_kernel
// FUSED: genrec.row_kernel
// FUSED-NOT: genrec.row_kernel
!one = tensor<?xf32, #genrec.rows<@user>>
genrec.model @joins {
  genrec.domain @user
  genrec.program @all {
    %user = genrec.batch : !genrec.domain<@user>
    %x0 = genrec.feature %user "x0" : (!genrec.domain<@user>) -> !one
    %x1 = genrec.feature %user "x1" : (!genrec.domain<@user>) -> !one
    %x2 = genrec.feature %user "x2" : (!genrec.domain<@user>) -> !one
    %x3 = genrec.feature %user "x3" : (!genrec.domain<@user>) -> !one
    %x4 = genrec.feature %user "x4" : (!genrec.domain<@user>) -> !one
    %x5 = genrec.feature %user "x5" : (!genrec.domain<@user>) -> !one
    %x6 = genrec.feature %user "x6" : (!genrec.domain<@user>) -> !one
    %x7 = genrec.feature %user "x7" : (!genrec.domain<@user>) -> !one
    %x8 = genrec.feature %user "x8" : (!genrec.domain<@user>) -> !one
    %x9 = genrec.feature %user "x9" : (!genrec.domain<@user>) -> !one
    %x10 = genrec.feature %user "x10" : (!genrec.domain<@user>) -> !one
    %x11 = genrec.feature %user "x11" : (!genrec.domain<@user>) -> !one
    %x12 = genrec.feature %user "x12" : (!genrec.domain<@user>) -> !one
    %x13 = genrec.feature %user "x13" : (!genrec.domain<@user>) -> !one
    %x14 = genrec.feature %user "x14" : (!genrec.domain<@user>) -> !one
    %x15 = genrec.feature %user "x15" : (!genrec.domain<@user>) -> !one
    %wide0 = genrec.exp %x0 : !one
    %wide1 = genrec.exp %x1 : !one
    %wide2 = genrec.exp %x2 : !one
    %wide3 = genrec.exp %x3 : !one
    %wide4 = genrec.exp %x4 : !one
    %wide5 = genrec.exp %x5 : !one
    %wide6 = genrec.exp %x6 : !one
    %wide7 = genrec.exp %x7 : !one
    %wide8 = genrec.exp %x8 : !one
    %wide9 = genrec.exp %x9 : !one
    %wide10 = genrec.exp %x10 : !one
    %wide11 = genrec.exp %x11 : !one
    %wide12 = genrec.exp %x12 : !one
    %wide13 = genrec.exp %x13 : !one
    %wide14 = genrec.exp %x14 : !one
    %wide15 = genrec.exp %x15 : !one
    %wide = genrec.concat_columns %wide0, %wide1, %wide2, %wide3, %wide4, %wide5, %wide6, %wide7, %wide8, %wide9, %wide10, %wide11, %wide12, %wide13, %wide14, %wide15 : (!one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one) -> tensor<?x16xf32, #genrec.rows<@user>>
    %few0 = genrec.neg %x0 : !one
    %few1 = genrec.neg %x1 : !one
    %few2 = genrec.neg %x2 : !one
    %few3 = genrec.neg %x3 : !one
    %few4 = genrec.neg %x4 : !one
    %few5 = genrec.neg %x5 : !one
    %few6 = genrec.neg %x6 : !one
    %few7 = genrec.neg %x7 : !one
    %few8 = genrec.neg %x8 : !one
    %few9 = genrec.neg %x9 : !one
    %few10 = genrec.neg %x10 : !one
    %few11 = genrec.neg %x11 : !one
    %few12 = genrec.neg %x12 : !one
    %few13 = genrec.neg %x13 : !one
    %few14 = genrec.neg %x14 : !one
    %few = genrec.concat_columns %few0, %few1, %few2, %few3, %few4, %few5, %few6, %few7, %few8, %few9, %few10, %few11, %few12, %few13, %few14 : (!one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one) -> tensor<?x15xf32, #genrec.rows<@user>>
    %w = genrec.row_reduce sum %wide : (tensor<?x16xf32, #genrec.rows<@user>>) -> !one
    %f = genrec.row_reduce sum %few : (tensor<?x15xf32, #genrec.rows<@user>>) -> !one
    %y = genrec.add %w, %f : (!one, !one) -> !one
    genrec.output "y" %y : !one
  }
}
