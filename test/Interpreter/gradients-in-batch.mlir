// In-batch softmax: ids that several rows have, nulls, frequencies, rows of lists, weights.
// RUN: genrec-run %s --check-gradients --random=1 --steps=4 --rows=6 | FileCheck %s
// CHECK-COUNT-4: gradients agree

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h2 = tensor<?x2xf32, #genrec.rows<@history>>
!h4 = tensor<?x4xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!hb = tensor<?xi1, #genrec.rows<@history>>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 0.01}>

genrec.model @gradients_in_batch {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.table @query dim 4 {init = #init, optimizer = #sgd}
  genrec.table @item dim 4 {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %next, %has_next = genrec.lead %movie : (!hi) -> (!hi, !hb)
    %some = genrec.mod %next {divisor = 5 : i64} : (!hi) -> !hi
    %often = genrec.feature %history "history.often" : (!history) -> !h
    %query = genrec.lookup %movie in @query : (!hi) -> !h4
    %item = genrec.lookup %next valid %has_next in @item : (!hi, !hb) -> !h4
    %listed, %kept = genrec.in_batch_softmax %query, %item, %some log_q %often valid %has_next {temperature = 0.7 : f64}
        : (!h4, !h4, !hi, !h, !hb) -> (!h, !h2)
    genrec.loss "listed" %listed valid %has_next : !h, !hb

    // Queries that are items, too; a row is not sampled against its like.
    %person = genrec.feature %user "person" : (!user) -> !ui
    %weight = genrec.feature %user "weight" : (!user) -> !u
    %own = genrec.lookup %person in @query : (!ui) -> !u4
    %alike, %kept1 = genrec.in_batch_softmax %own, %own, %person {temperature = 1.5 : f64} : (!u4, !u4, !ui) -> (!u, !u2)
    genrec.loss "alike" %alike weight %weight {scale = 0.5} : !u, !u
  }
}
