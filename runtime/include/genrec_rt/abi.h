/*===- abi.h - the contract between generated code and the runtime -*- C -*-===*
 *
 * Plain C structs and functions; all sizes, counts and offsets are 64-bit. A
 * compiled model exports `genrec_model()`, whose description the runtime reads:
 * which columns to decode, which tables and parameters to keep, which buffers a
 * step needs, and the stage functions of each program. The runtime drives the
 * stages; generated code calls back only what this header declares, and the
 * kernel templates under genrec_rt/kernels.
 *
 *===----------------------------------------------------------------------===*/

#ifndef GENREC_RT_ABI_H
#define GENREC_RT_ABI_H

#include <stdint.h>

#include "genrec_rt/kinds.h"
#include "genrec_rt/parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Increased with every incompatible change; checked when a model is loaded. */
#define GENREC_ABI_VERSION 11

/*===-- descriptors of one batch -------------------------------------------===*/

/* One domain of one batch. `count` rows are in use, buffers hold `capacity`
 * rows; `offsets` has one entry per parent row plus one (null for a root: every
 * row is a list of its own). `parent` maps a row to its parent row (null for a
 * root). `identity` is the identity of each row for random streams.
 *
 * Of a model for a device the arrays are in its memory, and the descriptor is there twice: the
 * stages read the host's, kernels and library calls the one that `device` points at. Its `count` is
 * the number of rows; the host's is that of domains that were read and of fixed rows, and -1 where
 * only the device knows it. `capacity` is the same in both. */
typedef struct genrec_domain {
  int64_t count;
  int64_t capacity;
  const int64_t *offsets;
  const int64_t *parent;
  const uint64_t *identity;
  const struct genrec_domain *parent_domain;
  int64_t max_length; /* longest list */
  struct genrec_domain
      *device; /* of a model for a device: the descriptor in its memory; else null */
} genrec_domain;

typedef struct genrec_string {
  const char *data;
  int64_t size;
} genrec_string;

/* A decoded column: `values` has the domain's row count of elements; `valid` is
 * one byte per row, null when the column holds no nulls. */
typedef struct genrec_column {
  const void *values;
  const uint8_t *valid;
} genrec_column;

/*===-- what a model is made of --------------------------------------------===*/

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
  int32_t element;  /* genrec_row_element: of values; states are floats. Equal in a group */
  int32_t rounding; /* genrec_row_rounding */
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

struct genrec_step; /* see below */
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

/*===-- what a step sees ---------------------------------------------------===*/

struct genrec_runtime; /* opaque: tables, error state, sinks */

/* Rows are those of [n, w]; [w] and scalars have one. Every rank has the whole value. It updates
 * `own_rows` rows from `first_row` on: all, unless ranks share the updates of parameters. */
typedef struct genrec_parameter {
  float *value; /* rank 0 to 2, row major */
  int64_t size;
  int64_t first_row, own_rows;
  float *own;    /* the value of row first_row */
  float *states; /* of the own rows, one after another: `states` arrays of w values each */
} genrec_parameter;

/* The context of one batch in flight. Stage functions get nothing else.
 *
 * Of a model for a device, what `columns`, `buffers` and `parameters` point at is in its memory.
 * The stages run on the host: they queue kernels and calls on `stream`, and only dispatch may wait
 * for them. Kernels get the step that `device` points at: it has `domains`, `seed`, `step` and
 * `mode`. */
typedef struct genrec_step {
  struct genrec_runtime *runtime;
  struct genrec_rt_pool *pool;
  genrec_domain *domains;       /* by domain index; derived ones are filled by generated calls */
  const genrec_column *columns; /* by feature index */
  void *const *buffers;         /* by buffer index of the program */
  genrec_parameter *parameters; /* by parameter index */
  uint64_t seed;
  uint64_t step; /* 1-based optimizer step; the current one for evaluation */
  int32_t mode;  /* genrec_mode */
  int32_t check_finite;
  int32_t profile;            /* whether genrec_rt_enter is called */
  void *stream;               /* cudaStream_t of the running stage */
  struct genrec_step *device; /* this step in the device's memory; null on the host */
} genrec_step;

