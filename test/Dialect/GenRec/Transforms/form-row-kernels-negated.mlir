// RUN: genrec-opt %s --genrec-form-row-kernels=opt=2 --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-form-row-kernels=opt=2 --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: sum-of-negated: 1

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>

// The sum of what is negated is the negated sum: lanes do not keep both rows. Where the negated row is read besides, and
// of a maximum, nothing changes.

// CHECK-LABEL: genrec.model @sums
// CHECK: ^bb0(%[[X:.*]]: vector<4xf32>):
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: %[[SUM:.*]] = vector.reduction <add>, %[[SQUARE]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[SUM]] : f32
// CHECK: %[[N:.*]] = arith.negf %[[X]] : vector<4xf32>
// CHECK: vector.reduction <add>, %[[N]]
// CHECK: vector.reduction <maximumf>, %[[N]]
// CHECK: genrec.row_yield %[[MINUS]]
genrec.model @sums {
  genrec.domain @user
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %w = genrec.param @w : tensor<4x4xf32>
    %e = genrec.embedding %i of %w : (tensor<?xi64, #genrec.rows<@user>>, tensor<4x4xf32>) -> !u4
    %x = genrec.linear %e, %w : (!u4, tensor<4x4xf32>) -> !u4
    %square = genrec.square %x : !u4
    %minus = genrec.neg %square : !u4
    %sum = genrec.row_reduce sum %minus : (!u4) -> !u
    %n = genrec.neg %x : !u4
    %kept = genrec.row_reduce sum %n : (!u4) -> !u
    %most = genrec.row_reduce max %n : (!u4) -> !u
    genrec.output "sum" %sum : !u
    genrec.output "kept" %kept : !u
    genrec.output "most" %most : !u
  }
}
