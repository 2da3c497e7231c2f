// Layers of ranking models and moves of lists: pairs, lengthened lists, lists side by side.
// RUN: genrec-run %s --check-gradients --random=1 --steps=3 --rows=8 | FileCheck %s
// CHECK-COUNT-3: gradients agree

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!shown = !genrec.domain<@shown>
!padded = !genrec.domain<@padded>
!front = !genrec.domain<@front>
!pair = !genrec.domain<@pair>
!u = tensor<?xf32, #genrec.rows<@user>>
!u6 = tensor<?x6xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h6 = tensor<?x6xf32, #genrec.rows<@history>>
!h1 = tensor<?x1xf32, #genrec.rows<@history>>
!s = tensor<?xf32, #genrec.rows<@shown>>
!s6 = tensor<?x6xf32, #genrec.rows<@shown>>
!p = tensor<?xf32, #genrec.rows<@padded>>
!p6 = tensor<?x6xf32, #genrec.rows<@padded>>
!f = tensor<?xf32, #genrec.rows<@front>>
!f6 = tensor<?x6xf32, #genrec.rows<@front>>
!b = tensor<?xf32, #genrec.rows<@pair>>
!b6 = tensor<?x6xf32, #genrec.rows<@pair>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!si = tensor<?xi64, #genrec.rows<@shown>>
!pi = tensor<?xi64, #genrec.rows<@padded>>
!fi = tensor<?xi64, #genrec.rows<@front>>
!s6w = tensor<6xf32>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 0.01}>

