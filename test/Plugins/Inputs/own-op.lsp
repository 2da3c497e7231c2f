{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"processId":123,"rootPath":"mlir","capabilities":{},"trace":"off"}}
// -----
{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{
  "uri":"test:///wrong.mlir",
  "languageId":"mlir",
  "version":1,
  "text":"func.func @test(%x: tensor<4xf32>, %w: tensor<4x4xf32>) {\n  %0 = own.gated_cross %x, %x, %w, %x, %w : (tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>\n  return\n}"
}}}
// -----
{"jsonrpc":"2.0","id":2,"method":"shutdown"}
// -----
{"jsonrpc":"2.0","method":"exit"}
