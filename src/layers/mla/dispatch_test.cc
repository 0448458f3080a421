#include "src/layers/mla/dispatch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace latte {
namespace {

MlaDims V3Dims() {
  MlaDims dims;
  dims.d = 7168;
  dims.h = 128;
  dims.cq = 1536;
  dims.c = 512;
  dims.n = 128;
  dims.r = 64;
  dims.v = 128;
  return dims;
}

// Every part equally fast, memory free: the choice is then one of FLOPs alone.
MlaRates Even() {
  const RateCurve flat{{{1, 100}}};
  return {.expand = flat, .mha = flat, .absorb = flat, .decode = flat, .memory_gbps = 1e12};
}

MlaPath PathOf(int64_t q, int64_t k) { return ChoosePath(V3Dims(), {q, k}, Even()).path; }

TEST(Dispatch, CountsFlopsAsThePaperDoes) {
  const PathChoice out = ChoosePath(V3Dims(), {1, 99}, Even());
  // Per head: 2·512·256 of projection and 2·1088 per pair; 2·512·256 per key and 2·320 per pair.
  EXPECT_DOUBLE_EQ(out.absorbed.flops, 128.0 * (2 * 512 * 256 + 2176 * 100));
  EXPECT_DOUBLE_EQ(out.latent.flops, 128.0 * (2 * 512 * 256 * 100 + 640 * 100));
  EXPECT_DOUBLE_EQ(out.absorbed.seconds, out.absorbed.flops / 100e9);
  EXPECT_DOUBLE_EQ(out.latent.bytes, 2.0 * (128 * 512 * 256 + 100 * 576));
}

// With equal rates the paths break even where 2·C·(N+V)·k_cached = (2(2C+R) − 2(N+R+V))·pairs.
TEST(Dispatch, BreaksEvenWhereFlopsDo) {
  for (const int64_t cached : {512, 4096, 32768}) {
    int64_t q = 1;
    while (262144.0 * static_cast<double>(cached) >=
           1536.0 * static_cast<double>(q * cached + q * (q + 1) / 2))
      ++q;
    EXPECT_EQ(PathOf(q - 1, cached), MlaPath::kAbsorbed) << q << " new, " << cached << " cached";
    EXPECT_EQ(PathOf(q, cached), MlaPath::kLatent) << q << " new, " << cached << " cached";
  }
}

TEST(Dispatch, NewPromptsAreExpanded) {
  for (const int64_t q : {2, 17, 512, 4096}) EXPECT_EQ(PathOf(q, 0), MlaPath::kLatent) << q;
}

TEST(Dispatch, EveryChunkExpandsWhatIsCachedAgain) {
  const PathChoice one = ChoosePath(V3Dims(), {512, 0}, Even());
  const PathChoice two = ChoosePath(V3Dims(), {1024, 0}, Even());
  const double weights = 128.0 * 512 * 256;
  EXPECT_DOUBLE_EQ(two.latent.bytes - one.latent.bytes, 2 * (weights + 1024 * 576));
}

TEST(Dispatch, FasterKernelsMoveTheBreakEven) {
  MlaRates rates = Even();
  rates.decode = {{{1, 1000}}};
  EXPECT_EQ(ChoosePath(V3Dims(), {400, 4096}, rates).path, MlaPath::kAbsorbed);
  rates = Even();
  rates.expand = {{{1, 10000}}};
  EXPECT_EQ(ChoosePath(V3Dims(), {16, 4096}, rates).path, MlaPath::kLatent);
}

TEST(Dispatch, MemoryBoundsWhatHasFewFlops) {
  MlaRates rates = Even();
  rates.memory_gbps = 0.1;
  const PathChoice out = ChoosePath(V3Dims(), {1, 0}, rates);
  EXPECT_NEAR(out.absorbed.seconds, out.absorbed.bytes / 0.1e9, 1e-12);
}

TEST(Dispatch, OneChoicePerPrompt) {
  const std::vector<PromptShape> prompts = {{1, 4096}, {512, 0}};
  const std::vector<PathChoice> out = ChoosePaths(V3Dims(), prompts, Even());
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].path, MlaPath::kAbsorbed);
  EXPECT_EQ(out[1].path, MlaPath::kLatent);
}

TEST(RateCurve, IsLinearInTheLogarithmAndHeldBeyond) {
  const RateCurve curve{{{1, 10}, {4, 30}, {16, 40}}};
  EXPECT_DOUBLE_EQ(curve.At(0.5), 10);
  EXPECT_DOUBLE_EQ(curve.At(1), 10);
  EXPECT_DOUBLE_EQ(curve.At(2), 20);
  EXPECT_DOUBLE_EQ(curve.At(4), 30);
  EXPECT_DOUBLE_EQ(curve.At(8), 35);
  EXPECT_DOUBLE_EQ(curve.At(1000), 40);
}

class RatesFile : public ::testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_) << text; }
  std::string Message(const std::string& text) {
    Write(text);
    const Result<MlaRates> rates = LoadRates(path_, Isa::kAvx2);
    return rates ? "" : rates.error().message;
  }
  testing_support::ScratchDir dir_;
  std::string path_ = dir_.File("rates.json");
};

TEST_F(RatesFile, RoundTrips) {
  MlaRates rates = MlaRates::Typical(Isa::kAvx2);
  rates.memory_gbps = 12.5;
  Write(Dump(ToJson(rates, Isa::kAvx2)));
  const Result<MlaRates> back = LoadRates(path_, Isa::kAvx2);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(Dump(ToJson(*back, Isa::kAvx2)), Dump(ToJson(rates, Isa::kAvx2)));
}

TEST_F(RatesFile, RefusesWhatCannotBeRates) {
  const auto with = [](const std::string& curve) {
    return R"({"isa":"avx2","memory_gbps":1,"expand":)" + curve +
           R"(,"mha":[[1,1]],"absorb":[[1,1]],"decode":[[1,1]]})";
  };
  EXPECT_EQ(Message(with("[[1,1],[2,3]]")), "");
  EXPECT_NE(Message(with("[]")).find("expand"), std::string::npos);
  EXPECT_NE(Message(with("[[1,0]]")).find("positive rate"), std::string::npos);
  EXPECT_NE(Message(with("[[2,1],[2,3]]")).find("size above 2"), std::string::npos);
  EXPECT_NE(Message(with("[[1]]")).find("[size, gflops]"), std::string::npos);
  EXPECT_NE(Message(with("7")).find("expand"), std::string::npos);
  EXPECT_NE(Message(R"({"isa":"amx"})").find("bench calibrate"), std::string::npos);
  EXPECT_NE(Message(R"({"isa":"avx2","memory_gbps":0})").find("positive"), std::string::npos);
}

TEST(Rates, EveryInstructionSetHasTypicalOnes) {
  for (const Isa isa : kAllIsas)
    EXPECT_EQ(ChoosePath(V3Dims(), {1, 4096}, MlaRates::Typical(isa)).path, MlaPath::kAbsorbed)
        << Name(isa);
}

}  // namespace
}  // namespace latte
