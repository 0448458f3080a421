#include "src/layers/mla/path_cost.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/kernels/cpu/targets.h"
#include "tests/support/scratch_dir.h"

namespace latte::path_cost_test {
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
  return {.expand = flat,
          .mha = flat,
          .absorb = flat,
          .decode = flat,
          .indexer = flat,
          .memory_gbps = 1e12};
}

constexpr IndexerDims kIndexer = {.heads = 64, .width = 128, .topk = 2048};

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

TEST(Dispatch, PricesATokenThatChoosesItsKeys) {
  const PathChoice out = ChoosePath(V3Dims(), {1, 4095}, Even(), kIndexer);
  EXPECT_EQ(out.dense_tokens, 0);
  EXPECT_EQ(out.sparse_tokens, 1);
  EXPECT_EQ(out.path, MlaPath::kAbsorbed);
  EXPECT_EQ(out.absorbed.flops + out.latent.flops, 0);
  // As an absorbed token with 2048 keys; 8192 products per key that is scored.
  EXPECT_DOUBLE_EQ(out.sparse.flops, 128.0 * (2 * 512 * 256 + 2176 * 2048));
  EXPECT_DOUBLE_EQ(out.sparse.bytes, 2.0 * (128 * 512 * 256 + 2048 * 576));
  EXPECT_DOUBLE_EQ(out.indexer.flops, 2.0 * 8192 * (1536 + 4096));
  EXPECT_DOUBLE_EQ(out.indexer.bytes, 2.0 * (8192 * 1536 + 4096 * 128));
  EXPECT_DOUBLE_EQ(out.indexer.seconds, out.indexer.flops / 100e9);
}

TEST(Dispatch, TheFirstTokenThatChoosesHasMoreKeysThanItTakes) {
  EXPECT_EQ(ChoosePath(V3Dims(), {1, 2047}, Even(), kIndexer).dense_tokens, 1);
  EXPECT_EQ(ChoosePath(V3Dims(), {1, 2048}, Even(), kIndexer).dense_tokens, 0);
  EXPECT_EQ(ChoosePath(V3Dims(), {1, 9000}, Even()).dense_tokens, 1);  // no indexer
}

TEST(Dispatch, PricesAPromptInTwoParts) {
  const PathChoice dense = ChoosePath(V3Dims(), {2048, 0}, Even());
  const PathChoice out = ChoosePath(V3Dims(), {4096, 0}, Even(), kIndexer);
  EXPECT_EQ(out.dense_tokens, 2048);
  EXPECT_EQ(out.sparse_tokens, 2048);
  EXPECT_EQ(out.absorbed.flops, dense.absorbed.flops);
  EXPECT_EQ(out.latent.seconds, dense.latent.seconds);
  EXPECT_DOUBLE_EQ(out.sparse.flops, 2048 * 128.0 * (2 * 512 * 256 + 2176 * 2048));
  EXPECT_DOUBLE_EQ(out.indexer.flops,
                   2.0 * 8192 * (2048.0 * 1536 + 2048.0 * 2048 + 2048.0 * 2049 / 2));
}

// 48 tokens are fewer than break even, 2,100 are more.
TEST(Dispatch, OnlyTokensWithAllKeysDecideThePath) {
  EXPECT_EQ(PathOf(2100, 2000), MlaPath::kLatent);
  EXPECT_EQ(ChoosePath(V3Dims(), {2100, 2000}, Even(), kIndexer).path, MlaPath::kAbsorbed);
}

TEST(Dispatch, TokensWithListsShareNoKeys) {
  MlaRates rates = Even();
  rates.decode = {{{128, 50}, {256, 100}}};
  rates.indexer = {{{1, 10}, {8, 20}}};
  rates.expand = {{{1, 1e12}}};
  rates.absorb = {{{1, 1e12}}};
  const PathChoice out = ChoosePath(V3Dims(), {8, 9992}, rates, kIndexer);
  EXPECT_NEAR(out.sparse.seconds, 8 * 128 * 2176.0 * 2048 / 50e9, 1e-9);
  EXPECT_NEAR(out.indexer.seconds, 2.0 * 8192 * (8.0 * 9992 + 36) / 20e9, 1e-9);
}

const Machine kMachine = {.isa = x86::kAvx2};

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
    const Result<MlaRates> rates = LoadRates(path_, kMachine);
    return rates ? "" : rates.error().message;
  }
  testing_support::ScratchDir dir_;
  std::string path_ = dir_.File("rates.json");
};

TEST_F(RatesFile, RoundTrips) {
  MlaRates rates = MlaRates::Typical(kMachine);
  rates.memory_gbps = 12.5;
  Write(Dump(ToJson(rates, kMachine)));
  const Result<MlaRates> back = LoadRates(path_, kMachine);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(Dump(ToJson(*back, kMachine)), Dump(ToJson(rates, kMachine)));
}

TEST(Rates, TypicalOnesKnowEveryPart) {
  for (const Isa isa : {Isa(Isa::kRef), Isa(x86::kAvx2), Isa(x86::kAvx512), Isa(x86::kAvx512Bf16),
                        Isa(x86::kAmx)}) {
    const MlaRates rates = MlaRates::Typical({.isa = isa});
    for (const RateCurve* curve :
         {&rates.expand, &rates.mha, &rates.absorb, &rates.decode, &rates.indexer}) {
      ASSERT_FALSE(curve->points.empty()) << Name(isa);
      EXPECT_GT(curve->At(1), 0) << Name(isa);
    }
  }
}

