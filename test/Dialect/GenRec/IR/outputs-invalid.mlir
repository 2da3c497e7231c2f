// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of losses, metrics and outputs.

// A loss has a name.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.loss' op 'name' must not be empty}}
  genrec.loss "" %x : !num
  return
}

// -----

// A loss is a number per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.loss' op 'x' must be rows of a domain, [] x f32 (a loss per row), but is rows of @request, [8] x f32}}
  genrec.loss "a" %x : !vec
  return
}

// -----

// Weights have rows of the loss.
!num = tensor<?xf32, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%x: !num, %w: !enum) {
  // expected-error@+1 {{'genrec.loss' op mixes rows of @request and @event: 'x' has rows of @request, [] x f32 and 'weight' has rows of @event, [] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  genrec.loss "a" %x weight %w : !num, !enum
  return
}

// -----

// Weights are f32.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num, %w: !id) {
  // expected-error@+1 {{'genrec.loss' op 'weight' must be rows of @request, [] x f32, but is rows of @request, [] x i64}}
  genrec.loss "a" %x weight %w : !num, !id
  return
}

// -----

// valid has rows of the loss.
!num = tensor<?xf32, #genrec.rows<@request>>
!eflag = tensor<?xi1, #genrec.rows<@event>>
func.func @test(%x: !num, %w: !eflag) {
  // expected-error@+1 {{'genrec.loss' op mixes rows of @request and @event: 'x' has rows of @request, [] x f32 and 'valid' has rows of @event, [] x i1; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  genrec.loss "a" %x valid %w : !num, !eflag
  return
}

// -----

// valid is i1.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.loss' op 'valid' must be rows of @request, [] x i1, but is rows of @request, [] x f32}}
  genrec.loss "a" %x valid %x : !num, !num
  return
}

// -----

// The scale of a loss is finite.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.loss' op 'scale' must be finite, but is nan}}
  genrec.loss "a" %x {scale = 0x7FF8000000000000 : f64} : !num
  return
}

// -----

// A reported loss has a name.
!scalar = tensor<f32>
func.func @test(%x: !scalar) {
  // expected-error@+1 {{'genrec.report_loss' op 'name' must not be empty}}
  genrec.report_loss "" %x, %x : !scalar, !scalar
  return
}

// -----

// A reported sum is a scalar.
!scalar = tensor<f32>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !scalar, %y: !num) {
  // expected-error@+1 {{'genrec.report_loss' op 'sum' must be shared [] x f32, but is rows of @request, [] x f32}}
  genrec.report_loss "a" %y, %x : !num, !scalar
  return
}

// -----

// A reported weight is a scalar.
!scalar = tensor<f32>
!shared8 = tensor<8xf32>
func.func @test(%x: !scalar, %y: !shared8) {
  // expected-error@+1 {{'genrec.report_loss' op 'weight' must be shared [] x f32, but is shared [8] x f32}}
  genrec.report_loss "a" %x, %y : !scalar, !shared8
  return
}

// -----

// The scale of a reported loss is finite.
!scalar = tensor<f32>
func.func @test(%x: !scalar) {
  // expected-error@+1 {{'genrec.report_loss' op 'scale' must be finite, but is inf}}
  genrec.report_loss "a" %x, %x {scale = 0x7FF0000000000000 : f64} : !scalar, !scalar
  return
}

// -----

// A metric has a name.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.metric' op 'name' must not be empty}}
  genrec.metric ranking "" %x : !id
  return
}

// -----

// A rank is an i64.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.metric' op 'x' must be rows of a domain, [] x i64 (a rank per row), but is rows of @request, [] x f32}}
  genrec.metric ranking "a" %x : !num
  return
}

// -----

// A score is an f32.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !id, %y: !num) {
  // expected-error@+1 {{'genrec.metric' op 'x' must be rows of a domain, [] x f32 (a score per row), but is rows of @request, [] x i64}}
  genrec.metric auc "a" %x label %y : !id, !num
  return
}

// -----

// Ranks have no label.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !id, %y: !num) {
  // expected-error@+1 {{'genrec.metric' op of kind ranking takes no 'label'}}
  genrec.metric ranking "a" %x label %y : !id, !num
  return
}

// -----

// Scores have a label.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.metric' op of kind auc needs 'label'}}
  genrec.metric auc "a" %x : !num
  return
}

// -----

// auc has no cut-offs.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num, %y: !num) {
  // expected-error@+1 {{'genrec.metric' op of kind auc has no cut-offs, but has 'at'}}
  genrec.metric auc "a" %x label %y {at = array<i64: 10>} : !num, !num
  return
}

// -----

// Cut-offs ascend.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.metric' op 'at' must be positive and ascend, but has 5 after 10}}
  genrec.metric ranking "a" %x {at = array<i64: 10, 5>} : !id
  return
}

// -----

// Cut-offs are positive.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.metric' op 'at' must be positive and ascend, but has 0 after 0}}
  genrec.metric ranking "a" %x {at = array<i64: 0>} : !id
  return
}

// -----

// Labels have rows of the scores.
!num = tensor<?xf32, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%x: !num, %y: !enum) {
  // expected-error@+1 {{'genrec.metric' op mixes rows of @request and @event: 'x' has rows of @request, [] x f32 and 'label' has rows of @event, [] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  genrec.metric auc "a" %x label %y : !num, !enum
  return
}

// -----

