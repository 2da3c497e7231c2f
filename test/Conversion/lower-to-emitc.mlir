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

// CHECK-LABEL: emitc.func @sigmoids
emitc.func @sigmoids(%x: f32, %wide: f64) -> f32 {
  %one = arith.constant 1.0 : f32
  %wide_one = arith.constant 1.0 : f64
  // One call, and no exponential that nobody reads.
  // CHECK-NOT: "kernels::exp"
  // CHECK: %[[S:.*]] = call_opaque "kernels::sigmoid"(%arg0) : (f32) -> f32
  %negated = arith.negf %x : f32
  %e = math.exp %negated : f32
  %sum = arith.addf %e, %one : f32
  %s = arith.divf %one, %sum : f32
  // CHECK: %[[N:.*]] = unary_minus %[[S]]
  // CHECK: call_opaque "kernels::sigmoid"(%[[N]])
  %negated_s = arith.negf %s : f32
  %negated_2 = arith.negf %negated_s : f32
  %e_2 = math.exp %negated_2 : f32
  %sum_2 = arith.addf %one, %e_2 : f32
  %s_2 = arith.divf %one, %sum_2 : f32
  // Of double, too.
  // CHECK: call_opaque "kernels::sigmoid"(%arg1) : (f64) -> f64
  %wide_negated = arith.negf %wide : f64
  %wide_e = math.exp %wide_negated : f64
  %wide_sum = arith.addf %wide_e, %wide_one : f64
  %wide_s = arith.divf %wide_one, %wide_sum : f64
  %narrow = arith.truncf %wide_s : f64 to f32
  %a = arith.addf %s_2, %narrow : f32
  emitc.return %a : f32
}

// What is not 1 / (1 + exp(-x)) stays what it is, also where it shares an exponential with a sigmoid.
// CHECK-LABEL: emitc.func @no_sigmoids
emitc.func @no_sigmoids(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  // CHECK: %[[E:.*]] = call_opaque "kernels::exp"
  // CHECK: %[[SUM:.*]] = add %[[E]]
  // CHECK: "kernels::sigmoid"
  %negated = arith.negf %x : f32
  %e = math.exp %negated : f32
  %sum = arith.addf %e, %one : f32
  %s = arith.divf %one, %sum : f32
  // CHECK: div %{{.*}}, %[[SUM]]
  %doubled = arith.divf %two, %sum : f32
  // CHECK: %[[FURTHER:.*]] = add %[[E]]
  // CHECK: div %{{.*}}, %[[FURTHER]]
  %further = arith.addf %e, %two : f32
  %less = arith.divf %one, %further : f32
  // CHECK: %[[RISING:.*]] = call_opaque "kernels::exp"(%arg0)
  // CHECK: %[[BEHIND:.*]] = add %[[RISING]]
  // CHECK: div %{{.*}}, %[[BEHIND]]
  %rising = math.exp %x : f32
  %behind = arith.addf %rising, %one : f32
  %falling = arith.divf %one, %behind : f32
  %a = arith.addf %s, %doubled : f32
  %b = arith.addf %a, %less : f32
  %c = arith.addf %b, %falling : f32
  emitc.return %c : f32
}
