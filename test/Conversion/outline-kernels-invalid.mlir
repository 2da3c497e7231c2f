// RUN: genrec-opt %s --genrec-outline-kernels -split-input-file -verify-diagnostics

genrec.model @m {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<4xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<4xf32>, !genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %y = genrec.row_kernel %user(%x) attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<4xf32>):
      // expected-error @below {{'vector.shuffle' op has no form as a loop over the elements of a row}}
      %turned = vector.shuffle %v, %v [3, 2, 1, 0] : vector<4xf32>, vector<4xf32>
      genrec.row_yield %turned : vector<4xf32>
    }
    genrec.output "y" %y : tensor<?x4xf32, #genrec.rows<@user>>
  }
}
