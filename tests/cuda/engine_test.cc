// The engine on the emulated GPU: drafts, pages on disk and preemption change no byte of an answer.
#include <gtest/gtest.h>

#include "tests/cuda/support/device_engine.h"
#include "tests/cuda/support/emulated_counts.h"
#include "tests/support/parameter_name.h"
#include "tests/support/scratch_dir.h"

namespace latte::cuda_engine_test {
namespace {

using testing_support::AnswersOf;
using testing_support::DeviceModel;
using testing_support::ExpectSameBytes;
using testing_support::Gpu;
using testing_support::Outcome;

// Prompts are short: an emulated token takes a tenth of a second.
Request Ask(int64_t length, int64_t answer, double temperature = 0) {
  Request r;
  for (int64_t i = 0; i < length; ++i)
    r.tokens.push_back(static_cast<int32_t>((7 * length + 5 * i) % 40 + 1));
  r.sampling.temperature = temperature;
  r.sampling.seed = 1;
  r.stop.max_tokens = answer;
  r.stop.ignore_eos = true;
  r.logprobs = 0;
  return r;
}

// Always the same token, so that every draft is right.
Request AskForOneToken(int64_t length, int64_t answer) {
  Request r = Ask(length, answer);
  r.sampling.logit_bias = {{3, 90.0f}};
  return r;
}

EngineOptions Options(const std::string& drafts, const std::string& cache = "") {
  EngineOptions out;
  out.dtype = "f32";
  out.cache_dtype = cache;
  out.draft_tokens = drafts;
  return out;
}

// The tokens alone: logprobs of two devices differ in their last bits.
std::vector<std::vector<int32_t>> TokensOf(const std::vector<Outcome>& answers) {
  std::vector<std::vector<int32_t>> out;
  for (const Outcome& answer : answers) out.push_back(answer.tokens);
  return out;
}

struct DraftCase {
  const char* model;
  const char* drafter;
  const char* drafts;
  const char* cache;
};

class DraftsOnGpu : public testing::TestWithParam<DraftCase> {
 protected:
  ~DraftsOnGpu() override { testing_support::EmulatedCounts(); }
};

TEST_P(DraftsOnGpu, ChangeNoByteAndAreAccepted) {
  const DraftCase& c = GetParam();
  const std::vector<Request> requests = {Ask(3, 4, 0.8), AskForOneToken(4, 5)};
  const bool mtp = std::string_view(c.drafter) == "mtp";
  const DeviceModel gpu(c.model, Gpu(), mtp);
  EngineOptions options = Options(c.drafts, c.cache);
  options.drafter = c.drafter;
  const auto drafting = gpu.Engine(options);
  const std::vector<Outcome> found = AnswersOf(*drafting, requests);
  const EngineStats stats = drafting->core().Stats();
  EXPECT_GT(stats.accepted_tokens, 0);
  ExpectSameBytes(found, AnswersOf(*gpu.Engine(Options("0", c.cache)), requests));
  const DeviceModel cpu = DeviceModel::ByReference(c.model, mtp);
  const auto on_cpu = cpu.Engine(options);
  EXPECT_EQ(TokensOf(found), TokensOf(AnswersOf(*on_cpu, requests)));
  EXPECT_EQ(stats.drafted_tokens, on_cpu->core().Stats().drafted_tokens);
  EXPECT_EQ(stats.accepted_tokens, on_cpu->core().Stats().accepted_tokens);
}

INSTANTIATE_TEST_SUITE_P(All, DraftsOnGpu,
                         testing::Values(DraftCase{"tests/goldens/v3_mtp2", "mtp", "3", ""},
                                         DraftCase{"tests/goldens/v32_mtp", "mtp", "2", "fp8"},
                                         DraftCase{"tests/goldens/glm52_mtp", "mtp", "2", ""},
                                         DraftCase{"tests/goldens/v3_noaux", "lookup", "2",
                                                   "int8"}),
                         [](const auto& tested) {
                           const std::string path = tested.param.model;
                           return path.substr(path.rfind('/') + 1);
                         });

class PagesOnGpu : public testing::TestWithParam<const char*> {
 protected:
  ~PagesOnGpu() override { testing_support::EmulatedCounts(); }

  DeviceModel gpu_{"tests/goldens/v3_mtp2", Gpu()};
};

// A page is read back from disk: the answer does not change.
TEST_P(PagesOnGpu, OnDiskGiveTheSameAnswer) {
  const testing_support::ScratchDir dir;
  EngineOptions options = Options("0", GetParam());
  options.cache_dir = dir.path();
  const std::vector<Request> requests = {Ask(18, 2)};
  const auto first = gpu_.Engine(options);
  const std::vector<Outcome> computed = AnswersOf(*first, requests);
  EXPECT_EQ(first->core().Stats().disk_tokens, 0);
  ASSERT_TRUE(first->core().SavePrefixes());
  const auto second = gpu_.Engine(options);
  ExpectSameBytes(AnswersOf(*second, requests), computed);
  EXPECT_EQ(second->core().Stats().disk_tokens, 16);
}

// Two sequences of two pages each, of which three are there.
TEST_P(PagesOnGpu, PreemptedSequencesGiveTheSameAnswers) {
  const std::vector<Request> requests = {Ask(14, 5), Ask(15, 5)};
  const auto roomy = gpu_.Engine(Options("0", GetParam()));
  const auto narrow = gpu_.Engine(Options("0", GetParam()), 3);
  ExpectSameBytes(AnswersOf(*roomy, requests), AnswersOf(*narrow, requests));
  EXPECT_EQ(roomy->core().Stats().preemptions, 0);
  EXPECT_GT(narrow->core().Stats().preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(Caches, PagesOnGpu, testing::Values("int8", "fp8"),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::cuda_engine_test
