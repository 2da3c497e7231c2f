// RUN: genrec-opt %s --verify-roundtrip | FileCheck %s

!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!flag = tensor<?xi1, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!pair = tensor<?x2xf32, #genrec.rows<@request>>
!items = tensor<?x8xf32, #genrec.rows<@items>>
!item_ids = tensor<?xi64, #genrec.rows<@items>>
!seen = tensor<?xi64, #genrec.rows<@event>>

// CHECK-LABEL: func @losses
func.func @losses(%id: !id, %num: !num, %vec: !vec, %items: !items, %double: tensor<?xf64, #genrec.rows<@request>>) {
  // CHECK: genrec.bce_with_logits %{{.*}}, %{{.*}} : (tensor<?xf64
  %0 = genrec.bce_with_logits %double, %double
      : (tensor<?xf64, #genrec.rows<@request>>, tensor<?xf64, #genrec.rows<@request>>) -> tensor<?xf64, #genrec.rows<@request>>
  // CHECK: genrec.softmax_cross_entropy %{{.*}}, %{{.*}} :
  %1 = genrec.softmax_cross_entropy %vec, %id : (!vec, !id) -> !num
  // CHECK: genrec.softmax_cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}} :
  %2 = genrec.softmax_cross_entropy_grad %vec, %id, %num : (!vec, !id, !num) -> !vec
  // CHECK: genrec.sampled_softmax %{{.*}}, %{{.*}}, %{{.*}} {negatives = 2 : i64, shared, stream = 3 : i64, temperature = 1.000000e+00 : f64}
  %3 = genrec.sampled_softmax %vec, %id, %items {negatives = 2 : i64, shared, temperature = 1.0 : f64, stream = 3 : i64}
      : (!vec, !id, !items) -> !num
  // CHECK: genrec.sampled_softmax_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {negatives = 2 : i64, stream
  %4:2 = genrec.sampled_softmax_grad %vec, %id, %items, %num {negatives = 2 : i64, temperature = 1.0 : f64, stream = 3 : i64}
      : (!vec, !id, !items, !num) -> (!vec, !items)
  return
}

// CHECK-LABEL: func @in_batch
func.func @in_batch(%id: !id, %num: !num, %flag: !flag, %vec: !vec) {
  // CHECK: genrec.in_batch_softmax %{{.*}}, %{{.*}}, %{{.*}} {temperature = 1.000000e+00 : f64}
  %0:2 = genrec.in_batch_softmax %vec, %vec, %id {temperature = 1.0 : f64} : (!vec, !vec, !id) -> (!num, !pair)
  // CHECK: genrec.in_batch_softmax %{{.*}}, %{{.*}}, %{{.*}} log_q %{{.*}} valid %{{.*}} {temperature
  %1:2 = genrec.in_batch_softmax %vec, %vec, %id log_q %num valid %flag {temperature = 1.0 : f64}
      : (!vec, !vec, !id, !num, !flag) -> (!num, !pair)
  // CHECK: genrec.in_batch_softmax_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} valid %{{.*}} {temperature
  %2:2 = genrec.in_batch_softmax_grad %vec, %vec, %id, %1#1, %num valid %flag {temperature = 1.0 : f64}
      : (!vec, !vec, !id, !pair, !num, !flag) -> (!vec, !vec)
  return
}

// CHECK-LABEL: func @catalogues
func.func @catalogues(%id: !id, %flag: !flag, %vec: !vec, %items: !items, %item_ids: !item_ids, %seen: !seen) {
  // CHECK: genrec.resolve %{{.*}} in %{{.*}} : (tensor<?xi64
  %0 = genrec.resolve %id in %item_ids : (!id, !item_ids) -> !id
  // CHECK: genrec.resolve %{{.*}} valid %{{.*}} in %{{.*}} {allow_missing}
  %1 = genrec.resolve %id valid %flag in %item_ids {allow_missing} : (!id, !flag, !item_ids) -> !id
  // CHECK: genrec.top_k %{{.*}}, %{{.*}} : (tensor<?x8xf32
  %2:2 = genrec.top_k %vec, %items : (!vec, !items) -> (tensor<?x1xi64, #genrec.rows<@request>>, tensor<?x1xf32, #genrec.rows<@request>>)
  // CHECK: genrec.rank %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x8xf32
  %3 = genrec.rank %vec, %id, %items : (!vec, !id, !items) -> !id
  // CHECK: genrec.rank %{{.*}}, %{{.*}}, %{{.*}} exclude %{{.*}} :
  %4 = genrec.rank %vec, %id, %items exclude %seen : (!vec, !id, !items, !seen) -> !id
  // CHECK: genrec.rank %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@event>>
  %5 = genrec.rank %vec, %seen, %items : (!vec, !seen, !items) -> !seen
  return
}

// CHECK-LABEL: func @outputs
func.func @outputs(%id: !id, %num: !num, %flag: !flag, %vec: !vec, %seen: !seen, %scalar: tensor<f32>,
                   %name: tensor<?x!genrec.string, #genrec.rows<@request>>) {
  // CHECK: genrec.loss "a" %{{.*}} : tensor<?xf32
  genrec.loss "a" %num {scale = 1.0 : f64} : !num
  // CHECK: genrec.loss "b" %{{.*}} valid %{{.*}} :
  genrec.loss "b" %num valid %flag : !num, !flag
  // CHECK: genrec.loss "c" %{{.*}} weight %{{.*}} valid %{{.*}} {scale = -2.000000e+00 : f64} :
  genrec.loss "c" %num weight %num valid %flag {scale = -2.0 : f64} : !num, !num, !flag
  // CHECK: genrec.report_loss "a" %{{.*}}, %{{.*}} {scale = 5.000000e-01 : f64} : tensor<f32>, tensor<f32>
  genrec.report_loss "a" %scalar, %scalar {scale = 0.5 : f64} : tensor<f32>, tensor<f32>
  // CHECK: genrec.metric ranking "m" %{{.*}} valid %{{.*}} {at = array<i64: 1, 10>} :
  genrec.metric ranking "m" %id valid %flag {at = array<i64: 1, 10>} : !id, !flag
  // CHECK: genrec.metric auc "n" %{{.*}} label %{{.*}} valid %{{.*}} {note = "test"} :
  genrec.metric auc "n" %num label %num valid %flag {note = "test"} : !num, !num, !flag
  // CHECK: genrec.metric mae "o" %{{.*}} label %{{.*}} weight %{{.*}} :
  genrec.metric mae "o" %num label %num weight %num : !num, !num, !num
  // CHECK: genrec.metric ranking "p" %{{.*}} weight %{{.*}} {at = array<i64: 1>, per_list} :
  genrec.metric ranking "p" %seen weight %num {at = array<i64: 1>, per_list} : !seen, !num
  // CHECK: genrec.require_range "the label" %{{.*}} weight %{{.*}} valid %{{.*}} {max = 1.000000e+00 : f64, min = 0.000000e+00 : f64} :
  genrec.require_range "the label" %num weight %num valid %flag {min = 0.0 : f64, max = 1.0 : f64} : !num, !num, !flag
  // CHECK: genrec.require_range "the weight" %{{.*}} {min = 0.000000e+00 : f64} :
  genrec.require_range "the weight" %num {min = 0.0 : f64} : !num
  // CHECK: genrec.output "x" %{{.*}} : tensor<?x8xf32
  genrec.output "x" %vec : !vec
  // CHECK: genrec.output "y" %{{.*}} valid %{{.*}} : tensor<?xf32
  genrec.output "y" %num valid %flag : !num, !flag
  // CHECK: genrec.output "name" %{{.*}} : tensor<?x!genrec.string
  genrec.output "name" %name : tensor<?x!genrec.string, #genrec.rows<@request>>
  return
}
