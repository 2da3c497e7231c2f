// RUN: genrec-opt %s --genrec-attach-target --genrec-outline-kernels | FileCheck %s
// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s

!u8 = tensor<?x8xf32, #genrec.rows<@user>>
#aligned = #genrec<operand_role aligned>
#result = #genrec<result_role aligned>

// A loop behind the sum needs what one before it has made of each element: it reads that from an array, and does not
// make it again. What is cheap it does.
// CHECK: emitc.func @row_stored
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: emitc.func @row_made_again
// CHECK-COUNT-2: arith.negf
genrec.model @shares {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<8xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<8xf32>, !genrec.domain<@user>) -> !u8
    %e, %y = genrec.row_kernel %user(%x) attributes {name = "stored", operand_roles = [#aligned], result_roles = [#result, #result]} : (!genrec.domain<@user>, !u8) -> (!u8, !u8) {
    ^bb0(%v: vector<8xf32>):
      %exp = math.exp %v : vector<8xf32>
      %sum = vector.reduction <add>, %v : vector<8xf32> into f32
      %sums = vector.broadcast %sum : f32 to vector<8xf32>
      %share = arith.divf %exp, %sums : vector<8xf32>
      genrec.row_yield %exp, %share : vector<8xf32>, vector<8xf32>
    }
    %n, %z = genrec.row_kernel %user(%x) attributes {name = "made_again", operand_roles = [#aligned], result_roles = [#result, #result]} : (!genrec.domain<@user>, !u8) -> (!u8, !u8) {
    ^bb0(%v: vector<8xf32>):
      %negative = arith.negf %v : vector<8xf32>
      %sum = vector.reduction <add>, %v : vector<8xf32> into f32
      %sums = vector.broadcast %sum : f32 to vector<8xf32>
      %share = arith.divf %negative, %sums : vector<8xf32>
      genrec.row_yield %negative, %share : vector<8xf32>, vector<8xf32>
    }
    genrec.output "e" %e : !u8
    genrec.output "y" %y : !u8
    genrec.output "n" %n : !u8
    genrec.output "z" %z : !u8
  }
}
