// RUN: genrec-opt %s --split-input-file --pass-pipeline='builtin.module(genrec.model(genrec-plan-memory))' | FileCheck %s
// RUN: genrec-opt %s --split-input-file --pass-pipeline='builtin.module(genrec.model(genrec-plan-memory),genrec-outline-kernels)' | FileCheck %s --check-prefix=CODE
// RUN: genrec-opt %s --split-input-file --pass-pipeline='builtin.module(genrec-attach-target{target=cuda},genrec.model(genrec-plan-memory),genrec-outline-kernels)' | FileCheck %s --check-prefix=CODE

// The first part of joined rows is stored where these will be: one buffer, from the kernel that makes the part to the
// last reader of the whole. The joining kernel reads nothing of it, and writes what is behind; so say its costs.

// CHECK-LABEL: genrec.model @first
// CHECK: genrec.buffers = [#genrec.buffer<name = "make", domain = @user, bytes_per_row = 32, stride = 8, first = 2, last = 4>]
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>{{.*}}name = "make"
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>{{.*}}name = "join"
// CODE-LABEL: genrec.model @first
// CODE: genrec.launch @row_make{{.*}}#genrec.cost<domain = @user, bytes = 3.200000e+01 : f64
// CODE: genrec.launch @row_join{{.*}}#genrec.cost<domain = @user, bytes = 3.200000e+01 : f64
// CODE: emitc.func @row_make(
// CODE: %[[EIGHT:.*]] = "emitc.constant"() <{value = 8 : i64}>
// CODE: mul %{{.*}}, %[[EIGHT]]
// CODE: emitc.func @row_join(
// CODE: arith.negf
// CODE: "emitc.constant"() <{value = 4 : i64}>
// CODE: assign
// CODE-NOT: assign
// CODE: return
genrec.model @first {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %make = genrec.row_kernel %user(%x) attributes {name = "make", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %join = genrec.row_kernel %user(%make, %x) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %n = arith.negf %b : vector<4xf32>
      %c = genrec.row_concat %a, %n : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      genrec.row_yield %c : vector<8xf32>
    }
    genrec.output "y" %join : tensor<?x8xf32, #genrec.rows<@user>>
  }
}

// -----

// A part behind the first stays where it is.

// CHECK-LABEL: genrec.model @second
// CHECK-NOT: stride =
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 1>
genrec.model @second {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %make = genrec.row_kernel %user(%x) attributes {name = "make", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %join = genrec.row_kernel %user(%x, %make) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %n = arith.negf %b : vector<4xf32>
      %c = genrec.row_concat %n, %b : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      genrec.row_yield %c : vector<8xf32>
    }
    genrec.output "y" %join : tensor<?x8xf32, #genrec.rows<@user>>
  }
}

// -----

// So does one that others read,

// CHECK-LABEL: genrec.model @read
// CHECK-NOT: stride =
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 1>
genrec.model @read {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %make = genrec.row_kernel %user(%x) attributes {name = "make", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %join = genrec.row_kernel %user(%make, %x) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %n = arith.negf %b : vector<4xf32>
      %c = genrec.row_concat %a, %n : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      genrec.row_yield %c : vector<8xf32>
    }
    genrec.output "y" %join : tensor<?x8xf32, #genrec.rows<@user>>
    genrec.output "z" %make : tensor<?x4xf32, #genrec.rows<@user>>
  }
}

// -----

// or that the joining kernel computes with,

// CHECK-LABEL: genrec.model @used
// CHECK-NOT: stride =
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 1, 2>
genrec.model @used {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %make = genrec.row_kernel %user(%x) attributes {name = "make", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %join:2 = genrec.row_kernel %user(%make, %x) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>, #genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> (tensor<?x8xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %n = arith.negf %b : vector<4xf32>
      %c = genrec.row_concat %a, %n : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      %s = arith.addf %a, %b : vector<4xf32>
      genrec.row_yield %c, %s : vector<8xf32>, vector<4xf32>
    }
    genrec.output "y" %join#0 : tensor<?x8xf32, #genrec.rows<@user>>
    genrec.output "z" %join#1 : tensor<?x4xf32, #genrec.rows<@user>>
  }
}

