// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// What a product with bf16 may be of.

genrec.model @weight {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf64, #genrec.rows<@user>>
    // expected-error@+1 {{'genrec.weight_gradient' op with 'bf16' has factors and results of f32, but got rows of @user, [4] x f64}}
    %y = genrec.weight_gradient %x, %x {bf16} : (tensor<?x4xf64, #genrec.rows<@user>>, tensor<?x4xf64, #genrec.rows<@user>>) -> tensor<4x4xf64>
  }
}

// -----

genrec.model @attention {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.program @main {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %x = genrec.feature %list "list.x" : (!genrec.domain<@list>) -> tensor<?x4xf64, #genrec.rows<@list>>
    // expected-error@+1 {{'genrec.attention' op with 'bf16' has factors and results of f32, but got rows of @list, [4] x f64}}
    %y = genrec.attention softmax %x, %x, %x {heads = 1 : i64, bf16}
        : (tensor<?x4xf64, #genrec.rows<@list>>, tensor<?x4xf64, #genrec.rows<@list>>, tensor<?x4xf64, #genrec.rows<@list>>) -> tensor<?x4xf64, #genrec.rows<@list>>
  }
}
