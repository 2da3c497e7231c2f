// Moves between domains: derived domains, up and down the tree, within a list.
// RUN: genrec-run %s --check-gradients --random=1 --steps=3 --rows=10 | FileCheck %s
// CHECK-COUNT-3: gradients agree

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!tag = !genrec.domain<@tag>
!recent = !genrec.domain<@recent>
!oldest = !genrec.domain<@oldest>
!joined = !genrec.domain<@joined>
!u = tensor<?xf32, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h3 = tensor<?x3xf32, #genrec.rows<@history>>
!t = tensor<?xf32, #genrec.rows<@tag>>
!t3 = tensor<?x3xf32, #genrec.rows<@tag>>
!r = tensor<?xf32, #genrec.rows<@recent>>
!r3 = tensor<?x3xf32, #genrec.rows<@recent>>
!o = tensor<?xf32, #genrec.rows<@oldest>>
!o3 = tensor<?x3xf32, #genrec.rows<@oldest>>
!j = tensor<?xf32, #genrec.rows<@joined>>
!j3 = tensor<?x3xf32, #genrec.rows<@joined>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!ti = tensor<?xi64, #genrec.rows<@tag>>
!ji = tensor<?xi64, #genrec.rows<@joined>>
!hb = tensor<?xi1, #genrec.rows<@history>>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 0.01}>

