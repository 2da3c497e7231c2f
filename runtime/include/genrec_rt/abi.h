/*===- abi.h - the contract between generated code and the runtime -*- C -*-===*
 *
 * Plain C structs and functions; all sizes, counts and offsets are 64-bit. A
 * compiled model exports its description (model_desc.h). The runtime drives the
 * stages; generated code calls back only what this header declares, and the
 * kernel templates under genrec_rt/kernels.
 *
 *===----------------------------------------------------------------------===*/

#ifndef GENREC_RT_ABI_H
#define GENREC_RT_ABI_H

#include <stdint.h>

#include "genrec_rt/kinds.h"
#include "genrec_rt/model_desc.h"
#include "genrec_rt/parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Increased with every incompatible change; checked when a model is loaded. */
#define GENREC_ABI_VERSION 15

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
 * one byte per row, 1 or 0, of a feature that may be null; of others null. */
typedef struct genrec_column {
  const void *values;
  const uint8_t *valid;
} genrec_column;

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

/* The distinct rows of each of several lists of handles over `domain`, part by part in the order
 * of first appearance. The parts are in groups, lookups[g] of them in group g. Fills for each group
 * *distinct[g] (count; no parent) and rows[g] (capacity: lookups[g] times that of `domain`), and
 * `places`, opaque scratch of genrec_rt_distinct_bytes(parts of all groups, capacity of `domain`)
 * bytes for kernels of step_distinct.h. */
int64_t genrec_rt_distinct_bytes(int64_t parts, int64_t capacity);
/* genrec_rt_distinct_bytes(p, c) <= GENREC_DISTINCT_BYTES_PER_ROW * p * c +
 * GENREC_DISTINCT_BYTES_PER_PART * p + GENREC_DISTINCT_BYTES. */
#define GENREC_DISTINCT_BYTES_PER_ROW 4
#define GENREC_DISTINCT_BYTES_PER_PART 8
#define GENREC_DISTINCT_BYTES 64
void genrec_rt_distinct_rows(genrec_step *step, const genrec_domain *domain, int32_t groups,
                             const int32_t *lookups, float *const *const *handles,
                             genrec_domain *const *distinct, float **const *rows, void *places);

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
