// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s

// The body of a column on a device: pointers do not alias, so what all rows share is read once, and a divisor that is only
// known then is divided by with its reciprocal. A constant one is a template's argument.
!ids = tensor<?xi64, #genrec.rows<@user>>
!keys = tensor<?xi64, #genrec.rows<@keys>>
genrec.model @columns {
  genrec.domain @user
  genrec.domain @keys kind step
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %n = genrec.constant dense<1000> : tensor<i64>
    %stack = genrec.stack_domains %user : (!genrec.domain<@user>) -> !genrec.domain<@keys>
    %k = genrec.transform_columns (%i, %n) into (%stack) {programs = array<i64: 0>, name = "keys"} : (!ids, tensor<i64>, !genrec.domain<@keys>) -> !keys {
    ^bb0(%id: i64, %divisor: i64):
      %rest = arith.remsi %id, %divisor : i64
      %seven = arith.constant 7 : i64
      %key = arith.remsi %rest, %seven : i64
      genrec.row_yield %key : i64
    }
    genrec.output "k" %k : !keys
  }
  genrec.program @evaluate mode evaluate {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %n = genrec.constant dense<1000> : tensor<i64>
    %stack = genrec.stack_domains %user : (!genrec.domain<@user>) -> !genrec.domain<@keys>
    %k = genrec.transform_columns (%i, %n) into (%stack) {programs = array<i64: 0>, name = "keys"} : (!ids, tensor<i64>, !genrec.domain<@keys>) -> !keys {
    ^bb0(%id: i64, %divisor: i64):
      %rest = arith.remsi %id, %divisor : i64
      %seven = arith.constant 7 : i64
      %key = arith.remsi %rest, %seven : i64
      genrec.row_yield %key : i64
    }
    genrec.output "k" %k : !keys
  }
}

// CHECK: emitc.func @row_keys
// CHECK-COUNT-3: call_opaque "kernels::columnPointer"{{.*}}emit.restrict
// CHECK-NOT: unroll 1
// CHECK: for
// CHECK: call_opaque "kernels::remainderBy"({{.*}}) : (i64, i64) -> i64
// CHECK: call_opaque "kernels::remainder"({{.*}}) {template_args = [7{{.*}}]} : (i64) -> i64

// Programs that have the same columns share the kernel, and have a description of their columns each.
// CHECK: emitc.func @run_transform_columns
// CHECK-NOT: emitc.func
// CHECK: emitc.global @run_transform_columns_columns : !emitc.array<1x!emitc.opaque<"kernels::ColumnShape">>
// CHECK-NOT: emitc.func
// CHECK: emitc.global @run_transform_columns_columns_2 : !emitc.array<1x!emitc.opaque<"kernels::ColumnShape">>
