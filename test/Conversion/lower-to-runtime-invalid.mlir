// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-plan-memory),genrec-lower-to-runtime)' -split-input-file -verify-diagnostics

// Row-wise ops belong into row kernels before this.
genrec.model @unfused {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    // expected-error @below {{'genrec.exp' op has no lowering to a call of the runtime}}
    %y = genrec.exp %x : tensor<?xf32, #genrec.rows<@user>>
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@user>>
  }
}
