/*===- model_desc.h - what a model is made of -----------------------*- C -*-===*
 *
 * A compiled model exports `genrec_model()`, whose description the runtime reads:
 * which columns to decode, which tables and parameters to keep, which buffers a
 * step needs, and the stage functions of each program. Part of the contract of
 * abi.h, which generated code includes.
 *
 *===----------------------------------------------------------------------===*/

#ifndef GENREC_RT_MODEL_DESC_H
#define GENREC_RT_MODEL_DESC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct genrec_location { /* the user's source */
  const char *file;
  int32_t line;
  const char *name;
} genrec_location;

typedef struct genrec_domain_desc {
  const char *name;
  int32_t kind;       /* genrec_domain_kind */
  int32_t parent;     /* index of the parent domain, -1 for a root */
  const char *column; /* data: dotted path of the list column */
  const char *source; /* catalogue: default file */
  /* Host-known bound on the rows of a derived or step domain, given the bounds
   * of all domains before it: null for data and catalogue domains. */
  int64_t (*capacity)(const int64_t *capacities, const int64_t *max_lengths);
  int64_t max_length; /* derived by truncate: the most rows per parent; else 0 */
  int32_t truncated;  /* derived by truncate: the index of the domain that is cut */
  int32_t collected;  /* t + 1: the rows of table t that any portion of the batch touched;
                         `capacity` is that of one portion */
  int32_t parameter;  /* p + 1: the rows of parameter p that a rank updates */
} genrec_domain_desc;

typedef struct genrec_feature_desc {
  const char *column; /* dotted path */
  int32_t domain;
  int32_t type;     /* genrec_type */
  int32_t nullable; /* nulls read as 0, `valid` says which */
  int32_t has_padding_id;
  int64_t padding_id; /* list entries with this id are dropped when read */
  int64_t id_bits;    /* > 0: values must lie in [0, 2^id_bits) */
  const char *table;  /* the table the ids feed, for errors; may be null */
  genrec_location location;
  int64_t width; /* values per row, of a column of lists that all have so many; 0: a scalar */
} genrec_feature_desc;

typedef struct genrec_init_desc {
  int32_t kind; /* genrec_init_kind */
  double scale;
} genrec_init_desc;

typedef struct genrec_optimizer_desc {
  int32_t kind;   /* genrec_optimizer_kind */
  int32_t states; /* f32 values kept beside each weight */
  double learning_rate;
  double initial_accumulator;
  int32_t row_states; /* tables: states are kept once per row instead */
} genrec_optimizer_desc;

typedef struct genrec_table_desc {
  const char *name;
  int64_t dim;
  int64_t id_bits;
  genrec_init_desc init;
  genrec_optimizer_desc optimizer;
  genrec_location location;
  int32_t group; /* 0: a store of its own; tables of one group share one, by
                    keys key | id; ids have at most key_bits bits */
  int64_t key;   /* (place in the group) << key_bits */
  int64_t key_bits;
  int64_t bounded; /* these are RowRules of row_rules.h; 0 for none. Tables of one
                      group have equal ones, and each keeps them for itself */
  int32_t evict;   /* genrec_evict_kind */
  int64_t ttl;
  int64_t admit_after;
  int64_t ttl_seconds;
  int32_t element;   /* genrec_row_element: of values; states are floats. Equal in a group */
  int32_t rounding;  /* genrec_row_rounding */
  int64_t hot_after; /* of bf16: rows that training saw in so many steps are hot, and keep the lower
                        halves of their floats as well; 0: none. Equal in a group */
} genrec_table_desc;

typedef struct genrec_parameter_desc {
  const char *name;
  int32_t rank;
  int64_t shape[2];
  genrec_init_desc init;
  genrec_optimizer_desc optimizer;
  genrec_location location;
} genrec_parameter_desc;

/* A planned buffer of a program: capacity(domain) * bytes_per_row + bytes.
 * `domain` is -1 for a fixed size. Live from op `first` to op `last` of the
 * program; buffers whose lives do not meet may share memory. */
typedef struct genrec_buffer_desc {
  int32_t domain;
  int64_t bytes_per_row;
  int64_t bytes;
  int32_t first;
  int32_t last;
  const char *name;
} genrec_buffer_desc;

typedef struct genrec_loss_desc {
  const char *name;
  double scale;
  genrec_location location;
} genrec_loss_desc;

typedef struct genrec_metric_desc {
  const char *name;
  int32_t kind; /* genrec_metric_kind */
  const int64_t *at;
  int32_t at_count;
  const char *note;
  int32_t per_list; /* ranking: of lists, whose parents have the weights */
} genrec_metric_desc;

