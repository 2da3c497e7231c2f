// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s

// A thread that has a row alone joins its parts in an array of its own, the second behind the first.
// CHECK: emitc.func @row_joined
// CHECK-NOT: kernels::sharedArray
// CHECK: %[[JOINED:.*]] = "emitc.variable"() {{.*}} -> !emitc.array<5xf32>
// CHECK: subscript %[[JOINED]][%{{.*}}]
// CHECK: %[[TWO:.*]] = "emitc.constant"() <{value = 2 : i64}>
// CHECK-NEXT: %[[PLACE:.*]] = add %{{.*}}, %[[TWO]]
// CHECK-NEXT: subscript %[[JOINED]][%[[PLACE]]]
genrec.model @joined {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<2xf32>
    %d = genrec.constant dense<2.0> : tensor<3xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<2xf32>, !genrec.domain<@user>) -> tensor<?x2xf32, #genrec.rows<@user>>
    %y = genrec.broadcast_rows %d to %user : (tensor<3xf32>, !genrec.domain<@user>) -> tensor<?x3xf32, #genrec.rows<@user>>
    %s = genrec.row_kernel %user(%x, %y) attributes {name = "joined", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x2xf32, #genrec.rows<@user>>, tensor<?x3xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<2xf32>, %w: vector<3xf32>):
      %both = genrec.row_concat %v, %w : (vector<2xf32>, vector<3xf32>) -> vector<5xf32>
      %square = arith.mulf %both, %both : vector<5xf32>
      %total = vector.reduction <add>, %square : vector<5xf32> into f32
      genrec.row_yield %total : f32
    }
    genrec.output "s" %s : tensor<?xf32, #genrec.rows<@user>>
  }
}
