// RUN: genrec-opt %s --genrec-outline-kernels -split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels -split-input-file | FileCheck %s --check-prefix=CUDA

// A norm has three phases: a sum, the sum of squares of what is left, the result. The deviation is computed
// again rather than kept, the squares are kept for the sum.
genrec.model @norm {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<8xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<8xf32>, !genrec.domain<@user>) -> tensor<?x8xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%x) attributes {name = "norm", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x8xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<8xf32>):
      %sum = vector.reduction <add>, %v : vector<8xf32> into f32
      %eighth = arith.constant 0.125 : f32
      %mean = arith.mulf %sum, %eighth : f32
      %means = vector.broadcast %mean : f32 to vector<8xf32>
      %off = arith.subf %v, %means : vector<8xf32>
      %square = arith.mulf %off, %off : vector<8xf32>
      %total = vector.reduction <add>, %square : vector<8xf32> into f32
      %scale = math.rsqrt %total : f32
      %scales = vector.broadcast %scale : f32 to vector<8xf32>
      %result = arith.mulf %off, %scales : vector<8xf32>
      genrec.row_yield %result : vector<8xf32>
    }
    genrec.output "y" %y : tensor<?x8xf32, #genrec.rows<@user>>
  }
}

// CHECK-LABEL: genrec.model @norm
// CHECK: genrec.launch @row_norm over %{{.*}}({{.*}}) {genrec.costs = [#genrec.cost<domain = @user, bytes = 6.400000e+01 : f64, flops = 4.500000e+01 : f64>], genrec.origin = "{{.*}}", grain = {{[0-9]+}} : i64}
// CHECK: emitc.func @row_norm
// CHECK-SAME: specifiers = ["static"]
// CHECK: %[[ARRAY:.*]] = "emitc.variable"{{.*}}-> !emitc.array<8xf32>
// CHECK-NOT: emitc.array
// CHECK: for
// CHECK: call_opaque "kernels::rowSum"
// CHECK: verbatim "#pragma clang loop vectorize(assume_safety) unroll(disable)"
// CHECK: for
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: subscript %[[ARRAY]]
// CHECK: call_opaque "kernels::rowSum"
// CHECK: math.rsqrt
// CHECK: for
// CHECK: arith.subf
// CHECK: arith.mulf

// The same phases in a thread per row: nothing is shared, and nobody is waited for.
// CUDA: emitc.func @row_norm
// CUDA-SAME: specifiers = ["extern \22C\22", "__global__", "__launch_bounds__(128)"]
// CUDA: call_opaque "kernels::firstRow"() {template_args = [1]}
// CUDA: "emitc.variable"{{.*}}-> !emitc.array<8xf32>
// CUDA: call_opaque "kernels::rowSum"{{.*}}template_args = [8, 1, 8]
// CUDA-NOT: call_opaque "kernels::meet"
// CUDA: call_opaque "kernels::loadPack"{{.*}}template_args = [4]
// CUDA: call_opaque "kernels::rowSum"
// CUDA: math.rsqrt
// CUDA: call_opaque "kernels::storePack"
// CUDA: emitc.global @row_norm_mapping : !emitc.opaque<"kernels::RowMapping"> {emit.constexpr, emit.fields = #genrec.fields<"lanes" = 1 : i64, "sharedBytes" = 0 : i64, "isSpread" = false>}

// -----

