//===- AbiKinds.cpp - enumerations of the dialect and of the ABI ----------===//
//
// Asserts that names and numbers in genrec_rt/kinds.h are those of GenRecAttrs.td.
//
//===----------------------------------------------------------------------===//

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec_rt/kinds.h"

using namespace genrec;

#define IS_KIND(kind, symbol, name)                                                                \
  static_assert(static_cast<int>(kind::name) == symbol, #name " has another number in kinds.h");

#define IS_DOMAIN(symbol, name, number) IS_KIND(DomainKind, symbol, name)
GENREC_DOMAIN_KINDS(IS_DOMAIN)
static_assert(getMaxEnumValForDomainKind() == GENREC_DOMAIN_STEP, "kinds.h lacks a kind of domain");

#define IS_INIT(symbol, name, number) IS_KIND(InitKind, symbol, name)
GENREC_INIT_KINDS(IS_INIT)
static_assert(getMaxEnumValForInitKind() == GENREC_INIT_XAVIER_NORMAL,
              "kinds.h lacks a distribution of initial values");

#define IS_OPTIMIZER(symbol, name, number) IS_KIND(OptimizerKind, symbol, name)
GENREC_UPDATE_RULES(IS_OPTIMIZER)
static_assert(getMaxEnumValForOptimizerKind() + 1 == GENREC_OPTIMIZER_FROZEN,
              "kinds.h lacks an optimizer");

#define IS_EVICT(symbol, name, number) IS_KIND(EvictKind, symbol, name)
GENREC_EVICT_KINDS(IS_EVICT)
static_assert(getMaxEnumValForEvictKind() == GENREC_EVICT_LFU, "kinds.h lacks a kind of eviction");

#define IS_METRIC(symbol, name, number) IS_KIND(MetricKind, symbol, name)
GENREC_METRIC_KINDS(IS_METRIC)
static_assert(getMaxEnumValForMetricKind() == GENREC_METRIC_MAE, "kinds.h lacks a metric");

#define IS_MODE(symbol, name, number) IS_KIND(ProgramMode, symbol, name)
GENREC_MODES(IS_MODE)
static_assert(getMaxEnumValForProgramMode() == GENREC_MODE_ITEMS, "kinds.h lacks a mode");

#define IS_STAGE(symbol, name, number) IS_KIND(Stage, symbol, name)
GENREC_STAGES(IS_STAGE)
static_assert(getMaxEnumValForStage() == GENREC_STAGE_UPDATE, "kinds.h lacks a stage");
