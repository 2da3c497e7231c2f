// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s

!u = tensor<?xf32, #genrec.rows<@user>>
!u256 = tensor<?x256xf32, #genrec.rows<@user>>
#aligned = #genrec<operand_role aligned>

// An element of a row whose 16 lanes have packs of 4: that of lane 2, of its fourth pack.
// CHECK: emitc.func @row_element
// CHECK: %[[SLOT:.*]] = "emitc.constant"() <{value = 13 : i64}>
// CHECK-NEXT: subscript %{{.*}}[%[[SLOT]]]
// CHECK: %[[LANE:.*]] = "emitc.constant"() <{value = 2 : i64}>
// CHECK-NEXT: call_opaque "kernels::valueOf"(%{{.*}}, %[[LANE]]){{.*}}template_args = [16]
genrec.model @element {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<256xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<256xf32>, !genrec.domain<@user>) -> !u256
    %y = genrec.row_kernel %user(%x) attributes {name = "element", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, !u256) -> !u {
    ^bb0(%v: vector<256xf32>):
      %e = math.exp %v : vector<256xf32>
      %one = vector.extract %e[201] : f32 from vector<256xf32>
      genrec.row_yield %one : f32
    }
    genrec.output "y" %y : !u
  }
}

// The sum of one element is that element, which warps of a block do not hand over either.
// CHECK: emitc.func @row_single
// CHECK-NOT: valueOf
// CHECK: call_opaque "kernels::sharedArray"
// CHECK: call_opaque "kernels::rowSum"
genrec.model @single {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<1xf32>
    %w = genrec.constant dense<1.0> : tensor<2000xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<1xf32>, !genrec.domain<@user>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %z = genrec.broadcast_rows %w to %user : (tensor<2000xf32>, !genrec.domain<@user>) -> tensor<?x2000xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%x, %z) attributes {name = "single", operand_roles = [#aligned, #aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x1xf32, #genrec.rows<@user>>, tensor<?x2000xf32, #genrec.rows<@user>>) -> !u {
    ^bb0(%one: vector<1xf32>, %many: vector<2000xf32>):
      %twice = arith.addf %one, %one : vector<1xf32>
      %a = vector.reduction <add>, %twice : vector<1xf32> into f32
      %b = vector.reduction <add>, %many : vector<2000xf32> into f32
      %sum = arith.addf %a, %b : f32
      genrec.row_yield %sum : f32
    }
    genrec.output "y" %y : !u
  }
}

// Warps of a block hand nothing over: the row is shared.
// CHECK: emitc.func @row_of_block
// CHECK: call_opaque "kernels::sharedArray"{{.*}}template_args = [f32, 256,
// CHECK-NOT: kernels::valueOf
// CHECK: emitc.global @row_of_block_mapping
genrec.model @of_block {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<2048xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<2048xf32>, !genrec.domain<@user>) -> tensor<?x2048xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%x) attributes {name = "of_block", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x2048xf32, #genrec.rows<@user>>) -> !u {
    ^bb0(%v: vector<2048xf32>):
      %e = math.exp %v : vector<2048xf32>
      %one = vector.extract %e[201] : f32 from vector<2048xf32>
      genrec.row_yield %one : f32
    }
    genrec.output "y" %y : !u
  }
}

// Rows of 68 floats are aligned to four; a part of them that begins at the third is aligned to two. So are rows of 70.
// CHECK: emitc.func @row_part
// CHECK: call_opaque "kernels::loadPack"{{.*}}template_args = [2]
// CHECK: emitc.func @row_begin
// CHECK: call_opaque "kernels::loadPack"{{.*}}template_args = [2]
genrec.model @part {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<68xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<68xf32>, !genrec.domain<@user>) -> tensor<?x68xf32, #genrec.rows<@user>>
    %part = genrec.slice_columns %x from 2 : (tensor<?x68xf32, #genrec.rows<@user>>) -> tensor<?x64xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%part) attributes {name = "part", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x64xf32, #genrec.rows<@user>>) -> tensor<?x64xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<64xf32>):
      %e = math.exp %v : vector<64xf32>
      genrec.row_yield %e : vector<64xf32>
    }
    genrec.output "y" %y : tensor<?x64xf32, #genrec.rows<@user>>
    %d = genrec.constant dense<1.0> : tensor<70xf32>
    %w = genrec.broadcast_rows %d to %user : (tensor<70xf32>, !genrec.domain<@user>) -> tensor<?x70xf32, #genrec.rows<@user>>
    %begin = genrec.slice_columns %w from 0 : (tensor<?x70xf32, #genrec.rows<@user>>) -> tensor<?x64xf32, #genrec.rows<@user>>
    %z = genrec.row_kernel %user(%begin) attributes {name = "begin", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x64xf32, #genrec.rows<@user>>) -> tensor<?x64xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<64xf32>):
      %e = math.exp %v : vector<64xf32>
      genrec.row_yield %e : vector<64xf32>
    }
    genrec.output "z" %z : tensor<?x64xf32, #genrec.rows<@user>>
  }
}

