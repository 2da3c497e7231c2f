// RUN: genrec-compile %s --emit=cpp -o - | FileCheck %s
// REQUIRES: genrec-compile

// Values of one name are numbered within what they can be seen in: names of a loop are free again behind it.

// CHECK-LABEL: static void row_score(
// CHECK:       alignas(64) float t[4];
// CHECK:         for (int64_t i = 0; i < 4; ++i) {
// CHECK-NEXT:      float t_2 = kernels::exp(amount_row[i]);
// CHECK-NEXT:      float t_3 = t_2 * t_2;
// CHECK-NEXT:      t[i] = t_3 * t_3;
// CHECK-NEXT:    }
// CHECK-NEXT:    float t_2 = kernels::rowSum<4>(t) + 0.0f;
// CHECK-NEXT:    float t_3 = kernels::exp(t_2);
// CHECK-NEXT:    for (int64_t i = 0; i < 4; ++i) {
// CHECK-NEXT:      float t_4 = kernels::exp(amount_row[i] * t_2);
// CHECK-NEXT:      to[i] = t_4 * t_4;

genrec.model @m {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "amount" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>> loc("amount"("model.py":6:3))
    %y, %z = genrec.row_kernel %user(%x) attributes {name = "score", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>, #genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> (tensor<?xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) {
    ^bb0(%v: vector<4xf32>):
      %a = math.exp %v : vector<4xf32> loc("t")
      %b = arith.mulf %a, %a : vector<4xf32> loc("t")
      %c = arith.mulf %b, %b : vector<4xf32> loc("t")
      %zero = arith.constant 0.0 : f32
      %s = vector.reduction <add>, %c, %zero : vector<4xf32> into f32 loc("t")
      %wide = vector.broadcast %s : f32 to vector<4xf32>
      %d = arith.mulf %v, %wide : vector<4xf32> loc("t")
      %e = math.exp %d : vector<4xf32> loc("t")
      %f = arith.mulf %e, %e : vector<4xf32> loc("t")
      %g = math.exp %s : f32 loc("t")
      %h = arith.mulf %g, %g : f32
      genrec.row_yield %h, %f : f32, vector<4xf32>
    }
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@user>>
    genrec.output "z" %z : tensor<?x4xf32, #genrec.rows<@user>>
  }
}
