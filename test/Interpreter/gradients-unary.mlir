// Every unary op has a parameter and a loss of its own; %g weights the rows so that a loss is no plain sum.
// RUN: genrec-run %s --check-gradients --random=1 --steps=2 --rows=5 | FileCheck %s
// CHECK-COUNT-2: gradients agree

!d = !genrec.domain<@user>
!s = tensor<f32>
!s3 = tensor<3xf32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 0.01}>

genrec.model @gradients_unary {
  genrec.domain @user
  genrec.parameter @neg : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @abs : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @square : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @exp : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @sin : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @cos : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @tanh : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @erf : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @sigmoid : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @silu : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @relu : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @gelu : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @softplus : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @sqrt : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @rsqrt : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @log : !s3 {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user = genrec.batch : !d
    %f = genrec.feature %user "f" : (!d) -> !u
    %g = genrec.feature %user "g" : (!d) -> !u
    %half = genrec.constant dense<0.5> : !s

    %p_neg = genrec.param @neg : !s3
    %x_neg = genrec.add %f, %p_neg : (!u, !s3) -> !u3
    %y_neg = genrec.neg %x_neg : !u3
    %z_neg = genrec.mul %y_neg, %g : (!u3, !u) -> !u3
    %l_neg = genrec.row_reduce sum %z_neg : (!u3) -> !u
    genrec.loss "neg" %l_neg : !u

    %p_abs = genrec.param @abs : !s3
    %x_abs = genrec.add %f, %p_abs : (!u, !s3) -> !u3
    %y_abs = genrec.abs %x_abs : !u3
    %z_abs = genrec.mul %y_abs, %g : (!u3, !u) -> !u3
    %l_abs = genrec.row_reduce sum %z_abs : (!u3) -> !u
    genrec.loss "abs" %l_abs : !u

    %p_sin = genrec.param @sin : !s3
    %x_sin = genrec.add %f, %p_sin : (!u, !s3) -> !u3
    %y_sin = genrec.sin %x_sin : !u3
    %z_sin = genrec.mul %y_sin, %g : (!u3, !u) -> !u3
    %l_sin = genrec.row_reduce sum %z_sin : (!u3) -> !u
    genrec.loss "sin" %l_sin : !u

    %p_cos = genrec.param @cos : !s3
    %x_cos = genrec.add %f, %p_cos : (!u, !s3) -> !u3
    %y_cos = genrec.cos %x_cos : !u3
    %z_cos = genrec.mul %y_cos, %g : (!u3, !u) -> !u3
    %l_cos = genrec.row_reduce sum %z_cos : (!u3) -> !u
    genrec.loss "cos" %l_cos : !u

    %p_square = genrec.param @square : !s3
    %x_square = genrec.add %f, %p_square : (!u, !s3) -> !u3
    %y_square = genrec.square %x_square : !u3
    %z_square = genrec.mul %y_square, %g : (!u3, !u) -> !u3
    %l_square = genrec.row_reduce sum %z_square : (!u3) -> !u
    genrec.loss "square" %l_square : !u

    %p_exp = genrec.param @exp : !s3
    %x_exp = genrec.add %f, %p_exp : (!u, !s3) -> !u3
    %y_exp = genrec.exp %x_exp : !u3
    %z_exp = genrec.mul %y_exp, %g : (!u3, !u) -> !u3
    %l_exp = genrec.row_reduce sum %z_exp : (!u3) -> !u
    genrec.loss "exp" %l_exp : !u

    %p_tanh = genrec.param @tanh : !s3
    %x_tanh = genrec.add %f, %p_tanh : (!u, !s3) -> !u3
    %y_tanh = genrec.tanh %x_tanh : !u3
    %z_tanh = genrec.mul %y_tanh, %g : (!u3, !u) -> !u3
    %l_tanh = genrec.row_reduce sum %z_tanh : (!u3) -> !u
    genrec.loss "tanh" %l_tanh : !u

    %p_erf = genrec.param @erf : !s3
    %x_erf = genrec.add %f, %p_erf : (!u, !s3) -> !u3
    %y_erf = genrec.erf %x_erf : !u3
    %z_erf = genrec.mul %y_erf, %g : (!u3, !u) -> !u3
    %l_erf = genrec.row_reduce sum %z_erf : (!u3) -> !u
    genrec.loss "erf" %l_erf : !u

    %p_sigmoid = genrec.param @sigmoid : !s3
    %x_sigmoid = genrec.add %f, %p_sigmoid : (!u, !s3) -> !u3
    %y_sigmoid = genrec.sigmoid %x_sigmoid : !u3
    %z_sigmoid = genrec.mul %y_sigmoid, %g : (!u3, !u) -> !u3
    %l_sigmoid = genrec.row_reduce sum %z_sigmoid : (!u3) -> !u
    genrec.loss "sigmoid" %l_sigmoid : !u

    %p_silu = genrec.param @silu : !s3
    %x_silu = genrec.add %f, %p_silu : (!u, !s3) -> !u3
    %y_silu = genrec.silu %x_silu : !u3
    %z_silu = genrec.mul %y_silu, %g : (!u3, !u) -> !u3
    %l_silu = genrec.row_reduce sum %z_silu : (!u3) -> !u
    genrec.loss "silu" %l_silu : !u

    %p_relu = genrec.param @relu : !s3
    %x_relu = genrec.add %f, %p_relu : (!u, !s3) -> !u3
    %y_relu = genrec.relu %x_relu : !u3
    %z_relu = genrec.mul %y_relu, %g : (!u3, !u) -> !u3
    %l_relu = genrec.row_reduce sum %z_relu : (!u3) -> !u
    genrec.loss "relu" %l_relu : !u

    %p_gelu = genrec.param @gelu : !s3
    %x_gelu = genrec.add %f, %p_gelu : (!u, !s3) -> !u3
    %y_gelu = genrec.gelu %x_gelu : !u3
    %z_gelu = genrec.mul %y_gelu, %g : (!u3, !u) -> !u3
    %l_gelu = genrec.row_reduce sum %z_gelu : (!u3) -> !u
    genrec.loss "gelu" %l_gelu : !u

    %p_softplus = genrec.param @softplus : !s3
    %x_softplus = genrec.add %f, %p_softplus : (!u, !s3) -> !u3
    %y_softplus = genrec.softplus %x_softplus : !u3
    %z_softplus = genrec.mul %y_softplus, %g : (!u3, !u) -> !u3
    %l_softplus = genrec.row_reduce sum %z_softplus : (!u3) -> !u
    genrec.loss "softplus" %l_softplus : !u

    %p_sqrt = genrec.param @sqrt : !s3
    %x_sqrt = genrec.add %f, %p_sqrt : (!u, !s3) -> !u3
    %square_sqrt = genrec.square %x_sqrt : !u3
    %positive_sqrt = genrec.add %square_sqrt, %half : (!u3, !s) -> !u3
    %y_sqrt = genrec.sqrt %positive_sqrt : !u3
    %z_sqrt = genrec.mul %y_sqrt, %g : (!u3, !u) -> !u3
    %l_sqrt = genrec.row_reduce sum %z_sqrt : (!u3) -> !u
    genrec.loss "sqrt" %l_sqrt : !u

    %p_rsqrt = genrec.param @rsqrt : !s3
    %x_rsqrt = genrec.add %f, %p_rsqrt : (!u, !s3) -> !u3
    %square_rsqrt = genrec.square %x_rsqrt : !u3
    %positive_rsqrt = genrec.add %square_rsqrt, %half : (!u3, !s) -> !u3
    %y_rsqrt = genrec.rsqrt %positive_rsqrt : !u3
    %z_rsqrt = genrec.mul %y_rsqrt, %g : (!u3, !u) -> !u3
    %l_rsqrt = genrec.row_reduce sum %z_rsqrt : (!u3) -> !u
    genrec.loss "rsqrt" %l_rsqrt : !u

    %p_log = genrec.param @log : !s3
    %x_log = genrec.add %f, %p_log : (!u, !s3) -> !u3
    %square_log = genrec.square %x_log : !u3
    %positive_log = genrec.add %square_log, %half : (!u3, !s) -> !u3
    %y_log = genrec.log %positive_log : !u3
    %z_log = genrec.mul %y_log, %g : (!u3, !u) -> !u3
    %l_log = genrec.row_reduce sum %z_log : (!u3) -> !u
    genrec.loss "log" %l_log : !u
  }
}
