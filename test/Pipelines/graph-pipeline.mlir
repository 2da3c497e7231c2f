// RUN: genrec-opt %s --genrec-graph-pipeline | FileCheck %s
// RUN: genrec-opt %s --genrec-graph-pipeline --genrec-pass-statistics 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: genrec-opt %s --genrec-graph-pipeline=opt=0 --genrec-pass-statistics 2>&1 >/dev/null | FileCheck %s --check-prefix=NAIVE

// The HSTU retrieval model of the examples, from the recorded graph to row kernels.

// COUNT: genrec-differentiate parameters: 9
// COUNT: genrec-differentiate tables: 1
// COUNT: genrec-form-row-kernels kernels: 43
// NAIVE: genrec-form-row-kernels kernels: 322

// Training reads the history alone; predictions read no label.

// CHECK-LABEL: genrec.program @train
// CHECK-NOT: "held_out"
// CHECK: %[[CATALOGUE:.*]] = genrec.catalogue
// CHECK: %[[POSITIVE:.*]] = genrec.resolve
// The lookup, the positions, dropout and the first norm are one kernel.
// CHECK: genrec.row_kernel {{.*}}genrec.ops = "lookup, mul, embedding, add, dropout, row_reduce, sub, square, row_reduce, add, rsqrt, mul"
// The event-level SiLU is part of the product, which keeps what its gradient needs; the residual too.
// CHECK: %[[UVQK:.*]], %[[PRE:.*]] = genrec.fused_linear {{.*}} activation silu
// CHECK: genrec.attention
// CHECK: genrec.fused_linear {{.*}} bias {{.*}} residual {{.*}} activation none
// The loss and its gradient share draws, gathers and softmax; no negative is ever in memory.
// CHECK-NOT: tensor<?x128x
// CHECK: genrec.row_kernel {{.*}}sampled_softmax, {{.*}}sampled_softmax_grad, {{.*}} -> (tensor<f32>, tensor<?x50xf32, #genrec.rows<@movies>>, tensor<?x50xf32, #genrec.rows<@event>>, tensor<50xf32>)
// CHECK: genrec.random_index
// CHECK-NEXT: genrec.gather_dot
// CHECK-NOT: genrec.random_index
// CHECK-NOT: genrec.gather_dot
// CHECK: genrec.gather_sum
// CHECK: genrec.accumulate {{.*}} times
// CHECK-NOT: tensor<?x128x
// CHECK: genrec.report_loss "next"
// CHECK-COUNT-2: genrec.attention_grad
// CHECK: genrec.unique_rows
// CHECK: genrec.segment_sum
// Updates come last, each one kernel.
// CHECK-COUNT-10: "{{[a-z0-9_]+_update_[a-z0-9_]+}}"
// CHECK-LABEL: genrec.program @evaluate
// CHECK-NOT: keep_mask
// CHECK: genrec.report_loss
// CHECK: genrec.metric ranking
// CHECK-LABEL: genrec.program @predict
// CHECK-NOT: genrec.report_loss
// CHECK-NOT: keep_mask
// CHECK: genrec.top_k
// CHECK: genrec.row_gather
// CHECK: genrec.output
// CHECK-LABEL: genrec.program @items mode items
// CHECK-NOT: genrec.batch
// CHECK: genrec.row_kernel {{.*}}genrec.ops = "lookup, square, row_reduce, maximum, rsqrt, mul"
// CHECK: genrec.output "vectors"