// -----

// or of rows that the kernel reads itself,

// CHECK-LABEL: genrec.model @whole
// CHECK-NOT: stride =
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 1, 2>
genrec.model @whole {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %make = genrec.row_kernel %user(%x) attributes {name = "make", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %join:2 = genrec.row_kernel %user(%make, %x) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>, #genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> (tensor<?x8xf32, #genrec.rows<@user>>, tensor<?x8xf32, #genrec.rows<@user>>) {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %n = arith.negf %b : vector<4xf32>
      %c = genrec.row_concat %a, %n : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      %s = arith.mulf %c, %c : vector<8xf32>
      genrec.row_yield %c, %s : vector<8xf32>, vector<8xf32>
    }
    genrec.output "y" %join#0 : tensor<?x8xf32, #genrec.rows<@user>>
    genrec.output "z" %join#1 : tensor<?x8xf32, #genrec.rows<@user>>
  }
}

// -----

// or of rows that nothing stores,

// CHECK-LABEL: genrec.model @local
// CHECK-NOT: stride =
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 1>
genrec.model @local {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %make = genrec.row_kernel %user(%x) attributes {name = "make", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %join = genrec.row_kernel %user(%make, %x) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %n = arith.negf %b : vector<4xf32>
      %c = genrec.row_concat %a, %n : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      %s = arith.mulf %c, %c : vector<8xf32>
      genrec.row_yield %s : vector<8xf32>
    }
    genrec.output "y" %join : tensor<?x8xf32, #genrec.rows<@user>>
  }
}

// -----

// or what no kernel makes.

// CHECK-LABEL: genrec.model @column
// CHECK-NOT: stride =
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>
genrec.model @column {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %join = genrec.row_kernel %user(%x, %x) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %n = arith.negf %b : vector<4xf32>
      %c = genrec.row_concat %a, %n : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      genrec.row_yield %c : vector<8xf32>
    }
    genrec.output "y" %join : tensor<?x8xf32, #genrec.rows<@user>>
  }
}

// -----

// Stages have memory of their own,

// CHECK-LABEL: genrec.model @stages
// CHECK-NOT: stride =
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 1>
genrec.model @stages {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %make = genrec.row_kernel %user(%x) attributes {genrec.stage = #genrec<stage dispatch>, name = "make", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %join = genrec.row_kernel %user(%make, %x) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %n = arith.negf %b : vector<4xf32>
      %c = genrec.row_concat %a, %n : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      genrec.row_yield %c : vector<8xf32>
    }
    genrec.output "y" %join : tensor<?x8xf32, #genrec.rows<@user>>
  }
}

// -----

// Joined rows that are the first part of others: all three have one buffer, whose rows are as long as the last.

// CHECK-LABEL: genrec.model @nested
// CHECK: genrec.buffers = [#genrec.buffer<name = "make", domain = @user, bytes_per_row = 48, stride = 12, first = 2, last = 5>]
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>{{.*}}name = "make"
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>{{.*}}name = "join"
// CHECK: genrec.row_kernel {{.*}}genrec.buffer_ids = array<i64: 0>{{.*}}name = "again"
genrec.model @nested {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %make = genrec.row_kernel %user(%x) attributes {name = "make", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %join = genrec.row_kernel %user(%make, %x) attributes {name = "join", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<4xf32>, %b: vector<4xf32>):
      %c = genrec.row_concat %a, %b : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
      genrec.row_yield %c : vector<8xf32>
    }
    %again = genrec.row_kernel %user(%join, %x) attributes {name = "again", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?x8xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x12xf32, #genrec.rows<@user>> {
    ^bb0(%a: vector<8xf32>, %b: vector<4xf32>):
      %c = genrec.row_concat %a, %b : (vector<8xf32>, vector<4xf32>) -> vector<12xf32>
      genrec.row_yield %c : vector<12xf32>
    }
    genrec.output "y" %again : tensor<?x12xf32, #genrec.rows<@user>>
  }
}
