// RUN: genrec-opt %s --genrec-verify-ownership --split-input-file --verify-diagnostics
// RUN: genrec-opt %S/fuse-transforms.mlir --genrec-graph-pipeline --genrec-pass-statistics --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// Twice, before and after factor-lookups.
// COUNT: genrec-verify-ownership columns: 34
// COUNT: genrec-verify-ownership tables: 24
// COUNT: genrec-verify-ownership updates: 4

// A table with two owners.

genrec.model @owners {
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-note @below {{the first is here}}
  genrec.table @one dim 4 {id_bits = 63 : i64, members = [@a], init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error @below {{'genrec.table' op is a second owner of table 'a'}}
  genrec.table @two dim 4 {id_bits = 63 : i64, members = [@a], init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A column that is read in two ways.

genrec.model @column {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    // expected-note @below {{the first is here}}
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    // expected-error @below {{'genrec.feature' op reads column 'a' in another way than the program has read it}}
    %b = genrec.feature %user "a" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    genrec.output "a" %a : tensor<?xf32, #genrec.rows<@user>>
    genrec.output "b" %b : tensor<?xi64, #genrec.rows<@user>>
  }
}

// -----

// A member that is looked up beside its owner.

!ids = tensor<?xi64, #genrec.rows<@user>>
genrec.model @beside {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @all dim 4 {id_bits = 63 : i64, members = [@a], init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    // expected-error @below {{'genrec.table_rows' op finds rows of table 'a' apart, but 'all' owns them}}
    %r = genrec.table_rows %i in @a : (!ids) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
  }
}

// -----

// Ids where keys are wanted.

!ids = tensor<?xi64, #genrec.rows<@user>>
genrec.model @raw {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @all dim 4 {id_bits = 63 : i64, members = [@a], init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    // expected-error @below {{'genrec.table_rows' op finds rows of table 'all' by ids that are no keys of it}}
    %r = genrec.table_rows %i in @all : (!ids) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
  }
}

// -----

// Fused keys whose tag no member owns: the bits of the table are lost.

!ids = tensor<?xi64, #genrec.rows<@user>>
!keys = tensor<?xi64, #genrec.rows<@keys>>
genrec.model @tag {
  genrec.domain @user
  genrec.domain @keys kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @all dim 4 {id_bits = 63 : i64, members = [@a, @b], init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %stack = genrec.stack_domains %user : (!genrec.domain<@user>) -> !genrec.domain<@keys>
    // expected-error @below {{'genrec.transform_columns' op column 0 has the tag 4611686018427387904, which no member of 'all' owns}}
    %k = genrec.transform_columns (%i) into (%stack) {programs = array<i64: 0>} : (!ids, !genrec.domain<@keys>) -> !keys {
    ^bb0(%id: i64):
      %tag = arith.constant 4611686018427387904 : i64
      %key = arith.ori %id, %tag : i64
      genrec.row_yield %key : i64
    }
    %r = genrec.table_rows %k in @all : (!keys) -> tensor<?x!genrec.row<4>, #genrec.rows<@keys>>
  }
}

// -----

// Fused keys without the number of a table.

!ids = tensor<?xi64, #genrec.rows<@user>>
!keys = tensor<?xi64, #genrec.rows<@keys>>
genrec.model @tagless {
  genrec.domain @user
  genrec.domain @keys kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @all dim 4 {id_bits = 63 : i64, members = [@a], init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %stack = genrec.stack_domains %user : (!genrec.domain<@user>) -> !genrec.domain<@keys>
    // expected-error @below {{'genrec.transform_columns' op column 0 yields keys without the number of a member of 'all'}}
    %k = genrec.transform_columns (%i) into (%stack) {programs = array<i64: 0>} : (!ids, !genrec.domain<@keys>) -> !keys {
    ^bb0(%id: i64):
      genrec.row_yield %id : i64
    }
    %r = genrec.table_rows %k in @all : (!keys) -> tensor<?x!genrec.row<4>, #genrec.rows<@keys>>
  }
}

// -----

// Two updates of one table, and rows of two tables in one update.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
genrec.model @twice {
  genrec.domain @user
  genrec.domain @t kind step
  genrec.domain @s kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %v = genrec.param @v : tensor<4xf32>
    %g = genrec.mul %f, %v : (tensor<?xf32, #genrec.rows<@user>>, tensor<4xf32>) -> !x
    %r = genrec.table_rows %i in @a : (!ids) -> !r
    // expected-note @below {{the first is here}}
    %d, %h = genrec.unique_rows (%r) by (%g) : (!r, !x) -> (!genrec.domain<@t>, tensor<?x!genrec.row<4>, #genrec.rows<@t>>)
    // expected-error @below {{'genrec.unique_rows' op is a second update of table 'a'}}
    %e, %k = genrec.unique_rows (%r) by (%g) : (!r, !x) -> (!genrec.domain<@s>, tensor<?x!genrec.row<4>, #genrec.rows<@s>>)
  }
}

// -----

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
genrec.model @doubled {
  genrec.domain @user
  genrec.domain @t kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %v = genrec.param @v : tensor<4xf32>
    %g = genrec.mul %f, %v : (tensor<?xf32, #genrec.rows<@user>>, tensor<4xf32>) -> !x
    %r = genrec.table_rows %i in @a : (!ids) -> !r
    // expected-error @below {{'genrec.unique_rows' op counts the gradients of rows 1 twice}}
    %d, %h = genrec.unique_rows (%r, %r) by (%g, %g) : (!r, !r, !x, !x) -> (!genrec.domain<@t>, tensor<?x!genrec.row<4>, #genrec.rows<@t>>)
  }
}

// -----

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
genrec.model @mixed {
  genrec.domain @user
  genrec.domain @t kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %v = genrec.param @v : tensor<4xf32>
    %g = genrec.mul %f, %v : (tensor<?xf32, #genrec.rows<@user>>, tensor<4xf32>) -> !x
    %r = genrec.table_rows %i in @a : (!ids) -> !r
    %q = genrec.table_rows %i in @b : (!ids) -> !r
    // expected-error @below {{'genrec.unique_rows' op mixes rows of several tables: rows 1 are not of the table of rows 0}}
    %d, %h = genrec.unique_rows (%r, %q) by (%g, %g) : (!r, !r, !x, !x) -> (!genrec.domain<@t>, tensor<?x!genrec.row<4>, #genrec.rows<@t>>)
  }
}

// -----

// Rows that are stored through handles of every lookup.

!ids = tensor<?xi64, #genrec.rows<@user>>
genrec.model @stores {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %r = genrec.table_rows %i in @a : (!ids) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
    genrec.row_kernel %user(%r) attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = []}
        : (!genrec.domain<@user>, tensor<?x!genrec.row<4>, #genrec.rows<@user>>) -> () {
    ^bb0(%row: !genrec.row<4>):
      %x = genrec.row_load %row : (!genrec.row<4>) -> vector<4xf32>
      // expected-error @below {{'genrec.row_store' op stores through handles that may repeat or belong to another rank; a row is updated once in a step, through those that unique_rows or collect_rows gives}}
      genrec.row_store %x to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
  }
}

// -----

// Distinct rows that nobody updates.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
genrec.model @kept {
  genrec.domain @user
  genrec.domain @t kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %v = genrec.param @v : tensor<4xf32>
    %g = genrec.mul %f, %v : (tensor<?xf32, #genrec.rows<@user>>, tensor<4xf32>) -> !x
    %r = genrec.table_rows %i in @a : (!ids) -> !r
    // expected-error @below {{'genrec.unique_rows' op finds the rows of @a that a step has touched, but no kernel updates them}}
    %d, %h = genrec.unique_rows (%r) by (%g) : (!r, !x) -> (!genrec.domain<@t>, tensor<?x!genrec.row<4>, #genrec.rows<@t>>)
  }
}

// -----

// Sums of other gradients: those of row 1 are counted twice, those of row 0 are lost.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
genrec.model @sums {
  genrec.domain @user
  genrec.domain @t kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !ids
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %v = genrec.param @v : tensor<4xf32>
    %g = genrec.mul %f, %v : (tensor<?xf32, #genrec.rows<@user>>, tensor<4xf32>) -> !x
    %n = genrec.neg %g : !x
    %r = genrec.table_rows %i in @a : (!ids) -> !r
    %q = genrec.table_rows %j in @a : (!ids) -> !r
    // expected-note @below {{the rows are here}}
    %d, %h = genrec.unique_rows (%r, %q) by (%g, %n) : (!r, !r, !x, !x) -> (!genrec.domain<@t>, tensor<?x!genrec.row<4>, #genrec.rows<@t>>)
    // expected-error @below {{'genrec.segment_sum' op adds up other gradients than those of the rows that it is of}}
    %s = genrec.segment_sum %d (%n, %n) : (!genrec.domain<@t>, !x, !x) -> tensor<?x4xf32, #genrec.rows<@t>>
  }
}

// -----

// A plan that no longer updates a table that a loss trains.

!ids = tensor<?xi64, #genrec.rows<@user>>
genrec.model @untrained {
  genrec.domain @user
  // expected-note @below {{the table is declared here}}
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error @below {{'genrec.program' op does not update table 'a', which a loss trains}}
  genrec.program @train mode train attributes {genrec.tables = [@a], genrec.trains = [@a]} {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %r = genrec.table_rows %i in @a : (!ids) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
  }
}

// -----

// A list of ids that is in neither the distinct rows nor their gradients, although a loss trains its rows.

!ids = tensor<?xi64, #genrec.rows<@user>>
!row = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
genrec.model @dropped {
  genrec.domain @user
  genrec.domain @touched kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train attributes {genrec.tables = [@a], genrec.trains = [@a, @a]} {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !ids
    %g = genrec.feature %user "g" : (!genrec.domain<@user>) -> !x
    %r = genrec.table_rows %i in @a : (!ids) -> !row
    %s = genrec.table_rows %j in @a : (!ids) -> !row
    // expected-error @below {{'genrec.unique_rows' op updates table @a, of whose lists of ids the losses train 2, by 1 of them}}
    %touched, %handles = genrec.unique_rows(%r) by(%g) : (!row, !x) -> (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>)
    %sum = genrec.segment_sum %touched (%g) : (!genrec.domain<@touched>, !x) -> tensor<?x4xf32, #genrec.rows<@touched>>
    genrec.row_kernel %touched(%handles, %sum) attributes {operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []}
        : (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>, tensor<?x4xf32, #genrec.rows<@touched>>) -> () {
    ^bb0(%row: !genrec.row<4>, %gradient: vector<4xf32>):
      genrec.row_store %gradient to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
  }
}

// -----

// A column that got the tag of another member: the rows of table 'b' have no owner here.

!ids = tensor<?xi64, #genrec.rows<@user>>
!keys = tensor<?xi64, #genrec.rows<@keys>>
genrec.model @retagged {
  genrec.domain @user
  genrec.domain @keys kind step
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-note @below {{the table is declared here}}
  genrec.table @b dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @all dim 4 {id_bits = 63 : i64, members = [@a, @b], init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error @below {{'genrec.program' op does not read rows of table 'b', which the model reads here}}
  genrec.program @predict mode predict attributes {genrec.tables = [@b]} {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %stack = genrec.stack_domains %user : (!genrec.domain<@user>) -> !genrec.domain<@keys>
    %k = genrec.transform_columns (%i) into (%stack) {programs = array<i64: 0>} : (!ids, !genrec.domain<@keys>) -> !keys {
    ^bb0(%id: i64):
      %tag = arith.constant 0 : i64
      %key = arith.ori %id, %tag : i64
      genrec.row_yield %key : i64
    }
    %r = genrec.table_rows %k in @all : (!keys) -> tensor<?x!genrec.row<4>, #genrec.rows<@keys>>
  }
}

// -----

// A column in place of another.

genrec.model @replaced {
  genrec.domain @user
  // expected-error @below {{'genrec.program' op does not read column 'user: age', which the model reads here}}
  genrec.program @predict mode predict attributes {genrec.columns = ["user: age"]} {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "size" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.output "age" %i : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

// Distributed programs: a sum over portions that is missing.

!s = tensor<?xf32, #genrec.rows<@user>>
genrec.model @missing_sum {
  genrec.domain @user
  genrec.parameter @p : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !s
    %sum = genrec.reduce_rows %x : (!s) -> tensor<f32>
    %given = genrec.contribute 0(%sum) : tensor<f32>
    %all = genrec.collect 0(%given) : tensor<f32>
    // expected-error @below {{'genrec.exp' op reads operand 0 of one portion, but depends on its sum over all portions}}
    %exp = genrec.exp %sum : tensor<f32>
    %both = genrec.add %exp, %all : (tensor<f32>, tensor<f32>) -> tensor<f32>
    genrec.update_parameter @p by %both : tensor<f32>
  }
}

// -----

// A sum that is there twice: all portions have the first one already.

!s = tensor<?xf32, #genrec.rows<@user>>
genrec.model @doubled_sum {
  genrec.domain @user
  genrec.parameter @p : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !s
    %sum = genrec.reduce_rows %x : (!s) -> tensor<f32>
    %given = genrec.contribute 0(%sum) : tensor<f32>
    %all = genrec.collect 0(%given) : tensor<f32>
    // expected-error @below {{'genrec.contribute' op adds up value 0, of which all portions have the same}}
    %again = genrec.contribute 1(%all) : tensor<f32>
    %twice = genrec.collect 1(%again) : tensor<f32>
    genrec.update_parameter @p by %twice : tensor<f32>
  }
}

// -----

// A term that every portion adds although all have the same.

!s = tensor<?xf32, #genrec.rows<@user>>
genrec.model @added_per_portion {
  genrec.domain @user
  genrec.parameter @p : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !s
    %p = genrec.param @p : tensor<f32>
    %sum = genrec.reduce_rows %x : (!s) -> tensor<f32>
    // expected-error @below {{'genrec.add' op adds operand 1 once per portion, although all portions have the same}}
    %more = genrec.add %sum, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %given = genrec.contribute 0(%more) : tensor<f32>
    %all = genrec.collect 0(%given) : tensor<f32>
    genrec.update_parameter @p by %all : tensor<f32>
  }
}

// -----

// An update through the copies of rows that a portion has: the owner would not see it.

!x = tensor<?x4xf32, #genrec.rows<@user>>
!handles = tensor<?x!genrec.row<4>, #genrec.rows<@touched>>
!sums = tensor<?x4xf32, #genrec.rows<@touched>>
genrec.model @copies {
  genrec.domain @user
  genrec.domain @touched kind step
  genrec.domain @owned kind step
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %rows = genrec.table_rows %ids in @item : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
    %g = genrec.feature %user "g" : (!genrec.domain<@user>) -> !x
    // expected-error @below {{'genrec.unique_rows' op finds the rows of @item that a step has touched, but no kernel updates them}}
    %touched, %distinct = genrec.unique_rows (%rows) by (%g) : (tensor<?x!genrec.row<4>, #genrec.rows<@user>>, !x) -> (!genrec.domain<@touched>, !handles)
    %sum = genrec.segment_sum %touched(%g) : (!genrec.domain<@touched>, !x) -> !sums
    %given = genrec.contribute_rows %touched(%distinct, %sum) in @item : (!genrec.domain<@touched>, !handles, !sums) -> !sums
    %owned, %own, %all = genrec.collect_rows %touched(%distinct, %given) in @item : (!genrec.domain<@touched>, !handles, !sums) -> (!genrec.domain<@owned>, tensor<?x!genrec.row<4>, #genrec.rows<@owned>>, tensor<?x4xf32, #genrec.rows<@owned>>)
    genrec.row_kernel %touched(%distinct, %sum) attributes {name = "update_item", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@touched>, !handles, !sums) -> () {
    ^bb0(%row: !genrec.row<4>, %gradient: vector<4xf32>):
      genrec.row_store %gradient to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
  }
}
