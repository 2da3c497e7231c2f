// RUN: genrec-opt %s --genrec-fold-epilogues --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-fold-epilogues --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: fold-activation: 5
// COUNT: fold-residual: 4
// COUNT: genrec-fold-epilogues activations: 5
// COUNT: genrec-fold-epilogues residuals: 4

// An activation that another product reads, and the residual connection around both.

!id = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!w = tensor<4x4xf32>
!b = tensor<4xf32>

// CHECK-LABEL: genrec.model @feed_forward
// CHECK: %[[X:.*]] = genrec.mul
// CHECK: %[[N:.*]] = genrec.exp %[[X]]
// CHECK: %[[A:.*]] = genrec.fused_linear %[[N]], %[[W:.*]] bias %[[B:.*]] activation gelu {genrec.stage = #genrec<stage compute>} :
// CHECK-NOT: genrec.gelu
// CHECK-NEXT: %[[Y:.*]] = genrec.fused_linear %[[A]], %[[W]] residual %[[X]] activation none {transposed} :
// CHECK-NEXT: genrec.output "y" %[[Y]]
genrec.model @feed_forward {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : !w {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : !b {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !id
    %f = genrec.lookup %id in @item : (!id) -> !x
    %w = genrec.param @w : !w
    %b = genrec.param @b : !b
    %x = genrec.mul %f, %b : (!x, !b) -> !x
    %n = genrec.exp %x : !x
    %p = genrec.linear %n, %w bias %b {genrec.stage = #genrec<stage compute>} : (!x, !w, !b) -> !x
    %a = genrec.gelu %p : !x
    %h = genrec.linear %a, %w {transposed} : (!x, !w) -> !x
    %y = genrec.add %x, %h : (!x, !x) -> !x
    genrec.output "y" %y : !x
  }
}

// -----

// Where the activation's gradient reads the product, it is stored too; a slice that
// another product reads in place counts as being in memory.

!id = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?x2xf32, #genrec.rows<@user>>
!w = tensor<4x4xf32>
!v = tensor<2x4xf32>

// CHECK-LABEL: genrec.model @kept
// CHECK: %[[A:.*]], %[[PRE:.*]] = genrec.fused_linear %{{.*}}, %{{.*}} activation silu :
// CHECK: genrec.slice_columns %[[A]]
// CHECK: genrec.sigmoid %[[PRE]]
genrec.model @kept {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : !w {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : !v {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !id
    %x = genrec.lookup %id in @item : (!id) -> !x
    %w = genrec.param @w : !w
    %v = genrec.param @v : !v
    %p = genrec.linear %x, %w : (!x, !w) -> !x
    %a = genrec.silu %p : !x
    %s = genrec.slice_columns %a from 2 : (!x) -> !s
    %h = genrec.linear %s, %v : (!s, !v) -> !x
    %g = genrec.square %p : !x
    %t = genrec.exp %g : !x
    %k = genrec.exp %h : !x
    %m = genrec.mul %t, %k : (!x, !x) -> !x
    %c = genrec.sigmoid %p : !x
    %d = genrec.exp %c : !x
    genrec.output "d" %d : !x
    genrec.output "m" %m : !x
  }
}

// -----

// Left alone: an activation that only row-wise ops read while somebody else reads the
// product; an addition of what another kernel would have to store first; a product
// that two ops read; rows plus a scalar.

!id = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!n = tensor<?xf32, #genrec.rows<@user>>
!w = tensor<4x4xf32>

// CHECK-LABEL: genrec.model @alone
// CHECK-NOT: genrec.fused_linear
genrec.model @alone {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : !w {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !id
    %x = genrec.lookup %id in @item : (!id) -> !x
    %c = genrec.feature %user "c" : (!genrec.domain<@user>) -> !n
    %w = genrec.param @w : !w
    %p = genrec.linear %x, %w : (!x, !w) -> !x
    %a = genrec.tanh %p : !x
    %both = genrec.mul %a, %p : (!x, !x) -> !x
    %q = genrec.linear %x, %w : (!x, !w) -> !x
    %z = genrec.exp %both : !x
    %r = genrec.add %q, %z : (!x, !x) -> !x
    %t = genrec.linear %r, %w : (!x, !w) -> !x
    %u = genrec.add %t, %t : (!x, !x) -> !x
    %o = genrec.linear %u, %w : (!x, !w) -> !x
    %e = genrec.add %o, %c : (!x, !n) -> !x
    genrec.output "e" %e : !x
  }
}

// -----

// An activation and then the residual; a sum with something in memory.

!id = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!w = tensor<4x4xf32>

// CHECK-LABEL: genrec.model @both
// CHECK: %[[X:.*]] = genrec.lookup
// CHECK: %[[Y:.*]] = genrec.fused_linear %[[X]], %{{.*}} residual %[[X]] activation relu :
// CHECK-NEXT: %[[Z:.*]] = genrec.fused_linear %[[Y]], %{{.*}} residual %[[Y]] activation sigmoid :
// CHECK-NEXT: %[[T:.*]] = genrec.fused_linear %[[Z]], %{{.*}} activation tanh :
// CHECK-NEXT: genrec.output "z" %[[T]]
genrec.model @both {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : !w {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !id
    %x = genrec.lookup %id in @item : (!id) -> !x
    %w = genrec.param @w : !w
    %p = genrec.linear %x, %w : (!x, !w) -> !x
    %a = genrec.relu %p : !x
    %y = genrec.add %a, %x : (!x, !x) -> !x
    %q = genrec.linear %y, %w : (!x, !w) -> !x
    %s = genrec.sigmoid %q : !x
    %z = genrec.add %s, %y : (!x, !x) -> !x
    %r = genrec.linear %z, %w : (!x, !w) -> !x
    %t = genrec.tanh %r : !x
    genrec.output "z" %t : !x
  }
}

// -----

// Of a product whose factor was rounded before, the library adds the residual; an activation is left to row kernels,
// and so is what is added behind it.

!x = tensor<?x32xf32, #genrec.rows<@user>>
!r = tensor<?x32xbf16, #genrec.rows<@user>>
!w = tensor<32x32xf32>
!b = tensor<32xf32>

// CHECK-LABEL: genrec.model @rounded
// CHECK: %[[X:.*]] = genrec.feature
// CHECK: %[[R:.*]] = genrec.cast %[[X]]
// CHECK: %[[Y:.*]] = genrec.fused_linear %[[R]], %[[W:.*]] bias %[[B:.*]] residual %[[X]] activation none {bf16} : (tensor<?x32xbf16,
// CHECK-NEXT: %[[RY:.*]] = genrec.cast %[[Y]]
// CHECK-NEXT: %[[P:.*]] = genrec.linear %[[RY]], %[[W]] {bf16}
// CHECK-NEXT: %[[A:.*]] = genrec.silu %[[P]]
// CHECK-NEXT: %[[Z:.*]] = genrec.add %[[A]], %[[Y]]
// CHECK-NEXT: genrec.output "z" %[[Z]]
genrec.model @rounded {
  genrec.domain @user
  genrec.parameter @w : !w {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : !b {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !x
    %w = genrec.param @w : !w
    %b = genrec.param @b : !b
    %r = genrec.cast %x : (!x) -> !r
    %p = genrec.linear %r, %w bias %b {bf16} : (!r, !w, !b) -> !x
    %y = genrec.add %x, %p : (!x, !x) -> !x
    %ry = genrec.cast %y : (!x) -> !r
    %q = genrec.linear %ry, %w {bf16} : (!r, !w) -> !x
    %a = genrec.silu %q : !x
    %z = genrec.add %a, %y : (!x, !x) -> !x
    genrec.output "z" %z : !x
  }
}
