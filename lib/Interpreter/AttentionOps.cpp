//===- AttentionOps.cpp - attention, its gradient, HSTU blocks ------------===//

#include "genrec/Interpreter/Evaluator.h"

#include <cmath>
#include <deque>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

namespace {

/// The options of attention, of any op that has them.
struct AttentionOptions {
  int64_t heads, window, contextual, stream;
  double scale, fixedLength, dropout;
  bool isSoftmax, causal, nextEventTime, bf16;

  template <class OpT>
  explicit AttentionOptions(OpT op)
      : heads(op.getHeads()), window(op.getWindow()), contextual(op.getContextual()),
        stream(op.getStream()), scale(op.getScale().convertToDouble()),
        fixedLength(op.getFixedLength().convertToDouble()),
        dropout(op.getDropout().convertToDouble()), isSoftmax(op.getScore() == ScoreKind::softmax),
        causal(op.getCausal()), nextEventTime(op.getNextEventTime()), bf16(op.getBf16()) {}
};

/// The operands of attention, q, k and v rounded with `bf16`; biases, time and target may be null.
struct AttentionOperands {
  const Tensor *q, *k, *v, *positionBias, *timeBias, *time, *target;

  template <class OpT>
  AttentionOperands(Evaluator &e, OpT op)
      : AttentionOperands(e, op.getPositionBias(), op.getTimeBias(), op.getTime(), op.getTarget()) {
    if constexpr (!std::is_same_v<OpT, HstuBlockOp>) {
      setFactors(e, op, e.get(op.getQ()), e.get(op.getK()), e.get(op.getV()));
    }
  }

  void setFactors(Evaluator &e, ProductOpInterface op, const Tensor &queries, const Tensor &keys,
                  const Tensor &values) {
    q = &static_cast<const Tensor &>(factors.emplace_back(e, op, queries));
    k = &static_cast<const Tensor &>(factors.emplace_back(e, op, keys));
    v = &static_cast<const Tensor &>(factors.emplace_back(e, op, values));
  }

private:
  std::deque<Factor> factors; // which q, k and v point into
  AttentionOperands(Evaluator &e, Value positionBias, Value timeBias, Value time, Value target)
      : q(nullptr), k(nullptr), v(nullptr), positionBias(optional(e, positionBias)),
        timeBias(optional(e, timeBias)), time(optional(e, time)), target(optional(e, target)) {}

  static const Tensor *optional(Evaluator &e, Value value) {
    return value ? &e.get(value) : nullptr;
  }
};

/// Gradients of the operands.
struct AttentionGradients {
  Tensor q, k, v, positionBias, timeBias;
};

/// Attention within one list [begin, end), one head at a time.
class AttentionList {
public:
  AttentionList(Evaluator &e, const AttentionOptions &options, const AttentionOperands &x,
                const DomainRows &rows, int64_t begin, int64_t end)
      : e(e), options(options), x(x), rows(rows), begin(begin), length(end - begin),
        qk(x.q->width / options.heads), dv(x.v->width / options.heads), history(length) {
    if (x.target && length > 0)
      history = length - std::clamp<int64_t>(x.target->integers()[rows.parent[begin]], 0, length);
  }

  void forward(int64_t head, Tensor &out);
  /// `out` and `gradient` are the forward result and its gradient.
  void backward(int64_t head, const Tensor &out, const Tensor &gradient,
                AttentionGradients &gradients);

private:
  bool attends(int64_t i, int64_t j) const {
    if (j >= history)
      return i == j;
    if (i < std::min(options.contextual, history) || j < options.contextual)
      return true;
    return (!options.causal || j <= i) && (options.window == 0 || std::abs(i - j) < options.window);
  }
  int64_t positionBucket(int64_t i, int64_t j) const {
    int64_t size = x.positionBias->width;
    return std::clamp<int64_t>(j - i + (size - 1) / 2, 0, size - 1);
  }
  int64_t timeBucket(int64_t i, int64_t j) const;
  double score(int64_t head, int64_t i, int64_t j) const;
  /// Weights a_ij of query i before dropout, up to the divisor that is returned, and the scores
  /// they come from.
  double weights(int64_t head, int64_t i);
  double round(double x) const { return options.bf16 ? e.toBf16(x) : x; }
  /// The factor of dropout for a_ij: 0 or 1 / (1 - rate); 1 without dropout.
  double keptScale(int64_t head, int64_t i, int64_t j) const;
  double divisor() const {
    return options.fixedLength != 0 ? options.fixedLength : static_cast<double>(length);
  }

  const double *query(int64_t head, int64_t i) const { return x.q->row(begin + i) + head * qk; }
  const double *key(int64_t head, int64_t j) const { return x.k->row(begin + j) + head * qk; }
  const double *value(int64_t head, int64_t j) const { return x.v->row(begin + j) + head * dv; }

  Evaluator &e;
  const AttentionOptions &options;
  const AttentionOperands &x;
  const DomainRows &rows;
  int64_t begin, length, qk, dv;
  int64_t history;               ///< number of rows before the targets
  std::vector<double> scores, a; ///< of one query; a is 0 for keys that are masked
};

double dot(const double *x, const double *y, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += x[i] * y[i];
  return sum;
}

void addScaled(double *x, double factor, const double *y, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    x[i] += factor * y[i];
}

} // namespace

