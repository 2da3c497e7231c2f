// A model at the level of row kernels, with locations as a front end gives them.
genrec.model @m {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "amount" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>> loc("amount"("model.py":6:3))
    %y = genrec.row_kernel %user(%x) attributes {genrec.ops = "mul, exp", name = "score", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: f32):
      %square = arith.mulf %v, %v : f32 loc("scaled"("model.py":7:3))
      %e = math.exp %square : f32 loc("score"("model.py":8:3))
      genrec.row_yield %e : f32
    } loc(fused["scaled"("model.py":7:3), "score"("model.py":8:3)])
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@user>>
  }
}