#adamw = #genrec.optimizer<adamw, {lr = 1.0e-3, beta2 = 0.98, weight_decay = 0.0}>
#tn = #genrec.init<truncated_normal, 0.02>
!ev = tensor<?xi64, #genrec.rows<@event>>
!e50 = tensor<?x50xf32, #genrec.rows<@event>>
!m50 = tensor<?x50xf32, #genrec.rows<@movies>>
genrec.model @hstu {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @event parent @user {kind = #genrec<domain_kind derived>}
  genrec.domain @movies {kind = #genrec<domain_kind catalogue>, source = "movies.parquet", expected_rows = 3883 : i64}
  genrec.table @movie dim 50 {init = #tn, optimizer = #adamw}
  genrec.parameter @pos : tensor<211x50xf32> {init = #tn, optimizer = #adamw}
  genrec.parameter @uvqk0 : tensor<50x200xf32> {init = #tn, optimizer = #adamw}
  genrec.parameter @o0 : tensor<50x50xf32> {init = #tn, optimizer = #adamw}
  genrec.parameter @ob0 : tensor<50xf32> {init = #tn, optimizer = #adamw}
  genrec.parameter @pb0 : tensor<421xf32> {init = #tn, optimizer = #adamw}
  genrec.parameter @uvqk1 : tensor<50x200xf32> {init = #tn, optimizer = #adamw}
  genrec.parameter @o1 : tensor<50x50xf32> {init = #tn, optimizer = #adamw}
  genrec.parameter @ob1 : tensor<50xf32> {init = #tn, optimizer = #adamw}
  genrec.parameter @pb1 : tensor<421xf32> {init = #tn, optimizer = #adamw}
  genrec.program @main {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %event = genrec.truncate %history {count = 200 : i64} : (!genrec.domain<@history>) -> !genrec.domain<@event>
    %movies = genrec.catalogue : !genrec.domain<@movies>
    %all = genrec.feature %history "history.movie" : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %next, %nextok = genrec.lead %all : (tensor<?xi64, #genrec.rows<@history>>) -> (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>)
    %label = genrec.derive %next into %event : (tensor<?xi64, #genrec.rows<@history>>, !genrec.domain<@event>) -> !ev
    %labelok = genrec.derive %nextok into %event : (tensor<?xi1, #genrec.rows<@history>>, !genrec.domain<@event>) -> tensor<?xi1, #genrec.rows<@event>>
    %ids = genrec.derive %all into %event : (tensor<?xi64, #genrec.rows<@history>>, !genrec.domain<@event>) -> !ev
    %cat = genrec.feature %movies "movie" : (!genrec.domain<@movies>) -> tensor<?xi64, #genrec.rows<@movies>>
    %positive = genrec.resolve %label valid %labelok in %cat : (!ev, tensor<?xi1, #genrec.rows<@event>>, tensor<?xi64, #genrec.rows<@movies>>) -> !ev

    %emb = genrec.lookup %ids in @movie : (!ev) -> !e50
    %sqrt = genrec.constant dense<7.0710678> : tensor<f32>
    %scaled = genrec.mul %emb, %sqrt : (!e50, tensor<f32>) -> !e50
    %p = genrec.position %event : (!genrec.domain<@event>) -> !ev
    %posw = genrec.param @pos : tensor<211x50xf32>
    %pe = genrec.embedding %p of %posw : (!ev, tensor<211x50xf32>) -> !e50
    %sum = genrec.add %scaled, %pe : (!e50, !e50) -> !e50
    %x0 = genrec.dropout %sum {rate = 0.2, stream = 256 : i64} : (!e50) -> !e50

    %w0 = genrec.param @uvqk0 : tensor<50x200xf32>
    %ow0 = genrec.param @o0 : tensor<50x50xf32>
    %obias0 = genrec.param @ob0 : tensor<50xf32>
    %pbias0 = genrec.param @pb0 : tensor<421xf32>
    %x1 = genrec.hstu_block silu %x0, %w0, %ow0, %obias0 position_bias %pbias0 {heads = 1 : i64, causal, fixed_length = 211.0, qk = 50 : i64, dv = 50 : i64, eps = 1.0e-6, linear_dropout = 0.2, stream = 512 : i64} : (!e50, tensor<50x200xf32>, tensor<50x50xf32>, tensor<50xf32>, tensor<421xf32>) -> !e50
    %w1 = genrec.param @uvqk1 : tensor<50x200xf32>
    %ow1 = genrec.param @o1 : tensor<50x50xf32>
    %obias1 = genrec.param @ob1 : tensor<50xf32>
    %pbias1 = genrec.param @pb1 : tensor<421xf32>
    %x2 = genrec.hstu_block silu %x1, %w1, %ow1, %obias1 position_bias %pbias1 {heads = 1 : i64, causal, fixed_length = 211.0, qk = 50 : i64, dv = 50 : i64, eps = 1.0e-6, linear_dropout = 0.2, stream = 768 : i64} : (!e50, tensor<50x200xf32>, tensor<50x50xf32>, tensor<50xf32>, tensor<421xf32>) -> !e50
    %query = genrec.l2_normalize %x2 {eps = 1.0e-6} : (!e50) -> !e50

    %itememb = genrec.lookup %cat in @movie : (tensor<?xi64, #genrec.rows<@movies>>) -> !m50
    %items = genrec.l2_normalize %itememb {eps = 1.0e-6} : (!m50) -> !m50
    %loss = genrec.sampled_softmax %query, %positive, %items {negatives = 128 : i64, temperature = 0.05, stream = 1024 : i64} : (!e50, !ev, !m50) -> tensor<?xf32, #genrec.rows<@event>>
    genrec.loss "next" %loss valid %labelok : tensor<?xf32, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>

    %last = genrec.pool last %query to %user : (!e50, !genrec.domain<@user>) -> tensor<?x50xf32, #genrec.rows<@user>>
    %held = genrec.feature %user "held_out" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %target = genrec.resolve %held in %cat : (tensor<?xi64, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@movies>>) -> tensor<?xi64, #genrec.rows<@user>>
    %seen = genrec.resolve %ids in %cat : (!ev, tensor<?xi64, #genrec.rows<@movies>>) -> !ev
    %rank = genrec.rank %last, %target, %items exclude %seen : (tensor<?x50xf32, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@user>>, !m50, !ev) -> tensor<?xi64, #genrec.rows<@user>>
    genrec.metric ranking "rank" %rank {at = array<i64: 10, 50, 200>} : tensor<?xi64, #genrec.rows<@user>>
    %index, %score = genrec.top_k %last, %items exclude %seen : (tensor<?x50xf32, #genrec.rows<@user>>, !m50, !ev) -> (tensor<?x200xi64, #genrec.rows<@user>>, tensor<?x200xf32, #genrec.rows<@user>>)
    %found = genrec.gather_rows %cat at %index : (tensor<?xi64, #genrec.rows<@movies>>, tensor<?x200xi64, #genrec.rows<@user>>) -> tensor<?x200xi64, #genrec.rows<@user>>
    genrec.output "top" %found : tensor<?x200xi64, #genrec.rows<@user>>
  }
}
