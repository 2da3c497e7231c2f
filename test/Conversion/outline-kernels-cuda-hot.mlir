// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s

// Rows of a table with hot rows. Whoever only reads values reads upper halves, by packs of four. An update joins and splits
// both halves by packs, of two: states begin behind the address of the lower halves.
!rows = tensor<?x!genrec.row<64, bf16, hot>, #genrec.rows<@user>>
genrec.model @hot {
  genrec.domain @user
  genrec.table @item dim 64 {element = #genrec<row_element bf16>, hot_after = 3 : i64, init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.program @main mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %rows = genrec.table_rows %i in @item : (tensor<?xi64, #genrec.rows<@user>>) -> !rows
    %sum = genrec.row_kernel %user(%rows) attributes {name = "read", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, !rows) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%row: !genrec.row<64, bf16, hot>):
      %value = genrec.row_load %row : (!genrec.row<64, bf16, hot>) -> vector<64xf32>
      %total = vector.reduction <add>, %value : vector<64xf32> into f32
      genrec.row_yield %total : f32
    }
    genrec.row_kernel %user(%rows) attributes {name = "update", operand_roles = [#genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@user>, !rows) -> () {
    ^bb0(%row: !genrec.row<64, bf16, hot>):
      %value = genrec.row_load %row {whole} : (!genrec.row<64, bf16, hot>) -> vector<64xf32>
      %state = genrec.row_load %row {slot = 1 : i64} : (!genrec.row<64, bf16, hot>) -> vector<64xf32>
      %new = arith.subf %value, %state : vector<64xf32>
      genrec.row_store %new to %row : vector<64xf32>, !genrec.row<64, bf16, hot>
      genrec.row_yield
    }
    genrec.loss "sum" %sum : tensor<?xf32, #genrec.rows<@user>>
  }
}

// CHECK-LABEL: emitc.func @row_read
// CHECK-NOT: kernels::lowerHalves
// CHECK: call_opaque "kernels::loadPack"{{.*}}template_args = [4]
// CHECK: call_opaque "kernels::widened"
// CHECK: emitc.global @row_read_mapping {{.*}}<"lanes" = 4 : i64, "sharedBytes" = 0 : i64

// CHECK-LABEL: emitc.func @row_update
// CHECK: %[[LOWER:.*]] = call_opaque "kernels::lowerHalves"
// CHECK: %[[HOT:.*]] = call_opaque "kernels::isHot"
// CHECK: call_opaque "kernels::loadPack"{{.*}}template_args = [2]
// CHECK: call_opaque "kernels::loadPack"{{.*}}template_args = [2]
// CHECK: call_opaque "kernels::joined"
// CHECK: call_opaque "kernels::lowerHalf"
// CHECK: call_opaque "kernels::upperHalf"
// CHECK: call_opaque "kernels::storePack"{{.*}}template_args = [2]
// CHECK: call_opaque "kernels::storePack"{{.*}}template_args = [2]
