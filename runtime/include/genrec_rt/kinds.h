/*===- kinds.h - Enumerations that cross the ABI -------------------*- C -*-===*
 *
 * Each enumeration is one list of (symbol, name, number): the numbers are those of a model's
 * description (model_desc.h), the names those that users write and `info` prints. Where the dialect
 * has the enumeration too (GenRecAttrs.td), static asserts of lib/Conversion/StepToRuntime hold
 * names and numbers of both together.
 *
 * GENREC_DEFINE_KIND(type, LIST) makes `enum type` and `type_name(number)`, null for a number
 * that is none.
 *
 *===----------------------------------------------------------------------===*/

#ifndef GENREC_RT_KINDS_H
#define GENREC_RT_KINDS_H

#include <stddef.h>
#include <stdint.h>

#define GENREC_KIND_ENUMERATOR(symbol, name, number) symbol = number,
#define GENREC_KIND_CASE(symbol, name, number)                                                     \
  case number:                                                                                     \
    return #name;
#define GENREC_DEFINE_KIND(type, LIST)                                                             \
  typedef enum type { LIST(GENREC_KIND_ENUMERATOR) } type;                                         \
  static inline const char *type##_name(int32_t number) {                                          \
    switch (number) {                                                                              \
      LIST(GENREC_KIND_CASE)                                                                       \
    default:                                                                                       \
      return NULL;                                                                                 \
    }                                                                                              \
  }

/* Where a domain's rows come from. */
#define GENREC_DOMAIN_KINDS(X)                                                                     \
  X(GENREC_DOMAIN_DATA, data, 0)                                                                   \
  X(GENREC_DOMAIN_DERIVED, derived, 1)                                                             \
  X(GENREC_DOMAIN_CATALOGUE, catalogue, 2)                                                         \
  X(GENREC_DOMAIN_STEP, step, 3)
GENREC_DEFINE_KIND(genrec_domain_kind, GENREC_DOMAIN_KINDS)

/* What the values of a column or an output are.
 * I1: a byte, 0 or 1. STRING: a genrec_string. ROW: float *, a row of a table. VALID: a feature of
 * which only nulls matter, whatever the column's type; a byte, 0. KEY: what predict passes through,
 * whatever the column's type; a genrec_string with the bytes of the value. No model has KEY. */
#define GENREC_TYPES(X)                                                                            \
  X(GENREC_I1, bool, 0)                                                                            \
  X(GENREC_I32, int32, 1)                                                                          \
  X(GENREC_I64, int64, 2)                                                                          \
  X(GENREC_F32, float, 3)                                                                          \
  X(GENREC_F64, double, 4)                                                                         \
  X(GENREC_BF16, bfloat16, 5)                                                                      \
  X(GENREC_STRING, string, 6)                                                                      \
  X(GENREC_ROW, table row, 7)                                                                      \
  X(GENREC_VALID, any type, 8)                                                                     \
  X(GENREC_KEY, a key, 9)
GENREC_DEFINE_KIND(genrec_type, GENREC_TYPES)

/* The distribution of initial values. */
#define GENREC_INIT_KINDS(X)                                                                       \
  X(GENREC_INIT_ZEROS, zeros, 0)                                                                   \
  X(GENREC_INIT_CONSTANT, constant, 1)                                                             \
  X(GENREC_INIT_NORMAL, normal, 2)                                                                 \
  X(GENREC_INIT_TRUNCATED_NORMAL, truncated_normal, 3)                                             \
  X(GENREC_INIT_UNIFORM, uniform, 4)                                                               \
  X(GENREC_INIT_XAVIER_UNIFORM, xavier_uniform, 5)                                                 \
  X(GENREC_INIT_XAVIER_NORMAL, xavier_normal, 6)
GENREC_DEFINE_KIND(genrec_init_kind, GENREC_INIT_KINDS)

/* The update rule of a table or a parameter. What is frozen has no rule and no states: no step
 * updates it, and training inserts no row into such a table, whose unseen ids read their initial
 * value. */
