// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-plan-memory))' | FileCheck %s

// Buffers by domain, live from the op that makes them to the last use, through views; ops of the
// copy stage come first; columns, parameters and views have none.

genrec.model @m {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @recent parent @user {kind = #genrec<domain_kind derived>}
  genrec.parameter @w : tensor<4x6xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @predict mode predict {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %rows = genrec.row_kernel %user(%x) attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%v: f32):
      %wide = vector.broadcast %v : f32 to vector<4xf32>
      genrec.row_yield %wide : vector<4xf32>
    }
    %recent = genrec.truncate %history {count = 3, genrec.stage = #genrec<stage copy>} : (!genrec.domain<@history>) -> !genrec.domain<@recent>
    %w = genrec.param @w : tensor<4x6xf32>
    %y = genrec.linear %rows, %w : (tensor<?x4xf32, #genrec.rows<@user>>, tensor<4x6xf32>) -> tensor<?x6xf32, #genrec.rows<@user>>
    %part = genrec.slice_columns %y from 2 : (tensor<?x6xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %z = genrec.linear %part, %w : (tensor<?x4xf32, #genrec.rows<@user>>, tensor<4x6xf32>) -> tensor<?x6xf32, #genrec.rows<@user>>
    genrec.output "z" %z : tensor<?x6xf32, #genrec.rows<@user>>
  }
}

// Rows that a kernel picks are padded to whole cache lines, where all readers are told.
genrec.model @picked {
  genrec.domain @user
  genrec.domain @items {kind = #genrec<domain_kind catalogue>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %x = genrec.feature %items "x" : (!genrec.domain<@items>) -> tensor<?xf32, #genrec.rows<@items>>
    %which = genrec.feature %user "which" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %wide, %narrow, %told = genrec.row_kernel %items(%x) attributes {name = "wide", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>, #genrec<result_role aligned>, #genrec<result_role aligned>]} : (!genrec.domain<@items>, tensor<?xf32, #genrec.rows<@items>>) -> (tensor<?x50xf32, #genrec.rows<@items>>, tensor<?x5xf32, #genrec.rows<@items>>, tensor<?x50xf32, #genrec.rows<@items>>) {
    ^bb0(%v: f32):
      %a = vector.broadcast %v : f32 to vector<50xf32>
      %b = vector.broadcast %v : f32 to vector<5xf32>
      genrec.row_yield %a, %b, %a : vector<50xf32>, vector<5xf32>, vector<50xf32>
    }
    %y:3 = genrec.row_kernel %user(%which, %wide, %narrow, %told) attributes {name = "pick", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role source>, #genrec<operand_role source>, #genrec<operand_role source>], result_roles = [#genrec<result_role aligned>, #genrec<result_role aligned>, #genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?xi64, #genrec.rows<@user>>, tensor<?x50xf32, #genrec.rows<@items>>, tensor<?x5xf32, #genrec.rows<@items>>, tensor<?x50xf32, #genrec.rows<@items>>) -> (tensor<?x50xf32, #genrec.rows<@user>>, tensor<?x5xf32, #genrec.rows<@user>>, tensor<?x50xf32, #genrec.rows<@user>>) {
    ^bb0(%i: i64, %a: tensor<?x50xf32, #genrec.rows<@items>>, %b: tensor<?x5xf32, #genrec.rows<@items>>, %c: tensor<?x50xf32, #genrec.rows<@items>>):
      %p = genrec.row_gather %a[%i] : (tensor<?x50xf32, #genrec.rows<@items>>, i64) -> vector<50xf32>
      %q = genrec.row_gather %b[%i] : (tensor<?x5xf32, #genrec.rows<@items>>, i64) -> vector<5xf32>
      %r = genrec.row_gather %c[%i] : (tensor<?x50xf32, #genrec.rows<@items>>, i64) -> vector<50xf32>
      genrec.row_yield %p, %q, %r : vector<50xf32>, vector<5xf32>, vector<50xf32>
    }
    genrec.output "items" %told : tensor<?x50xf32, #genrec.rows<@items>>
  }
}

// CHECK: genrec.program @predict
// CHECK-SAME: genrec.buffers = [
// CHECK-SAME: #genrec.buffer<name = "recent_offsets", domain = @user, bytes_per_row = 8, bytes = 8, first = 3, last = 8>
// CHECK-SAME: #genrec.buffer<name = "recent_parent", domain = @recent, bytes_per_row = 8, first = 3, last = 8>
// CHECK-SAME: #genrec.buffer<name = "recent_identity"
// CHECK-SAME: #genrec.buffer<name = "row_kernel", domain = @user, bytes_per_row = 16, first = 4, last = 5>
// CHECK-SAME: #genrec.buffer<name = "linear", domain = @user, bytes_per_row = 24, first = 5, last = 7>
// CHECK-SAME: #genrec.buffer<name = "linear", domain = @user, bytes_per_row = 24, first = 7, last = 8>
// CHECK-SAME: genrec.first_compute_op = 4 : i64
// CHECK: genrec.truncate {{.*}}genrec.buffer_ids = array<i64: -1, 0, 1, 2>
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 3>
// CHECK: genrec.linear {{.*}}genrec.buffer_ids = array<i64: 4>
// CHECK-NOT: genrec.slice_columns {{.*}}buffer_ids
// CHECK: genrec.linear {{.*}}genrec.buffer_ids = array<i64: 5>

// CHECK: genrec.model @picked
// CHECK: genrec.buffers = [
// CHECK-SAME: #genrec.buffer<name = "wide", domain = @items, bytes_per_row = 256, stride = 64, {{[^>]*}}>
// CHECK-SAME: #genrec.buffer<name = "wide", domain = @items, bytes_per_row = 32, stride = 8, {{[^>]*}}>
// An output takes dense rows.
// CHECK-SAME: #genrec.buffer<name = "wide", domain = @items, bytes_per_row = 200, first = {{[0-9]+}}, last = {{[0-9]+}}>
// CHECK-SAME: #genrec.buffer<name = "pick", domain = @user, bytes_per_row = 200, first