/*===-- what generated code may call ---------------------------------------===*/

/* The library calls that need the runtime's state. Each fills buffers given by
 * the caller. Errors (an id out of range, an item missing from a catalogue, a
 * label that is none, a NaN score) are recorded in the runtime, name feature, file
 * and row, and end the run after the stage; the call then leaves zeros. */

/* Finds the rows of `ids` (training: inserts unseen ones) in table `table`;
 * rows[r] points at [value dim][state dim]…, a value of bf16 at (dim + 1) / 2 floats, and of a
 * table with hot rows [value][address of the lower halves][state dim]…
 * (kernels/shared/row_values.h); entries with valid[r] == 0 point at a row of zeros. `valid` may be
 * null. Outside training unseen ids, and in training ids that are not admitted yet, point at
 * temporary rows that hold initial values. */
void genrec_rt_table_rows(genrec_step *step, int32_t table, const genrec_domain *domain,
                          const int64_t *ids, const uint8_t *valid, float **rows);

/* The keys of `parts` lists of ids one after another: part p holds ids of table
 * tables[p], all of one group; -1 where valid[p] (may be null) is 0. Ids out of their
 * table's range are an error. */
void genrec_rt_merged_keys(genrec_step *step, int32_t parts, const int32_t *tables,
                           const genrec_domain *const *domains, const int64_t *const *ids,
                           const uint8_t *const *valid, int64_t *keys);
/* As genrec_rt_table_rows, by keys of the group of `table`; the key -1 has the row
 * of zeros. */
void genrec_rt_merged_rows(genrec_step *step, int32_t table, const genrec_domain *domain,
                           const int64_t *keys, float **rows);

/* Distinct touched rows among `parts` lists of handles, in the order of first
 * appearance; a handle whose gradient row (dim floats) is exactly zero is not
 * touched (unless `all`), nor is the row of zeros. Handle i of a part has gradient row i, or, where
 * `parents` holds an array for the part, gradient row parents[part][i]; gradient rows of a
 * part lie strides[part] floats apart (columns of wider rows). `table` is any of the group that the
 * rows are of. Fills *touched (count; no parent), `rows` (capacity: the sum of the parts'
 * capacities), and `segments`, opaque scratch of genrec_rt_segment_bytes(capacity) bytes for
 * genrec_rt_segment_sum and kernels/cpu/segments.h. */
int64_t genrec_rt_segment_bytes(int64_t capacity);
/* genrec_rt_segment_bytes(c) <= GENREC_SEGMENT_BYTES_PER_ROW * c + GENREC_SEGMENT_BYTES,
 * for buffer descriptors, which are linear in a capacity. */
#define GENREC_SEGMENT_BYTES_PER_ROW 40
#define GENREC_SEGMENT_BYTES 160
void genrec_rt_unique_rows(genrec_step *step, int32_t table, int32_t parts,
                           const genrec_domain *const *domains, float *const *const *handles,
                           const float *const *gradients, const int64_t *strides,
                           const int64_t *const *parents, int64_t dim, int32_t all,
                           genrec_domain *touched, float **rows, void *segments);
void genrec_rt_segment_sum(genrec_step *step, const genrec_domain *touched, const void *segments,
                           int32_t parts, const float *const *gradients, const int64_t *strides,
                           int64_t dim, float *sums);

/* The distinct rows of each of `parts` lists of handles over `domain`, part by part in the
 * order of first appearance. Fills *distinct (count; no parent), `rows` (capacity: parts times
 * that of `domain`) and `lookups`, opaque scratch of genrec_rt_distinct_bytes(parts, capacity of
 * `domain`) bytes for kernels of step_distinct.h. */
int64_t genrec_rt_distinct_bytes(int64_t parts, int64_t capacity);
/* genrec_rt_distinct_bytes(p, c) <= GENREC_DISTINCT_BYTES_PER_ROW * p * c +
 * GENREC_DISTINCT_BYTES_PER_PART * p + GENREC_DISTINCT_BYTES. */
