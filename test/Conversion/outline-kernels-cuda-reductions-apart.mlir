// RUN: genrec-compile %s --target=cuda --emit=cpp -o - | FileCheck %s
// RUN: genrec-compile %s --target=cuda --explain | FileCheck %s --check-prefix=EXPLAIN

// Reductions that are launches of their own on a device: of rows of more than 8,192 columns, whether they are read or made; of
// integers, whose vectors are in shared memory; and what two ops read.

// CHECK-NOT: reduce_parameters
// CHECK-DAG: kernels::launch(step, {{.*}}row_read
// CHECK-DAG: kernels::launch(step, {{.*}}row_made
// CHECK-DAG: kernels::launch(step, {{.*}}row_whole
// CHECK-DAG: kernels::launch(step, {{.*}}row_twice
// EXPLAIN: 7 launches

#aligned = #genrec<operand_role aligned>
#shared = #genrec<operand_role shared>
#ra = #genrec<result_role aligned>
#sgd = #genrec.optimizer<sgd, {lr = 0.1}>
!wide = tensor<?x!genrec.row<9000>, #genrec.rows<@w_rows>>
!narrow = tensor<?x!genrec.row<16>, #genrec.rows<@v_rows>>
!sw = tensor<?xf32, #genrec.rows<@w_rows>>
!sv = tensor<?xf32, #genrec.rows<@v_rows>>
genrec.model @apart {
  genrec.domain @user
  genrec.domain @w_rows kind step
  genrec.domain @v_rows kind step
  genrec.parameter @w : tensor<3x9000xf32> {init = #genrec.init<constant, 1.0>, optimizer = #sgd}
  genrec.parameter @v : tensor<5x16xf32> {init = #genrec.init<constant, 1.0>, optimizer = #sgd}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %wd, %w = genrec.parameter_rows @w : () -> (!genrec.domain<@w_rows>, !wide)
    %vd, %v = genrec.parameter_rows @v : () -> (!genrec.domain<@v_rows>, !narrow)
    %read = genrec.row_kernel %wd(%w) attributes {name = "read", operand_roles = [#aligned], result_roles = [#ra]} : (!genrec.domain<@w_rows>, !wide) -> !sw {
    ^bb0(%row: !genrec.row<9000>):
      %x = genrec.row_load %row : (!genrec.row<9000>) -> vector<9000xf32>
      %t = vector.reduction <add>, %x : vector<9000xf32> into f32
      genrec.row_yield %t : f32
    }
    %made = genrec.row_kernel %vd(%v) attributes {name = "made", operand_roles = [#aligned], result_roles = [#ra]} : (!genrec.domain<@v_rows>, !narrow) -> !sv {
    ^bb0(%row: !genrec.row<16>):
      %x = genrec.row_load %row : (!genrec.row<16>) -> vector<16xf32>
      %s = vector.reduction <add>, %x : vector<16xf32> into f32
      %y = vector.broadcast %s : f32 to vector<16384xf32>
      %t = vector.reduction <add>, %y : vector<16384xf32> into f32
      genrec.row_yield %t : f32
    }
    %whole = genrec.row_kernel %vd(%v) attributes {name = "whole", operand_roles = [#aligned], result_roles = [#ra]} : (!genrec.domain<@v_rows>, !narrow) -> !sv {
    ^bb0(%row: !genrec.row<16>):
      %x = genrec.row_load %row : (!genrec.row<16>) -> vector<16xf32>
      %i = arith.fptosi %x : vector<16xf32> to vector<16xi64>
      %t = vector.reduction <add>, %i : vector<16xi64> into i64
      %f = arith.sitofp %t : i64 to f32
      genrec.row_yield %f : f32
    }
    %twice = genrec.row_kernel %vd(%v) attributes {name = "twice", operand_roles = [#aligned], result_roles = [#ra]} : (!genrec.domain<@v_rows>, !narrow) -> !sv {
    ^bb0(%row: !genrec.row<16>):
      %x = genrec.row_load %row : (!genrec.row<16>) -> vector<16xf32>
      %t = vector.reduction <add>, %x : vector<16xf32> into f32
      genrec.row_yield %t : f32
    }
    %e:4 = genrec.exact_sum %read, %made, %whole, %twice : (!sw, !sv, !sv, !sv) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
    %f = genrec.exact_sum %twice : (!sv) -> tensor<f32>
    genrec.row_kernel %wd(%w, %e#0, %e#1, %e#2, %e#3, %f) attributes {name = "decay", operand_roles = [#aligned, #shared, #shared, #shared, #shared, #shared], result_roles = []} : (!genrec.domain<@w_rows>, !wide, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> () {
    ^bb0(%row: !genrec.row<9000>, %p: f32, %q: f32, %r: f32, %s: f32, %t: f32):
      %pq = arith.addf %p, %q : f32
      %pr = arith.addf %pq, %r : f32
      %ps = arith.addf %pr, %s : f32
      %pt = arith.addf %ps, %t : f32
      %half = vector.broadcast %pt : f32 to vector<9000xf32>
      %ww = genrec.row_load %row : (!genrec.row<9000>) -> vector<9000xf32>
      %less = arith.mulf %half, %ww : vector<9000xf32>
      genrec.row_store %less to %row : vector<9000xf32>, !genrec.row<9000>
      genrec.row_yield
    }
  }
}