// Two programs with one kernel share its function. A pooled result makes the loop over parents the outer one.
genrec.model @pool {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.program @evaluate mode evaluate {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %x = genrec.feature %history "history.x" : (!genrec.domain<@history>) -> tensor<?xf32, #genrec.rows<@history>>
    %y = genrec.row_kernel %history(%x) attributes {name = "pool", operand_roles = [#genrec<operand_role aligned>], pool_kinds = [#genrec<pool_kind mean>], result_roles = [#genrec<result_role pooled>]} : (!genrec.domain<@history>, tensor<?xf32, #genrec.rows<@history>>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: f32):
      genrec.row_yield %v : f32
    }
    genrec.metric auc "a" %y label %y : tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>
  }
  genrec.program @predict mode predict {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %x = genrec.feature %history "history.x" : (!genrec.domain<@history>) -> tensor<?xf32, #genrec.rows<@history>>
    %y = genrec.row_kernel %history(%x) attributes {name = "pool", operand_roles = [#genrec<operand_role aligned>], pool_kinds = [#genrec<pool_kind mean>], result_roles = [#genrec<result_role pooled>]} : (!genrec.domain<@history>, tensor<?xf32, #genrec.rows<@history>>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: f32):
      genrec.row_yield %v : f32
    }
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@user>>
  }
}

// CHECK-LABEL: genrec.model @pool
// CHECK: genrec.program @evaluate
// CHECK: genrec.launch @row_pool over %0#0
// CHECK: genrec.program @predict
// CHECK: genrec.launch @row_pool over %0#0
// CHECK: emitc.func @row_pool
// CHECK-COUNT-2: for
// CHECK: call_opaque "kernels::meanDivisor"
// CHECK-NOT: emitc.func

// -----

// Sums over all rows are private to a chunk; a scattered one is as large as the domain.
genrec.model @sums {
  genrec.domain @user
  genrec.domain @items {kind = #genrec<domain_kind catalogue>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %c = genrec.constant dense<1.0> : tensor<4xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<4xf32>, !genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %sum, %rows = genrec.row_kernel %user(%x, %i) attributes {name = "sums", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role reduced>, #genrec<result_role scattered>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@user>>) -> (tensor<4xf32>, tensor<?x4xf32, #genrec.rows<@items>>) {
    ^bb0(%v: vector<4xf32>, %n: i64, %a: !genrec.accumulator<tensor<4xf32>>, %b: !genrec.accumulator<tensor<?x4xf32, #genrec.rows<@items>>>):
      genrec.accumulate %v into %a : !genrec.accumulator<tensor<4xf32>>, vector<4xf32>
      genrec.accumulate %v into %b at %n : !genrec.accumulator<tensor<?x4xf32, #genrec.rows<@items>>>, vector<4xf32>, i64
      genrec.row_yield
    }
    %t = genrec.constant dense<1.0> : tensor<f32>
    genrec.report_loss "l" %t, %t : tensor<f32>, tensor<f32>
  }
}

// CHECK-LABEL: genrec.model @sums
// CHECK: genrec.launch @row_sums over {{.*}} {accumulators = array<i64: 0, 1>, {{.*}}grain
// CHECK: emitc.func @row_sums
// CHECK-COUNT-2: call_opaque "kernels::sumFloats"
// CHECK: call_opaque "kernels::chunkSums"
// CHECK: for
// CHECK: call_opaque "kernels::addRow"

// -----

// Table rows are asked for ahead of the loop: as much of each as it reaches, states too, and the fewer rows ahead the
// more there are.
genrec.model @tables {
  genrec.domain @user
  genrec.table @a dim 64 {id_bits = 20 : i64, init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" {id_bits = 20 : i64} : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %j = genrec.feature %user "j" {id_bits = 20 : i64} : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %first = genrec.table_rows %i in @a : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x!genrec.row<64>, #genrec.rows<@user>>
    %second = genrec.table_rows %j in @a : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x!genrec.row<64>, #genrec.rows<@user>>
    genrec.row_kernel %user(%first, %second) attributes {name = "tables", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@user>, tensor<?x!genrec.row<64>, #genrec.rows<@user>>, tensor<?x!genrec.row<64>, #genrec.rows<@user>>) -> () {
    ^bb0(%from: !genrec.row<64>, %to: !genrec.row<64>):
      %v = genrec.row_load %from : (!genrec.row<64>) -> vector<64xf32>
      genrec.row_store %v to %to {slot = 1 : i64} : vector<64xf32>, !genrec.row<64>
      genrec.row_yield
    }
    %t = genrec.constant dense<1.0> : tensor<f32>
    genrec.report_loss "l" %t, %t : tensor<f32>, tensor<f32>
  }
}

// CHECK-LABEL: genrec.model @tables
// CHECK: emitc.func @row_tables
// CHECK: for %[[ROW:.*]] = %arg1 to %arg2
// CHECK: call_opaque "kernels::prefetchRow"(%{{.*}}, %[[ROW]], %{{.*}}) {template_args = [64, 8]}
// CHECK: call_opaque "kernels::prefetchRow"(%{{.*}}, %[[ROW]], %{{.*}}) {template_args = [128, 4]}
// CHECK: verbatim "#pragma clang loop vectorize(assume_safety)"{{$}}

// CUDA-LABEL: genrec.model @tables
// CUDA-NOT: prefetchRow

// -----

// Scalars that only become columns of a result run first, many rows at a time; %kept, which the rest of its row
// needs too, does not. A loop as short as a vector must not be unrolled before it is one.
genrec.model @columns {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %b = genrec.feature %user "b" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %c = genrec.constant dense<1.0> : tensor<16xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<16xf32>, !genrec.domain<@user>) -> tensor<?x16xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%a, %b, %x) attributes {name = "columns", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>, tensor<?x16xf32, #genrec.rows<@user>>) -> tensor<?x18xf32, #genrec.rows<@user>> {
    ^bb0(%p: f32, %q: f32, %v: vector<16xf32>):
      %kept = math.exp %q : f32
      %all = vector.broadcast %kept : f32 to vector<16xf32>
      %row = arith.mulf %v, %all : vector<16xf32>
      %c0 = math.log1p %p : f32
      %c1 = math.log1p %c0 : f32
      %c2 = math.log1p %c1 : f32
      %c3 = math.log1p %c2 : f32
      %c4 = math.log1p %c3 : f32
      %c5 = math.log1p %c4 : f32
      %c6 = math.log1p %c5 : f32
      %c7 = math.log1p %c6 : f32
      %c8 = math.log1p %c7 : f32
      %c9 = math.log1p %c8 : f32
      %c10 = math.log1p %c9 : f32
      %c11 = math.log1p %c10 : f32
      %c12 = math.log1p %c11 : f32
      %c13 = math.log1p %c12 : f32
      %c14 = math.log1p %c13 : f32
      %c15 = math.log1p %c14 : f32
      %c16 = math.log1p %c15 : f32
      %joined = genrec.row_concat %row, %kept, %c16 : (vector<16xf32>, f32, f32) -> vector<18xf32>
      genrec.row_yield %joined : vector<18xf32>
    }
    genrec.output "y" %y : tensor<?x18xf32, #genrec.rows<@user>>
  }
}

