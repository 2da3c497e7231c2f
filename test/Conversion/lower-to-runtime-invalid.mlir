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

// -----

// Kernels read what a truncated list keeps where it lies.
genrec.model @truncated {
  genrec.domain @user
  genrec.domain @event parent @user {column = "event"}
  genrec.domain @recent parent @user kind derived
  genrec.program @predict mode predict {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %recent = genrec.truncate %event {count = 3} : (!genrec.domain<@event>) -> !genrec.domain<@recent>
    %x = genrec.feature %event "event.x" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    // expected-error @below {{'genrec.derive' op has rows of a truncated list, which kernels read where they lie; --genrec-form-row-kernels makes it part of one (of a model that another genrec has written as row kernels: compile what that was)}}
    %y = genrec.derive %x into %recent : (tensor<?xf32, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?xf32, #genrec.rows<@recent>>
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@recent>>
  }
}
