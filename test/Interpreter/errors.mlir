// What the data can do wrong ends in a message at the op.
// RUN: not genrec-run %s --split-input-file --batch=%S/Inputs/one.json 2>&1 | FileCheck %s

!user = !genrec.domain<@user>
!i = tensor<?xi64, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u = tensor<?xf32, #genrec.rows<@user>>
genrec.model @range {
  genrec.domain @user
  genrec.table @t dim 2 {id_bits = 2, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !user
    %id = genrec.feature %user "id" : (!user) -> !i
    // CHECK: errors.mlir:{{[0-9]+}} offset :15: error: 'lookup' has id 5, beyond the 2 bits of table @t
    %x = genrec.lookup %id in @t : (!i) -> !u2
    %s = genrec.row_reduce sum %x : (!u2) -> !u
    genrec.loss "l" %s : !u
  }
}

// -----

!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
genrec.model @bits {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !user
    // CHECK: error: 'feature' reads 5 in row 1 of column 'id', beyond its 2 bits
    %id = genrec.feature %user "id" {id_bits = 2} : (!user) -> tensor<?xi64, #genrec.rows<@user>>
    %x = genrec.cast %id : (tensor<?xi64, #genrec.rows<@user>>) -> !u
    genrec.loss "l" %x : !u
  }
}

// -----

!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
genrec.model @absent {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !user
    // CHECK: error: batch: row 0 of @user, column 'nowhere': no value
    %x = genrec.feature %user "nowhere" : (!user) -> !u
    genrec.loss "l" %x : !u
  }
}

// -----

!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
genrec.model @type {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !user
    // CHECK: error: batch: row 0 of @user, column 'x': the value is not of the feature's type
    %x = genrec.feature %user "x" : (!user) -> tensor<?x!genrec.string, #genrec.rows<@user>>
    %h = genrec.hash xxh3 %x {bits = 3} : (tensor<?x!genrec.string, #genrec.rows<@user>>) -> tensor<?xi64, #genrec.rows<@user>>
    %f = genrec.cast %h : (tensor<?xi64, #genrec.rows<@user>>) -> !u
    genrec.loss "l" %f : !u
  }
}

// -----

!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
genrec.model @list {
  genrec.domain @user
  genrec.domain @history parent @user {column = "id"}
  genrec.program @main {
    %user = genrec.batch : !user
    // CHECK: error: batch: row 0 of @user must have a list 'id'
    %x = genrec.feature %user "x" : (!user) -> !u
    genrec.loss "l" %x : !u
  }
}

// -----

!user = !genrec.domain<@user>
!i = tensor<?xi64, #genrec.rows<@user>>
!u = tensor<?xf32, #genrec.rows<@user>>
!b = tensor<?xi1, #genrec.rows<@user>>
genrec.model @label {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !user
    %id = genrec.feature %user "id" : (!user) -> !i
    %x = genrec.feature %user "x" : (!user) -> !u
    %two = genrec.constant dense<2.0> : tensor<f32>
    %small = genrec.compare lt %x, %two : (!u, tensor<f32>) -> !b
    // The row of 5 is not valid, and the one of weight 0 is not looked at.
    genrec.require_range "the class" %id weight %x valid %small {min = 3.0 : f64, max = 4.0 : f64} : !i, !u, !b
    // CHECK: error: 'require_range' is about the class, which must lie in 3 to 4, but is 5 in row 1
    genrec.require_range "the class" %id {min = 3.0 : f64, max = 4.0 : f64} : !i
    genrec.loss "l" %x : !u
  }
}

// -----

!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
genrec.model @weight {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !user
    %x = genrec.feature %user "x" : (!user) -> !u
    %negative = genrec.neg %x : !u
    // CHECK: error: 'loss' has a weight in row 1 that is negative or not finite
    genrec.loss "l" %x weight %negative : !u, !u
  }
}