// Labels are f32.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num, %y: !id) {
  // expected-error@+1 {{'genrec.metric' op 'label' must be rows of @request, [] x f32, but is rows of @request, [] x i64}}
  genrec.metric auc "a" %x label %y : !num, !id
  return
}

// -----

// valid of a metric is i1.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.metric' op 'valid' must be rows of @request, [] x i1, but is rows of @request, [] x i64}}
  genrec.metric ranking "a" %x valid %x : !id, !id
  return
}

// -----

// An output has a name.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.output' op 'name' must not be empty}}
  genrec.output "" %x : !id
  return
}

// -----

// An output has rows.
!shared8 = tensor<8xf32>
func.func @test(%x: !shared8) {
  // expected-error@+1 {{'genrec.output' op 'x' must be rows of a domain, but is shared [8] x f32}}
  genrec.output "a" %x : !shared8
  return
}

// -----

// gauc has groups.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.metric' op of kind gauc needs 'key', whose rows form a group}}
  genrec.metric gauc "a" %x label %x : !num, !num
  return
}

// -----

// Other kinds have none.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num, %k: !id) {
  // expected-error@+1 {{'genrec.metric' op of kind ne takes no 'key', which is for gauc}}
  genrec.metric ne "a" %x label %x key %k : !num, !num, !id
  return
}

// -----

// Keys are ids.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.metric' op 'key' must be rows of @request, [] x i64, but is rows of @request, [] x f32}}
  genrec.metric gauc "a" %x label %x key %x : !num, !num, !num
  return
}

// -----

// Errors have predictions.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !id, %y: !num) {
  // expected-error@+1 {{'genrec.metric' op 'x' must be rows of a domain, [] x f32 (a prediction per row), but is rows of @request, [] x i64}}
  genrec.metric rmse "a" %x label %y : !id, !num
  return
}

// -----

// Errors need labels.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.metric' op of kind mae needs 'label'}}
  genrec.metric mae "a" %x : !num
  return
}

// -----

// Lists are ranked.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.metric' op of kind auc measures rows, but has 'per_list'}}
  genrec.metric auc "a" %x label %x {per_list} : !num, !num
  return
}

// -----

// Weights are f32.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num, %w: !id) {
  // expected-error@+1 {{'genrec.metric' op 'weight' must be rows of @request, [] x f32, but is rows of @request, [] x i64}}
  genrec.metric auc "a" %x label %x weight %w : !num, !num, !id
  return
}

// -----

// Rows of a root are no lists.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.metric' op 'x' must have rows of lists, but @request has no parent}}
    genrec.metric ranking "a" %x {per_list} : !id
  }
}

// -----

// Weights of lists belong to their parents.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!eid = tensor<?xi64, #genrec.rows<@event>>
!enum = tensor<?xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %x = genrec.feature %e "x" : (!event) -> !eid
    %w = genrec.feature %e "w" : (!event) -> !enum
    // expected-error@+1 {{'genrec.metric' op 'weight' must have rows of @request, whose lists are measured, but has rows of @event}}
    genrec.metric ranking "a" %x weight %w {per_list} : !eid, !enum
  }
}

// -----

// Nulls are told per row or per element.
!vec = tensor<?x8xi64, #genrec.rows<@request>>
!flags = tensor<?x4xi1, #genrec.rows<@request>>
func.func @test(%x: !vec, %v: !flags) {
  // expected-error@+1 {{'genrec.output' op 'valid' must be rows of @request, [8] x i1 (a flag per row or per element of 'x'), but is rows of @request, [4] x i1}}
  genrec.output "a" %x valid %v : !vec, !flags
  return
}

// -----

// A range says what it is about.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.require_range' op 'what' must not be empty}}
  genrec.require_range "" %x {min = 0.0 : f64, max = 1.0 : f64} : !num
  return
}

// -----

// Flags lie in no range.
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !flag) {
  // expected-error@+1 {{'genrec.require_range' op 'x' must be rows of a domain, [] x i32, i64, f32 or f64 (a number per row), but is rows of @request, [] x i1}}
  genrec.require_range "the label" %x {min = 0.0 : f64, max = 1.0 : f64} : !flag
  return
}

// -----

// A range is not empty.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.require_range' op 'min' must not be above 'max', but they are 1.000000e+00 and 0.000000e+00}}
  genrec.require_range "the label" %x {min = 1.0 : f64, max = 0.0 : f64} : !num
  return
}

// -----

// Items are those of a catalogue.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  // expected-note@+1 {{domain declared here}}
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.require_range' op 'items' must be of a domain of kind catalogue, but @request is of kind data}}
    genrec.require_range "the label" %x items %x {min = 0.0 : f64, max = 1.0 : f64} : !id, !id
  }
}

// -----

// Scores are ranked in lists.
!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !num
    // expected-error@+1 {{'genrec.rank_in_list' op 'score' must have rows of lists, but @request has no parent}}
    %0 = genrec.rank_in_list %x, %x : (!num, !num) -> !id
  }
}

// -----

// Labels are as scores are.
!enum = tensor<?xf32, #genrec.rows<@event>>
!eid = tensor<?xi64, #genrec.rows<@event>>
func.func @test(%x: !enum, %y: !eid) {
  // expected-error@+1 {{'genrec.rank_in_list' op 'label' must be rows of @event, [] x f32 (the type of 'score'), but is rows of @event, [] x i64}}
  %0 = genrec.rank_in_list %x, %y : (!enum, !eid) -> !eid
  return
}
