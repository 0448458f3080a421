// The promise of docs/determinism.md as one table: the same request gives the same bytes alone or
// among others, whatever the chunk, the threads, and whether it was preempted; under strict
// determinism also whatever was cached before.
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/core/engine_core.h"
#include "src/models/registry.h"
#include "tests/support/parameter_name.h"

namespace latte::determinism_test {
namespace {

constexpr int64_t kPageTokens = 16;
constexpr int64_t kAnswer = 24;

// Tokens and the bits of their logprobs.
struct Bytes {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Bytes&) const = default;
};

struct Cell {
  bool batched = true;
  int64_t chunk = 4096;  // new tokens per step
  int threads = 1;
  bool preempted = false;
  std::string level = "on";
};

std::string Name(const Cell& cell) {
  return fmt::format("{} {} chunk {} threads {}{}", cell.level, cell.batched ? "batched" : "alone",
                     cell.chunk, cell.threads, cell.preempted ? " preempted" : "");
}

class DeterminismTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto loaded = LoadModel(std::string(LATTE_SOURCE_DIR) + "/" + GetParam());
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::move(*loaded);
    for (const int64_t length : {3, 17, 40, 64, 100, 130}) requests_.push_back(Ask(length));
  }

  Request Ask(int64_t length) const {
    Request r;
    for (int64_t i = 0; i < length; ++i)
      r.tokens.push_back(static_cast<int32_t>(Mix64(static_cast<uint64_t>(length * 1000 + i)) %
                                              static_cast<uint64_t>(model_->config().vocab)));
    r.sampling.temperature = 0.8;
    r.sampling.seed = static_cast<uint64_t>(length);
    r.stop.max_tokens = kAnswer;
    r.stop.ignore_eos = true;
    r.logprobs = 0;
    return r;
  }

  std::unique_ptr<EngineCore> Make(const Cell& cell) {
    EngineOptions o;
    o.page_tokens = kPageTokens;
    o.max_tokens = 256;
    o.max_sequences = 8;
    o.max_batch_tokens = cell.chunk;
    o.threads = cell.threads;
    o.deterministic = cell.level;
    const CacheSpec spec = CacheSpecFor(model_->config(), AttentionMode::kAuto,
                                        CacheDType::Plain(DType::kBF16), kPageTokens);
    // All requests need 33 pages at their ends; the longest alone, 10.
    o.cache_bytes = spec.bytes_per_page() * (cell.preempted ? 13 : 200);
    const auto settings = ResolveOptions(o, model_->config(), machine_, {});
    EXPECT_TRUE(settings) << ToString(settings.error());
    return std::move(*EngineCore::Create({model_.get(), &machine_, nullptr}, *settings));
  }

  // All requests by one engine, together or one after the other.
  std::vector<Bytes> Run(EngineCore& engine, bool together) {
    std::map<RequestId, Bytes> out;
    engine.SetEventSink([&](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events) {
        EXPECT_NE(e.finish, FinishReason::kError) << e.error.message;
        if (!e.token) continue;
        out[e.request].tokens.push_back(*e.token);
        out[e.request].logprobs.push_back(e.logprobs->chosen.logprob);
      }
    });
    const auto finish = [&] {
      while (engine.WaitForWork(std::chrono::steady_clock::now())) ASSERT_TRUE(engine.Step());
    };
    for (const Request& r : requests_) {
      EXPECT_TRUE(engine.Submit(r));
      if (!together) finish();
    }
    finish();
    std::vector<Bytes> in_order;
    for (auto& [id, bytes] : out) in_order.push_back(std::move(bytes));
    return in_order;
  }

  void ExpectSame(const std::vector<Bytes>& got, const std::vector<Bytes>& expected,
                  const std::string& what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(got[i] == expected[i]) << what << ", request " << i;
  }

  Machine machine_ = *Machine::Detect();
  std::unique_ptr<Model> model_;
  std::vector<Request> requests_;
};

TEST_P(DeterminismTest, SameBytesInEveryCell) {
  for (const std::string level : {"on", "strict"}) {
    const std::vector<Bytes> expected = Run(*Make({.batched = false, .level = level}), false);
    for (const Bytes& b : expected) ASSERT_EQ(b.tokens.size(), static_cast<size_t>(kAnswer));
    for (const bool batched : {false, true})
      for (const int64_t chunk : {int64_t{16}, int64_t{64}, int64_t{4096}})
        for (const int threads : {1, 2, 3})
          for (const bool preempted : {false, true}) {
            if (preempted && !batched) continue;  // no other sequence needs its pages
            const Cell cell{batched, chunk, threads, preempted, level};
            const auto engine = Make(cell);
            ExpectSame(Run(*engine, batched), expected, Name(cell));
            EXPECT_EQ(engine->Stats().preemptions > 0, preempted) << Name(cell);
            EXPECT_EQ(engine->Stats().pages_used, 0) << Name(cell);
          }
  }
}

TEST_P(DeterminismTest, StrictGivesTheSameBytesOnHitAndMiss) {
  const auto engine = Make({.level = "strict"});
  const std::vector<Bytes> misses = Run(*engine, true);
  EXPECT_EQ(engine->Stats().cached_tokens, 0);
  ExpectSame(Run(*engine, true), misses, "hits together");
  EXPECT_GT(engine->Stats().cached_tokens, 0);
  ExpectSame(Run(*engine, false), misses, "hits one by one");
}

INSTANTIATE_TEST_SUITE_P(Models, DeterminismTest,
                         testing::Values("models/tiny", "tests/goldens/v3_noaux",
                                         "tests/goldens/v2_lite", "tests/goldens/v32_sparse",
                                         "tests/goldens/glm52"),
                         testing_support::LastPartOfPath);

}  // namespace
}  // namespace latte::determinism_test
