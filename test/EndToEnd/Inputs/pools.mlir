// Pooled lists, for both targets: test_cuda_kernels.py. Every kind, vectors and scalars; lists of lists, with what lies
// between them. No kernel that pools into two domains, or adds up all rows besides, splits lists: form-row-kernels makes none.
!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!tag = !genrec.domain<@tag>
!u = tensor<?xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h5 = tensor<?x5xf32, #genrec.rows<@history>>
!u5 = tensor<?x5xf32, #genrec.rows<@user>>
!u50 = tensor<?x50xf32, #genrec.rows<@user>>
!t = tensor<?xf32, #genrec.rows<@tag>>
!ti = tensor<?xi64, #genrec.rows<@tag>>
!t5 = tensor<?x5xf32, #genrec.rows<@tag>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!s = tensor<f32>
!s5 = tensor<5xf32>
!s50 = tensor<50xf32>
#aligned = #genrec<operand_role aligned>
#ancestor = #genrec<operand_role ancestor>
#shared = #genrec<operand_role shared>
#pooled = #genrec<result_role pooled>
#written = #genrec<result_role aligned>
#sum = #genrec<pool_kind sum>

genrec.model @pools {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @tag parent @history {column = "history.tags"}
  genrec.program @train mode train {
    %user, %history, %tag = genrec.batch : !user, !history, !tag
    %scale = genrec.feature %user "scale" : (!user) -> !u
    %x = genrec.feature %history "history.x" : (!history) -> !h
    %k = genrec.feature %history "history.k" : (!history) -> !hi
    %y = genrec.feature %tag "history.tags.y" : (!tag) -> !t
    %j = genrec.feature %tag "history.tags.j" : (!tag) -> !ti
    %five = genrec.constant dense<[0.5, 2.0, -0.75, 1.5, 0.25]> : !s5
    %fifty = genrec.constant dense<0.75> : !s50

    // Vectors of one thread, beside each row's own result.
    %of5, %sum5, %mean5, %max5, %first5, %last5 = genrec.row_kernel %history(%x, %five, %scale)
        attributes {name = "vectors", operand_roles = [#aligned, #shared, #ancestor],
                    result_roles = [#written, #pooled, #pooled, #pooled, #pooled, #pooled],
                    pool_kinds = [#sum, #genrec<pool_kind mean>, #genrec<pool_kind max>, #genrec<pool_kind first>,
                                  #genrec<pool_kind last>]}
        : (!history, !h, !s5, !u) -> (!h5, !u5, !u5, !u5, !u5, !u5) {
    ^bb0(%one: f32, %by: vector<5xf32>, %above: f32):
      %ones = vector.broadcast %one : f32 to vector<5xf32>
      %off = vector.broadcast %above : f32 to vector<5xf32>
      %scaled = arith.mulf %ones, %by : vector<5xf32>
      %v = arith.addf %scaled, %off : vector<5xf32>
      genrec.row_yield %v, %v, %scaled, %v, %scaled, %v
          : vector<5xf32>, vector<5xf32>, vector<5xf32>, vector<5xf32>, vector<5xf32>, vector<5xf32>
    }
    // Vectors of several lanes, and scalars.
    %wide, %sum, %mean, %max, %first, %last, %count, %most = genrec.row_kernel %history(%x, %fifty, %k)
        attributes {name = "wide", operand_roles = [#aligned, #shared, #aligned],
                    result_roles = [#pooled, #pooled, #pooled, #pooled, #pooled, #pooled, #pooled, #pooled],
                    pool_kinds = [#sum, #sum, #genrec<pool_kind mean>, #genrec<pool_kind max>, #genrec<pool_kind first>,
                                  #genrec<pool_kind last>, #sum, #genrec<pool_kind max>]}
        : (!history, !h, !s50, !hi) -> (!u50, !u, !u, !u, !u, !u, !ui, !ui) {
    ^bb0(%one: f32, %by: vector<50xf32>, %n: i64):
      %ones = vector.broadcast %one : f32 to vector<50xf32>
      %v = arith.mulf %ones, %by : vector<50xf32>
      genrec.row_yield %v, %one, %one, %one, %one, %one, %n, %n : vector<50xf32>, f32, f32, f32, f32, f32, i64, i64
    }
    // Rows of lists of lists, with a value of the list between and one above.
    %deep, %deepSum = genrec.row_kernel %tag(%y, %five, %x, %scale)
        attributes {name = "deep", operand_roles = [#aligned, #shared, #ancestor, #ancestor],
                    result_roles = [#pooled, #pooled], pool_kinds = [#sum, #sum]}
        : (!tag, !t, !s5, !h, !u) -> (!u5, !u) {
    ^bb0(%one: f32, %by: vector<5xf32>, %between: f32, %above: f32):
      %both = arith.addf %between, %above : f32
      %all = arith.addf %one, %both : f32
      %ones = vector.broadcast %all : f32 to vector<5xf32>
      %v = arith.mulf %ones, %by : vector<5xf32>
      genrec.row_yield %v, %all : vector<5xf32>, f32
    }
    // Into two domains at once.
    %lower5, %upper5, %lower, %upper = genrec.row_kernel %tag(%y, %five)
        attributes {name = "levels", operand_roles = [#aligned, #shared],
                    result_roles = [#pooled, #pooled, #pooled, #pooled],
                    pool_kinds = [#genrec<pool_kind mean>, #sum, #sum, #sum]}
        : (!tag, !t, !s5) -> (!h5, !u5, !h, !u) {
    ^bb0(%one: f32, %by: vector<5xf32>):
      %ones = vector.broadcast %one : f32 to vector<5xf32>
      %v = arith.mulf %ones, %by : vector<5xf32>
      genrec.row_yield %v, %v, %one, %one : vector<5xf32>, vector<5xf32>, f32, f32
    }
    // And a sum over all rows.
    %pooled, %total = genrec.row_kernel %history(%x)
        attributes {name = "summed", operand_roles = [#aligned], result_roles = [#pooled, #genrec<result_role reduced>],
                    pool_kinds = [#sum]}
        : (!history, !h) -> (!u, !s) {
    ^bb0(%one: f32, %to: !genrec.accumulator<!s>):
      genrec.accumulate %one into %to : !genrec.accumulator<!s>, f32
      genrec.row_yield %one : f32
    }
    genrec.report_loss "none" %total, %total : !s, !s
  }
}
