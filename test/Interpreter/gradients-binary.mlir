// Every op of two or three operands, with both sides trained; broadcasting along rows and of shared values.
// RUN: genrec-run %s --check-gradients --random=5 --steps=2 --rows=8 | FileCheck %s
// CHECK-COUNT-2: gradients agree

!d = !genrec.domain<@user>
!s = tensor<f32>
!s3 = tensor<3xf32>
!s8 = tensor<8xf32>
!s32 = tensor<3x2xf32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>
!u8 = tensor<?x8xf32, #genrec.rows<@user>>
!b = tensor<?xi1, #genrec.rows<@user>>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 0.01}>

genrec.model @gradients_binary {
  genrec.domain @user
  genrec.parameter @add_left : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @add_right : !s {init = #init, optimizer = #sgd}
  genrec.parameter @sub_left : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @sub_right : !s {init = #init, optimizer = #sgd}
  genrec.parameter @mul_left : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @mul_right : !s {init = #init, optimizer = #sgd}
  genrec.parameter @div_left : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @div_right : !s {init = #init, optimizer = #sgd}
  genrec.parameter @maximum_left : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @maximum_right : !s {init = #init, optimizer = #sgd}
  genrec.parameter @minimum_left : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @minimum_right : !s {init = #init, optimizer = #sgd}
  genrec.parameter @rows_left : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @rows_right : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @shared_matrix : !s32 {init = #init, optimizer = #sgd}
  genrec.parameter @shared_factor : !s {init = #init, optimizer = #sgd}
  genrec.parameter @shared_row : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @select_true : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @select_false : !s {init = #init, optimizer = #sgd}
  genrec.parameter @cast : !s3 {init = #init, optimizer = #sgd}
  genrec.parameter @dropout : !s8 {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user = genrec.batch : !d
    %f = genrec.feature %user "f" : (!d) -> !u
    %g = genrec.feature %user "g" : (!d) -> !u
    %half = genrec.constant dense<0.5> : !s

    %pl_add = genrec.param @add_left : !s3
    %pr_add = genrec.param @add_right : !s
    %left_add = genrec.mul %pl_add, %f : (!s3, !u) -> !u3
    %right_add = genrec.add %g, %pr_add : (!u, !s) -> !u
    %y_add = genrec.add %left_add, %right_add : (!u3, !u) -> !u3
    %t_add = genrec.tanh %y_add : !u3
    %l_add = genrec.row_reduce mean %t_add : (!u3) -> !u
    genrec.loss "add" %l_add : !u

    %pl_sub = genrec.param @sub_left : !s3
    %pr_sub = genrec.param @sub_right : !s
    %left_sub = genrec.mul %pl_sub, %f : (!s3, !u) -> !u3
    %right_sub = genrec.add %g, %pr_sub : (!u, !s) -> !u
    %y_sub = genrec.sub %left_sub, %right_sub : (!u3, !u) -> !u3
    %t_sub = genrec.tanh %y_sub : !u3
    %l_sub = genrec.row_reduce mean %t_sub : (!u3) -> !u
    genrec.loss "sub" %l_sub : !u

    %pl_mul = genrec.param @mul_left : !s3
    %pr_mul = genrec.param @mul_right : !s
    %left_mul = genrec.mul %pl_mul, %f : (!s3, !u) -> !u3
    %right_mul = genrec.add %g, %pr_mul : (!u, !s) -> !u
    %y_mul = genrec.mul %left_mul, %right_mul : (!u3, !u) -> !u3
    %t_mul = genrec.tanh %y_mul : !u3
    %l_mul = genrec.row_reduce mean %t_mul : (!u3) -> !u
    genrec.loss "mul" %l_mul : !u

    %pl_div = genrec.param @div_left : !s3
    %pr_div = genrec.param @div_right : !s
    %left_div = genrec.mul %pl_div, %f : (!s3, !u) -> !u3
    %right_div = genrec.add %g, %pr_div : (!u, !s) -> !u
    %square_div = genrec.square %right_div : !u
    %positive_div = genrec.add %square_div, %half : (!u, !s) -> !u
    %y_div = genrec.div %left_div, %positive_div : (!u3, !u) -> !u3
    %t_div = genrec.tanh %y_div : !u3
    %l_div = genrec.row_reduce mean %t_div : (!u3) -> !u
    genrec.loss "div" %l_div : !u

    %pl_maximum = genrec.param @maximum_left : !s3
    %pr_maximum = genrec.param @maximum_right : !s
    %left_maximum = genrec.mul %pl_maximum, %f : (!s3, !u) -> !u3
    %right_maximum = genrec.add %g, %pr_maximum : (!u, !s) -> !u
    %y_maximum = genrec.maximum %left_maximum, %right_maximum : (!u3, !u) -> !u3
    %t_maximum = genrec.tanh %y_maximum : !u3
    %l_maximum = genrec.row_reduce mean %t_maximum : (!u3) -> !u
    genrec.loss "maximum" %l_maximum : !u

    %pl_minimum = genrec.param @minimum_left : !s3
    %pr_minimum = genrec.param @minimum_right : !s
    %left_minimum = genrec.mul %pl_minimum, %f : (!s3, !u) -> !u3
    %right_minimum = genrec.add %g, %pr_minimum : (!u, !s) -> !u
    %y_minimum = genrec.minimum %left_minimum, %right_minimum : (!u3, !u) -> !u3
    %t_minimum = genrec.tanh %y_minimum : !u3
    %l_minimum = genrec.row_reduce mean %t_minimum : (!u3) -> !u
    genrec.loss "minimum" %l_minimum : !u

    // Rows [3] with rows [3].
    %pl_rows = genrec.param @rows_left : !s3
    %pr_rows = genrec.param @rows_right : !s3
    %left_rows = genrec.mul %pl_rows, %f : (!s3, !u) -> !u3
    %right_rows = genrec.mul %pr_rows, %g : (!s3, !u) -> !u3
    %y_rows = genrec.mul %left_rows, %right_rows : (!u3, !u3) -> !u3
    %l_rows = genrec.row_reduce sum %y_rows : (!u3) -> !u
    genrec.loss "rows" %l_rows : !u

    // Shared with shared: [3, 2] with [], then a weight of a linear.
    %matrix = genrec.param @shared_matrix : !s32
    %factor = genrec.param @shared_factor : !s
    %row = genrec.param @shared_row : !s3
    %scaled = genrec.mul %matrix, %factor : (!s32, !s) -> !s32
    %bent = genrec.tanh %scaled : !s32
    %x_shared = genrec.add %f, %row : (!u, !s3) -> !u3
    %y_shared = genrec.linear %x_shared, %bent : (!u3, !s32) -> !u2
    %l_shared = genrec.row_reduce sum %y_shared : (!u2) -> !u
    genrec.loss "shared" %l_shared : !u

    %pt = genrec.param @select_true : !s3
    %pf = genrec.param @select_false : !s
    %condition = genrec.compare gt %f, %g : (!u, !u) -> !b
    %y_select = genrec.select %condition, %pt, %pf : (!b, !s3, !s) -> !u3
    %t_select = genrec.tanh %y_select : !u3
    %l_select = genrec.row_reduce sum %t_select : (!u3) -> !u
    genrec.loss "select" %l_select : !u

    %p_cast = genrec.param @cast : !s3
    %wide = genrec.cast %p_cast : (!s3) -> tensor<3xf64>
    %bent_wide = genrec.exp %wide : tensor<3xf64>
    %narrow = genrec.cast %bent_wide : (tensor<3xf64>) -> !s3
    %y_cast = genrec.mul %narrow, %f : (!s3, !u) -> !u3
    %l_cast = genrec.row_reduce sum %y_cast : (!u3) -> !u
    genrec.loss "cast" %l_cast : !u

    %p_dropout = genrec.param @dropout : !s8
    %x_dropout = genrec.mul %p_dropout, %f : (!s8, !u) -> !u8
    %y_dropout = genrec.dropout %x_dropout {rate = 0.4, stream = 512} : (!u8) -> !u8
    %t_dropout = genrec.tanh %y_dropout : !u8
    %l_dropout = genrec.row_reduce sum %t_dropout : (!u8) -> !u
    genrec.loss "dropout" %l_dropout : !u
  }
}