#define GENREC_UPDATE_RULES(X)                                                                     \
  X(GENREC_OPTIMIZER_SGD, sgd, 0)                                                                  \
  X(GENREC_OPTIMIZER_ADAGRAD, adagrad, 1)                                                          \
  X(GENREC_OPTIMIZER_ADAM, adam, 2)                                                                \
  X(GENREC_OPTIMIZER_ADAMW, adamw, 3)                                                              \
  X(GENREC_OPTIMIZER_ROWWISE_ADAGRAD, rowwise_adagrad, 4)                                          \
  X(GENREC_OPTIMIZER_RMSPROP, rmsprop, 6)
#define GENREC_OPTIMIZER_KINDS(X) GENREC_UPDATE_RULES(X) X(GENREC_OPTIMIZER_FROZEN, frozen, 5)
GENREC_DEFINE_KIND(genrec_optimizer_kind, GENREC_OPTIMIZER_KINDS)

/* Which rows leave a bounded table first: the least recently, or the least often, seen. */
#define GENREC_EVICT_KINDS(X)                                                                      \
  X(GENREC_EVICT_LRU, lru, 0)                                                                      \
  X(GENREC_EVICT_LFU, lfu, 1)
GENREC_DEFINE_KIND(genrec_evict_kind, GENREC_EVICT_KINDS)

/* In what the values of a table's rows are stored, and how a step rounds those it stores. */
#define GENREC_ROW_ELEMENTS(X)                                                                     \
  X(GENREC_ROW_F32, f32, 0)                                                                        \
  X(GENREC_ROW_BF16, bf16, 1)
GENREC_DEFINE_KIND(genrec_row_element, GENREC_ROW_ELEMENTS)
#define GENREC_ROW_ROUNDINGS(X)                                                                    \
  X(GENREC_ROW_NEAREST, nearest, 0)                                                                \
  X(GENREC_ROW_STOCHASTIC, stochastic, 1)
GENREC_DEFINE_KIND(genrec_row_rounding, GENREC_ROW_ROUNDINGS)

#define GENREC_METRIC_KINDS(X)                                                                     \
  X(GENREC_METRIC_RANKING, ranking, 0)                                                             \
  X(GENREC_METRIC_AUC, auc, 1)                                                                     \
  X(GENREC_METRIC_GAUC, gauc, 2)                                                                   \
  X(GENREC_METRIC_NE, ne, 3)                                                                       \
  X(GENREC_METRIC_RMSE, rmse, 4)                                                                   \
  X(GENREC_METRIC_MAE, mae, 5)
GENREC_DEFINE_KIND(genrec_metric_kind, GENREC_METRIC_KINDS)

/* What a program is run for. `items` gives out item vectors: outputs of catalogue domains, run
 * once, on a batch without rows. The dialect's `all` (0) is no program's by the time it runs. */
#define GENREC_MODES(X)                                                                            \
  X(GENREC_MODE_TRAIN, train, 1)                                                                   \
  X(GENREC_MODE_EVALUATE, evaluate, 2)                                                             \
  X(GENREC_MODE_PREDICT, predict, 3)                                                               \
  X(GENREC_MODE_ITEMS, items, 4)
GENREC_DEFINE_KIND(genrec_mode, GENREC_MODES)

/* The stage of a step that an op runs in. */
#define GENREC_STAGES(X)                                                                           \
  X(GENREC_STAGE_COPY, copy, 0)                                                                    \
  X(GENREC_STAGE_DISPATCH, dispatch, 1)                                                            \
  X(GENREC_STAGE_COMPUTE, compute, 2)                                                              \
  X(GENREC_STAGE_UPDATE, update, 3)
GENREC_DEFINE_KIND(genrec_stage, GENREC_STAGES)

/* What may be null in an output: nothing, whole rows, or single values of a row. */
#define GENREC_NULLS(X)                                                                            \
  X(GENREC_NULLS_NONE, none, 0)                                                                    \
  X(GENREC_NULLS_ROWS, rows, 1)                                                                    \
  X(GENREC_NULLS_ELEMENTS, elements, 2)
GENREC_DEFINE_KIND(genrec_nulls, GENREC_NULLS)

#endif /* GENREC_RT_KINDS_H */
