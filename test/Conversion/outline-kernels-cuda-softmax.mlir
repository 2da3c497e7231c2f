// RUN: sed s/EXCLUDED/%%hit/ %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=ONCE
// RUN: sed s/EXCLUDED/%%hit/ %s | genrec-opt --genrec-outline-kernels | FileCheck %s --check-prefix=TWICE
// RUN: sed -e s/EXCLUDED/%%hit/ -e s/1024/256/g %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=TWICE
// RUN: sed s/EXCLUDED/%%late/ %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=TWICE

// Nor where what is added up are not the weights, by these logits, of the rows that the dot products are of.
// DEFINE: %{change} =
// DEFINE: %{twice} = sed -e s/EXCLUDED/%%hit/ -e '%{change}' %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=TWICE
// REDEFINE: %{change} = s/gather_sum %%source.%%index/gather_sum %%source[%%again/
// RUN: %{twice}
// REDEFINE: %{change} = s/gather_sum %%source/gather_sum %%other/
// RUN: %{twice}
// REDEFINE: %{change} = s/cmpi eq, %%index/cmpi eq, %%again/
// RUN: %{twice}
// REDEFINE: %{change} = s/cmpi eq/cmpi ne/
// RUN: %{twice}
// REDEFINE: %{change} = /all_valid/s/%%zeros/%%masked/
// RUN: %{twice}
// REDEFINE: %{change} = s/maximumf %%most/maximumf %%half/
// RUN: %{twice}
// REDEFINE: %{change} = s/<maximumf>/<minimumf>/
// RUN: %{twice}

// The rows that a sampled softmax draws are read once on a device: the sum by coefficients is made of that by weights,
// which are relative to the largest logit. Only where a row has a
// warp, and what is excluded is known before the first gather. Coefficients are not computed for it.
// ONCE: emitc.func @row_softmax
// ONCE-NOT: "kernels::gatherDot"
// ONCE: call_opaque "kernels::gatherSoftmax"{{.*}}template_args = [1024, 32, 4]
// ONCE: call_opaque "kernels::rowMax"
// ONCE: call_opaque "kernels::rowSum"
// ONCE-NOT: arith.select
// ONCE: call_opaque "kernels::softmaxSum"
// ONCE-NOT: "kernels::gatherSum"

// TWICE: emitc.func @row_softmax
// TWICE: call_opaque "kernels::gatherDot"
// TWICE: call_opaque "kernels::rowSum"
// TWICE: arith.select
// TWICE: call_opaque "kernels::gatherSum"
!e8 = tensor<?x1024xf32, #genrec.rows<@user>>
!ei = tensor<?xi64, #genrec.rows<@user>>
!i8 = tensor<?x1024xf32, #genrec.rows<@items>>
genrec.model @softmax {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %c = genrec.constant dense<1.0> : tensor<1024xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<1024xf32>, !genrec.domain<@user>) -> !e8
    %n = genrec.constant dense<1> : tensor<i64>
    %i = genrec.broadcast_rows %n to %user : (tensor<i64>, !genrec.domain<@user>) -> !ei
    %rows = genrec.broadcast_rows %c to %items : (tensor<1024xf32>, !genrec.domain<@items>) -> !i8
    %others = genrec.broadcast_rows %c to %items : (tensor<1024xf32>, !genrec.domain<@items>) -> !i8
    %s = genrec.row_kernel %user(%x, %i, %rows, %others) attributes {name = "softmax", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>, #genrec<operand_role source>, #genrec<operand_role source>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, !e8, !ei, !i8, !i8) -> !e8 {
    ^bb0(%query: vector<1024xf32>, %hit: i64, %source: !i8, %other: !i8):
      %one = arith.constant 1 : i64
      %late = arith.addi %hit, %one : i64
      %masked = arith.constant dense<-1.0e30> : vector<4xf32>
      %scale = arith.constant dense<20.0> : vector<4xf32>
      %zeros = arith.constant dense<0.0> : vector<4xf32>
      %half = arith.constant 0.5 : f32
      %zero = arith.constant 0 : i64
      %index = genrec.random_index %source {stream = 512 : i64} : (!i8) -> vector<4xi64>
      %again = genrec.random_index %source {stream = 768 : i64} : (!i8) -> vector<4xi64>
      %dots = genrec.gather_dot %source[%index], %query : (!i8, vector<4xi64>, vector<1024xf32>) -> vector<4xf32>
      %scaled = arith.mulf %dots, %scale : vector<4xf32>
      %hits = vector.broadcast EXCLUDED : i64 to vector<4xi64>
      %is_hit = arith.cmpi eq, %index, %hits : vector<4xi64>
      %logits = arith.select %is_hit, %masked, %scaled : vector<4xi1>, vector<4xf32>
      %most = vector.reduction <maximumf>, %logits : vector<4xf32> into f32
      %largest = arith.maximumf %most, %half : f32
      %largests = vector.broadcast %largest : f32 to vector<4xf32>
      %apart = arith.subf %logits, %largests : vector<4xf32>
      %exps = math.exp %apart : vector<4xf32>
      %sum = vector.reduction <add>, %exps : vector<4xf32> into f32
      %share = arith.divf %half, %sum : f32
      %shares = vector.broadcast %share : f32 to vector<4xf32>
      %products = arith.mulf %exps, %shares : vector<4xf32>
      %is_valid = arith.cmpi sge, %hit, %zero : i64
      %all_valid = vector.broadcast %is_valid : i1 to vector<4xi1>
      %coefficients = arith.select %all_valid, %products, %zeros : vector<4xi1>, vector<4xf32>
      %mix = genrec.gather_sum %source[%index], %coefficients : (!i8, vector<4xi64>, vector<4xf32>) -> vector<1024xf32>
      genrec.row_yield %mix : vector<1024xf32>
    }
    genrec.output "s" %s : !e8
  }
}
