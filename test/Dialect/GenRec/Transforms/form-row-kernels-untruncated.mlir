// RUN: genrec-opt %s --genrec-infer-domains --genrec-form-row-kernels | FileCheck %s

// What truncated lists bring along is read by kernels where it lies in the whole list: it is no op of its own, and those
// that read such rows alone are one kernel. Rows that pad added are nowhere, so theirs are brought.

// CHECK-LABEL: genrec.model @moves
// CHECK-DAG: %[[X:.*]] = genrec.feature %{{.*}} "event.x"
// CHECK-DAG: %[[Y:.*]] = genrec.feature %{{.*}} "event.y"
// CHECK-DAG: genrec.derive %[[X]] into %{{.*}} : {{.*}} -> tensor<?xf32, #genrec.rows<@long>>
// CHECK-DAG: %{{.*}}:2 = genrec.row_kernel %{{.*}}(%[[X]], %[[Y]]) attributes {{.*}}operand_roles = [#genrec<operand_role untruncated>, #genrec<operand_role untruncated>]
// CHECK-NOT: genrec.derive
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
!long = !genrec.domain<@long>
!e = tensor<?xf32, #genrec.rows<@event>>
!r = tensor<?xf32, #genrec.rows<@recent>>
!l = tensor<?xf32, #genrec.rows<@long>>
genrec.model @moves {
  genrec.domain @user
  genrec.domain @event parent @user {column = "event"}
  genrec.domain @recent parent @user kind derived
  genrec.domain @long parent @user kind derived
  genrec.program @main {
    %user, %event = genrec.batch : !genrec.domain<@user>, !event
    %recent = genrec.truncate %event {count = 3} : (!event) -> !recent
    %long = genrec.pad %event {count = 9} : (!event) -> !long
    %x = genrec.feature %event "event.x" : (!event) -> !e
    %y = genrec.feature %event "event.y" : (!event) -> !e
    %dx = genrec.derive %x into %recent : (!e, !recent) -> !r
    %dy = genrec.derive %y into %recent : (!e, !recent) -> !r
    %lx = genrec.derive %x into %long : (!e, !long) -> !l
    %root = genrec.relu %dx : !r
    genrec.output "x" %root : !r
    genrec.output "y" %dy : !r
    genrec.output "long" %lx : !l
  }
}
