// RUN: genrec-opt %s --genrec-lower-to-emitc -split-input-file -verify-diagnostics

// What has no C++ form is an error where it stands.
emitc.func @unknown(%x: i32) -> i32 {
  // expected-error @below {{failed to legalize operation 'math.ctpop'}}
  %count = math.ctpop %x : i32
  emitc.return %count : i32
}

// -----

// So is a leftover cast.
emitc.func @cast(%x: f32) -> i32 {
  // expected-error @below {{failed to legalize operation 'builtin.unrealized_conversion_cast'}}
  %y = builtin.unrealized_conversion_cast %x : f32 to i32
  emitc.return %y : i32
}

// -----

emitc.func @stranger(%x: f32) {
  // expected-error @below {{'emitc.call_opaque' op calls 'system', which is not on the list of the runtime's functions or a plugin's}}
  emitc.call_opaque "system"(%x) : (f32) -> ()
  emitc.return
}
