// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// What `contribute` gives, only its `collect` may read.

genrec.model @read_before {
  genrec.program @train mode train {
    %x = genrec.constant dense<1.0> : tensor<f32>
    // expected-error @below {{'genrec.contribute' op gives values to sums, which only 'genrec.collect' 0 may read}}
    %given = genrec.contribute 0(%x) : tensor<f32>
    %y = genrec.neg %given : tensor<f32>
  }
}

// -----

genrec.model @other_number {
  genrec.program @train mode train {
    %x = genrec.constant dense<1.0> : tensor<f32>
    // expected-error @below {{'genrec.contribute' op gives values to sums, which only 'genrec.collect' 0 may read}}
    %given = genrec.contribute 0(%x) : tensor<f32>
    %y = genrec.collect 1(%given) : tensor<f32>
  }
}

// -----

genrec.model @not_given {
  genrec.program @train mode train {
    %x = genrec.constant dense<1.0> : tensor<f32>
    // expected-error @below {{'genrec.collect' op must read the results of 'genrec.contribute' 0}}
    %y = genrec.collect 0(%x) : tensor<f32>
  }
}

// -----

genrec.model @integers {
  genrec.program @train mode train {
    %x = genrec.constant dense<1> : tensor<i64>
    // expected-error @below {{'genrec.contribute' op value 0 must be f32, but is shared [] x i64}}
    %given = genrec.contribute 0(%x) : tensor<i64>
  }
}

// -----

genrec.model @nothing {
  genrec.program @train mode train {
    // expected-error @below {{'genrec.contribute' op needs at least one value}}
    "genrec.contribute"() <{number = 0 : i64}> : () -> ()
  }
}

// -----

// Rows come from unique_rows, with a sum of their width.

genrec.model @of_data {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %g = genrec.feature %user "g" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %rows = genrec.table_rows %ids in @item : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
    // expected-error @below {{'genrec.contribute_rows' op needs the domain of a 'genrec.unique_rows'}}
    %given = genrec.contribute_rows %user(%rows, %g) in @item : (!genrec.domain<@user>, tensor<?x!genrec.row<4>, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
  }
}

// -----

genrec.model @other_rows {
  genrec.domain @user
  genrec.domain @touched kind step
  genrec.domain @owned kind step
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @other dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %g = genrec.feature %user "g" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %rows = genrec.table_rows %ids in @item : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
    %touched, %distinct = genrec.unique_rows (%rows) by (%g) : (tensor<?x!genrec.row<4>, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>)
    %sum = genrec.segment_sum %touched(%g) : (!genrec.domain<@touched>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@touched>>
    %given = genrec.contribute_rows %touched(%distinct, %sum) in @item : (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>, tensor<?x4xf32, #genrec.rows<@touched>>) -> tensor<?x4xf32, #genrec.rows<@touched>>
    // expected-error @below {{'genrec.collect_rows' op must read a 'genrec.contribute_rows' of the same domain, rows and table}}
    %owned, %own, %sums = genrec.collect_rows %touched(%distinct, %given) in @other : (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>, tensor<?x4xf32, #genrec.rows<@touched>>) -> (!genrec.domain<@owned>, tensor<?x!genrec.row<4>, #genrec.rows<@owned>>, tensor<?x4xf32, #genrec.rows<@owned>>)
  }
}

// -----

genrec.model @exact_vectors {
  genrec.domain @user
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %g = genrec.feature %user "g" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    // expected-error @below {{'genrec.exact_sum' op}}
    %sum = genrec.exact_sum %g : (tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<4xf32>
  }
}