genrec.model @gradients_domains {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @tag parent @history {column = "history.tags"}
  genrec.domain @recent parent @user kind derived
  genrec.domain @oldest parent @user kind derived
  genrec.domain @joined parent @user kind derived
  genrec.table @derive_last dim 3 {init = #init, optimizer = #sgd}
  genrec.table @derive_first dim 3 {init = #init, optimizer = #sgd}
  genrec.table @derive_grad dim 3 {init = #init, optimizer = #sgd}
  genrec.table @concat_user dim 3 {init = #init, optimizer = #sgd}
  genrec.table @concat_history dim 3 {init = #init, optimizer = #sgd}
  genrec.table @fanout dim 3 {init = #init, optimizer = #sgd}
  genrec.table @pool_sum dim 3 {init = #init, optimizer = #sgd}
  genrec.table @pool_mean dim 3 {init = #init, optimizer = #sgd}
  genrec.table @pool_max dim 3 {init = #init, optimizer = #sgd}
  genrec.table @pool_first dim 3 {init = #init, optimizer = #sgd}
  genrec.table @pool_last dim 3 {init = #init, optimizer = #sgd}
  genrec.table @pool_far dim 3 {init = #init, optimizer = #sgd}
  genrec.table @lead dim 3 {init = #init, optimizer = #sgd}
  genrec.table @lag dim 3 {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user, %history, %tag = genrec.batch : !user, !history, !tag
    %user_id = genrec.feature %user "user" : (!user) -> !ui
    %user_g = genrec.feature %user "g" : (!user) -> !u
    %history_id = genrec.feature %history "history.movie" : (!history) -> !hi
    %history_g = genrec.feature %history "history.g" : (!history) -> !h
    %tag_id = genrec.feature %tag "history.tags.tag" : (!tag) -> !ti
    %tag_g = genrec.feature %tag "history.tags.g" : (!tag) -> !t

    %x_derive_last = genrec.lookup %history_id in @derive_last : (!hi) -> !h3
    %recent = genrec.truncate %history {count = 2} : (!history) -> !recent
    %y_derive_last = genrec.derive %x_derive_last into %recent : (!h3, !recent) -> !r3
    %g_derive_last = genrec.derive %history_g into %recent : (!h, !recent) -> !r
    %t_derive_last = genrec.tanh %y_derive_last : !r3
    %m_derive_last = genrec.mul %t_derive_last, %g_derive_last : (!r3, !r) -> !r3
    %l_derive_last = genrec.row_reduce sum %m_derive_last : (!r3) -> !r
    genrec.loss "derive_last" %l_derive_last : !r

    %x_derive_first = genrec.lookup %history_id in @derive_first : (!hi) -> !h3
    %oldest = genrec.truncate %history {count = 2, keep = #genrec<keep first>} : (!history) -> !oldest
    %y_derive_first = genrec.derive %x_derive_first into %oldest : (!h3, !oldest) -> !o3
    %g_derive_first = genrec.derive %history_g into %oldest : (!h, !oldest) -> !o
    %t_derive_first = genrec.tanh %y_derive_first : !o3
    %m_derive_first = genrec.mul %t_derive_first, %g_derive_first : (!o3, !o) -> !o3
    %l_derive_first = genrec.row_reduce sum %m_derive_first : (!o3) -> !o
    genrec.loss "derive_first" %l_derive_first : !o

    // The adjoint of derive, itself differentiated.
    %x_derive_grad = genrec.lookup %history_id in @derive_grad : (!hi) -> !h3
    %d_derive_grad = genrec.derive %x_derive_grad into %recent : (!h3, !recent) -> !r3
    %y_derive_grad = genrec.derive_grad %d_derive_grad into %history : (!r3, !history) -> !h3
    %t_derive_grad = genrec.tanh %y_derive_grad : !h3
    %m_derive_grad = genrec.mul %t_derive_grad, %history_g : (!h3, !h) -> !h3
    %l_derive_grad = genrec.row_reduce sum %m_derive_grad : (!h3) -> !h
    genrec.loss "derive_grad" %l_derive_grad : !h

    // A row of the user, its history, and the recent part of that again.
    %x_concat_user = genrec.lookup %user_id in @concat_user : (!ui) -> !u3
    %x_concat_history = genrec.lookup %history_id in @concat_history : (!hi) -> !h3
    %y_recent = genrec.derive %x_concat_history into %recent : (!h3, !recent) -> !r3
    %joined = genrec.concat_domains %user, %history, %recent : (!user, !history, !recent) -> !joined
    %y_concat = genrec.concat_rows %x_concat_user, %x_concat_history, %y_recent into %joined : (!u3, !h3, !r3, !joined) -> !j3
    %place = genrec.position %joined : (!joined) -> !ji
    %j_place = genrec.cast %place : (!ji) -> !j
    %t_concat = genrec.tanh %y_concat : !j3
    %m_concat = genrec.mul %t_concat, %j_place : (!j3, !j) -> !j3
    %l_concat = genrec.row_reduce sum %m_concat : (!j3) -> !j
    genrec.loss "concat" %l_concat : !j

    %square = genrec.square %y_concat : !j3
    %split_user = genrec.split_rows %square part 0 into %user : (!j3, !user) -> !u3
    %t_split_user = genrec.tanh %split_user : !u3
    %m_split_user = genrec.mul %t_split_user, %user_g : (!u3, !u) -> !u3
    %l_split_user = genrec.row_reduce sum %m_split_user : (!u3) -> !u
    genrec.loss "split_user" %l_split_user : !u
    %split_history = genrec.split_rows %square part 1 into %history : (!j3, !history) -> !h3
    %t_split_history = genrec.tanh %split_history : !h3
    %m_split_history = genrec.mul %t_split_history, %history_g : (!h3, !h) -> !h3
    %l_split_history = genrec.row_reduce sum %m_split_history : (!h3) -> !h
    genrec.loss "split_history" %l_split_history : !h

    // To the child, and to the grandchild.
    %x_fanout = genrec.lookup %user_id in @fanout : (!ui) -> !u3
    %y_fanout = genrec.fanout %x_fanout to %history : (!u3, !history) -> !h3
    %t_fanout = genrec.tanh %y_fanout : !h3
    %m_fanout = genrec.mul %t_fanout, %history_g : (!h3, !h) -> !h3
    %l_fanout = genrec.row_reduce sum %m_fanout : (!h3) -> !h
    genrec.loss "fanout" %l_fanout : !h
    %y_fanout_far = genrec.fanout %x_fanout to %tag : (!u3, !tag) -> !t3
    %t_fanout_far = genrec.tanh %y_fanout_far : !t3
    %m_fanout_far = genrec.mul %t_fanout_far, %tag_g : (!t3, !t) -> !t3
    %l_fanout_far = genrec.row_reduce sum %m_fanout_far : (!t3) -> !t
    genrec.loss "fanout_far" %l_fanout_far : !t

    %x_pool_sum = genrec.lookup %history_id in @pool_sum : (!hi) -> !h3
    %y_pool_sum = genrec.pool sum %x_pool_sum to %user : (!h3, !user) -> !u3
    %t_pool_sum = genrec.tanh %y_pool_sum : !u3
    %m_pool_sum = genrec.mul %t_pool_sum, %user_g : (!u3, !u) -> !u3
    %l_pool_sum = genrec.row_reduce sum %m_pool_sum : (!u3) -> !u
    genrec.loss "pool_sum" %l_pool_sum : !u

    %x_pool_mean = genrec.lookup %history_id in @pool_mean : (!hi) -> !h3
    %y_pool_mean = genrec.pool mean %x_pool_mean to %user : (!h3, !user) -> !u3
    %t_pool_mean = genrec.tanh %y_pool_mean : !u3
    %m_pool_mean = genrec.mul %t_pool_mean, %user_g : (!u3, !u) -> !u3
    %l_pool_mean = genrec.row_reduce sum %m_pool_mean : (!u3) -> !u
    genrec.loss "pool_mean" %l_pool_mean : !u

    %x_pool_max = genrec.lookup %history_id in @pool_max : (!hi) -> !h3
    %y_pool_max = genrec.pool max %x_pool_max to %user : (!h3, !user) -> !u3
    %t_pool_max = genrec.tanh %y_pool_max : !u3
    %m_pool_max = genrec.mul %t_pool_max, %user_g : (!u3, !u) -> !u3
    %l_pool_max = genrec.row_reduce sum %m_pool_max : (!u3) -> !u
    genrec.loss "pool_max" %l_pool_max : !u

    %x_pool_first = genrec.lookup %history_id in @pool_first : (!hi) -> !h3
    %y_pool_first = genrec.pool first %x_pool_first to %user : (!h3, !user) -> !u3
    %t_pool_first = genrec.tanh %y_pool_first : !u3
    %m_pool_first = genrec.mul %t_pool_first, %user_g : (!u3, !u) -> !u3
    %l_pool_first = genrec.row_reduce sum %m_pool_first : (!u3) -> !u
    genrec.loss "pool_first" %l_pool_first : !u

    %x_pool_last = genrec.lookup %history_id in @pool_last : (!hi) -> !h3
    %y_pool_last = genrec.pool last %x_pool_last to %user : (!h3, !user) -> !u3
    %t_pool_last = genrec.tanh %y_pool_last : !u3
    %m_pool_last = genrec.mul %t_pool_last, %user_g : (!u3, !u) -> !u3
    %l_pool_last = genrec.row_reduce sum %m_pool_last : (!u3) -> !u
    genrec.loss "pool_last" %l_pool_last : !u

    %x_pool_far = genrec.lookup %tag_id in @pool_far : (!ti) -> !t3
    %y_pool_far = genrec.pool sum %x_pool_far to %user : (!t3, !user) -> !u3
    %t_pool_far = genrec.tanh %y_pool_far : !u3
    %m_pool_far = genrec.mul %t_pool_far, %user_g : (!u3, !u) -> !u3
    %l_pool_far = genrec.row_reduce sum %m_pool_far : (!u3) -> !u
    genrec.loss "pool_far" %l_pool_far : !u

    %x_lead = genrec.lookup %history_id in @lead : (!hi) -> !h3
    %y_lead, %valid_lead = genrec.lead %x_lead : (!h3) -> (!h3, !hb)
    %both_lead = genrec.mul %y_lead, %x_lead : (!h3, !h3) -> !h3
    %t_lead = genrec.tanh %both_lead : !h3
    %l_lead = genrec.row_reduce sum %t_lead : (!h3) -> !h
    genrec.loss "lead" %l_lead valid %valid_lead : !h, !hb

    %x_lag = genrec.lookup %history_id in @lag : (!hi) -> !h3
    %y_lag, %valid_lag = genrec.lag %x_lag {distance = 2} : (!h3) -> (!h3, !hb)
    %both_lag = genrec.mul %y_lag, %x_lag : (!h3, !h3) -> !h3
    %t_lag = genrec.tanh %both_lag : !h3
    %l_lag = genrec.row_reduce sum %t_lag : (!h3) -> !h
    genrec.loss "lag" %l_lag valid %valid_lag : !h, !hb
  }
}
