// RUN: genrec-opt %s --verify-roundtrip | FileCheck %s

!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>

// CHECK-LABEL: genrec.model @updates
genrec.model @updates {
  genrec.domain @request
  genrec.domain @touched kind step
  genrec.domain @matrix kind step
  genrec.domain @vector kind step
  genrec.domain @scalar kind step
  genrec.domain @three kind step
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @m : tensor<3x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @s : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %request = genrec.batch : !genrec.domain<@request>
    %id = genrec.feature %request "id" {nullable} : (!genrec.domain<@request>) -> !id
    %valid = genrec.feature_valid %request "id" : (!genrec.domain<@request>) -> tensor<?xi1, #genrec.rows<@request>>
    // CHECK: genrec.lookup %{{.*}} valid %{{.*}} in @item
    %vec = genrec.lookup %id valid %valid in @item : (!id, tensor<?xi1, #genrec.rows<@request>>) -> !vec
    %m = genrec.param @m : tensor<3x4xf32>
    %v = genrec.param @v : tensor<4xf32>
    %s = genrec.param @s : tensor<f32>
    // CHECK: genrec.update_parameter @m by %{{.*}} : tensor<3x4xf32>
    genrec.update_parameter @m by %m : tensor<3x4xf32>
    // CHECK: genrec.update_table @item ids(%{{.*}}) by(%{{.*}}) : ({{.*}}) -> ()
    genrec.update_table @item ids (%id) by (%vec) : (!id, !vec) -> ()

    // CHECK: genrec.table_rows %{{.*}} in @item :
    %row = genrec.table_rows %id in @item : (!id) -> !row
    // CHECK: genrec.table_rows %{{.*}} valid %{{.*}} in @item :
    %row2 = genrec.table_rows %id valid %valid in @item : (!id, tensor<?xi1, #genrec.rows<@request>>) -> !row
    // CHECK: %[[DOMAIN:.*]], %{{.*}} = genrec.unique_rows(%{{.*}}, %{{.*}}) by(%{{.*}}, %{{.*}})
    %touched, %rows = genrec.unique_rows (%row, %row2) by (%vec, %vec)
        : (!row, !row, !vec, !vec) -> (!genrec.domain<@touched>, tensor<?x!genrec.row<8>, #genrec.rows<@touched>>)
    // CHECK: genrec.segment_sum %[[DOMAIN]](%{{.*}}, %{{.*}})
    %sum = genrec.segment_sum %touched (%vec, %vec)
        : (!genrec.domain<@touched>, !vec, !vec) -> tensor<?x8xf32, #genrec.rows<@touched>>

    // A matrix, a vector and a scalar as rows.
    // CHECK: genrec.parameter_rows @m : () -> (!genrec.domain<@matrix>, tensor<?x!genrec.row<4>
    %dm, %rm = genrec.parameter_rows @m : () -> (!genrec.domain<@matrix>, tensor<?x!genrec.row<4>, #genrec.rows<@matrix>>)
    %dv, %rv = genrec.parameter_rows @v : () -> (!genrec.domain<@vector>, tensor<?x!genrec.row<4>, #genrec.rows<@vector>>)
    // CHECK: genrec.parameter_rows @s : () -> (!genrec.domain<@scalar>, tensor<?x!genrec.row<1>
    %ds, %rs = genrec.parameter_rows @s : () -> (!genrec.domain<@scalar>, tensor<?x!genrec.row<1>, #genrec.rows<@scalar>>)
    // CHECK: genrec.shared_rows %{{.*}} as %{{.*}} : (tensor<3x4xf32>, !genrec.domain<@matrix>) -> tensor<?x4xf32
    %gm = genrec.shared_rows %m as %dm : (tensor<3x4xf32>, !genrec.domain<@matrix>) -> tensor<?x4xf32, #genrec.rows<@matrix>>
    %gv = genrec.shared_rows %v as %dv : (tensor<4xf32>, !genrec.domain<@vector>) -> tensor<?x4xf32, #genrec.rows<@vector>>
    // CHECK: genrec.shared_rows %{{.*}} as %{{.*}} : (tensor<f32>, !genrec.domain<@scalar>) -> tensor<?x1xf32
    %gs = genrec.shared_rows %s as %ds : (tensor<f32>, !genrec.domain<@scalar>) -> tensor<?x1xf32, #genrec.rows<@scalar>>
    // CHECK: genrec.shared_rows %{{.*}} as %{{.*}} : (tensor<f32>, !genrec.domain<@scalar>) -> tensor<?xf32
    %gs0 = genrec.shared_rows %s as %ds : (tensor<f32>, !genrec.domain<@scalar>) -> tensor<?xf32, #genrec.rows<@scalar>>
    // CHECK: genrec.rows_as_shared %{{.*}} : ({{.*}}) -> tensor<3x4xf32>
    %bm = genrec.rows_as_shared %gm : (tensor<?x4xf32, #genrec.rows<@matrix>>) -> tensor<3x4xf32>
    // CHECK: genrec.rows_as_shared %{{.*}} : ({{.*}}) -> tensor<f32>
    %bs = genrec.rows_as_shared %gs0 : (tensor<?xf32, #genrec.rows<@scalar>>) -> tensor<f32>
    // CHECK: genrec.fixed_rows 3 : !genrec.domain<@three>
    %three = genrec.fixed_rows 3 : !genrec.domain<@three>

    // CHECK: genrec.step_value "learning_rate"(1.000000e-03) : tensor<f32>
    %rate = genrec.step_value "learning_rate"(1.0e-3) : tensor<f32>
    %correction = genrec.step_value "bias_correction"(0.999) : tensor<f32>
    %norm = genrec.step_value "clip_norm"(0.0) : tensor<f32>
    %value = genrec.step_value "clip_value"(1.0) : tensor<f32>
  }
}