#define GENREC_DISTINCT_BYTES_PER_ROW 4
#define GENREC_DISTINCT_BYTES_PER_PART 8
#define GENREC_DISTINCT_BYTES 64
void genrec_rt_distinct_rows(genrec_step *step, int32_t parts, const genrec_domain *domain,
                             float *const *const *handles, genrec_domain *distinct, float **rows,
                             void *lookups);

/* Sums over the portions of a batch. With one portion on one rank there is nothing to do: the sum
 * is the partial value. `number` tells the calls of a program apart. */

/* Gives `count` lists of `floats[i]` partial values to the sums of `number`. parameters[i]: the
 * parameter whose gradient list i is, and for whose update alone its sum is read; -1: none. */
void genrec_rt_contribute(genrec_step *step, int32_t number, int32_t count,
                          const float *const *partial, const int64_t *floats,
                          const int32_t *parameters);
/* The sums over all portions, once all have contributed; sums[i] may be partial[i]. Of a
 * parameter's gradient, those of the rows that this rank updates. */
void genrec_rt_collect(genrec_step *step, int32_t number, int32_t count,
                       const float *const *partial, const int64_t *floats, float *const *sums);

/* Gives the gradients of distinct rows of `table`, any of its group, to the sums: `dim` floats for
 * each row of `touched`. Or those that genrec_rt_segment_sum would add up. */
void genrec_rt_contribute_rows(genrec_step *step, int32_t table, const genrec_domain *touched,
                               float *const *rows, int64_t dim, const float *sums);
void genrec_rt_contribute_segments(genrec_step *step, int32_t table, const genrec_domain *touched,
                                   float *const *rows, const void *segments, int32_t parts,
                                   const float *const *gradients, const int64_t *strides,
                                   int64_t dim);

/* Rows of a table that this rank owns and any portion touched, and the sums of their gradients. */
typedef struct genrec_collected_rows {
  float **rows;
  float *sums; /* `dim` floats per row */
  int64_t dim;
  const int64_t *numbers; /* 0, 1, 2, ... as many as rows, and one more */
  void *segments;         /* of a device: a kernels::SegmentSums with one term per row */
} genrec_collected_rows;
/* Describes `owned`, the rows that genrec_rt_collected_rows then returns; null where they are
 * those of `touched`. */
void genrec_rt_collect_rows(genrec_step *step, int32_t table, const genrec_domain *touched,
                            genrec_domain *owned);
const genrec_collected_rows *genrec_rt_collected_rows(genrec_step *step, int32_t table);

/* sums[i]: the sum of values[i], a float per row of owned[i], over the rows of all ranks, rounded
 * once. of_parameters[i]: whether the rows are of a parameter. */
void genrec_rt_exact_sums(genrec_step *step, int32_t count, const genrec_domain *const *owned,
                          const int32_t *of_parameters, const float *const *values,
                          float *const *sums);

/* Catalogue rows of ids; -1 where valid is 0, or missing with allow_missing.
 * `catalogue_domain` and `catalogue_ids` describe the catalogue column; the
 * hash of a catalogue is built once and kept by the runtime. */
void genrec_rt_resolve(genrec_step *step, const genrec_domain *domain, const int64_t *ids,
                       const uint8_t *valid, const genrec_domain *catalogue_domain,
                       const int64_t *catalogue_ids, int32_t feature, int32_t allow_missing,
                       int64_t *rows);

/* Scalars that the trainer supplies: 0 the scheduled learning rate for a base
 * rate, 1 Adam's bias correction 1 - argument^step, 2 whether it is the first portion of the
 * batch. Computed in double. */
float genrec_rt_step_value(const genrec_step *step, int32_t kind, double argument);

/* Of a model for a device: writes a scalar to `to`, in its memory. Kinds as above, and 3 the limit
 * of genrec_rt_clip_norm, 4 that of genrec_rt_clip_value. A recorded step replays the write with
 * the value of its own step. */
void genrec_rt_store_step_value(genrec_step *step, int32_t kind, double argument, float *to);

/* Gradient clipping limits in force (flags override the model). 0: off. */
double genrec_rt_clip_norm(const genrec_step *step);
double genrec_rt_clip_value(const genrec_step *step);

