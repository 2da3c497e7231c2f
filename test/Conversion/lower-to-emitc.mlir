// RUN: genrec-opt %s --genrec-lower-to-emitc | FileCheck %s

// CHECK: emitc.include "genrec_rt/abi.h"
// CHECK: emitc.include "genrec_rt/kernels/shared/rowmath.h"
// CHECK-NOT: arith.
// CHECK-NOT: math.

// CHECK-LABEL: emitc.func @floats
emitc.func @floats(%x: f32, %y: f32) -> f32 {
  // CHECK: %[[E:.*]] = call_opaque "kernels::exp"(%{{.*}}) : (f32) -> f32
  %e = math.exp %x : f32
  // CHECK: %[[M:.*]] = call_opaque "kernels::maximum"(%[[E]], %{{.*}}) : (f32, f32) -> f32
  %m = arith.maximumf %e, %y : f32
  // An unordered comparison is the negation of the opposite ordered one.
  // CHECK: %[[GE:.*]] = cmp ge, %[[M]], %{{.*}}
  // CHECK: %[[LT:.*]] = logical_not %[[GE]]
  %less = arith.cmpf ult, %m, %y : f32
  // CHECK: conditional %[[LT]]
  %r = arith.select %less, %m, %y : f32
  emitc.return %r : f32
}

// CHECK-LABEL: emitc.func @integers
emitc.func @integers(%x: i64, %y: i64) -> i64 {
  // Sums wrap around, which only unsigned ones do in C++.
  // CHECK: cast %{{.*}} : i64 to ui64
  // CHECK: add {{.*}} : (ui64, ui64) -> ui64
  // CHECK: cast %{{.*}} : ui64 to i64
  %sum = arith.addi %x, %y : i64
  // A constant prints as an int, which would not agree with the other operand.
  // CHECK: call_opaque "kernels::maximum"({{.*}}) {template_args = [i64]} : (i64, i64) -> i64
  %zero = arith.constant 0 : i64
  %clipped = arith.maxsi %sum, %zero : i64
  // CHECK: rem {{.*}} : (i64, i64) -> i64
  %rest = arith.remsi %sum, %y : i64
  // CHECK: %[[LT:.*]] = cmp lt, {{.*}} : (ui64, ui64) -> i1
  %less = arith.cmpi ult, %rest, %y : i64
  // CHECK: %[[EQ:.*]] = cmp eq, {{.*}} : (i64, i64) -> i1
  %same = arith.cmpi eq, %x, %y : i64
  // CHECK: logical_and %[[LT]], %[[EQ]]
  %both = arith.andi %less, %same : i1
  // CHECK: cast %{{.*}} : i1 to i64
  %one = arith.extui %both : i1 to i64
  emitc.return %one : i64
}
