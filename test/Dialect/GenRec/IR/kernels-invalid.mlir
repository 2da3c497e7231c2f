// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of row kernels.

// There is a role per input.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op needs an operand role per input, 1, but has 0}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [], result_roles = [#genrec<result_role aligned>]}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// There is a role per result.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op needs a result role per result, 1, but has 0}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = []}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// There is a kind per pooled result.
!event = !genrec.domain<@event>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !event, %x: !evec) {
  // expected-error@+1 {{'genrec.row_kernel' op needs a pool kind per pooled result, 1, but has 0}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role pooled>]}
      : (!event, !evec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// Kinds are for pooled results.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op needs a pool kind per pooled result, 0, but has 1}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>], pool_kinds = [#genrec<pool_kind sum>]}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// An aligned input has rows of the kernel.
!request = !genrec.domain<@request>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !evec) {
  // expected-error@+1 {{'genrec.row_kernel' op 'input 0' has role aligned, so it must be rows of @request, but is rows of @event, [8] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !evec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// An untruncated input has rows of the list that the domain was truncated from.
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
!vec = tensor<?x8xf32, #genrec.rows<@recent>>
func.func @test(%e: !event, %x: !vec) {
  %d = genrec.truncate %e {count = 1 : i64} : (!event) -> !recent
  // expected-error@+1 {{'genrec.row_kernel' op 'input 0' has role untruncated, so it must be rows of the list that @recent was truncated from, but is rows of @recent, [8] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role untruncated>], result_roles = [#genrec<result_role aligned>]}
      : (!recent, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// An ancestor input has rows of another domain.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op 'input 0' has role ancestor, so it must be rows of an ancestor of @request, but is rows of @request, [8] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role ancestor>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// A shared input has no rows.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op 'input 0' has role shared, so it must be shared, of rank 0 or 1, but is rows of @request, [8] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role shared>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// A shared input is at most a vector.
!request = !genrec.domain<@request>
!mat = tensor<8x4xf32>
func.func @test(%d: !request, %x: !mat) {
  // expected-error@+1 {{'genrec.row_kernel' op 'input 0' has role shared, so it must be shared, of rank 0 or 1, but is shared [8, 4] x f32}}
  genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role shared>], result_roles = []}
      : (!request, !mat) -> () {
  ^bb0(%a: vector<8x4xf32>):
    genrec.row_yield
  }
  return
}

// -----

// A source has rows.
!request = !genrec.domain<@request>
!scalar = tensor<f32>
func.func @test(%d: !request, %x: !scalar) {
  // expected-error@+1 {{'genrec.row_kernel' op 'input 0' has role source, so it must be rows, or shared of rank 1 or 2, but is shared [] x f32}}
  genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role source>], result_roles = []}
      : (!request, !scalar) -> () {
  ^bb0(%a: tensor<f32>):
    genrec.row_yield
  }
  return
}

// -----

// An aligned result has rows of the kernel.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op 'result 0' has role aligned, so it must be rows of @request, but is rows of @event, [8] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !vec) -> (!evec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// A pooled result has rows of another domain.
!event = !genrec.domain<@event>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%d: !event, %x: !evec) {
  // expected-error@+1 {{'genrec.row_kernel' op 'result 0' has role pooled, so it must be rows of an ancestor of @event, but is rows of @event, [8] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role pooled>], pool_kinds = [#genrec<pool_kind sum>]}
      : (!event, !evec) -> (!evec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// A reduced result is shared.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op 'result 0' has role reduced, so it must be a shared tensor of numbers, but is rows of @request, [8] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role reduced>]}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>, %b: !genrec.accumulator<!vec>):
    genrec.row_yield
  }
  return
}

// -----

// A scattered result is not of the kernel's rows.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op 'result 0' has role scattered, so it must be numbers, rows of another domain or shared of rank 1 or 2, but is rows of @request, [8] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role scattered>]}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>, %b: !genrec.accumulator<!vec>):
    genrec.row_yield
  }
  return
}

// -----

// A scattered result has rows.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!scalar = tensor<f32>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op 'result 0' has role scattered, so it must be numbers, rows of another domain or shared of rank 1 or 2, but is shared [] x f32}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role scattered>]}
      : (!request, !vec) -> (!scalar) {
  ^bb0(%a: vector<8xf32>, %b: !genrec.accumulator<!scalar>):
    genrec.row_yield
  }
  return
}

// -----

// There is a block argument per input.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op needs a block argument per input and one per reduced or scattered result, 2, but has 1}}
  %0 = genrec.row_kernel %d(%x, %x) attributes {
      operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !vec, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// There is a block argument per accumulated result.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op needs a block argument per input and one per reduced or scattered result, 2, but has 1}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role reduced>]}
      : (!request, !vec) -> (!shared8) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield
  }
  return
}

