// Losses per row, over a catalogue, with weights, masks and scales.
// RUN: genrec-run %s --check-gradients --random=1 --steps=4 --rows=6 | FileCheck %s
// CHECK-COUNT-4: gradients agree

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!movies = !genrec.domain<@movies>
!s = tensor<f32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u1 = tensor<?x1xf32, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!ub = tensor<?xi1, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h4 = tensor<?x4xf32, #genrec.rows<@history>>
!h8 = tensor<?x8xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!hb = tensor<?xi1, #genrec.rows<@history>>
!m4 = tensor<?x4xf32, #genrec.rows<@movies>>
!mi = tensor<?xi64, #genrec.rows<@movies>>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 0.01}>

genrec.model @gradients_losses {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @movies kind catalogue
  genrec.table @query dim 4 {init = #init, optimizer = #sgd}
  genrec.table @item dim 4 {init = #init, optimizer = #sgd}
  genrec.parameter @bce_weight : tensor<4x1xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @classes : tensor<4x3xf32> {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %movies = genrec.catalogue : !movies
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %listed = genrec.feature %movies "movie" : (!movies) -> !mi
    %query = genrec.lookup %movie in @query : (!hi) -> !h4
    %items = genrec.lookup %listed in @item : (!mi) -> !m4
    %next, %has_next = genrec.lead %movie : (!hi) -> (!hi, !hb)
    %positive = genrec.resolve %next valid %has_next in %listed : (!hi, !hb, !mi) -> !hi
    %nothing = genrec.constant dense<-1.0> : !s

    // Six items and eight draws: accidental hits and repeated negatives occur.
    %sampled = genrec.sampled_softmax %query, %positive, %items {negatives = 8, temperature = 0.5, stream = 256} : (!h4, !hi, !m4) -> !h
    genrec.loss "sampled" %sampled valid %has_next : !h, !hb

    %shared = genrec.sampled_softmax %query, %positive, %items {negatives = 8, shared, temperature = 2.0, stream = 512} : (!h4, !hi, !m4) -> !h
    genrec.loss "shared" %shared valid %has_next : !h, !hb

    // Two columns lie past the catalogue's end; a row without next movie has label -1, so loss 0.
    %scores = genrec.scores %query, %items : (!h4, !m4) -> !h8
    %full = genrec.softmax_cross_entropy %scores, %positive : (!h8, !hi) -> !h
    genrec.loss "full" %full {scale = 0.5} : !h

    %label = genrec.feature %user "label" : (!user) -> !u
    %weight = genrec.feature %user "weight" : (!user) -> !u
    %pooled = genrec.pool mean %query to %user : (!h4, !user) -> !u4
    %w = genrec.param @bce_weight : tensor<4x1xf32>
    %logits = genrec.linear %pooled, %w : (!u4, tensor<4x1xf32>) -> !u1
    %logit = genrec.row_reduce sum %logits : (!u1) -> !u
    %bce = genrec.bce_with_logits %logit, %label : (!u, !u) -> !u
    genrec.loss "bce" %bce weight %weight {scale = 2.0} : !u, !u

    %class = genrec.feature %user "class" : (!user) -> !ui
    %c = genrec.param @classes : tensor<4x3xf32>
    %class_logits = genrec.linear %pooled, %c : (!u4, tensor<4x3xf32>) -> !u3
    %cross = genrec.softmax_cross_entropy %class_logits, %class : (!u3, !ui) -> !u
    genrec.loss "classes" %cross weight %weight : !u, !u

    %smooth = genrec.softmax_cross_entropy %class_logits, %class {label_smoothing = 0.2 : f64} : (!u3, !ui) -> !u
    genrec.loss "smooth" %smooth weight %weight : !u, !u

    // A loss that nothing has weight in is 0.
    %never = genrec.compare lt %label, %nothing : (!u, !s) -> !ub
    genrec.loss "none" %cross valid %never : !u, !ub
  }
}