genrec.model @gradients_ranking {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @shown parent @user {column = "shown"}
  genrec.domain @padded parent @user kind derived
  genrec.domain @front parent @user kind derived
  genrec.domain @pair parent @shown kind derived
  genrec.table @base dim 6 {init = #init, optimizer = #sgd}
  genrec.table @pad_back dim 6 {init = #init, optimizer = #sgd}
  genrec.table @pad_front dim 6 {init = #init, optimizer = #sgd}
  genrec.table @pair_second dim 6 {init = #init, optimizer = #sgd}
  genrec.table @tile_first dim 6 {init = #init, optimizer = #sgd}
  genrec.table @tile_last dim 6 {init = #init, optimizer = #sgd}
  genrec.table @query dim 6 {init = #init, optimizer = #sgd}
  genrec.table @key dim 6 {init = #init, optimizer = #sgd}
  genrec.table @value dim 6 {init = #init, optimizer = #sgd}
  genrec.parameter @log1p : tensor<6xf32> {init = #genrec.init<uniform, 0.5>, optimizer = #sgd}
  genrec.parameter @softmax : tensor<6xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @weight : tensor<6x6xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @bias : tensor<6xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @reduce : tensor<6x2xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @expand : tensor<2x6xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @gate : tensor<6x3xf32> {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user, %history, %shown = genrec.batch : !user, !history, !shown
    %user_id = genrec.feature %user "user" : (!user) -> !ui
    %history_id = genrec.feature %history "history.movie" : (!history) -> !hi
    %history_g = genrec.feature %history "history.g" : (!history) -> !h
    %shown_id = genrec.feature %shown "shown.movie" : (!shown) -> !si
    %shown_g = genrec.feature %shown "shown.g" : (!shown) -> !s
    %g6 = genrec.constant dense<[0.5, -1.0, 2.0, 0.25, -0.75, 1.5]> : !s6w
    %x = genrec.lookup %user_id in @base : (!ui) -> !u6

    %p_log1p = genrec.param @log1p : !s6w
    %y_log1p = genrec.log1p %p_log1p : !s6w
    %q_log1p = genrec.mul %y_log1p, %x : (!s6w, !u6) -> !u6
    %z_log1p = genrec.row_reduce sum %q_log1p : (!u6) -> !u
    genrec.loss "log1p" %z_log1p : !u

    %p_softmax = genrec.param @softmax : !s6w
    %x_softmax = genrec.mul %x, %p_softmax : (!u6, !s6w) -> !u6
    %y_softmax = genrec.softmax %x_softmax : !u6
    %q_softmax = genrec.mul %y_softmax, %g6 : (!u6, !s6w) -> !u6
    %z_softmax = genrec.row_reduce sum %q_softmax : (!u6) -> !u
    genrec.loss "softmax" %z_softmax : !u

    %y_dots = genrec.dot_interaction %x {count = 3 : i64} : (!u6) -> !u3
    %q_dots = genrec.square %y_dots : !u3
    %z_dots = genrec.row_reduce sum %q_dots : (!u3) -> !u
    genrec.loss "dots" %z_dots : !u
    %y_self = genrec.dot_interaction %x {count = 2 : i64, self} : (!u6) -> !u3
    %q_self = genrec.square %y_self : !u3
    %z_self = genrec.row_reduce sum %q_self : (!u3) -> !u
    genrec.loss "self" %z_self : !u

    %weight = genrec.param @weight : tensor<6x6xf32>
    %bias = genrec.param @bias : !s6w
    %reduce = genrec.param @reduce : tensor<6x2xf32>
    %expand = genrec.param @expand : tensor<2x6xf32>
    %y_cross = genrec.cross_layer %x, %x, %weight, %bias : (!u6, !u6, tensor<6x6xf32>, !s6w) -> !u6
    %z_cross = genrec.cross_layer %x, %y_cross, %expand, %bias reduce %reduce
        : (!u6, !u6, tensor<2x6xf32>, !s6w, tensor<6x2xf32>) -> !u6
    %q_cross = genrec.mul %z_cross, %g6 : (!u6, !s6w) -> !u6
    %l_cross = genrec.row_reduce sum %q_cross : (!u6) -> !u
    genrec.loss "cross" %l_cross : !u

    %gate = genrec.param @gate : tensor<6x3xf32>
    %logits = genrec.linear %x, %gate : (!u6, tensor<6x3xf32>) -> !u3
    %all = genrec.mixture %x, %logits : (!u6, !u3) -> !u2
    %two = genrec.mixture %x, %logits {top_k = 2 : i64} : (!u6, !u3) -> !u2
    %mixed = genrec.mul %all, %two : (!u2, !u2) -> !u2
    %z_mixed = genrec.row_reduce sum %mixed : (!u2) -> !u
    genrec.loss "mixed" %z_mixed : !u

    %padded = genrec.pad %history {count = 3 : i64} : (!history) -> !padded
    %x_padded = genrec.lookup %history_id in @pad_back : (!hi) -> !h6
    %y_padded = genrec.derive %x_padded into %padded : (!h6, !padded) -> !p6
    %place = genrec.position %padded : (!padded) -> !pi
    %place_f = genrec.cast %place : (!pi) -> !p
    %q_padded = genrec.mul %y_padded, %place_f : (!p6, !p) -> !p6
    %w_padded = genrec.mul %q_padded, %g6 : (!p6, !s6w) -> !p6
    %z_padded = genrec.row_reduce sum %w_padded : (!p6) -> !p
    genrec.loss "padded" %z_padded : !p

    %front = genrec.pad %history {count = 4 : i64, side = #genrec<pad_side front>} : (!history) -> !front
    %x_front = genrec.lookup %history_id in @pad_front : (!hi) -> !h6
    %y_front = genrec.derive %x_front into %front : (!h6, !front) -> !f6
    %place_front = genrec.position %front : (!front) -> !fi
    %place_front_f = genrec.cast %place_front : (!fi) -> !f
    %q_front = genrec.mul %y_front, %place_front_f : (!f6, !f) -> !f6
    %w_front = genrec.mul %q_front, %g6 : (!f6, !s6w) -> !f6
    %z_front = genrec.row_reduce sum %w_front : (!f6) -> !f
    genrec.loss "front" %z_front : !f

    %pair = genrec.pair_domains %shown, %history : (!shown, !history) -> !pair
    %x_pair = genrec.lookup %history_id in @pair_second : (!hi) -> !h6
    %y_pair = genrec.pair_rows %x_pair into %pair : (!h6, !pair) -> !b6
    %g_pair = genrec.fanout %shown_g to %pair : (!s, !pair) -> !b
    %q_pair = genrec.mul %y_pair, %g_pair : (!b6, !b) -> !b6
    %w_pair = genrec.mul %q_pair, %g6 : (!b6, !s6w) -> !b6
    %z_pair = genrec.row_reduce sum %w_pair : (!b6) -> !b
    genrec.loss "pair" %z_pair : !b
    // pair_sum, whose gradient is pair_rows.
    %received = genrec.pair_sum %q_pair to %history : (!b6, !history) -> !h6
    %q_received = genrec.square %received : !h6
    %z_received = genrec.row_reduce sum %q_received : (!h6) -> !h
    genrec.loss "received" %z_received : !h

    %x_first = genrec.lookup %history_id in @tile_first : (!hi) -> !h6
    %t_first = genrec.tile %x_first to %user {count = 2 : i64} : (!h6, !user) -> tensor<?x12xf32, #genrec.rows<@user>>
    %q_first = genrec.square %t_first : tensor<?x12xf32, #genrec.rows<@user>>
    %z_first = genrec.row_reduce sum %q_first : (tensor<?x12xf32, #genrec.rows<@user>>) -> !u
    genrec.loss "first" %z_first : !u
    %x_last = genrec.lookup %history_id in @tile_last : (!hi) -> !h6
    %d_last = genrec.row_reduce sum %x_last : (!h6) -> !h
    %t_last = genrec.tile %d_last to %user {count = 3 : i64, keep = #genrec<keep last>} : (!h, !user) -> !u3
    %q_last = genrec.square %t_last : !u3
    // tile_grad, whose gradient is tile.
    %back = genrec.tile_grad %q_last into %history {count = 3 : i64, keep = #genrec<keep last>} : (!u3, !history) -> !h
    %z_last = genrec.mul %back, %history_g : (!h, !h) -> !h
    genrec.loss "last" %z_last : !h

    %q = genrec.lookup %shown_id in @query : (!si) -> !s6
    %k = genrec.lookup %history_id in @key : (!hi) -> !h6
    %v = genrec.lookup %history_id in @value : (!hi) -> !h6
    %attended = genrec.cross_attention %q, %k, %v {heads = 2 : i64, scale = 0.5 : f64}
        : (!s6, !h6, !h6) -> !s6
    %w_attended = genrec.mul %attended, %g6 : (!s6, !s6w) -> !s6
    %z_attended = genrec.row_reduce sum %w_attended : (!s6) -> !s
    genrec.loss "attended" %z_attended : !s
  }
}
