// Every role of a row kernel's operands and results, the body ops, and rows that are updated in place.
// RUN: genrec-run %s --split-input-file --batch=%S/Inputs/kernel.json --print=parameters,tables,outputs | FileCheck %s

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!items = !genrec.domain<@items>
!u = tensor<?xf32, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h2 = tensor<?x2xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!hr = tensor<?x!genrec.row<2>, #genrec.rows<@history>>
!m = tensor<?xf32, #genrec.rows<@items>>
!s = tensor<f32>
!s2 = tensor<2xf32>
!s32 = tensor<3x2xf32>
#one = #genrec.init<constant, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 1.0}>

// Parameters of 1 show by their updates, at rate 1, what the kernel gives.
genrec.model @roles {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @items kind catalogue
  genrec.parameter @total : !s2 {init = #one, optimizer = #sgd}
  genrec.parameter @spread : !s32 {init = #one, optimizer = #sgd}
  genrec.parameter @gathered : !s {init = #one, optimizer = #sgd}
  genrec.program @train mode train {
    %user, %history = genrec.batch : !user, !history
    %items = genrec.catalogue : !items
    %scale = genrec.feature %user "scale" : (!user) -> !u
    %id = genrec.feature %history "history.id" : (!history) -> !hi
    %x = genrec.feature %history "history.x" : (!history) -> !h
    %v = genrec.feature %items "v" : (!items) -> !m
    %half = genrec.constant dense<[0.5, 2.0]> : !s2
    %aligned, %summed, %last, %total, %spread, %items_seen = genrec.row_kernel %history(%x, %scale, %half, %id, %v)
        attributes {operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role ancestor>, #genrec<operand_role shared>,
                                     #genrec<operand_role aligned>, #genrec<operand_role source>],
                    result_roles = [#genrec<result_role aligned>, #genrec<result_role pooled>, #genrec<result_role pooled>,
                                    #genrec<result_role reduced>, #genrec<result_role scattered>, #genrec<result_role scattered>],
                    pool_kinds = [#genrec<pool_kind sum>, #genrec<pool_kind last>]}
        : (!history, !h, !u, !s2, !hi, !m) -> (!h2, !u, !u, !s2, !s32, !m) {
    ^bb0(%one: f32, %above: f32, %factor: vector<2xf32>, %index: i64, %source: !m,
         %sum: !genrec.accumulator<!s2>, %rows: !genrec.accumulator<!s32>, %seen: !genrec.accumulator<!m>):
      %wide = vector.broadcast %one : f32 to vector<2xf32>
      %scaled = arith.mulf %wide, %factor : vector<2xf32>
      genrec.accumulate %scaled into %sum : !genrec.accumulator<!s2>, vector<2xf32>
      genrec.accumulate %scaled into %rows at %index : !genrec.accumulator<!s32>, vector<2xf32>, i64
      genrec.accumulate %one into %seen at %index {clamp} : !genrec.accumulator<!m>, f32, i64
      %found = genrec.row_gather %source[%index] : (!m, i64) -> f32
      %both = arith.addf %found, %above : f32
      genrec.row_yield %scaled, %both, %above : vector<2xf32>, f32, f32
    }
    %columns = genrec.reduce_rows %aligned : (!h2) -> !s2
    %difference = genrec.sub %columns, %total : (!s2, !s2) -> !s2
    %from_one = genrec.add %total, %difference : (!s2, !s2) -> !s2
    genrec.update_parameter @total by %from_one : !s2
    genrec.update_parameter @spread by %spread : !s32
    %of_users = genrec.reduce_rows %summed : (!u) -> !s
    %of_lasts = genrec.reduce_rows %last : (!u) -> !s
    %of_items = genrec.mul %items_seen, %v : (!m, !m) -> !m
    %of_seen = genrec.reduce_rows %of_items : (!m) -> !s
    %gathered = genrec.add %of_users, %of_lasts : (!s, !s) -> !s
    %all = genrec.add %gathered, %of_seen : (!s, !s) -> !s
    genrec.update_parameter @gathered by %all : !s
  }
}
// x is 1.5, -2 and 4; ids 2, 0 and none. Yielded to the users: 300 + 10 + 100 + 10 = 420, 0 and 0 + 30; lasts 10, 0
// and 30. Item row 0 sees -2 and, clamped, 4; row 2 sees 1.5: 2 * 100 + 1.5 * 300 = 650. All: 450 + 40 + 650.
// CHECK: gathered: [-1139]
// 1 minus (0.5 * (2, 6)) and so on: row 0 has x -2, row 2 has 1.5.
// CHECK: spread: [2, 5, 1, 1, 0.25, -2]
// CHECK: total: [-0.75, -6]

// -----

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!touched = !genrec.domain<@touched>
!hi = tensor<?xi64, #genrec.rows<@history>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h1 = tensor<?x1xf32, #genrec.rows<@history>>
!hb = tensor<?xi1, #genrec.rows<@history>>
!hr = tensor<?x!genrec.row<1>, #genrec.rows<@history>>
!t1 = tensor<?x1xf32, #genrec.rows<@touched>>
!tr = tensor<?x!genrec.row<1>, #genrec.rows<@touched>>
!pr = tensor<?x!genrec.row<3>, #genrec.rows<@lines>>
!s = tensor<i64>

// Rows of a table and of a parameter, changed through handles. The row without an id is no row.
genrec.model @handles {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @touched kind step
  genrec.domain @lines kind step
  genrec.table @item dim 1 {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<adagrad, {initial_accumulator = 0.25}>}
  genrec.parameter @matrix : tensor<2x3xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<adagrad, {}>}
  genrec.program @train mode train {
    %user, %history = genrec.batch : !user, !history
    %id = genrec.feature %history "history.id" : (!history) -> !hi
    %x = genrec.feature %history "history.x" : (!history) -> !h
    %zero = genrec.constant dense<0> : !s
    %valid = genrec.compare ge %id, %zero : (!hi, !s) -> !hb
    %g = genrec.concat_columns %x : (!h) -> !h1
    %rows = genrec.table_rows %id valid %valid in @item : (!hi, !hb) -> !hr
    %touched, %distinct = genrec.unique_rows (%rows, %rows) by(%g, %g) : (!hr, !hr, !h1, !h1) -> (!touched, !tr)
    %sums = genrec.segment_sum %touched(%g, %g) : (!touched, !h1, !h1) -> !t1
    genrec.row_kernel %touched(%distinct, %sums)
        attributes {operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []}
        : (!touched, !tr, !t1) -> () {
    ^bb0(%row: !genrec.row<1>, %sum: vector<1xf32>):
      %before = genrec.row_load %row : (!genrec.row<1>) -> vector<1xf32>
      %state = genrec.row_load %row {slot = 1} : (!genrec.row<1>) -> vector<1xf32>
      %after = arith.addf %before, %sum : vector<1xf32>
      genrec.row_store %after to %row : vector<1xf32>, !genrec.row<1>
      %twice = arith.addf %state, %state : vector<1xf32>
      genrec.row_store %twice to %row {slot = 1} : vector<1xf32>, !genrec.row<1>
      genrec.row_yield
    }
    %lines, %line = genrec.parameter_rows @matrix : () -> (!genrec.domain<@lines>, !pr)
    genrec.row_kernel %lines(%line) attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = []}
        : (!genrec.domain<@lines>, !pr) -> () {
    ^bb0(%row: !genrec.row<3>):
      %value = genrec.row_load %row : (!genrec.row<3>) -> vector<3xf32>
      %places = genrec.row_iota : vector<3xi64>
      %numbers = arith.sitofp %places : vector<3xi64> to vector<3xf32>
      %sum = arith.addf %value, %numbers : vector<3xf32>
      genrec.row_store %sum to %row : vector<3xf32>, !genrec.row<3>
      genrec.row_yield
    }
  }
}
// CHECK: matrix: [1, 2, 3, 1, 2, 3]
// CHECK: item:
// CHECK-NEXT: 0: [-3, 0.5]
// CHECK-NEXT: 2: [4, 0.5]
