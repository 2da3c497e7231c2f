// RUN: genrec-opt %s --verify-roundtrip | FileCheck %s

!num = tensor<?xf32, #genrec.rows<@request>>
!num64 = tensor<?xf64, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!ids = tensor<?x3xi64, #genrec.rows<@request>>
!int = tensor<?xi32, #genrec.rows<@request>>
!flag = tensor<?xi1, #genrec.rows<@request>>
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>

// CHECK-LABEL: func @transforms
func.func @transforms(%text: !text, %id: !id, %ids: !ids, %num: !num64) {
  // CHECK: genrec.hash xxh3 %{{.*}} {bits = 20 : i64} : (tensor<?x!genrec.string
  %0 = genrec.hash xxh3 %text {bits = 20 : i64, seed = 0 : i64} : (!text) -> !id
  // CHECK: genrec.hash murmur3 %{{.*}} {bits = 63 : i64, seed = -1 : i64} : (tensor<?x3xi64
  %1 = genrec.hash murmur3 %ids {bits = 63 : i64, seed = -1 : i64} : (!ids) -> !ids
  // CHECK: genrec.mod %{{.*}} {divisor = 1 : i64}
  %2 = genrec.mod %ids {divisor = 1 : i64} : (!ids) -> !ids
  // CHECK: genrec.bucketize %{{.*}} {edges = array<f64: -1.000000e+00, 0x7FF0000000000000>}
  %3 = genrec.bucketize %num {edges = array<f64: -1.0, 0x7FF0000000000000>} : (!num64) -> !id
  // CHECK: genrec.cast %{{.*}} : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?xi1, #genrec.rows<@request>>
  %4 = genrec.cast %id : (!id) -> !flag
  return
}

