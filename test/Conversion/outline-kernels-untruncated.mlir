// RUN: genrec-opt %s --genrec-outline-kernels | FileCheck %s
// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s

// Rows of a truncated list are read where they lie in the whole list: as far behind their own numbers as that list ends
// behind the truncated one, or begins behind it where the first rows are kept.
!user = !genrec.domain<@user>
!event = !genrec.domain<@event>
!e = tensor<?xf32, #genrec.rows<@event>>
genrec.model @untruncated {
  genrec.domain @user
  genrec.domain @event parent @user {column = "event"}
  genrec.domain @recent parent @user kind derived
  genrec.domain @oldest parent @user kind derived
  genrec.program @predict mode predict {
    %user, %event = genrec.batch : !user, !event
    %x = genrec.feature %event "event.x" : (!event) -> !e
    %recent = genrec.truncate %event {count = 2} : (!event) -> !genrec.domain<@recent>
    %oldest = genrec.truncate %event {count = 2, keep = #genrec<keep first>} : (!event) -> !genrec.domain<@oldest>
    %late = genrec.row_kernel %recent(%x) attributes {name = "late", operand_roles = [#genrec<operand_role untruncated>],
        result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@recent>, !e) -> tensor<?xf32, #genrec.rows<@recent>> {
    ^bb0(%one: f32):
      %sum = arith.addf %one, %one : f32
      genrec.row_yield %sum : f32
    }
    %early = genrec.row_kernel %oldest(%x) attributes {name = "early", operand_roles = [#genrec<operand_role untruncated>],
        result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@oldest>, !e) -> tensor<?xf32, #genrec.rows<@oldest>> {
    ^bb0(%one: f32):
      genrec.row_yield %one : f32
    }
    genrec.output "late" %late : tensor<?xf32, #genrec.rows<@recent>>
    genrec.output "early" %early : tensor<?xf32, #genrec.rows<@oldest>>
  }
}

// CHECK-LABEL: emitc.func @row_late
// CHECK: %[[PARENT:.*]] = load %{{.*}} {emit.const, emit.restrict} : <!emitc.ptr<i64>>
// CHECK: %[[WHOLE:.*]] = load %{{.*}} {emit.const, emit.restrict} : <!emitc.ptr<i64>>
// CHECK: %[[OWN:.*]] = load %{{.*}} {emit.const, emit.restrict} : <!emitc.ptr<i64>>
// CHECK: for %[[ROW:.*]] =
// CHECK-NEXT: %[[AT:.*]] = subscript %[[PARENT]][%[[ROW]]]
// CHECK-NEXT: %[[LIST:.*]] = load %[[AT]]
// CHECK: %[[END:.*]] = add %[[LIST]],
// CHECK-NEXT: subscript %[[WHOLE]][%[[END]]]
// CHECK: subscript %[[OWN]][%[[END]]]
// CHECK: %[[BEHIND:.*]] = sub
// CHECK-NEXT: %[[FROM:.*]] = add %[[ROW]], %[[BEHIND]]
// CHECK-NEXT: subscript %{{.*}}[%[[FROM]]] : (!emitc.ptr<f32>, i64)

// CHECK-LABEL: emitc.func @row_early
// CHECK: for %[[ROW:.*]] =
// CHECK-NEXT: %[[AT:.*]] = subscript %{{.*}}[%[[ROW]]]
// CHECK-NEXT: %[[LIST:.*]] = load %[[AT]]
// CHECK-NEXT: subscript %{{.*}}[%[[LIST]]]
