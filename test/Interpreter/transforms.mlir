// Transforms of raw values. Hashes are those published with the functions: MurmurHash3_x64_128 of
// "hello" begins with cbd8a7b341bd9b02, of the sentence about the fox with e34bbc7bbc071b6c, of "" with 0;
// XXH3_64bits of "" is 2d06800538d394c2.
// RUN: genrec-run %s --mode=predict --batch=%S/Inputs/values.json | FileCheck %s

!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
!i = tensor<?xi64, #genrec.rows<@user>>
!n = tensor<?xi32, #genrec.rows<@user>>
!b = tensor<?xi1, #genrec.rows<@user>>
!t = tensor<?x!genrec.string, #genrec.rows<@user>>

genrec.model @transforms {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !user
    %id = genrec.feature %user "id" : (!user) -> !i
    %x = genrec.feature %user "x" : (!user) -> !u
    %flag = genrec.feature %user "flag" : (!user) -> !b
    %text = genrec.feature %user "text" : (!user) -> !t
    %maybe = genrec.feature %user "maybe" {nullable} : (!user) -> !i
    %valid = genrec.feature_valid %user "maybe" : (!user) -> !b
    %mod = genrec.mod %id {divisor = 5} : (!i) -> !i
    %bucket = genrec.bucketize %x {edges = array<f64: -0.75, 0.0, 2.5>} : (!u) -> !i
    %id_bucket = genrec.bucketize %id {edges = array<f64: 0.0, 7.0>} : (!i) -> !i
    %low = genrec.cast %id : (!i) -> !n
    %whole = genrec.cast %x : (!u) -> !i
    %small = genrec.cast %x : (!u) -> !n
    %truth = genrec.cast %id : (!i) -> !b
    %number = genrec.cast %flag : (!b) -> !u
    %murmur = genrec.hash murmur3 %text {bits = 24} : (!t) -> !i
    %xxh = genrec.hash xxh3 %text {bits = 63} : (!t) -> !i
    %seeded = genrec.hash xxh3 %id {bits = 20, seed = 3} : (!i) -> !i
    genrec.output "01 maybe" %maybe : !i
    genrec.output "02 valid" %valid : !b
    genrec.output "03 mod" %mod : !i
    genrec.output "04 bucket" %bucket : !i
    genrec.output "05 id bucket" %id_bucket : !i
    genrec.output "06 low" %low : !n
    genrec.output "07 whole" %whole : !i
    genrec.output "08 small" %small : !n
    genrec.output "09 truth" %truth : !b
    genrec.output "10 number" %number : !u
    genrec.output "11 murmur" %murmur : !i
    genrec.output "12 xxh" %xxh : !i
    genrec.output "13 seeded" %seeded : !i
  }
}
// CHECK: 01 maybe: [5, 0, 6, 0]
// CHECK: 02 valid: [1, 0, 1, 1]
// CHECK: 03 mod: [2, 3, 3, 0]
// An edge belongs to the interval above it; NaN falls into bucket 0.
// CHECK: 04 bucket: [3, 1, 3, 0]
// CHECK: 05 id bucket: [2, 0, 2, 1]
// 2^32 + 7 keeps its low 32 bits.
// CHECK: 06 low: [7, -7, 7, 0]
// Saturated: 1e30 is the largest integer.
// CHECK: 07 whole: [2, 0, 9223372036854775807, 0]
// CHECK: 08 small: [2, 0, 2147483647, 0]
// CHECK: 09 truth: [1, 1, 1, 0]
// CHECK: 10 number: [1, 0, 1, 0]
// The low 24 bits of bd9b02, 0 and 071b6c.
// CHECK: 11 murmur: [12425986, 0, 465772,
// 0x2d06800538d394c2.
// CHECK: 12 xxh: [{{[0-9]+}}, 3244421341483603138,
// CHECK: 13 seeded: [{{[0-9]+}}, {{[0-9]+}}, {{[0-9]+}}, {{[0-9]+}}]
