// What attention's backward computes before its main kernel, held to its definition.

#include "attention_testing.h"

namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

constexpr int64_t kHeads = 3;
/// Lists that begin and end within spans of rows, and within groups of lanes.
const std::vector<int64_t> kOffsets = {0, 0, 3, 43, 44, 44, 210, 226, 227};
/// So few that their tiles are listed by a block beside those that go through rows.
const std::vector<int64_t> kFewOffsets = {0, 60, 227};
constexpr int64_t kAllRows = 227;

/// Random rows of all heads.
struct Rows {
  int64_t size; ///< of a head
  DeviceMatrix<Bf16> matrix;
  std::vector<Bf16> values = matrix.memory.read();

  Rows(int64_t size, Random &random)
      : size(size), matrix(drawn(size, random), kAllRows, kHeads * size, 8, NAN) {}
  double at(int64_t row, int64_t head, int64_t i) const {
    return toFloat(values[static_cast<size_t>(row * matrix.ld + head * size + i)]);
  }
  double product(const Rows &other, int64_t row, int64_t head) const {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += at(row, head, i) * other.at(row, head, i);
    return sum;
  }
  double norm(int64_t row, int64_t head) const { return std::sqrt(product(*this, row, head)); }
  double most(int64_t row, int64_t head) const {
    double most = 0;
    for (int64_t i = 0; i < size; ++i)
      most = std::max(most, std::fabs(at(row, head, i)));
    return most;
  }

private:
  static std::vector<double> drawn(int64_t size, Random &random) {
    std::vector<double> values;
    for (int64_t i = 0; i < kAllRows * kHeads * size; ++i)
      values.push_back(random.real());
    return values;
  }
};