int64_t AttentionList::timeBucket(int64_t i, int64_t j) const {
  const std::vector<int64_t> &time = x.time->integers();
  int64_t event = options.nextEventTime ? std::min(i + 1, length - 1) : i;
  double seconds = std::max(1.0, static_cast<double>(time[begin + event] - time[begin + j]));
  int64_t bucket = static_cast<int64_t>(std::floor(std::log(seconds) / 0.301));
  return std::min(x.timeBias->width - 1, bucket);
}

double AttentionList::score(int64_t head, int64_t i, int64_t j) const {
  double s = options.scale * dot(query(head, i), key(head, j), qk);
  if (x.positionBias)
    s += x.positionBias->floats()[positionBucket(i, j)];
  if (x.timeBias)
    s += x.timeBias->floats()[timeBucket(i, j)];
  return s;
}

double AttentionList::weights(int64_t head, int64_t i) {
  scores.assign(length, 0);
  a.assign(length, 0);
  double largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < length; ++j)
    if (attends(i, j)) {
      scores[j] = score(head, i, j);
      largest = std::max(largest, scores[j]);
    }
  for (int64_t j = 0; j < length; ++j)
    if (attends(i, j)) {
      a[j] = options.isSoftmax ? std::exp(scores[j] - largest) : silu(scores[j]);
      sum += a[j];
    }
  return options.isSoftmax ? sum : divisor();
}

double AttentionList::keptScale(int64_t head, int64_t i, int64_t j) const {
  if (options.dropout == 0 || !e.isTraining())
    return 1.0;
  uint64_t element = (static_cast<uint64_t>(head) << 20) + j;
  bool kept = e.keeps(options.dropout, options.stream, rows.identity[begin + i], element);
  return kept ? 1.0 / (1.0 - options.dropout) : 0.0;
}

void AttentionList::forward(int64_t head, Tensor &out) {
  for (int64_t i = 0; i < length; ++i) {
    double factor = 1.0 / weights(head, i);
    for (int64_t j = 0; j < length; ++j)
      if (attends(i, j))
        addScaled(out.row(begin + i) + head * dv, round(a[j]) * factor * keptScale(head, i, j),
                  value(head, j), dv);
  }
}

void AttentionList::backward(int64_t head, const Tensor &out, const Tensor &gradient,
                             AttentionGradients &gradients) {
  std::vector<double> da(length);
  for (int64_t i = 0; i < length; ++i) {
    double factor = 1.0 / weights(head, i);
    if (options.isSoftmax) {
      for (double &weight : a)
        weight *= factor;
      factor = 1.0;
    }
    const double *unrounded = gradient.row(begin + i) + head * dv;
    std::vector<double> g(unrounded, unrounded + dv);
    for (double &element : g)
      element = round(element);
    double weighted = 0; // Σ_j a_ij da_ij
    for (int64_t j = 0; j < length; ++j) {
      if (!attends(i, j))
        continue;
      double scale = keptScale(head, i, j);
      addScaled(gradients.v.row(begin + j) + head * dv, round(a[j]) * factor * scale, g.data(), dv);
      da[j] = scale * dot(g.data(), value(head, j), dv);
      weighted += a[j] * da[j];
    }
    if (options.bf16) // as kernels do, which is another number once factors are rounded
      weighted = dot(unrounded, out.row(begin + i) + head * dv, dv);
    // with one key this is da itself: the difference below is rounding only
    weighted = e.perturbed(weighted);
    for (int64_t j = 0; j < length; ++j) {
      if (!attends(i, j))
        continue;
      double ds =
          options.isSoftmax ? a[j] * (da[j] - weighted) : da[j] * siluSlope(scores[j]) * factor;
      double scaled = options.scale * round(ds);
      addScaled(gradients.q.row(begin + i) + head * qk, scaled, key(head, j), qk);
      addScaled(gradients.k.row(begin + j) + head * qk, scaled, query(head, i), qk);
      if (x.positionBias)
        gradients.positionBias.floats()[positionBucket(i, j)] += ds;
      if (x.timeBias)
        gradients.timeBias.floats()[timeBucket(i, j)] += ds;
    }
  }
}

/// Calls `body(list, head)` for every list and head.
template <class Body>
static void forEachHead(Evaluator &e, const AttentionOptions &options, const AttentionOperands &x,
                        const DomainRows &rows, Body body) {
  rows.forEachList([&](int64_t begin, int64_t end) {
    AttentionList list(e, options, x, rows, begin, end);
    for (int64_t head = 0; head < options.heads; ++head)
      body(list, head);
  });
}

static Tensor attend(Evaluator &e, const AttentionOptions &options, const AttentionOperands &x,
                     const DomainRows &rows) {
  Tensor out = Tensor::make<double>(x.v->rows, x.v->width);
  forEachHead(e, options, x, rows,
              [&](AttentionList &list, int64_t head) { list.forward(head, out); });
  return out;
}

