// The row kernel that holds the examples of body ops, to be put into example-context.mlir.
genrec.row_kernel %request(%user_vector, %user, %age, %name, %user_rows, %hot_rows, %best, %best_score, %scale, %item_vectors, %item_ids, %edges)
    attributes {
      operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>, #genrec<operand_role aligned>,
                       #genrec<operand_role aligned>, #genrec<operand_role aligned>, #genrec<operand_role aligned>,
                       #genrec<operand_role aligned>, #genrec<operand_role aligned>, #genrec<operand_role shared>, #genrec<operand_role source>,
                       #genrec<operand_role source>, #genrec<operand_role source>],
      result_roles = [#genrec<result_role reduced>, #genrec<result_role scattered>]}
    : (!genrec.domain<@request>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>,
       tensor<?xf32, #genrec.rows<@request>>, tensor<?x!genrec.string, #genrec.rows<@request>>,
       tensor<?x!genrec.row<8>, #genrec.rows<@request>>, tensor<?x!genrec.row<8, bf16, hot>, #genrec.rows<@request>>, tensor<?x4xi64, #genrec.rows<@request>>,
       tensor<?x4xf32, #genrec.rows<@request>>, tensor<8xf32>, tensor<?x8xf32, #genrec.rows<@items>>,
       tensor<?xi64, #genrec.rows<@items>>, tensor<3xf64>)
    -> (tensor<8xf32>, tensor<?x8xf32, #genrec.rows<@items>>) {
^bb0(%x: vector<8xf32>, %id: i64, %s: f32, %text: !genrec.string, %row: !genrec.row<8>, %hot_row: !genrec.row<8, bf16, hot>, %index: vector<4xi64>,
     %coefficient: vector<4xf32>, %shared: vector<8xf32>, %source: tensor<?x8xf32, #genrec.rows<@items>>,
     %ids: tensor<?xi64, #genrec.rows<@items>>, %bounds: tensor<3xf64>, %sum: !genrec.accumulator<tensor<8xf32>>,
     %rows: !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>):
  // example: body
  genrec.row_yield
}