// So are a part within a row, and one that is put behind two scalars.
// CHECK: emitc.func @row_within
// CHECK: call_opaque "kernels::loadPack"{{.*}}template_args = [2]
// CHECK: emitc.func @row_behind
// CHECK: call_opaque "kernels::storePack"{{.*}}template_args = [2]
genrec.model @parts {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<68xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<68xf32>, !genrec.domain<@user>) -> tensor<?x68xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%x) attributes {name = "within", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x68xf32, #genrec.rows<@user>>) -> tensor<?x64xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<68xf32>):
      %w = vector.extract_strided_slice %v {offsets = [2], sizes = [64], strides = [1]} : vector<68xf32> to vector<64xf32>
      %e = math.exp %w : vector<64xf32>
      genrec.row_yield %e : vector<64xf32>
    }
    %z = genrec.row_kernel %user(%y) attributes {name = "behind", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x64xf32, #genrec.rows<@user>>) -> tensor<?x68xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<64xf32>):
      %one = arith.constant 1.0 : f32
      %e = math.exp %v : vector<64xf32>
      %all = genrec.row_concat %one, %one, %e, %one, %one : (f32, f32, vector<64xf32>, f32, f32) -> vector<68xf32>
      genrec.row_yield %all : vector<68xf32>
    }
    genrec.output "z" %z : tensor<?x68xf32, #genrec.rows<@user>>
  }
}

// Nothing aligns a table of constants.
// CHECK: emitc.func @row_table
// CHECK-COUNT-1: call_opaque "kernels::loadPack"
// CHECK-NOT: kernels::loadPack
// CHECK: emitc.global @row_table_mapping
genrec.model @table {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<16xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<16xf32>, !genrec.domain<@user>) -> tensor<?x16xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%x) attributes {name = "table", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x16xf32, #genrec.rows<@user>>) -> tensor<?x16xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<16xf32>):
      %t = arith.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]> : vector<16xf32>
      %e = arith.addf %v, %t : vector<16xf32>
      genrec.row_yield %e : vector<16xf32>
    }
    genrec.output "y" %y : tensor<?x16xf32, #genrec.rows<@user>>
  }
}

// Terms of two sums: those of the second lie behind the first one's, and have their own shape.
// CHECK: emitc.func @row_sums
// CHECK: call_opaque "kernels::termsOf"(%[[MEMORY:[^,]*]], %{{.*}}template_args = [1, 1, 4,
// CHECK: %[[BEHIND:.*]] = call_opaque "kernels::behindTerms"(%[[MEMORY]], %{{.*}}template_args = [1, 1, 4,
// CHECK: call_opaque "kernels::termsOf"(%[[BEHIND]], %{{.*}}template_args = [1, 1, 8,
// CHECK: emitc.global @row_sums_sums : !emitc.array<2x{{.*}}"width" = 4 : i64{{.*}}"width" = 8 : i64
genrec.model @sums {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<4xf32>
    %d = genrec.constant dense<1.0> : tensor<8xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<4xf32>, !genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %y = genrec.broadcast_rows %d to %user : (tensor<8xf32>, !genrec.domain<@user>) -> tensor<?x8xf32, #genrec.rows<@user>>
    %n = genrec.constant dense<1> : tensor<i64>
    %i = genrec.broadcast_rows %n to %user : (tensor<i64>, !genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %rows:2 = genrec.row_kernel %user(%x, %y, %i) attributes {name = "sums", operand_roles = [#aligned, #aligned, #aligned], result_roles = [#genrec<result_role scattered>, #genrec<result_role scattered>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x8xf32, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@user>>) -> (tensor<40x4xf32>, tensor<50x8xf32>) {
    ^bb0(%v: vector<4xf32>, %w: vector<8xf32>, %k: i64, %a: !genrec.accumulator<tensor<40x4xf32>>, %b: !genrec.accumulator<tensor<50x8xf32>>):
      genrec.accumulate %v into %a at %k {clamp} : !genrec.accumulator<tensor<40x4xf32>>, vector<4xf32>, i64
      genrec.accumulate %w into %b at %k {clamp} : !genrec.accumulator<tensor<50x8xf32>>, vector<8xf32>, i64
      genrec.row_yield
    }
  }
}
