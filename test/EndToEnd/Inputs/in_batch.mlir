// Two towers whose negatives are the items of other rows, once with nulls, frequencies and weights and once in lists of which
// some are long; ids that several rows have.
!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!s = tensor<f32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u8 = tensor<?x8xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!ub = tensor<?xi1, #genrec.rows<@user>>
!h2 = tensor<?x2xf32, #genrec.rows<@history>>
!h16 = tensor<?x16xf32, #genrec.rows<@history>>
!h8 = tensor<?x8xf32, #genrec.rows<@history>>
!h = tensor<?xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!hb = tensor<?xi1, #genrec.rows<@history>>
#init = #genrec.init<normal, 0.5>
#adagrad = #genrec.optimizer<adagrad, {lr = 0.1}>
genrec.model @in_batch {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.table @person dim 8 {init = #init, optimizer = #adagrad}
  genrec.table @item dim 16 {init = #init, optimizer = #adagrad}
  genrec.parameter @tower : tensor<16x8xf32> {init = #init, optimizer = #adagrad}
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %person = genrec.feature %user "person" : (!user) -> !ui
    %target = genrec.feature %user "target" : (!user) -> !ui
    %often = genrec.feature %user "often" : (!user) -> !u
    %weight = genrec.feature %user "weight" : (!user) -> !u
    %zero = genrec.constant dense<0.0> : !s
    %one = genrec.constant dense<1.0> : !s
    %counted = genrec.compare lt %often, %one : (!u, !s) -> !ub
    %some = genrec.mod %target {divisor = 7 : i64} : (!ui) -> !ui
    %query = genrec.lookup %person in @person : (!ui) -> !u8
    %w = genrec.param @tower : tensor<16x8xf32>
    %row = genrec.lookup %some in @item : (!ui) -> tensor<?x16xf32, #genrec.rows<@user>>
    %item = genrec.linear %row, %w : (tensor<?x16xf32, #genrec.rows<@user>>, tensor<16x8xf32>) -> !u8
    %loss, %kept = genrec.in_batch_softmax %query, %item, %some log_q %often valid %counted {temperature = 0.5 : f64}
        : (!u8, !u8, !ui, !u, !ub) -> (!u, !u2)
    genrec.loss "next" %loss weight %weight valid %counted : !u, !u, !ub
    genrec.output "loss" %loss : !u

    // Query and item are halves of one row, which are read in place.
    %seen = genrec.feature %history "history.item" : (!history) -> !hi
    %both = genrec.lookup %seen in @item : (!hi) -> !h16
    %left = genrec.slice_columns %both from 0 : (!h16) -> !h8
    %right = genrec.slice_columns %both from 8 : (!h16) -> !h8
    %ofitems, %kept1 = genrec.in_batch_softmax %left, %right, %seen {temperature = 2.0 : f64} : (!h8, !h8, !hi) -> (!h, !h2)
    genrec.loss "listed" %ofitems {scale = 0.5} : !h
  }
}
