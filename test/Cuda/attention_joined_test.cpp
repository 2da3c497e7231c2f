// Gradients of attention that go on to what q, k and v are the silu of: those that it stores as
// floats, multiplied and rounded as a row kernel behind it does, with the same bits.

#include "attention_factors_testing.h"

#include "genrec_rt/kernels/shared/math.h"

namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

/// Where the columns of x are: q, k and v in any order, behind the rest.
struct Layout {
  int64_t restWidth;
  int order[3]; ///< the parts one behind another: 0 is q, 1 is k, 2 is v
  bool isThere; ///< whether the rest is in dx before
};

/// x, with columns that attention does not read and no row behind the last one, and dx.
struct Joined {
  int64_t width, ldX, ldRest, column[3];
  std::vector<float> values;
  std::vector<Bf16> first;
  DeviceArray<float> x;
  DeviceArray<Bf16> rest, dx;

  Joined(const ModelCall &call, const Layout &layout, Random &random)
      : width(layout.restWidth + 2 * call.qk + call.vSize), ldX(width + 8),
        ldRest(layout.restWidth + 16), values(draw(call.rows * ldX, random)),
        first(static_cast<size_t>(call.capacity * ldRest)), x(values), rest(fill(first, random)),
        dx(std::vector<Bf16>(static_cast<size_t>((call.capacity + 1) * width), Bf16{0x7FC1})) {
    int64_t next = layout.restWidth;
    for (int part : layout.order) {
      column[part] = next;
      next += part == 2 ? call.vSize : call.qk;
    }
  }

  /// Some are so low that what they leave of a gradient is below the least normal number.
  static std::vector<float> draw(int64_t count, Random &random) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = static_cast<float>(random.below(8) ? 6 * random.real() - 3 : random.real() - 86);
    return values;
  }
  static std::vector<Bf16> fill(std::vector<Bf16> &values, Random &random) {
    for (Bf16 &value : values)
      value = bf16Factor(static_cast<float>(random.real()));
    return values;
  }
};

/// What a row kernel makes of a gradient of silu(x).
Bf16 expectedOf(float gradient, float x) {
  const float s = genrec::rt::kernels::sigmoid(x);
  return bf16Factor(gradient * (s * (1.0f + x * (1.0f - s))));
}

void expectSame(Bf16 got, Bf16 expected, const std::string &where) {
#if defined(GENREC_SIMT)
  ASSERT_EQ(got.bits, expected.bits) << where;
#else // whose compiler may add and multiply in one
  ASSERT_NEAR(toFloat(got), toFloat(expected), 0x1p-7 * std::fabs(toFloat(expected)) + 1e-6)
      << where;
#endif
}

