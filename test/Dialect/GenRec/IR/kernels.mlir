// RUN: genrec-opt %s --verify-roundtrip | FileCheck %s

!event = !genrec.domain<@event>
!vec = tensor<?x8xf32, #genrec.rows<@event>>
!id = tensor<?xi64, #genrec.rows<@event>>
!user = tensor<?x8xf32, #genrec.rows<@request>>
!items = tensor<?x8xf32, #genrec.rows<@items>>

// Every role of an operand and of a result; the body's arguments in their order.
// CHECK-LABEL: func @roles
func.func @roles(%event: !event, %vec: !vec, %id: !id, %user: !user, %scale: tensor<8xf32>, %items: !items) {
  // CHECK: genrec.row_kernel %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) attributes {name = "roles"
  // CHECK: ^bb0(%{{.*}}: vector<8xf32>, %{{.*}}: i64, %{{.*}}: vector<8xf32>, %{{.*}}: vector<8xf32>, %[[ITEMS:.*]]: tensor<?x8xf32, #genrec.rows<@items>>, %[[SUM:.*]]: !genrec.accumulator<tensor<8xf32>>, %[[ROWS:.*]]: !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>):
  %0:4 = genrec.row_kernel %event(%vec, %id, %user, %scale, %items) attributes {
      name = "roles", pool_kinds = [#genrec<pool_kind mean>],
      operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>, #genrec<operand_role ancestor>,
                       #genrec<operand_role shared>, #genrec<operand_role source>],
      result_roles = [#genrec<result_role pooled>, #genrec<result_role reduced>, #genrec<result_role aligned>,
                      #genrec<result_role scattered>]}
      : (!event, !vec, !id, !user, tensor<8xf32>, !items) -> (!user, tensor<8xf32>, !vec, !items) {
  ^bb0(%a: vector<8xf32>, %i: i64, %b: vector<8xf32>, %c: vector<8xf32>, %s: !items,
       %sum: !genrec.accumulator<tensor<8xf32>>, %rows: !genrec.accumulator<!items>):
    // CHECK: genrec.row_gather %[[ITEMS]][%{{.*}}] : (tensor<?x8xf32
    %g = genrec.row_gather %s[%i] : (!items, i64) -> vector<8xf32>
    // CHECK: genrec.accumulate %{{.*}} into %[[SUM]] : !genrec.accumulator<tensor<8xf32>>, vector<8xf32>
    genrec.accumulate %g into %sum : !genrec.accumulator<tensor<8xf32>>, vector<8xf32>
    // CHECK: genrec.accumulate %{{.*}} into %[[ROWS]] at %{{.*}} :
    genrec.accumulate %g into %rows at %i : !genrec.accumulator<!items>, vector<8xf32>, i64
    // CHECK: genrec.row_yield %{{.*}}, %{{.*}} : vector<8xf32>, vector<8xf32>
    genrec.row_yield %b, %c : vector<8xf32>, vector<8xf32>
  }
  return
}

// A shared tensor as a source, a scattered result of scalars, no yielded values.
// CHECK-LABEL: func @scatter
func.func @scatter(%event: !event, %id: !id, %table: tensor<5xf32>) {
  %0 = genrec.row_kernel %event(%id, %table) attributes {
      operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role source>],
      result_roles = [#genrec<result_role scattered>]} : (!event, !id, tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%i: i64, %s: tensor<5xf32>, %rows: !genrec.accumulator<tensor<5xf32>>):
    // CHECK: genrec.row_gather %{{.*}}[%{{.*}}] {clamp} : (tensor<5xf32>, i64) -> f32
    %g = genrec.row_gather %s[%i] {clamp} : (tensor<5xf32>, i64) -> f32
    // CHECK: genrec.accumulate %{{.*}} into %{{.*}} at %{{.*}} {clamp} : !genrec.accumulator<tensor<5xf32>>, f32, i64
    genrec.accumulate %g into %rows at %i {clamp} : !genrec.accumulator<tensor<5xf32>>, f32, i64
    // CHECK: genrec.row_yield{{$}}
    genrec.row_yield
  }
  return
}