// Older files have no rate of the indexer.
TEST_F(RatesFile, WithoutTheIndexerItsTypicalRateIsUsed) {
  const std::string rest =
      R"({"isa":"avx2","memory_gbps":1,"expand":[[1,1]],"mha":[[1,1]],"absorb":[[1,1]],)";
  EXPECT_EQ(Message(rest + R"("decode":[[1,1]]})"), "");
  EXPECT_EQ(LoadRates(path_, kMachine)->indexer.At(3), MlaRates::Typical(kMachine).indexer.At(3));
  EXPECT_EQ(Message(rest + R"("decode":[[1,1]],"indexer":[[1,7]]})"), "");
  EXPECT_EQ(LoadRates(path_, kMachine)->indexer.At(3), 7);
  EXPECT_NE(Message(rest + R"("decode":[[1,1]],"indexer":[[1,0]]})").find("positive rate"),
            std::string::npos);
  EXPECT_NE(Message(rest + R"("indexer":[[1,7]]})").find("decode"), std::string::npos);
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

// Where the rates of this machine are looked for, for the length of a test.
class HomeOfRates : public RatesFile {
 protected:
  void TearDown() override {
    for (const char* name : {"LATTE_RATES", "XDG_CACHE_HOME"}) unsetenv(name);
    if (home_.empty())
      unsetenv("HOME");
    else
      setenv("HOME", home_.c_str(), 1);
  }
  static std::string Env(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  }
  // The warning of MachineRates, after a check that it returned typical rates or the file's.
  static std::string Warning(bool typical) {
    const FoundRates found = MachineRates(kMachine);
    EXPECT_EQ(
        Dump(ToJson(found.rates, kMachine)) == Dump(ToJson(MlaRates::Typical(kMachine), kMachine)),
        typical)
        << found.warning;
    return found.warning;
  }
  const std::string home_ = Env("HOME");
  MlaRates own_ = [] {
    MlaRates rates = MlaRates::Typical(kMachine);
    rates.memory_gbps = 12.5;
    return rates;
  }();
};

TEST_F(HomeOfRates, AHomeThatCannotBeReadIsNoNews) {
  unsetenv("LATTE_RATES");
  const std::string loop = dir_.File("loop");
  std::filesystem::create_symlink("loop", loop);
  const std::string closed = dir_.File("closed");
  std::filesystem::create_directories(closed + "/latte");
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  const std::string file = dir_.File("file");
  std::ofstream(file) << "x";
  for (const std::string& cache :
       {loop, closed, file, dir_.File("none"), "/" + std::string(300, 'x'),
        std::string(5000, '/') + "x", std::string("/dev/null")}) {
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    EXPECT_EQ(Warning(true), "") << cache.substr(0, 50);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", cache.c_str(), 1);
    EXPECT_EQ(Warning(true), "") << cache.substr(0, 50);
  }
  std::filesystem::permissions(closed, std::filesystem::perms::all);
  unsetenv("HOME");
  EXPECT_EQ(Warning(true), "");
}

TEST_F(HomeOfRates, ADamagedFileIsAWarning) {
  setenv("XDG_CACHE_HOME", dir_.File("cache").c_str(), 1);
  std::filesystem::create_directories(dir_.File("cache/latte"));
  path_ = dir_.File("cache/latte/rates.json");
  Write(Dump(ToJson(own_, kMachine)));
  EXPECT_EQ(Warning(false), "");
  Write(Dump(ToJson(own_, {.isa = x86::kAmx})));
  EXPECT_EQ(Warning(true), "");  // of another machine that shares the home
  for (const char* text : {"", "{", "[]", R"({"isa": "avx2"})", R"({"isa": 7})"}) {
    Write(text);
    EXPECT_NE(Warning(true).find("rates.json"), std::string::npos) << text;
  }
  std::filesystem::remove(path_);
  std::filesystem::create_directories(path_);
  EXPECT_NE(Warning(true).find("a directory"), std::string::npos);
}

TEST_F(HomeOfRates, AFileThatTheUserNamedIsMissed) {
  setenv("LATTE_RATES", path_.c_str(), 1);
  EXPECT_NE(Warning(true).find(path_), std::string::npos);
  Write(Dump(ToJson(own_, {.isa = x86::kAmx})));
  EXPECT_NE(Warning(true).find("found rates of amx"), std::string::npos);
  Write(Dump(ToJson(own_, kMachine)));
  EXPECT_EQ(Warning(false), "");
  setenv("LATTE_RATES", "", 1);  // says that there are none
  EXPECT_EQ(Warning(true), "");
}

TEST(Rates, EveryInstructionSetHasTypicalOnes) {
  for (const Isa isa : AllIsas())
    EXPECT_EQ(ChoosePath(V3Dims(), {1, 4096}, MlaRates::Typical({.isa = isa})).path,
              MlaPath::kAbsorbed)
        << Name(isa);
}

}  // namespace
}  // namespace latte::path_cost_test
