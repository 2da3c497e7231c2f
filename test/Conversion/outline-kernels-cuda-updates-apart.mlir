// RUN: genrec-opt %s --split-input-file --pass-pipeline='builtin.module(genrec-attach-target{target=cuda},genrec.model(genrec-plan-memory),genrec-outline-kernels)' | FileCheck %s

// Two kernels that store to one parameter run one after the other, not beside each other in one launch.

!h = tensor<?x!genrec.row<64>, #genrec.rows<@w_rows>>
// CHECK-LABEL: genrec.model @two
// CHECK-NOT: launch_columns
// CHECK: genrec.launch @row_decay
// CHECK-NEXT: genrec.launch @row_step
// CHECK-NOT: launch_columns
genrec.model @two {
  genrec.domain @user
  genrec.domain @w_rows kind step
  genrec.parameter @w : tensor<3x64xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %domain, %rows = genrec.parameter_rows @w : () -> (!genrec.domain<@w_rows>, !h)
    genrec.row_kernel %domain(%rows) attributes {name = "decay", operand_roles = [#genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@w_rows>, !h) -> () {
    ^bb0(%row: !genrec.row<64>):
      %half = arith.constant dense<0.5> : vector<64xf32>
      %w = genrec.row_load %row : (!genrec.row<64>) -> vector<64xf32>
      %less = arith.mulf %half, %w : vector<64xf32>
      genrec.row_store %less to %row : vector<64xf32>, !genrec.row<64>
      genrec.row_yield
    }
    genrec.row_kernel %domain(%rows) attributes {name = "step", operand_roles = [#genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@w_rows>, !h) -> () {
    ^bb0(%row: !genrec.row<64>):
      %one = arith.constant dense<1.0> : vector<64xf32>
      %w = genrec.row_load %row : (!genrec.row<64>) -> vector<64xf32>
      %more = arith.addf %one, %w : vector<64xf32>
      genrec.row_store %more to %row : vector<64xf32>, !genrec.row<64>
      genrec.row_yield
    }
  }
}

// -----

// What reads another parameter has a launch of its own, before that one is updated; so has what adds up a row. A row of
// more than 8,192 columns has more threads than a block of the joint launch.

#sgd = #genrec.optimizer<sgd, {lr = 0.1}>
#aligned = #genrec<operand_role aligned>
!h = tensor<?x!genrec.row<64>, #genrec.rows<@w_rows>>
!hs = tensor<?x!genrec.row<1>, #genrec.rows<@s_rows>>
!hv = tensor<?x!genrec.row<4>, #genrec.rows<@v_rows>>
!hl = tensor<?x!genrec.row<8193>, #genrec.rows<@l_rows>>
// CHECK-LABEL: genrec.model @reads
// CHECK: genrec.launch @row_w
// CHECK-NEXT: genrec.launch @row_v
// CHECK-NEXT: genrec.launch @row_l
// CHECK-NEXT: genrec.launch_columns [@row_s, @run_update_parameters]
genrec.model @reads {
  genrec.domain @user
  genrec.domain @w_rows kind step
  genrec.domain @s_rows kind step
  genrec.domain @v_rows kind step
  genrec.domain @l_rows kind step
  genrec.parameter @w : tensor<3x64xf32> {init = #genrec.init<constant, 1.0>, optimizer = #sgd}
  genrec.parameter @s : tensor<f32> {init = #genrec.init<constant, 3.0>, optimizer = #sgd}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 3.0>, optimizer = #sgd}
  genrec.parameter @l : tensor<8193xf32> {init = #genrec.init<constant, 3.0>, optimizer = #sgd}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %s = genrec.param @s : tensor<f32>
    %w_rows, %w = genrec.parameter_rows @w : () -> (!genrec.domain<@w_rows>, !h)
    %s_rows, %ss = genrec.parameter_rows @s : () -> (!genrec.domain<@s_rows>, !hs)
    %v_rows, %v = genrec.parameter_rows @v : () -> (!genrec.domain<@v_rows>, !hv)
    %l_rows, %l = genrec.parameter_rows @l : () -> (!genrec.domain<@l_rows>, !hl)
    genrec.row_kernel %w_rows(%w, %s) attributes {name = "w", operand_roles = [#aligned, #genrec<operand_role shared>], result_roles = []} : (!genrec.domain<@w_rows>, !h, tensor<f32>) -> () {
    ^bb0(%row: !genrec.row<64>, %by: f32):
      %all = vector.broadcast %by : f32 to vector<64xf32>
      genrec.row_store %all to %row : vector<64xf32>, !genrec.row<64>
      genrec.row_yield
    }
    genrec.row_kernel %s_rows(%ss) attributes {name = "s", operand_roles = [#aligned], result_roles = []} : (!genrec.domain<@s_rows>, !hs) -> () {
    ^bb0(%row: !genrec.row<1>):
      %half = arith.constant dense<0.5> : vector<1xf32>
      genrec.row_store %half to %row : vector<1xf32>, !genrec.row<1>
      genrec.row_yield
    }
    genrec.row_kernel %v_rows(%v) attributes {name = "v", operand_roles = [#aligned], result_roles = []} : (!genrec.domain<@v_rows>, !hv) -> () {
    ^bb0(%row: !genrec.row<4>):
      %x = genrec.row_load %row : (!genrec.row<4>) -> vector<4xf32>
      %sum = vector.reduction <add>, %x : vector<4xf32> into f32
      %all = vector.broadcast %sum : f32 to vector<4xf32>
      genrec.row_store %all to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
    genrec.row_kernel %l_rows(%l) attributes {name = "l", operand_roles = [#aligned], result_roles = []} : (!genrec.domain<@l_rows>, !hl) -> () {
    ^bb0(%row: !genrec.row<8193>):
      %half = arith.constant dense<0.5> : vector<8193xf32>
      genrec.row_store %half to %row : vector<8193xf32>, !genrec.row<8193>
      genrec.row_yield
    }
  }
}
