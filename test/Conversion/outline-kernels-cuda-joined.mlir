// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s
// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=COST

// Of a row that is read in slices, those elements cost that any of them has, each once: 2,560 floats, and the sum.
// COST: genrec.launch @row_parts{{.*}}#genrec.cost<domain = @user, bytes = 1.024400e+04 : f64,

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

// A scalar part is written where it is computed: of hundreds, those of all would not fit into registers.
// CHECK: emitc.func @row_scalars
// CHECK: math.exp
// CHECK-NEXT: call_opaque "kernels::isFirstLane"
// CHECK: math.log
genrec.model @scalars {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<16xf32>
    %n = genrec.constant dense<1.0> : tensor<f32>
    %x = genrec.broadcast_rows %c to %user : (tensor<16xf32>, !genrec.domain<@user>) -> tensor<?x16xf32, #genrec.rows<@user>>
    %y = genrec.broadcast_rows %n to %user : (tensor<f32>, !genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %s = genrec.row_kernel %user(%x, %y) attributes {name = "scalars", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x16xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?x18xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<16xf32>, %w: f32):
      %e = math.exp %w : f32
      %l = math.log %w : f32
      %both = genrec.row_concat %v, %e, %l : (vector<16xf32>, f32, f32) -> vector<18xf32>
      genrec.row_yield %both : vector<18xf32>
    }
    genrec.output "s" %s : tensor<?x18xf32, #genrec.rows<@user>>
  }
}

// A row of which parts alone are read has as many threads as the widest part asks for, a warp here;
// none of them waits for others, as the row lies in the memory of the input.
// CHECK: emitc.func @row_parts
// CHECK-NOT: kernels::meet
// CHECK: "kernels::rowSum"{{.*}}template_args = [1024, 32, 4]
// CHECK-NOT: kernels::meet
// CHECK: emitc.global @row_parts_mapping{{.*}}"lanes" = 32 : i64, "sharedBytes" = 4096 : i64
genrec.model @parts {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<4096xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<4096xf32>, !genrec.domain<@user>) -> tensor<?x4096xf32, #genrec.rows<@user>>
    %s = genrec.row_kernel %user(%x) attributes {name = "parts", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4096xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<4096xf32>):
      %a = genrec.row_slice %v from 0 : (vector<4096xf32>) -> vector<1024xf32>
      %b = genrec.row_slice %v from 2048 : (vector<4096xf32>) -> vector<1024xf32>
      %d = genrec.row_slice %v from 2560 : (vector<4096xf32>) -> vector<1024xf32>
      %sums = arith.addf %b, %d : vector<1024xf32>
      %products = arith.mulf %a, %sums : vector<1024xf32>
      %total = vector.reduction <add>, %products : vector<1024xf32> into f32
      genrec.row_yield %total : f32
    }
    genrec.output "s" %s : tensor<?xf32, #genrec.rows<@user>>
  }
}

// So has one that is joined of parts of any sizes and stored: 32 threads for 600 elements, not 256 for 1,201.
// CHECK: emitc.global @row_sizes_mapping{{.*}}"lanes" = 32 : i64, "sharedBytes" = 0 : i64
genrec.model @sizes {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<600xf32>
    %n = genrec.constant dense<1.0> : tensor<f32>
    %x = genrec.broadcast_rows %c to %user : (tensor<600xf32>, !genrec.domain<@user>) -> tensor<?x600xf32, #genrec.rows<@user>>
    %y = genrec.broadcast_rows %n to %user : (tensor<f32>, !genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %s = genrec.row_kernel %user(%x, %y) attributes {name = "sizes", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x600xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?x1201xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<600xf32>, %w: f32):
      %e = math.exp %v : vector<600xf32>
      %both = genrec.row_concat %v, %e, %w : (vector<600xf32>, vector<600xf32>, f32) -> vector<1201xf32>
      genrec.row_yield %both : vector<1201xf32>
    }
    genrec.output "s" %s : tensor<?x1201xf32, #genrec.rows<@user>>
  }
}

// A row joined of scalars alone is written by one of its lanes; the others wait for that before they add it up.
// CHECK: emitc.func @row_of_scalars
// CHECK: call_opaque "kernels::rowSum"{{.*}}template_args = [300, 32, 1]
// CHECK: kernels::meet
// CHECK-COUNT-3: kernels::isFirstLane
// CHECK: call_opaque "kernels::meet"() {template_args = [32]}
// CHECK: call_opaque "kernels::rowSum"{{.*}}template_args = [3, 32, 1]
genrec.model @of_scalars {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<300xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<300xf32>, !genrec.domain<@user>) -> tensor<?x300xf32, #genrec.rows<@user>>
    %s = genrec.row_kernel %user(%x) attributes {name = "of_scalars", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x300xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<300xf32>):
      %sum = vector.reduction <add>, %v : vector<300xf32> into f32
      %most = vector.reduction <maximumf>, %v : vector<300xf32> into f32
      %product = arith.mulf %sum, %most : f32
      %joined = genrec.row_concat %sum, %most, %product : (f32, f32, f32) -> vector<3xf32>
      %total = vector.reduction <add>, %joined : vector<3xf32> into f32
      genrec.row_yield %total : f32
    }
    genrec.output "s" %s : tensor<?xf32, #genrec.rows<@user>>
  }
}