/// `count` words of device memory.
template <class T> std::vector<T> fetched(const T *from, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  GENREC_CUDA_CHECK(
      cudaMemcpy(values.data(), from, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

void expectNear(double got, double expected, const std::string &what) {
  EXPECT_NEAR(got, expected, 1e-5 * std::fabs(expected)) << what;
}

template <class C, AttentionLevel Level> struct Preparation {
  static constexpr bool kTensorCores = Level != AttentionLevel::plain;
  Random random{C::Softmax + 2 * static_cast<uint64_t>(Level)};
  Rows k{C::Qk, random}, v{C::V, random}, dOut{C::V, random}, out{C::V, random};
  const std::vector<int64_t> &begins;
  int64_t lists = std::ssize(begins) - 1;
  DeviceArray<int64_t> offsets{begins};
  AttentionArgs<Bf16> args;
  BackwardSpace space;

  explicit Preparation(const std::vector<int64_t> &begins) : begins(begins) {}

  void check() {
    args.parents = lists, args.heads = kHeads, args.rows = kAllRows + 1, args.maxLength = 170;
    args.offsets = offsets.data(), args.scale = -0.25f, args.dropProbability = 0.5f;
    args.k = k.matrix.memory.data(), args.ldK = k.matrix.ld;
    args.v = v.matrix.memory.data(), args.ldV = v.matrix.ld;
    args.out = out.matrix.memory.data(), args.ldOut = out.matrix.ld;
    args.positionBuckets = args.timeBuckets = 2;
    AttentionGradients<Bf16> gradients;
    gradients.dOut = dOut.matrix.memory.data(), gradients.ldDOut = dOut.matrix.ld;
    test::Scratch memory(detail::BackwardLayout::of<C>(args, Level, nullptr).bytes);
    const auto layout = detail::BackwardLayout::of<C>(args, Level, memory.data());
    space = layout.space;
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(memory.data(), 0, static_cast<size_t>(layout.clearedBytes), testStream()));
    detail::prepareBackward<C, Level>(args, gradients, layout, testStream());
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    checkLists();
    checkRows();
  }

private:
  void checkLists() {
    const auto most =
        fetched(reinterpret_cast<const float *>(space.listMost), lists * kHeads * kListMosts);
    double greatest = 0;
    for (int64_t list = 0; list < lists; ++list)
      for (int64_t head = 0; head < kHeads; ++head) {
        double expected[kListMosts] = {};
        greatest = std::max(greatest, expectedOf(list, head, expected));
        for (int64_t n = 0; n < kListMosts; ++n)
          expectNear(most[static_cast<size_t>((list * kHeads + head) * kListMosts + n)],
                     expected[n],
                     "list " + std::to_string(list) + ", head " + std::to_string(head) +
                         ", number " + std::to_string(n));
      }
    expectNear(fetched(reinterpret_cast<const float *>(space.greatest), 1)[0],
               kHasBiases<C> ? greatest : 0, "greatest bound");
  }
  /// Returns the bound of |dS_ij|.
  double expectedOf(int64_t list, int64_t head, double (&most)[kListMosts]) {
    const int64_t begin = begins[static_cast<size_t>(list)],
                  end = begins[static_cast<size_t>(list + 1)];
    const auto length = static_cast<double>(end - begin);
    for (int64_t row = begin; row < end; ++row) {
      most[kMostValue] = std::max(most[kMostValue], v.norm(row, head));
      most[kMostKey] = std::max(most[kMostKey], k.most(row, head));
      most[kMostGradient] = std::max(most[kMostGradient], dOut.norm(row, head));
      most[kMostProduct] = std::max(most[kMostProduct], std::fabs(dOut.product(out, row, head)));
    }
    if (length == 0)
      return 0;
    const double kept = C::Dropout ? 2 : 1, slack = kBoundSlack;
    most[kMostValue] *= kept * slack * (C::Softmax ? 1 : 1.1 / length);
    most[kMostKey] *= kTensorCores ? 0.25 * (C::Softmax ? 1 : length) : 0;
    if (!C::Softmax)
      most[kMostProduct] = 0;
    const double bound = most[kMostValue] * most[kMostGradient] + most[kMostProduct] * slack;
    if (!kHasBiases<C>)
      most[kMostGradient] = most[kMostProduct] = 0;
    return bound;
  }

  void checkRows() {
    for (int64_t head = 0; head < kHeads; ++head) {
      if (kTensorCores) {
        const auto norms = fetched(space.rowNorm + head * args.rows, kAllRows);
        for (int64_t row = 0; row < kAllRows; ++row)
          expectNear(norms[static_cast<size_t>(row)], dOut.norm(row, head), "norm");
        for (int64_t panel = head * kQueryPanels<C>; panel < (head + 1) * kQueryPanels<C>; ++panel)
          for (int sum :
               fetched(space.querySums + panel * args.rows * kPanelColumns, kAllRows * kPanelColumns))
            EXPECT_EQ(sum, 0);
      }
      if (C::Softmax) {
        const auto products = fetched(space.rowProduct + head * args.rows, kAllRows);
        for (int64_t row = 0; row < kAllRows; ++row)
          EXPECT_NEAR(products[static_cast<size_t>(row)], dOut.product(out, row, head), 1e-5);
      }
    }
  }
};

template <unsigned Features, ScoreKind Score, int Qk, int V, AttentionLevel Level>
void checkPreparation(const std::vector<int64_t> &begins = kOffsets) {
  Preparation<AttentionConfig<Bf16, Qk, V, Score, Features>, Level>(begins).check();
}

TEST(AttentionPrepare, NormsAndBoundsAreThoseOfTheirLists) {
  using enum AttentionLevel;
  checkPreparation<kPositionBias + kDropout, ScoreKind::silu, 128, 72, hopper>();
  checkPreparation<kTimeBias + kDropout, ScoreKind::softmax, 40, 64, mma>();
  checkPreparation<0, ScoreKind::silu, 8, 16, mma>();
  checkPreparation<kCausal, ScoreKind::softmax, 200, 256, hopper>();
  checkPreparation<kCausal, ScoreKind::softmax, 200, 256, hopper>(kFewOffsets);
  checkPreparation<kPositionBias, ScoreKind::silu, 12, 20, plain>();
  checkPreparation<kPositionBias, ScoreKind::softmax, 5, 300, plain>();
}

} // namespace
