// RUN: genrec-opt %s --genrec-form-interactions=least-vectors=3 --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-form-interactions --split-input-file | FileCheck %s --check-prefix=FEW
// RUN: genrec-opt %s --genrec-form-interactions=least-vectors=3 --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: form-interaction: 5
// COUNT: genrec-form-interactions dots: 18
// COUNT: genrec-form-interactions interactions: 5

// FEW-NOT: genrec.dot_interaction

!v = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// In the op's order, beside another column.

// CHECK-LABEL: genrec.model @in_order
// CHECK-SAME: genrec.decisions = ["form-interactions: @all: 3 dot products of 3 vectors (form-interactions.mlir:{{[0-9]+}}) are one product of all pairs"]
// CHECK-NOT: genrec.mul
// CHECK: %[[V:.*]] = genrec.concat_columns %[[A:.*]], %[[B:.*]], %[[C:.*]] : {{.*}} -> tensor<?x12xf32
// CHECK-NEXT: %[[P:.*]] = genrec.dot_interaction %[[V]] {count = 3 : i64}
// CHECK-NEXT: %[[X:.*]] = genrec.concat_columns %[[A]], %[[P]] : {{.*}} -> tensor<?x7xf32
// CHECK-NEXT: genrec.output "x" %[[X]]
genrec.model @in_order {
  genrec.domain @user
  genrec.program @all {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !v
    %b = genrec.feature %user "b" : (!genrec.domain<@user>) -> !v
    %c = genrec.feature %user "c" : (!genrec.domain<@user>) -> !v
    %mba = genrec.mul %b, %a : (!v, !v) -> !v
    %ba = genrec.row_reduce sum %mba : (!v) -> !s
    %mca = genrec.mul %c, %a : (!v, !v) -> !v
    %ca = genrec.row_reduce sum %mca : (!v) -> !s
    %mcb = genrec.mul %c, %b : (!v, !v) -> !v
    %cb = genrec.row_reduce sum %mcb : (!v) -> !s
    %x = genrec.concat_columns %a, %ba, %ca, %cb : (!v, !s, !s, !s) -> tensor<?x7xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x7xf32, #genrec.rows<@user>>
  }
}

// -----

!v = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// With themselves, factors the other way round; nothing beside them: no concatenation is left.

// CHECK-LABEL: genrec.model @self_alone
// CHECK: %[[V:.*]] = genrec.concat_columns
// CHECK-NEXT: %[[P:.*]] = genrec.dot_interaction %[[V]] {count = 3 : i64, self}
// CHECK-NEXT: genrec.output "x" %[[P]]
genrec.model @self_alone {
  genrec.domain @user
  genrec.program @all {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !v
    %b = genrec.feature %user "b" : (!genrec.domain<@user>) -> !v
    %c = genrec.feature %user "c" : (!genrec.domain<@user>) -> !v
    %maa = genrec.mul %a, %a : (!v, !v) -> !v
    %aa = genrec.row_reduce sum %maa : (!v) -> !s
    %mab = genrec.mul %a, %b : (!v, !v) -> !v
    %ab = genrec.row_reduce sum %mab : (!v) -> !s
    %mbb = genrec.mul %b, %b : (!v, !v) -> !v
    %bb = genrec.row_reduce sum %mbb : (!v) -> !s
    %mac = genrec.mul %a, %c : (!v, !v) -> !v
    %ac = genrec.row_reduce sum %mac : (!v) -> !s
    %mbc = genrec.mul %b, %c : (!v, !v) -> !v
    %bc = genrec.row_reduce sum %mbc : (!v) -> !s
    %mcc = genrec.mul %c, %c : (!v, !v) -> !v
    %cc = genrec.row_reduce sum %mcc : (!v) -> !s
    %x = genrec.concat_columns %aa, %ab, %bb, %ac, %bc, %cc : (!s, !s, !s, !s, !s, !s) -> tensor<?x6xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x6xf32, #genrec.rows<@user>>
  }
}

// -----

!v = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// In another order: columns of the product.

// CHECK-LABEL: genrec.model @other_order
// CHECK: %[[A:.*]] = genrec.feature %{{.*}} "a"
// CHECK: %[[B:.*]] = genrec.feature %{{.*}} "b"
// CHECK: %[[C:.*]] = genrec.feature %{{.*}} "c"
// CHECK: %[[V:.*]] = genrec.concat_columns %[[B]], %[[C]], %[[A]]
// CHECK-NEXT: %[[P:.*]] = genrec.dot_interaction %[[V]] {count = 3 : i64}
// CHECK-NEXT: %[[CB:.*]] = genrec.slice_columns %[[P]] from 0
// CHECK-NEXT: %[[CA:.*]] = genrec.slice_columns %[[P]] from 2
// CHECK-NEXT: %[[BA:.*]] = genrec.slice_columns %[[P]] from 1
// CHECK-NEXT: genrec.concat_columns %[[CB]], %[[CA]], %[[A]], %[[BA]]
genrec.model @other_order {
  genrec.domain @user
  genrec.program @all {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !v
    %b = genrec.feature %user "b" : (!genrec.domain<@user>) -> !v
    %c = genrec.feature %user "c" : (!genrec.domain<@user>) -> !v
    %mcb = genrec.mul %c, %b : (!v, !v) -> !v
    %cb = genrec.row_reduce sum %mcb : (!v) -> !s
    %mca = genrec.mul %c, %a : (!v, !v) -> !v
    %ca = genrec.row_reduce sum %mca : (!v) -> !s
    %mba = genrec.mul %b, %a : (!v, !v) -> !v
    %ba = genrec.row_reduce sum %mba : (!v) -> !s
    %x = genrec.concat_columns %cb, %ca, %a, %ba : (!s, !s, !v, !s) -> tensor<?x7xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x7xf32, #genrec.rows<@user>>
  }
}