// Rows and shared tensors; scalars of a row beside vectors, on either side.
// CHECK-LABEL: func @arithmetic
func.func @arithmetic(%num: !num, %vec: !vec, %int: !int, %flag: !flag, %shared: tensor<8xf32>,
                      %scalar: tensor<f32>, %matrix: tensor<4x8xf32>) {
  // CHECK: genrec.add %{{.*}}, %{{.*}} : (tensor<?xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?x8xf32
  %0 = genrec.add %num, %vec : (!num, !vec) -> !vec
  // CHECK: genrec.sub %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<?x8xf32
  %1 = genrec.sub %shared, %vec : (tensor<8xf32>, !vec) -> !vec
  // CHECK: genrec.mul %{{.*}}, %{{.*}} : (tensor<?xf32, #genrec.rows<@request>>, tensor<8xf32>) -> tensor<?x8xf32
  %2 = genrec.mul %num, %shared : (!num, tensor<8xf32>) -> !vec
  // CHECK: genrec.div %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = genrec.div %matrix, %scalar : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  // CHECK: genrec.maximum %{{.*}}, %{{.*}} : (tensor<?xi32
  %4 = genrec.maximum %int, %int : (!int, !int) -> !int
  %5 = genrec.minimum %scalar, %scalar : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: genrec.compare eq %{{.*}}, %{{.*}} : (tensor<?xi1
  %6 = genrec.compare eq %flag, %flag : (!flag, !flag) -> !flag
  // CHECK: genrec.compare lt %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<?xf32
  %7 = genrec.compare lt %shared, %num : (tensor<8xf32>, !num) -> tensor<?x8xi1, #genrec.rows<@request>>
  // CHECK: genrec.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?xi1
  %8 = genrec.select %flag, %shared, %scalar : (!flag, tensor<8xf32>, tensor<f32>) -> !vec
  // CHECK: genrec.gelu %{{.*}} : tensor<4x8xf32>
  %9 = genrec.gelu %matrix : tensor<4x8xf32>
  return
}

// CHECK-LABEL: func @columns
func.func @columns(%num: !num, %vec: !vec, %ids: !ids, %shared: tensor<8xf32>, %scalar: tensor<f32>) {
  // CHECK: genrec.row_reduce max %{{.*}} : (tensor<?x3xi64
  %0 = genrec.row_reduce max %ids : (!ids) -> !id
  // CHECK: genrec.row_reduce mean %{{.*}} : (tensor<8xf32>) -> tensor<f32>
  %1 = genrec.row_reduce mean %shared : (tensor<8xf32>) -> tensor<f32>
  // CHECK: genrec.concat_columns %{{.*}} : (tensor<?xf32, #genrec.rows<@request>>) -> tensor<?x1xf32
  %2 = genrec.concat_columns %num : (!num) -> tensor<?x1xf32, #genrec.rows<@request>>
  // CHECK: genrec.concat_columns %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %3 = genrec.concat_columns %shared, %scalar : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  // CHECK: genrec.slice_columns %{{.*}} from 4 : (tensor<8xf32>) -> tensor<4xf32>
  %4 = genrec.slice_columns %shared from 4 : (tensor<8xf32>) -> tensor<4xf32>
  // CHECK: genrec.layer_norm %{{.*}} {eps = 0.000000e+00 : f64}
  %5 = genrec.layer_norm %vec {eps = 0.0 : f64} : (!vec) -> !vec
  // CHECK: genrec.layer_norm %{{.*}} bias %{{.*}} {eps
  %6 = genrec.layer_norm %vec bias %shared {eps = 0.1 : f64} : (!vec, tensor<8xf32>) -> !vec
  // CHECK: genrec.layer_norm %{{.*}} scale %{{.*}} bias %{{.*}} {eps
  %7 = genrec.layer_norm %vec scale %shared bias %shared {eps = 0.1 : f64}
      : (!vec, tensor<8xf32>, tensor<8xf32>) -> !vec
  // CHECK: genrec.rms_norm %{{.*}} scale %{{.*}} {eps
  %8 = genrec.rms_norm %vec scale %shared {eps = 0.1 : f64} : (!vec, tensor<8xf32>) -> !vec
  // CHECK: genrec.l2_normalize %{{.*}} {eps = {{9.9+[0-9]*E-7}} : f64}
  %9 = genrec.l2_normalize %vec {eps = 1.0e-6 : f64} : (!vec) -> !vec
  // CHECK: genrec.dropout %{{.*}} {rate = 0.000000e+00 : f64, stream = 0 : i64} : (tensor<?xf32
  %10 = genrec.dropout %num {rate = 0.0 : f64, stream = 0 : i64} : (!num) -> !num
  // CHECK: genrec.pad_columns %{{.*}} at 2 : (tensor<8xf32>) -> tensor<10xf32>
  %11 = genrec.pad_columns %shared at 2 : (tensor<8xf32>) -> tensor<10xf32>
  return
}

// CHECK-LABEL: func @dense
func.func @dense(%vec: !vec, %vec4: !vec4, %weight: tensor<8x4xf32>, %bias: tensor<8xf32>) {
  // CHECK: genrec.linear %{{.*}}, %{{.*}} : (tensor<?x8xf32
  %0 = genrec.linear %vec, %weight : (!vec, tensor<8x4xf32>) -> !vec4
  // CHECK: genrec.linear %{{.*}}, %{{.*}} bias %{{.*}} {transposed}
  %1 = genrec.linear %vec4, %weight bias %bias {transposed} : (!vec4, tensor<8x4xf32>, tensor<8xf32>) -> !vec
  // CHECK: genrec.weight_gradient %{{.*}}, %{{.*}} : {{.*}} -> tensor<4x8xf32>
  %2 = genrec.weight_gradient %vec4, %vec : (!vec4, !vec) -> tensor<4x8xf32>
  // CHECK: genrec.reduce_rows %{{.*}} : {{.*}} -> tensor<8xf32>
  %3 = genrec.reduce_rows %vec : (!vec) -> tensor<8xf32>
  return
}
