// RUN: not genrec-compile %s --emit=cpp -o - 2>&1 | FileCheck %s
// REQUIRES: genrec-compile

// An op without a C++ form in a kernel is an error at the user's line, not bad code.
genrec.model @m {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%x) attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: f32):
      // CHECK: model.py:9: error: failed to legalize operation 'math.cbrt'
      %root = math.cbrt %v : f32 loc("model.py":9:1)
      genrec.row_yield %root : f32
    }
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@user>>
  }
}