// CHECK-LABEL: genrec.model @columns
// CHECK: emitc.func @row_columns
// CHECK: verbatim "#pragma clang loop vectorize(assume_safety)"
// CHECK-NEXT: for %[[ROW:.*]] = %arg1 to %arg2
// CHECK-NOT: math.exp
// CHECK-COUNT-17: math.log1p
// CHECK-NOT: math.exp
// CHECK: for %{{.*}} = %arg1 to %arg2
// CHECK-NOT: math.log1p
// CHECK: math.exp
// CHECK: verbatim "#pragma clang loop vectorize(assume_safety) unroll(disable)"
// CHECK-NEXT: for

// The lanes of a warp share a row.
// CUDA-LABEL: genrec.model @columns
// CUDA: call_opaque "kernels::rowStep"
// CUDA-NOT: call_opaque "kernels::rowStep"

// -----

// Gradients of a distinct row that one kernel needs are added up there, into an array.
genrec.model @segments {
  genrec.domain @user
  genrec.domain @touched kind step
  genrec.table @a dim 4 {id_bits = 20 : i64, init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" {id_bits = 20 : i64} : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %c = genrec.constant dense<1.0> : tensor<4xf32>
    %g = genrec.broadcast_rows %c to %user : (tensor<4xf32>, !genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %rows = genrec.table_rows %i in @a : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
    %touched, %handles = genrec.unique_rows(%rows) by(%g) : (tensor<?x!genrec.row<4>, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>)
    %sums = genrec.segment_sum %touched(%g) : (!genrec.domain<@touched>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@touched>>
    genrec.row_kernel %touched(%handles, %sums) attributes {name = "update", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>, tensor<?x4xf32, #genrec.rows<@touched>>) -> () {
    ^bb0(%row: !genrec.row<4>, %sum: vector<4xf32>):
      genrec.row_store %sum to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
    %t = genrec.constant dense<1.0> : tensor<f32>
    genrec.report_loss "l" %t, %t : tensor<f32>, tensor<f32>
  }
}

// CHECK-LABEL: genrec.model @segments
// CHECK: emitc.func @row_update
// CHECK: %[[SEGMENTS:.*]] = call_opaque "kernels::argument"({{.*}}) {{{.*}}template_args = [!emitc.opaque<"kernels::SegmentSums">]}
// CHECK: %[[ARRAY:.*]] = "emitc.variable"{{.*}}-> !emitc.array<4xf32>
// CHECK: for %[[ROW:.*]] = %arg1 to %arg2
// CHECK: call_opaque "kernels::segmentSum"(%[[SEGMENTS]], %[[ROW]], %{{.*}}) {{{.*}}template_args = [4]}

// CUDA-LABEL: genrec.model @segments
// CUDA: call_opaque "kernels::segmentSum"
