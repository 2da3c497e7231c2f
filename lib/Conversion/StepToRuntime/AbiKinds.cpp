//===- AbiKinds.cpp - enumerations of the dialect and of the ABI ----------===//
//
// Asserts that names and numbers in genrec_rt/kinds.h are those of GenRecAttrs.td.
//
//===----------------------------------------------------------------------===//

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec_rt/kinds.h"

#include <algorithm>

using namespace genrec;

#define IS_KIND(kind, symbol, name)                                                                \
  static_assert(static_cast<int>(kind::name) == symbol, #name " has another number in kinds.h");
#define NUMBER(symbol, name, number) number,
#define IS_COMPLETE(kind, LIST)                                                                    \
  static_assert(std::max({LIST(NUMBER)}) == getMaxEnumValFor##kind(), "kinds.h lacks a " #kind);

#define IS_DOMAIN(symbol, name, number) IS_KIND(DomainKind, symbol, name)
GENREC_DOMAIN_KINDS(IS_DOMAIN)
IS_COMPLETE(DomainKind, GENREC_DOMAIN_KINDS)

#define IS_INIT(symbol, name, number) IS_KIND(InitKind, symbol, name)
GENREC_INIT_KINDS(IS_INIT)
IS_COMPLETE(InitKind, GENREC_INIT_KINDS)

#define IS_OPTIMIZER(symbol, name, number) IS_KIND(OptimizerKind, symbol, name)
GENREC_UPDATE_RULES(IS_OPTIMIZER)
IS_COMPLETE(OptimizerKind, GENREC_UPDATE_RULES)

#define IS_EVICT(symbol, name, number) IS_KIND(EvictKind, symbol, name)
GENREC_EVICT_KINDS(IS_EVICT)
IS_COMPLETE(EvictKind, GENREC_EVICT_KINDS)

#define IS_ELEMENT(symbol, name, number) IS_KIND(RowElement, symbol, name)
GENREC_ROW_ELEMENTS(IS_ELEMENT)
IS_COMPLETE(RowElement, GENREC_ROW_ELEMENTS)

#define IS_ROUNDING(symbol, name, number) IS_KIND(RowRounding, symbol, name)
GENREC_ROW_ROUNDINGS(IS_ROUNDING)
IS_COMPLETE(RowRounding, GENREC_ROW_ROUNDINGS)

#define IS_METRIC(symbol, name, number) IS_KIND(MetricKind, symbol, name)
GENREC_METRIC_KINDS(IS_METRIC)
IS_COMPLETE(MetricKind, GENREC_METRIC_KINDS)

#define IS_MODE(symbol, name, number) IS_KIND(ProgramMode, symbol, name)
GENREC_MODES(IS_MODE)
IS_COMPLETE(ProgramMode, GENREC_MODES)

#define IS_STAGE(symbol, name, number) IS_KIND(Stage, symbol, name)
GENREC_STAGES(IS_STAGE)
IS_COMPLETE(Stage, GENREC_STAGES)
