// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of losses over labels and classes.

// A logit is a float per row.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id, %y: !id) {
  // expected-error@+1 {{'genrec.bce_with_logits' op 'logit' must be rows of a domain, [] x f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.bce_with_logits %x, %y : (!id, !id) -> !id
  return
}

// -----

// Logit and label have one domain.
!num = tensor<?xf32, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%x: !num, %y: !enum) {
  // expected-error@+1 {{'genrec.bce_with_logits' op mixes rows of @request and @event: 'logit' has rows of @request, [] x f32 and 'label' has rows of @event, [] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.bce_with_logits %x, %y : (!num, !enum) -> !num
  return
}

// -----

// Logit and label have one type.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num, %y: !id) {
  // expected-error@+1 {{'genrec.bce_with_logits' op 'label' must be rows of @request, [] x f32 (the type of 'logit'), but is rows of @request, [] x i64}}
  %0 = genrec.bce_with_logits %x, %y : (!num, !id) -> !num
  return
}

// -----

// bce_with_logits gives a loss per row.
!num = tensor<?xf32, #genrec.rows<@request>>
!scalar = tensor<f32>
func.func @test(%x: !num, %y: !num) {
  // expected-error@+1 {{'genrec.bce_with_logits' op 'result' must be rows of @request, [] x f32 (a loss per row), but is shared [] x f32}}
  %0 = genrec.bce_with_logits %x, %y : (!num, !num) -> !scalar
  return
}

// -----

// Logits are a vector per row.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num, %y: !id) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy' op 'logits' must be rows of a domain, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.softmax_cross_entropy %x, %y : (!num, !id) -> !num
  return
}

// -----

// Logits and class have one domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !eid) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy' op mixes rows of @request and @event: 'logits' has rows of @request, [8] x f32 and 'label' has rows of @event, [] x i64; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.softmax_cross_entropy %x, %y : (!vec, !eid) -> !num
  return
}

// -----

// A class is an i64 per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !num) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy' op 'label' must be rows of @request, [] x i64 (a class per row), but is rows of @request, [] x f32}}
  %0 = genrec.softmax_cross_entropy %x, %y : (!vec, !num) -> !num
  return
}

// -----

// softmax_cross_entropy gives a loss per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !id) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy' op 'result' must be rows of @request, [] x f32 (a loss per row), but is rows of @request, [8] x f32}}
  %0 = genrec.softmax_cross_entropy %x, %y : (!vec, !id) -> !vec
  return
}

// -----

// The gradient follows the rules of the loss.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !num, %g: !num) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy_grad' op 'label' must be rows of @request, [] x i64 (a class per row), but is rows of @request, [] x f32}}
  %0 = genrec.softmax_cross_entropy_grad %x, %y, %g : (!vec, !num, !num) -> !vec
  return
}

// -----

// The gradient has rows of the logits.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%x: !vec, %y: !id, %g: !enum) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy_grad' op mixes rows of @request and @event: 'logits' has rows of @request, [8] x f32 and 'gradient' has rows of @event, [] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.softmax_cross_entropy_grad %x, %y, %g : (!vec, !id, !enum) -> !vec
  return
}

// -----

// The gradient is a number per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !id) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy_grad' op 'gradient' must be rows of @request, [] x f32, but is rows of @request, [8] x f32}}
  %0 = genrec.softmax_cross_entropy_grad %x, %y, %x : (!vec, !id, !vec) -> !vec
  return
}

// -----

// The gradient has the type of the logits.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !id, %g: !num) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy_grad' op 'result' must be rows of @request, [8] x f32 (the type of 'logits'), but is rows of @request, [] x f32}}
  %0 = genrec.softmax_cross_entropy_grad %x, %y, %g : (!vec, !id, !num) -> !num
  return
}

// -----

// The gradient of a block of classes knows what all classes add up to.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%l: !vec, %c: !id, %g: !num) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy_grad' op has classes from 'first' = 8 on, a block of all, and needs 'log_sum_exp'}}
  %0 = genrec.softmax_cross_entropy_grad %l, %c, %g {first = 8 : i64} : (!vec, !id, !num) -> !vec
  return
}

// -----

!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%l: !vec, %c: !id, %g: !num) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy_grad' op 'log_sum_exp' must be rows of @request, [] x f32 (the type of 'gradient'), but is rows of @request, [8] x f32}}
  %0 = genrec.softmax_cross_entropy_grad %l, %c, %g log_sum_exp %l : (!vec, !id, !num, !vec) -> !vec
  return
}

// -----

// Smoothing leaves the label something.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !id) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy' op 'label_smoothing' must be in [0, 1), but is 1}}
  %0 = genrec.softmax_cross_entropy %x, %y {label_smoothing = 1.0 : f64} : (!vec, !id) -> !num
  return
}

// -----

// A block of classes is not smoothed.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !id, %g: !num) {
  // expected-error@+1 {{'genrec.softmax_cross_entropy_grad' op has a block of the classes ('log_sum_exp'), whose number of all classes 'label_smoothing' needs to know}}
  %0 = genrec.softmax_cross_entropy_grad %x, %y, %g log_sum_exp %g {label_smoothing = 0.1 : f64} : (!vec, !id, !num, !num) -> !vec
  return
}