// -----

// An input is a scalar or vector in the body.
!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !num) {
  // expected-error@+1 {{'genrec.row_kernel' op block argument 0 stands for 'input 0', so it must be f32, but is vector<8xf32>}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !num) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// A source stays a tensor.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op block argument 0 stands for 'input 0', so it must be tensor<?x8xf32, #genrec.rows<@request>>, but is vector<8xf32>}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role source>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// An accumulated result is an accumulator in the body.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op block argument 1 stands for 'result 0', so it must be !genrec.accumulator<tensor<8xf32>>, but is !genrec.accumulator<tensor<4xf32>>}}
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role reduced>]}
      : (!request, !vec) -> (!shared8) {
  ^bb0(%a: vector<8xf32>, %b: !genrec.accumulator<tensor<4xf32>>):
    genrec.row_yield
  }
  return
}

// -----

// There is a yielded value per aligned or pooled result.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !vec) -> (!vec) {
  ^bb0(%a: vector<8xf32>):
    // expected-error@+1 {{'genrec.row_yield' op needs a value per aligned or pooled result, 1, but has 0}}
    genrec.row_yield
  }
  return
}

// -----

// A yielded value has the shape of a row.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !vec) -> (!num) {
  ^bb0(%a: vector<8xf32>):
    // expected-error@+1 {{'genrec.row_yield' op value 0 is for 'result 0', so it must be f32, but is vector<8xf32>}}
    genrec.row_yield %a : vector<8xf32>
  }
  return
}

// -----

// The body holds no model ops.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op holds ops of arith, math, vector and genrec's body ops only, but has 'genrec.neg'}}
  genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role source>], result_roles = []}
      : (!request, !vec) -> () {
  ^bb0(%a: !vec):
    %n = genrec.neg %a : !vec
    genrec.row_yield
  }
  return
}

// -----

// The body ends with a yield.
!request = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !vec) {
  // expected-error@+1 {{'genrec.row_kernel' op must end with genrec.row_yield}}
  genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = []}
      : (!request, !vec) -> () {
  ^bb0(%a: vector<8xf32>):
    vector.yield
  }
  return
}

// -----

// A yield ends a kernel.
func.func @test() {
  // expected-error@+1 {{'genrec.row_yield' op expects parent op to be one of 'genrec.row_kernel, genrec.transform_columns'}}
  "genrec.row_yield"() : () -> ()
}

// -----

// An ancestor lies above the kernel's rows.
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @other parent @request {column = "o"}
  genrec.program @main {
    %o, %e = genrec.batch : !genrec.domain<@other>, !event
    %x = genrec.feature %o "x" : (!genrec.domain<@other>) -> tensor<?xf32, #genrec.rows<@other>>
    // expected-error@+1 {{'genrec.row_kernel' op 'input 0' has role ancestor, but its domain @other does not lie above @event}}
    %0 = genrec.row_kernel %e(%x) attributes {
        operand_roles = [#genrec<operand_role ancestor>], result_roles = [#genrec<result_role aligned>]} : (!event, tensor<?xf32, #genrec.rows<@other>>) -> !enum {
    ^bb0(%a: f32):
      genrec.row_yield %a : f32
    }
  }
}

// -----

// A sum is pooled into an ancestor.
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @other parent @request {column = "o"}
  genrec.program @main {
    %o, %e = genrec.batch : !genrec.domain<@other>, !event
    %x = genrec.feature %e "x" : (!event) -> !enum
    // expected-error@+1 {{'genrec.row_kernel' op pools by sum into an ancestor of @event, which @other is not}}
    %0 = genrec.row_kernel %e(%x) attributes {
        operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role pooled>], pool_kinds = [#genrec<pool_kind sum>]} : (!event, !enum) -> tensor<?xf32, #genrec.rows<@other>> {
    ^bb0(%a: f32):
      genrec.row_yield %a : f32
    }
  }
}

// -----

// Other kinds are pooled into the parent.
!request = !genrec.domain<@request>
!tag = !genrec.domain<@tag>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.program @main {
    %r, %t = genrec.batch : !request, !tag
    %x = genrec.feature %t "x" : (!tag) -> tensor<?xf32, #genrec.rows<@tag>>
    // expected-error@+1 {{'genrec.row_kernel' op pools by last into the parent of @tag, which @request is not}}
    %0 = genrec.row_kernel %t(%x) attributes {
        operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role pooled>], pool_kinds = [#genrec<pool_kind last>]}
        : (!tag, tensor<?xf32, #genrec.rows<@tag>>) -> !num {
    ^bb0(%a: f32):
      genrec.row_yield %a : f32
    }
  }
}
