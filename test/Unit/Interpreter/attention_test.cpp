//===- attention_test.cpp - every option of attention ---------------------===//
//
// For all combinations of attention's options: gradients against central
// differences, and a block that says the same as the ops it is made of.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "llvm/Support/FormatVariadic.h"

using namespace genrec;
using namespace genrec::interpreter;
using genrec::test::ParsedModel;

namespace {

enum class TimeBias { none, own, next };

struct AttentionCase {
  bool softmax, causal, window, position, fixed, dropout;
  TimeBias time;
  int heads;
  bool contextual = false, target = false;

  std::string attributes() const {
    std::string text = llvm::formatv("heads = {0}, scale = 0.7", heads);
    for (auto [holds, attribute] : {std::pair(causal, "causal"),
                                    {window, "window = 2"},
                                    {fixed, "fixed_length = 3.0"},
                                    {dropout, "dropout = 0.3, stream = 512"},
                                    {time == TimeBias::next, "next_event_time"},
                                    {contextual, "contextual = 2"}})
      if (holds)
        text += std::string(", ") + attribute;
    return text;
  }
  std::string biases() const {
    return std::string(position ? " position_bias %position" : "") +
           (time != TimeBias::none ? " time_bias %tb time %time" : "") +
           (target ? " target %target" : "");
  }
  std::string biasTypes() const {
    return std::string(position ? ", tensor<5xf32>" : "") +
           (time != TimeBias::none ? ", tensor<40xf32>, !hi" : "") + (target ? ", !ui" : "");
  }
  const char *score() const { return softmax ? "softmax" : "silu"; }
};

std::vector<AttentionCase> allCases() {
  std::vector<AttentionCase> cases;
  for (unsigned bits = 0; bits < 64; ++bits)
    for (TimeBias time : {TimeBias::none, TimeBias::own, TimeBias::next}) {
      AttentionCase c{(bits & 1) != 0,
                      (bits & 2) != 0,
                      (bits & 4) != 0,
                      (bits & 8) != 0,
                      (bits & 16) != 0,
                      (bits & 32) != 0,
                      time,
                      1 + int(bits / 3 % 2),
                      bits % 5 >= 3,
                      bits % 7 >= 4};
      if (!(c.softmax && c.fixed))
        cases.push_back(c);
    }
  return cases;
}

constexpr const char *kHead = R"(
!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!h = tensor<?xf32, #genrec.rows<@history>>
!h4 = tensor<?x4xf32, #genrec.rows<@history>>
!h8 = tensor<?x8xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!ui = tensor<?xi64, #genrec.rows<@user>>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {}>
genrec.model @attention {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.table @q dim 4 {init = #init, optimizer = #sgd}
  genrec.table @k dim 4 {init = #init, optimizer = #sgd}
  genrec.table @v dim 8 {init = #init, optimizer = #sgd}
  genrec.parameter @position : tensor<5xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @time : tensor<40xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @uvqk : tensor<8x24xf32> {init = #genrec.init<normal, 0.5>, optimizer = #sgd}
  genrec.parameter @out : tensor<8x8xf32> {init = #init, optimizer = #sgd}
  genrec.parameter @bias : tensor<8xf32> {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %id = genrec.feature %history "history.id" : (!history) -> !hi
    %time = genrec.feature %history "history.time" : (!history) -> !hi
    %v = genrec.lookup %id in @v : (!hi) -> !h8
    %user_id = genrec.feature %user "user" : (!user) -> !ui
    %target = genrec.mod %user_id {divisor = 4 : i64} : (!ui) -> !ui
    %position = genrec.param @position : tensor<5xf32>
    %tb = genrec.param @time : tensor<40xf32>
)";

constexpr const char *kTail = R"(
    %weights = genrec.constant dense<[0.5, -1.0, 2.0, 0.25, -0.5, 1.0, -0.125, 3.0]> : tensor<8xf32>
    %weighted = genrec.mul %y, %weights : (!h8, tensor<8xf32>) -> !h8
    %sum = genrec.row_reduce sum %weighted : (!h8) -> !h
    genrec.loss "l" %sum : !h
  }
}
)";

std::string attentionModel(const AttentionCase &c) {
  return std::string(kHead) +
         llvm::formatv(R"(
    %q = genrec.lookup %id in @q : (!hi) -> !h4
    %k = genrec.lookup %id in @k : (!hi) -> !h4
    %y = genrec.attention {0} %q, %k, %v{1} {{{2}} : (!h4, !h4, !h8{3}) -> !h8)",
                       c.score(), c.biases(), c.attributes(), c.biasTypes())
             .str() +
         kTail;
}

std::string blockModel(const AttentionCase &c) {
  int dv = 8 / c.heads, qk = 4 / c.heads;
  return std::string(kHead) +
         llvm::formatv(R"(
    %uvqk = genrec.param @uvqk : tensor<8x24xf32>
    %out = genrec.param @out : tensor<8x8xf32>
    %bias = genrec.param @bias : tensor<8xf32>
    %y = genrec.hstu_block {0} %v, %uvqk, %out, %bias{1} {{{2}, qk = {4}, dv = {5}, eps = 1.0e-3{6}}
        : (!h8, tensor<8x24xf32>, tensor<8x8xf32>, tensor<8xf32>{3}) -> !h8)",
                       c.score(), c.biases(), c.attributes(), c.biasTypes(), qk, dv,
                       c.dropout ? ", linear_dropout = 0.25" : "")
             .str() +
         kTail;
}

Batch makeBatch(ParsedModel &parsed, uint64_t seed) {
  RandomBatchOptions options;
  options.rows = 4;
  options.longestList = 6;
  return randomBatch(parsed.program(), seed, options);
}

/// Returns how many derivatives are not 0.
int64_t expectRightGradients(const std::string &text, uint64_t seed) {
  ParsedModel parsed(text);
  Batch batch = makeBatch(parsed, seed);
  parsed.differentiate();
  llvm::Expected<GradientCheck> check =
      checkGradients(parsed.program(ProgramMode::train), batch, State(parsed.model(), 3));
  if (!check) {
    ADD_FAILURE() << llvm::toString(check.takeError());
    return 0;
  }
  for (const GradientMismatch &wrong : check->mismatches)
    ADD_FAILURE() << wrong.name << " [" << wrong.row << ", " << wrong.column << "] has gradient "
                  << wrong.gradient << ", difference " << wrong.difference << " in " << text;
  int64_t nonzero = 0;
  for (const GradientSummary &summary : check->summaries)
    nonzero += summary.nonzero;
  return nonzero;
}

} // namespace

TEST(Attention, GradientsOfEveryCombinationOfOptions) {
  uint64_t seed = 1;
  int64_t nonzero = 0;
  for (const AttentionCase &c : allCases())
    nonzero += expectRightGradients(attentionModel(c), seed++);
  EXPECT_GT(seed, 140u);
  EXPECT_GT(nonzero, 5000);
}

TEST(Attention, HstuBlockIsWhatItIsDecomposedInto) {
  uint64_t seed = 1;
  for (const AttentionCase &c : allCases()) {
    if (++seed % 3 != 0 || c.softmax) // a block is much work, and its options are attention's
      continue;
    ParsedModel parsed(blockModel(c));
    Batch batch = makeBatch(parsed, seed);
    State state(parsed.model(), 3), same = state;
    llvm::Expected<Results> whole = runProgram(parsed.program(), batch, state, Mode::train);
    ASSERT_TRUE(bool(whole)) << llvm::toString(whole.takeError());
    parsed.differentiate();
    RunOptions forward;
    forward.forwardOnly = true;
    llvm::Expected<Results> parts =
        runProgram(parsed.program(ProgramMode::train), batch, same, Mode::train, forward);
    ASSERT_TRUE(bool(parts)) << llvm::toString(parts.takeError());
    EXPECT_NEAR(*whole->loss(), *parts->loss(), 1e-6 * (1 + std::abs(*whole->loss())))
        << blockModel(c);
  }
}

TEST(Attention, GradientsOfTheBlock) {
  uint64_t seed = 1;
  int64_t nonzero = 0;
  for (const AttentionCase &c : allCases())
    if (++seed % 9 == 0 && !c.softmax)
      nonzero += expectRightGradients(blockModel(c), seed);
  EXPECT_GT(nonzero, 500);
}