static Error evaluateAttention(Evaluator &e, AttentionOp op) {
  e.set(op.getResult(),
        attend(e, AttentionOptions(op), AttentionOperands(e, op), e.rowsOf(op.getType())));
  return Error::success();
}

/// Evaluates the gradients, and sets those of biases.
template <class OpT> static AttentionGradients backward(Evaluator &e, OpT op) {
  AttentionOptions options(op);
  AttentionOperands x(e, op);
  const Tensor &out = e.get(op.getOut()), &gradient = e.get(op.getGradient());
  auto zeros = [](const Tensor *like) {
    return like ? Tensor::make<double>(like->rows, like->width, like->shared) : Tensor();
  };
  AttentionGradients gradients{zeros(x.q), zeros(x.k), zeros(x.v), zeros(x.positionBias),
                               zeros(x.timeBias)};
  forEachHead(e, options, x, e.rowsOf(op.getV().getType()), [&](AttentionList &list, int64_t head) {
    list.backward(head, out, gradient, gradients);
  });
  if (op.getDpositionBias())
    e.set(op.getDpositionBias(), std::move(gradients.positionBias));
  if (op.getDtimeBias())
    e.set(op.getDtimeBias(), std::move(gradients.timeBias));
  return gradients;
}

static Error evaluateAttentionGrad(Evaluator &e, AttentionGradOp op) {
  AttentionGradients gradients = backward(e, op);
  e.set(op.getDq(), std::move(gradients.q));
  e.set(op.getDk(), std::move(gradients.k));
  e.set(op.getDv(), std::move(gradients.v));
  return Error::success();
}

static Error evaluateFusedAttentionGrad(Evaluator &e, FusedAttentionGradOp op) {
  AttentionGradients gradients = backward(e, op);
  const Tensor &x = e.get(op.getX());
  Tensor dx = Tensor::make<double>(x.rows, x.width);
  if (op.getRest()) {
    const Tensor &rest = e.get(op.getRest());
    for (int64_t row = 0; row < x.rows; ++row)
      std::copy_n(rest.row(row), rest.width, dx.row(row));
  }
  const Tensor *parts[] = {&gradients.q, &gradients.k, &gradients.v};
  for (auto [begin, part] : llvm::zip_equal(op.getColumns(), parts))
    forEachElement(*part, [&](int64_t row, int64_t column) {
      double slope = siluSlope(x.row(row)[begin + column]);
      dx.row(row)[begin + column] = e.toBf16(part->row(row)[column] * slope);
    });
  e.set(op.getDx(), std::move(dx));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// HSTU block
//===----------------------------------------------------------------------===//

/// Elements [offset, offset + size) of each row.
static Tensor columns(const Tensor &x, int64_t offset, int64_t size) {
  Tensor result = Tensor::make<double>(x.rows, size);
  for (int64_t row = 0; row < x.rows; ++row)
    std::copy_n(x.row(row) + offset, size, result.row(row));
  return result;
}

static Error evaluateHstuBlock(Evaluator &e, HstuBlockOp op) {
  const Tensor &x = e.get(op.getX());
  const DomainRows &rows = e.rowsOf(op.getType());
  double eps = op.getEps().convertToDouble(), dropout = op.getLinearDropout().convertToDouble();
  int64_t sizeV = op.getHeads() * op.getDv(), sizeQk = op.getHeads() * op.getQk();
  Tensor normalized = normalizeRows(x, eps);
  Tensor joint = multiply(e, Factor(e, op, normalized), Factor(e, op, e.get(op.getUvqk())),
                          2 * sizeV + 2 * sizeQk, false);
  joint = mapElements<double, double>(joint, silu);
  Tensor u = columns(joint, 0, sizeV), v = columns(joint, sizeV, sizeV);
  Tensor q = columns(joint, 2 * sizeV, sizeQk), k = columns(joint, 2 * sizeV + sizeQk, sizeQk);

  AttentionOptions options(op);
  AttentionOperands operands(e, op);
  operands.setFactors(e, op, q, k, v);
  Tensor o = normalizeRows(attend(e, options, operands, rows), eps);
  forEachElement(o, [&](int64_t row, int64_t column) {
    double &value = o.row(row)[column];
    value *= u.row(row)[column];
    if (dropout > 0 && e.isTraining())
      value = e.keeps(dropout, op.getStream() + 1, rows.identity[row], column)
                  ? value / (1.0 - dropout)
                  : 0.0;
  });
  Tensor y = multiply(e, Factor(e, op, o), Factor(e, op, e.get(op.getOutWeight())), x.width, false);
  const Tensor &bias = e.get(op.getOutBias());
  forEachElement(y, [&](int64_t row, int64_t column) {
    y.row(row)[column] += x.row(row)[column] + bias.floats()[column];
  });
  e.set(op.getResult(), std::move(y));
  return Error::success();
}

void interpreter::addAttentionOps(HandlerMap &map) {
  map.add<AttentionOp, evaluateAttention>();
  map.add<AttentionGradOp, evaluateAttentionGrad>();
  map.add<FusedAttentionGradOp, evaluateFusedAttentionGrad>();
  map.add<HstuBlockOp, evaluateHstuBlock>();
}
