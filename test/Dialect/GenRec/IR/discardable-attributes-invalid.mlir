// RUN: genrec-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{has attribute "genrec.taget", which the dialect does not declare}}
module attributes {genrec.taget = #genrec<target cpu>} {
}

// -----

// expected-error @below {{has attribute "genrec.target" of a type that it may not have: "cpu"}}
module attributes {genrec.target = "cpu"} {
}