// -----

!v = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// Vectors of two sets: two products.

// CHECK-LABEL: genrec.model @two_sets
// CHECK: genrec.dot_interaction
// CHECK-NOT: genrec.row_reduce
// CHECK: genrec.dot_interaction
genrec.model @two_sets {
  genrec.domain @user
  genrec.program @all {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !v
    %b = genrec.feature %user "b" : (!genrec.domain<@user>) -> !v
    %c = genrec.feature %user "c" : (!genrec.domain<@user>) -> !v
    %d = genrec.feature %user "d" : (!genrec.domain<@user>) -> !v
    %e = genrec.feature %user "e" : (!genrec.domain<@user>) -> !v
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> !v
    %mba = genrec.mul %b, %a : (!v, !v) -> !v
    %ba = genrec.row_reduce sum %mba : (!v) -> !s
    %mca = genrec.mul %c, %a : (!v, !v) -> !v
    %ca = genrec.row_reduce sum %mca : (!v) -> !s
    %mcb = genrec.mul %c, %b : (!v, !v) -> !v
    %cb = genrec.row_reduce sum %mcb : (!v) -> !s
    %med = genrec.mul %e, %d : (!v, !v) -> !v
    %ed = genrec.row_reduce sum %med : (!v) -> !s
    %mfd = genrec.mul %f, %d : (!v, !v) -> !v
    %fd = genrec.row_reduce sum %mfd : (!v) -> !s
    %mfe = genrec.mul %f, %e : (!v, !v) -> !v
    %fe = genrec.row_reduce sum %mfe : (!v) -> !s
    %x = genrec.concat_columns %ba, %ca, %cb, %ed, %fd, %fe : (!s, !s, !s, !s, !s, !s) -> tensor<?x6xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x6xf32, #genrec.rows<@user>>
  }
}

// -----

!v = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// A pair is missing; a pair is there twice; a product is read by another op, too.

// CHECK-LABEL: genrec.model @missing
// CHECK-NOT: genrec.dot_interaction
genrec.model @missing {
  genrec.domain @user
  genrec.program @all {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !v
    %b = genrec.feature %user "b" : (!genrec.domain<@user>) -> !v
    %c = genrec.feature %user "c" : (!genrec.domain<@user>) -> !v
    %mba = genrec.mul %b, %a : (!v, !v) -> !v
    %ba = genrec.row_reduce sum %mba : (!v) -> !s
    %mca = genrec.mul %c, %a : (!v, !v) -> !v
    %ca = genrec.row_reduce sum %mca : (!v) -> !s
    %x = genrec.concat_columns %ba, %ca : (!s, !s) -> tensor<?x2xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x2xf32, #genrec.rows<@user>>
  }
}

// -----

!v = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @twice
// CHECK-NOT: genrec.dot_interaction
genrec.model @twice {
  genrec.domain @user
  genrec.program @all {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !v
    %b = genrec.feature %user "b" : (!genrec.domain<@user>) -> !v
    %c = genrec.feature %user "c" : (!genrec.domain<@user>) -> !v
    %mba = genrec.mul %b, %a : (!v, !v) -> !v
    %ba = genrec.row_reduce sum %mba : (!v) -> !s
    %mca = genrec.mul %c, %a : (!v, !v) -> !v
    %ca = genrec.row_reduce sum %mca : (!v) -> !s
    %mcb = genrec.mul %c, %b : (!v, !v) -> !v
    %cb = genrec.row_reduce sum %mcb : (!v) -> !s
    %mbc = genrec.mul %b, %c : (!v, !v) -> !v
    %bc = genrec.row_reduce sum %mbc : (!v) -> !s
    %x = genrec.concat_columns %ba, %ca, %cb, %bc : (!s, !s, !s, !s) -> tensor<?x4xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x4xf32, #genrec.rows<@user>>
  }
}

// -----

!v = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @read
// CHECK-NOT: genrec.dot_interaction
genrec.model @read {
  genrec.domain @user
  genrec.program @all {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !v
    %b = genrec.feature %user "b" : (!genrec.domain<@user>) -> !v
    %c = genrec.feature %user "c" : (!genrec.domain<@user>) -> !v
    %mba = genrec.mul %b, %a : (!v, !v) -> !v
    %ba = genrec.row_reduce sum %mba : (!v) -> !s
    %mca = genrec.mul %c, %a : (!v, !v) -> !v
    %ca = genrec.row_reduce sum %mca : (!v) -> !s
    %mcb = genrec.mul %c, %b : (!v, !v) -> !v
    %cb = genrec.row_reduce sum %mcb : (!v) -> !s
    %x = genrec.concat_columns %ba, %ca, %cb : (!s, !s, !s) -> tensor<?x3xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x3xf32, #genrec.rows<@user>>
    genrec.output "ba" %ba : !s
  }
}
