// Ops along a row, norms, dense layers, embeddings and lookups.
// RUN: genrec-run %s --check-gradients --random=1 --steps=2 --rows=5 | FileCheck %s
// CHECK-COUNT-2: gradients agree

!d = !genrec.domain<@user>
!s = tensor<f32>
!s4 = tensor<4xf32>
!s10 = tensor<10xf32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u10 = tensor<?x10xf32, #genrec.rows<@user>>
!i = tensor<?xi64, #genrec.rows<@user>>
!b = tensor<?xi1, #genrec.rows<@user>>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 0.01}>

genrec.model @gradients_rows {
  genrec.domain @user
  genrec.parameter @row_reduce_sum : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @row_reduce_mean : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @row_reduce_max : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @concat_scalar : !s {init = #init, optimizer = #sgd}
  genrec.parameter @concat_columns : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @slice_columns : !s10 {init = #init, optimizer = #sgd}
  genrec.parameter @pad_columns : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @layer_norm : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @norm_scale : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @norm_bias : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @layer_norm_affine : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @rms_scale : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @rms_norm : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @l2_normalize : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @l2_small : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @linear_weight : tensor<4x10xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @linear_bias : !s10 {init = #init, optimizer = #sgd}
  genrec.parameter @linear : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @transposed_weight : tensor<10x4xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @linear_transposed : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @embedding : tensor<5x4xf32> {init = #init, optimizer = #sgd}
  genrec.table @lookup dim 4 {init = #init, optimizer = #sgd}
  genrec.parameter @broadcast : !s4 {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user = genrec.batch : !d
    %f = genrec.feature %user "f" : (!d) -> !u
    %g = genrec.feature %user "g" : (!d) -> !u
    %weights4 = genrec.constant dense<[0.5, -1.0, 2.0, 0.25]> : !s4
    %weights10 = genrec.constant dense<[0.5, -1.0, 2.0, 0.25, -0.75, 1.5, 3.0, -0.125, 1.0, -2.0]> : !s10

    %p_row_reduce_sum = genrec.param @row_reduce_sum : !s4
    %x_row_reduce_sum = genrec.add %f, %p_row_reduce_sum : (!u, !s4) -> !u4
    %q_row_reduce_sum = genrec.square %x_row_reduce_sum : !u4
    %y_row_reduce_sum = genrec.row_reduce sum %q_row_reduce_sum : (!u4) -> !u
    %z_row_reduce_sum = genrec.mul %y_row_reduce_sum, %g : (!u, !u) -> !u
    genrec.loss "row_reduce_sum" %z_row_reduce_sum : !u

    %p_row_reduce_mean = genrec.param @row_reduce_mean : !s4
    %x_row_reduce_mean = genrec.add %f, %p_row_reduce_mean : (!u, !s4) -> !u4
    %q_row_reduce_mean = genrec.square %x_row_reduce_mean : !u4
    %y_row_reduce_mean = genrec.row_reduce mean %q_row_reduce_mean : (!u4) -> !u
    %z_row_reduce_mean = genrec.mul %y_row_reduce_mean, %g : (!u, !u) -> !u
    genrec.loss "row_reduce_mean" %z_row_reduce_mean : !u

    %p_row_reduce_max = genrec.param @row_reduce_max : !s4
    %x_row_reduce_max = genrec.add %f, %p_row_reduce_max : (!u, !s4) -> !u4
    %q_row_reduce_max = genrec.square %x_row_reduce_max : !u4
    %y_row_reduce_max = genrec.row_reduce max %q_row_reduce_max : (!u4) -> !u
    %z_row_reduce_max = genrec.mul %y_row_reduce_max, %g : (!u, !u) -> !u
    genrec.loss "row_reduce_max" %z_row_reduce_max : !u

    %p_concat_columns = genrec.param @concat_columns : !s4
    %x_concat_columns = genrec.add %f, %p_concat_columns : (!u, !s4) -> !u4
    %p_scalar = genrec.param @concat_scalar : !s
    %x_scalar = genrec.mul %g, %p_scalar : (!u, !s) -> !u
    %y_concat_columns = genrec.concat_columns %x_concat_columns, %x_scalar, %f, %x_concat_columns : (!u4, !u, !u, !u4) -> !u10
    %t_concat_columns = genrec.tanh %y_concat_columns : !u10
    %m_concat_columns = genrec.mul %t_concat_columns, %weights10 : (!u10, !s10) -> !u10
    %l_concat_columns = genrec.row_reduce sum %m_concat_columns : (!u10) -> !u
    genrec.loss "concat_columns" %l_concat_columns : !u

    %p_slice_columns = genrec.param @slice_columns : !s10
    %x_slice_columns = genrec.add %f, %p_slice_columns : (!u, !s10) -> !u10
    %y_slice_columns = genrec.slice_columns %x_slice_columns from 3 : (!u10) -> !u4
    %t_slice_columns = genrec.tanh %y_slice_columns : !u4
    %m_slice_columns = genrec.mul %t_slice_columns, %weights4 : (!u4, !s4) -> !u4
    %l_slice_columns = genrec.row_reduce sum %m_slice_columns : (!u4) -> !u
    genrec.loss "slice_columns" %l_slice_columns : !u

    %p_pad_columns = genrec.param @pad_columns : !s4
    %x_pad_columns = genrec.add %f, %p_pad_columns : (!u, !s4) -> !u4
    %y_pad_columns = genrec.pad_columns %x_pad_columns at 2 : (!u4) -> !u10
    %t_pad_columns = genrec.tanh %y_pad_columns : !u10
    %m_pad_columns = genrec.mul %t_pad_columns, %weights10 : (!u10, !s10) -> !u10
    %l_pad_columns = genrec.row_reduce sum %m_pad_columns : (!u10) -> !u
    genrec.loss "pad_columns" %l_pad_columns : !u

    %p_layer_norm = genrec.param @layer_norm : !s4
    %x_layer_norm = genrec.add %f, %p_layer_norm : (!u, !s4) -> !u4
    %sq_layer_norm = genrec.mul %x_layer_norm, %x_layer_norm : (!u4, !u4) -> !u4
    %y_layer_norm = genrec.layer_norm %sq_layer_norm {eps = 1.0e-3} : (!u4) -> !u4
    %t_layer_norm = genrec.tanh %y_layer_norm : !u4
    %m_layer_norm = genrec.mul %t_layer_norm, %weights4 : (!u4, !s4) -> !u4
    %l_layer_norm = genrec.row_reduce sum %m_layer_norm : (!u4) -> !u
    genrec.loss "layer_norm" %l_layer_norm : !u

    %p_layer_norm_affine = genrec.param @layer_norm_affine : !s4
    %x_layer_norm_affine = genrec.add %f, %p_layer_norm_affine : (!u, !s4) -> !u4
    %scale = genrec.param @norm_scale : !s4
    %bias = genrec.param @norm_bias : !s4
    %y_layer_norm_affine = genrec.layer_norm %x_layer_norm_affine scale %scale bias %bias {eps = 1.0e-3} : (!u4, !s4, !s4) -> !u4
    %t_layer_norm_affine = genrec.tanh %y_layer_norm_affine : !u4
    %m_layer_norm_affine = genrec.mul %t_layer_norm_affine, %weights4 : (!u4, !s4) -> !u4
    %l_layer_norm_affine = genrec.row_reduce sum %m_layer_norm_affine : (!u4) -> !u
    genrec.loss "layer_norm_affine" %l_layer_norm_affine : !u

    %p_rms_norm = genrec.param @rms_norm : !s4
    %x_rms_norm = genrec.add %f, %p_rms_norm : (!u, !s4) -> !u4
    %rms_scale = genrec.param @rms_scale : !s4
    %y_rms_norm = genrec.rms_norm %x_rms_norm scale %rms_scale {eps = 1.0e-3} : (!u4, !s4) -> !u4
    %t_rms_norm = genrec.tanh %y_rms_norm : !u4
    %m_rms_norm = genrec.mul %t_rms_norm, %weights4 : (!u4, !s4) -> !u4
    %l_rms_norm = genrec.row_reduce sum %m_rms_norm : (!u4) -> !u
    genrec.loss "rms_norm" %l_rms_norm : !u

    %p_l2_normalize = genrec.param @l2_normalize : !s4
    %x_l2_normalize = genrec.add %f, %p_l2_normalize : (!u, !s4) -> !u4
    %y_l2_normalize = genrec.l2_normalize %x_l2_normalize {eps = 1.0e-3} : (!u4) -> !u4
    %t_l2_normalize = genrec.tanh %y_l2_normalize : !u4
    %m_l2_normalize = genrec.mul %t_l2_normalize, %weights4 : (!u4, !s4) -> !u4
    %l_l2_normalize = genrec.row_reduce sum %m_l2_normalize : (!u4) -> !u
    genrec.loss "l2_normalize" %l_l2_normalize : !u

    // The norm is below eps.
    %p_l2_small = genrec.param @l2_small : !s4
    %x_l2_small = genrec.add %f, %p_l2_small : (!u, !s4) -> !u4
    %y_l2_small = genrec.l2_normalize %x_l2_small {eps = 100.0} : (!u4) -> !u4
    %t_l2_small = genrec.tanh %y_l2_small : !u4
    %m_l2_small = genrec.mul %t_l2_small, %weights4 : (!u4, !s4) -> !u4
    %l_l2_small = genrec.row_reduce sum %m_l2_small : (!u4) -> !u
    genrec.loss "l2_small" %l_l2_small : !u

    %p_linear = genrec.param @linear : !s4
    %x_linear = genrec.add %f, %p_linear : (!u, !s4) -> !u4
    %weight = genrec.param @linear_weight : tensor<4x10xf32>
    %linear_bias = genrec.param @linear_bias : !s10
    %y_linear = genrec.linear %x_linear, %weight bias %linear_bias : (!u4, tensor<4x10xf32>, !s10) -> !u10
    %t_linear = genrec.tanh %y_linear : !u10
    %m_linear = genrec.mul %t_linear, %weights10 : (!u10, !s10) -> !u10
    %l_linear = genrec.row_reduce sum %m_linear : (!u10) -> !u
    genrec.loss "linear" %l_linear : !u

    %p_linear_transposed = genrec.param @linear_transposed : !s4
    %x_linear_transposed = genrec.add %f, %p_linear_transposed : (!u, !s4) -> !u4
    %transposed = genrec.param @transposed_weight : tensor<10x4xf32>
    %y_linear_transposed = genrec.linear %x_linear_transposed, %transposed {transposed} : (!u4, tensor<10x4xf32>) -> !u10
    %t_linear_transposed = genrec.tanh %y_linear_transposed : !u10
    %m_linear_transposed = genrec.mul %t_linear_transposed, %weights10 : (!u10, !s10) -> !u10
    %l_linear_transposed = genrec.row_reduce sum %m_linear_transposed : (!u10) -> !u
    genrec.loss "linear_transposed" %l_linear_transposed : !u

    // Indices outside read the nearest row.
    %positions = genrec.param @embedding : tensor<5x4xf32>
    %index = genrec.feature %user "index" : (!d) -> !i
    %y_embedding = genrec.embedding %index of %positions : (!i, tensor<5x4xf32>) -> !u4
    %t_embedding = genrec.tanh %y_embedding : !u4
    %m_embedding = genrec.mul %t_embedding, %weights4 : (!u4, !s4) -> !u4
    %l_embedding = genrec.row_reduce sum %m_embedding : (!u4) -> !u
    genrec.loss "embedding" %l_embedding : !u

    %id = genrec.feature %user "id" {nullable} : (!d) -> !i
    %valid = genrec.feature_valid %user "id" : (!d) -> !b
    %y_lookup = genrec.lookup %id valid %valid in @lookup : (!i, !b) -> !u4
    %again = genrec.lookup %id in @lookup : (!i) -> !u4
    %both = genrec.mul %y_lookup, %again : (!u4, !u4) -> !u4
    %t_lookup = genrec.tanh %both : !u4
    %m_lookup = genrec.mul %t_lookup, %weights4 : (!u4, !s4) -> !u4
    %l_lookup = genrec.row_reduce sum %m_lookup : (!u4) -> !u
    genrec.loss "lookup" %l_lookup : !u

    %p_broadcast = genrec.param @broadcast : !s4
    %y_broadcast = genrec.broadcast_rows %p_broadcast to %user : (!s4, !d) -> !u4
    %z_broadcast = genrec.mul %y_broadcast, %g : (!u4, !u) -> !u4
    %t_broadcast = genrec.tanh %z_broadcast : !u4
    %m_broadcast = genrec.mul %t_broadcast, %weights4 : (!u4, !s4) -> !u4
    %l_broadcast = genrec.row_reduce sum %m_broadcast : (!u4) -> !u
    genrec.loss "broadcast" %l_broadcast : !u
  }
}