/* Sinks. `valid`, `label`, `key` (of gauc's groups) and `weight` (of per_list metrics: a
 * weight per parent row) may be null. `op` is for errors, which name a row. */
void genrec_rt_report_loss(genrec_step *step, int32_t loss, float sum, float weight);
/* Of a model for a device: the same of a sum and a weight in its memory, read when the step has
 * ended. */
void genrec_rt_report_device_loss(genrec_step *step, int32_t loss, const float *sum,
                                  const float *weight);
void genrec_rt_report_metric(genrec_step *step, int32_t op, int32_t metric,
                             const genrec_domain *domain, const void *x, const float *label,
                             const uint8_t *valid, const int64_t *key, const float *weight);
/* `valid` has a byte per row or per value, as the output's `nulls` says; else null. */
void genrec_rt_report_output(genrec_step *step, int32_t output, const genrec_domain *domain,
                             const void *x, const uint8_t *valid);

/* An error unless every row of `values`, of genrec_type `type`, lies in [low, high] and below the
 * rows of `items` (may be null), but those where `valid` or `weight` (may be null) are 0.
 * `what` and `feature` (-1: none) name the values in the error. */
void genrec_rt_require_range(genrec_step *step, int32_t op, const char *what, int32_t feature,
                             const genrec_domain *domain, int32_t type, const void *values,
                             const float *weight, const uint8_t *valid, const genrec_domain *items,
                             double low, double high);

/* Records a failure of a kernel (a NaN score, a broken invariant of the data). */
void genrec_rt_fail(genrec_step *step, int32_t op, const char *message);
/* The same of one row of the data. */
void genrec_rt_fail_row(genrec_step *step, int32_t op, const genrec_domain *domain, int64_t row,
                        const char *message);

/* Of a model for a device: the first row that a kernel cannot go on with, in the device's memory.
 */
typedef struct genrec_row_note {
  int64_t place; /* its number times GENREC_NOTE_REASONS, and the number of the reason;
                    GENREC_NO_PLACE: there is none */
  int64_t root;  /* the row of the root domain above it */
  int64_t value; /* the bytes of its value, where the message says it */
} genrec_row_note;
#define GENREC_NOTE_REASONS 256
#define GENREC_NO_PLACE 0x7F7F7F7F7F7F7F7F /* a byte repeated, more than any place */
/* Of a model for a device: where kernels of this step note the first such row of `domain`, which
 * then is a failure as by genrec_rt_fail_row when the step has ended; without a domain row 0, a
 * failure as by genrec_rt_fail. `reasons`, their messages by number, must stay. Never null. */
genrec_row_note *genrec_rt_note_failure(genrec_step *step, int32_t op, const genrec_domain *domain,
                                        const char *const *reasons);

/* With --check-finite: looks for NaN and infinity in what op `op` wrote, `rows`
 * rows of `row_size` values, `stride` values from row to row. */
void genrec_rt_check_finite(genrec_step *step, int32_t op, const float *values, int64_t rows,
                            int64_t row_size, int64_t stride);
/* Of a model for a device: the same of all rows of `domain`, or of one row where it is null. */
void genrec_rt_check_device_finite(genrec_step *step, int32_t op, const float *values,
                                   const genrec_domain *domain, int64_t row_size, int64_t stride);

/* With --profile: op `op` begins, and the one before it has ended. */
void genrec_rt_enter(genrec_step *step, int32_t op);
/* With --profile: what op `op` took, which ran piece by piece between others (row_blocks.h),
 * as if it had run alone from `begin` to `end`, nanoseconds of CLOCK_MONOTONIC. */
void genrec_rt_ran(genrec_step *step, int32_t op, int64_t begin, int64_t end);

/* Scratch memory of at least `bytes`, private to the calling pool thread, kept
 * and reused: grows only when a larger size is asked for than ever before. Of a model for a
 * device it is the device's, for work that is queued before the next call that takes some. */
void *genrec_rt_thread_scratch(genrec_step *step, int64_t bytes);

/* The same for what calls that run block by block keep together (row_blocks.h): of one
 * step at a time, apart from the scratch of the calls. */
void *genrec_rt_block_memory(genrec_step *step, int64_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* GENREC_RT_ABI_H */