typedef struct genrec_output_desc {
  const char *name;
  int32_t domain;
  int32_t type;
  int64_t width; /* values per row; 0: a scalar per row */
  int32_t nulls; /* genrec_nulls */
} genrec_output_desc;

struct genrec_step; /* abi.h */
typedef void (*genrec_stage_fn)(struct genrec_step *step);

/* One program (train, evaluate, predict, items): what it reads and runs. `features`
 * and `domains` index the model's lists; only these are decoded. A stage may be
 * null. Each rank runs `copy`, `dispatch` and `compute` for every portion of its
 * batch and `update` once, in the context of its last portion. Buffers that the copy and dispatch
 * stages make (those with `first` below `first_compute_op`, the number of the first op of the
 * compute stage) live in the arena of their portion, so that several may be in flight;
 * the others share one arena, since one portion computes at a time. On several portions those of
 * the update (`first_update_op`) have another.
 * `first_compute_op` 0 puts all of a program with a copy stage in its portion's.
 * `single_rank` says why the program cannot run on several ranks; null where it can.
 * `meeting` says what the compute stage of a portion waits for other portions with: rows by ids
 * that it makes, a sum over portions; null: nothing. Each portion then has an arena for it. */
typedef struct genrec_program_desc {
  const char *name;
  int32_t mode; /* genrec_mode */
  const int32_t *domains;
  int32_t domain_count;
  const int32_t *features;
  int32_t feature_count;
  const genrec_buffer_desc *buffers;
  int32_t buffer_count;
  int32_t first_compute_op;
  int32_t first_update_op; /* 0: none */
  genrec_stage_fn copy;
  genrec_stage_fn dispatch;
  genrec_stage_fn compute;
  genrec_stage_fn update;
  const char *single_rank;
  const char *meeting;
} genrec_program_desc;

/* What an op does per row of a domain, or (domain -1) once: bytes that it reads and
 * writes at least, those of rows picked by an index apart; floating-point operations,
 * those of matrix products apart; those of matrix products per pair of rows of one list,
 * an entry with itself and those before it; and bytes that lie there to be picked from. */
typedef struct genrec_cost {
  int32_t domain;
  double bytes;
  double gathered_bytes;
  double flops;
  double product_flops;
  double pair_flops;
  double source_bytes;
} genrec_cost;

/* A kernel or a library call, for profiles and --check-finite. */
typedef struct genrec_op_desc {
  const char *name;
  genrec_location location;
  const char *what; /* the model's ops that it came from, and their lines */
  int32_t stage;    /* genrec_stage */
  const genrec_cost *costs;
  int32_t cost_count;
  int32_t bf16;     /* whether factors of its products are rounded to bfloat16 */
  int32_t is_fused; /* whether it came from several lines of the model; `location` is one */
} genrec_op_desc;

typedef struct genrec_model_desc {
  int32_t abi_version;
  const char *name;
  const char *compiler; /* what compiled it, with its version and options */
  double clip_norm;
  double clip_value;
  const char *schedule; /* "constant", "linear", "cosine" */
  int64_t schedule_warmup;
  int64_t schedule_steps;
  double schedule_final;
  const genrec_domain_desc *domains;
  int32_t domain_count;
  const genrec_feature_desc *features;
  int32_t feature_count;
  const genrec_table_desc *tables;
  int32_t table_count;
  const genrec_parameter_desc *parameters;
  int32_t parameter_count;
  const genrec_loss_desc *losses;
  int32_t loss_count;
  const genrec_metric_desc *metrics;
  int32_t metric_count;
  const genrec_output_desc *outputs;
  int32_t output_count;
  const genrec_program_desc *programs;
  int32_t program_count;
  const genrec_op_desc *ops;
  int32_t op_count;
  const char *identity; /* JSON: what the losses are computed by, whatever passes made of it
                           (checkpoint/identity.h); null where the model does not say */
  struct genrec_rt_device *(*device)(void); /* makes the device whose memory the model's values are
                           in (genrec_rt/device.h); null for a model that runs on the host */
} genrec_model_desc;

/* Makes the device of libgenrec_rt_cuda (genrec_rt/device.h): what `genrec_model_desc.device` of
 * models for CUDA is. Throws genrec::rt::Error where there is none. */
struct genrec_rt_device *genrec_rt_cuda_device(void);

/* The one symbol that a compiled model exports. */
const genrec_model_desc *genrec_model(void);

#ifdef __cplusplus
}
#endif

#endif /* GENREC_RT_MODEL_DESC_H */