template <int Heads, int Qk, int V, ScoreKind Score, unsigned Features, AttentionLevel Level>
void check(const std::vector<int64_t> &lengths, uint64_t seed, const Layout &layout) {
  SCOPED_TRACE("level " + std::to_string(static_cast<int>(Level)));
  using Calls = Bf16Attention<Heads, Qk, V, Score, Features, Level>;
  ModelCall call(referenceOf<AttentionConfig<Bf16, Qk, V, Score, Features>>(Heads),
                 {lengths, seed, /*before=*/true});
  auto forward = ModelCall::room(Calls::forwardBytes(call.args, &call.factors)),
       backward = ModelCall::room(Calls::backwardBytes(call.args, &call.factors)),
       again = ModelCall::room(Calls::backwardBytes(call.args, &call.factors));
  Calls::forward(call.args, call.own, forward.data(), testStream(), &call.factors);
  Calls::backward(call.args, call.own, call.gradients, backward.data(), testStream(),
                  &call.factors);

  Joined joined(call, layout, call.random);
  JoinedGradients to{joined.x.data(),  joined.ldX,       joined.dx.data(), joined.width,
                     joined.column[0], joined.column[1], joined.column[2]};
  if (layout.restWidth > 0) {
    to.rest = layout.isThere ? joined.dx.data() : joined.rest.data();
    to.ldRest = layout.isThere ? joined.width : joined.ldRest;
    to.restWidth = layout.restWidth;
  }
  DeviceMatrix<float> dPosition({}, 1, static_cast<int64_t>(call.in.positionBias.size()), 0);
  genrec::rt::kernels::AttentionGradients gradients;
  gradients.ldDOut = call.gradients.ldDOut;
  gradients.dPositionBias = dPosition.memory.data();
  Calls::joinedBackward(call.args, call.own, gradients, to, again.data(), testStream(),
                        call.factors);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());

  const std::vector<Bf16> dx = joined.dx.read();
  auto expectPart = [&](int part, DeviceMatrix<float> &floats) {
    const std::vector<float> dense = floats.memory.read();
    for (int64_t row = 0; row < call.rows; ++row)
      for (int64_t i = 0; i < floats.columns; ++i) {
        const int64_t at = joined.column[part] + i;
        expectSame(dx[static_cast<size_t>(row * joined.width + at)],
                   expectedOf(dense[static_cast<size_t>(row * floats.ld + i)],
                              joined.values[static_cast<size_t>(row * joined.ldX + at)]),
                   std::to_string(part) + ", row " + std::to_string(row) + " column " +
                       std::to_string(i));
      }
  };
  expectPart(0, call.dQ);
  expectPart(1, call.dK);
  expectPart(2, call.dV);
  for (int64_t row = 0; row <= call.capacity; ++row)
    for (int64_t at = 0; at < joined.width; ++at) {
      const Bf16 got = dx[static_cast<size_t>(row * joined.width + at)];
      if (row == call.capacity)
        ASSERT_EQ(got.bits, 0x7FC1) << "written behind the capacity";
      else if (row >= call.rows)
        ASSERT_EQ(got.bits, 0) << "row " << row;
      else if (at < layout.restWidth)
        ASSERT_EQ(got.bits, layout.isThere
                                ? 0x7FC1
                                : joined.first[static_cast<size_t>(row * joined.ldRest + at)].bits);
    }
  for (size_t i = 0; i < call.in.positionBias.size() && call.config.positionBias; ++i)
    ASSERT_EQ(dPosition.memory.read()[i], call.dPosition.memory.read()[i]);
}

template <int Heads, int Qk, int V, ScoreKind Score, unsigned Features>
void checkAll(const std::vector<int64_t> &lengths, uint64_t seed, const Layout &layout) {
  check<Heads, Qk, V, Score, Features, AttentionLevel::plain>(lengths, seed, layout);
  check<Heads, Qk, V, Score, Features, AttentionLevel::mma>(lengths, seed, layout);
  check<Heads, Qk, V, Score, Features, AttentionLevel::hopper>(lengths, seed, layout);
}

TEST(AttentionJoined, BehindTheRest) {
  checkAll<2, 16, 32, ScoreKind::silu, kCausal + kPositionBias>({0, 1, 17, 30}, 1,
                                                                {64, {2, 0, 1}, true});
}

TEST(AttentionJoined, BehindARestThatIsElsewhere) {
  checkAll<1, 32, 8, ScoreKind::silu, kCausal>({5, 33}, 2, {24, {1, 2, 0}, false});
}

TEST(AttentionJoined, WithoutARest) {
  checkAll<2, 24, 16, ScoreKind::softmax, kCausal>({3, 65, 0}, 3, {0, {0, 1, 2}, false});
}

/// Rows that leave through shared memory, of which a row takes several parts.
TEST(AttentionJoined, WideHeadsOfHopper) {
  check<2, 128, 128, ScoreKind::silu, kCausal + kPositionBias, AttentionLevel::hopper>(
      {1, 130, 66}, 4, {256, {2, 0, 1}, true});
  check<1, 128, 72, ScoreKind::silu, kCausal, AttentionLevel::hopper>({70}, 5,
                                                                      {72, {0, 2, 1}, true});
}

TEST(AttentionJoined, HeadsWiderThanTensorCoresTake) {
  check<1, 264, 8, ScoreKind::silu, kCausal, AttentionLevel::mma>({3, 20}, 6,
                                                                  {8, {2, 0, 1}, false});
}

/// Of lists without rows all of dx are zeros.
TEST(AttentionJoined, NoRows) {
  checkAll<1, 32, 8, ScoreKind::silu, kCausal>({0, 0}, 7, {8, {1, 2, 0}, true}); // as above
}

} // namespace
