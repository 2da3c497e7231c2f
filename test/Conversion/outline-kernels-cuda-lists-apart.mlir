// RUN: genrec-compile %s --target=cuda --emit=cpp -o - | FileCheck %s
// RUN: genrec-compile %s --target=cuda --explain | FileCheck %s --check-prefix=EXPLAIN

// Kernels over lists that are launches of their own on a device: of which one reads what the other makes; that pool in other
// ways, or to other heights; that add up all rows, reduce a row, or make factors in bfloat16, whose rows end in zeros; and
// between which a call runs.

// CHECK-NOT: _more
// CHECK: predict_compute(genrec_step *step)
// CHECK: kernels::launch(step, {{.*}}row_first, x, first);
// CHECK: kernels::launch(step, {{.*}}row_first, first, second);
// CHECK: kernels::launchPools(step, {{.*}}row_most_a,
// CHECK: kernels::launchPools(step, {{.*}}row_sum_b,
// CHECK: kernels::launchPools(step, {{.*}}row_deep,
// CHECK: kernels::launchSums<1>(step, {{.*}}row_added_a,
// CHECK: kernels::launchSums<1>(step, {{.*}}row_added_b,
// CHECK: kernels::launch(step, {{.*}}row_factors_a,
// CHECK: kernels::launch(step, {{.*}}row_factors_b,
// CHECK: kernels::launchPools(step, {{.*}}row_before,
// CHECK: kernels::linear<
// CHECK: kernels::launchPools(step, {{.*}}row_behind,
// EXPLAIN: 18 launches

#aligned = #genrec<operand_role aligned>
#pooled = #genrec<result_role pooled>
#own = #genrec<result_role aligned>
#reduced = #genrec<result_role reduced>
#sum = #genrec<pool_kind sum>
#max = #genrec<pool_kind max>
!u = tensor<?xf32, #genrec.rows<@user>>
!a = tensor<?xf32, #genrec.rows<@a>>
!b = tensor<?xf32, #genrec.rows<@b>>
!c = tensor<?xf32, #genrec.rows<@c>>
!wa = tensor<?x16xf32, #genrec.rows<@a>>
!wb = tensor<?x16xf32, #genrec.rows<@b>>
!ha = tensor<?x16xbf16, #genrec.rows<@a>>
!hb = tensor<?x16xbf16, #genrec.rows<@b>>
genrec.model @apart {
  genrec.domain @user
  genrec.domain @a parent @user {column = "a"}
  genrec.domain @b parent @user {column = "b"}
  genrec.domain @c parent @b {column = "c"}
  genrec.parameter @w : tensor<16x16xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @predict mode predict {
    %user, %a, %b, %c = genrec.batch : !genrec.domain<@user>, !genrec.domain<@a>, !genrec.domain<@b>, !genrec.domain<@c>
    %xa = genrec.feature %a "a.x" : (!genrec.domain<@a>) -> !a
    %xb = genrec.feature %b "b.x" : (!genrec.domain<@b>) -> !b
    %xc = genrec.feature %c "b.c.x" : (!genrec.domain<@c>) -> !c
    %va = genrec.feature %a "a.v" : (!genrec.domain<@a>) -> !wa
    %vb = genrec.feature %b "b.v" : (!genrec.domain<@b>) -> !wb
    %w = genrec.param @w : tensor<16x16xf32>
    %first = genrec.row_kernel %a(%xa) attributes {name = "first", operand_roles = [#aligned], result_roles = [#own]} : (!genrec.domain<@a>, !a) -> !a {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      genrec.row_yield %n : f32
    }
    %second = genrec.row_kernel %a(%first) attributes {name = "second", operand_roles = [#aligned], result_roles = [#own]} : (!genrec.domain<@a>, !a) -> !a {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      genrec.row_yield %n : f32
    }
    %most_a = genrec.row_kernel %a(%xa) attributes {name = "most_a", operand_roles = [#aligned], pool_kinds = [#max], result_roles = [#pooled]} : (!genrec.domain<@a>, !a) -> !u {
    ^bb0(%v: f32):
      genrec.row_yield %v : f32
    }
    %sum_b = genrec.row_kernel %b(%xb) attributes {name = "sum_b", operand_roles = [#aligned], pool_kinds = [#sum], result_roles = [#pooled]} : (!genrec.domain<@b>, !b) -> !u {
    ^bb0(%v: f32):
      genrec.row_yield %v : f32
    }
    %deep = genrec.row_kernel %c(%xc) attributes {name = "deep", operand_roles = [#aligned], pool_kinds = [#sum], result_roles = [#pooled]} : (!genrec.domain<@c>, !c) -> !u {
    ^bb0(%v: f32):
      genrec.row_yield %v : f32
    }
    %added_a = genrec.row_kernel %a(%xa) attributes {name = "added_a", operand_roles = [#aligned], result_roles = [#reduced]} : (!genrec.domain<@a>, !a) -> tensor<f32> {
    ^bb0(%v: f32, %s: !genrec.accumulator<tensor<f32>>):
      genrec.accumulate %v into %s : !genrec.accumulator<tensor<f32>>, f32
      genrec.row_yield
    }
    %added_b = genrec.row_kernel %b(%xb) attributes {name = "added_b", operand_roles = [#aligned], result_roles = [#reduced]} : (!genrec.domain<@b>, !b) -> tensor<f32> {
    ^bb0(%v: f32, %s: !genrec.accumulator<tensor<f32>>):
      genrec.accumulate %v into %s : !genrec.accumulator<tensor<f32>>, f32
      genrec.row_yield
    }
    %factors_a = genrec.row_kernel %a(%va) attributes {name = "factors_a", operand_roles = [#aligned], result_roles = [#own]} : (!genrec.domain<@a>, !wa) -> !ha {
    ^bb0(%v: vector<16xf32>):
      %t = arith.truncf %v : vector<16xf32> to vector<16xbf16>
      genrec.row_yield %t : vector<16xbf16>
    }
    %factors_b = genrec.row_kernel %b(%vb) attributes {name = "factors_b", operand_roles = [#aligned], result_roles = [#own]} : (!genrec.domain<@b>, !wb) -> !hb {
    ^bb0(%v: vector<16xf32>):
      %t = arith.truncf %v : vector<16xf32> to vector<16xbf16>
      genrec.row_yield %t : vector<16xbf16>
    }
    %before = genrec.row_kernel %a(%va) attributes {name = "before", operand_roles = [#aligned], pool_kinds = [#sum], result_roles = [#pooled]} : (!genrec.domain<@a>, !wa) -> tensor<?x16xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<16xf32>):
      genrec.row_yield %v : vector<16xf32>
    }
    %z = genrec.linear %before, %w : (tensor<?x16xf32, #genrec.rows<@user>>, tensor<16x16xf32>) -> tensor<?x16xf32, #genrec.rows<@user>>
    %behind = genrec.row_kernel %b(%vb) attributes {name = "behind", operand_roles = [#aligned], pool_kinds = [#sum], result_roles = [#pooled]} : (!genrec.domain<@b>, !wb) -> tensor<?x16xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<16xf32>):
      genrec.row_yield %v : vector<16xf32>
    }
    genrec.output "second" %second : !a
    genrec.output "most_a" %most_a : !u
    genrec.output "sum_b" %sum_b : !u
    genrec.output "deep" %deep : !u
    genrec.output "z" %z : tensor<?x16xf32, #genrec.rows<@user>>
    genrec.output "behind" %behind : tensor<?x16xf32, #genrec.rows<@user>>
  }
}
