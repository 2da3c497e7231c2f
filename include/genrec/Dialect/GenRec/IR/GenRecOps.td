//===- GenRecOps.td - every op of the dialect -------------------*- tablegen -*-===//

#ifndef GENREC_OPS_TD
#define GENREC_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecPlanAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecSymbolOps.td"
include "genrec/Dialect/GenRec/IR/GenRecDomainOps.td"
include "genrec/Dialect/GenRec/IR/GenRecMoveOps.td"
include "genrec/Dialect/GenRec/IR/GenRecRowOps.td"
include "genrec/Dialect/GenRec/IR/GenRecDenseOps.td"
include "genrec/Dialect/GenRec/IR/GenRecAttentionOps.td"
include "genrec/Dialect/GenRec/IR/GenRecLossOps.td"
include "genrec/Dialect/GenRec/IR/GenRecUpdateOps.td"
include "genrec/Dialect/GenRec/IR/GenRecRankOps.td"
include "genrec/Dialect/GenRec/IR/GenRecDistinctOps.td"
include "genrec/Dialect/GenRec/IR/GenRecPickOps.td"
include "genrec/Dialect/GenRec/IR/GenRecGroupOps.td"
include "genrec/Dialect/GenRec/IR/GenRecPassOps.td"
include "genrec/Dialect/GenRec/IR/GenRecKernelOps.td"
include "genrec/Dialect/GenRec/IR/GenRecStepOps.td"

#endif // GENREC_OPS_TD
