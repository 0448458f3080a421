// What passes between host and GPU in a step of decoding, each copy and wait with its cause.
// Anything else turns the test red: a copy of hidden states, a wait between layers, memory that is
// taken during a step.
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cuda/support/device_engine.h"
#include "tests/cuda/support/emulated_counts.h"

namespace latte::cuda_transfers_test {
namespace {

using emulator::Transfer;
using emulator::TransferKind;
using testing_support::DeviceModel;
using testing_support::EmulatedCounts;
using testing_support::EmulatedTransfers;
using testing_support::Gpu;

constexpr char kStepIn[] = "description of a step, to the GPU";
constexpr char kLogitsOut[] = "logits, to the host";
constexpr char kFlagsOut[] = "flags of finite rows, to the host";
constexpr char kHiddenOut[] = "hidden states, to the host";

constexpr int64_t kMostRows = 24;  // 8 sequences with a token and two drafts

// The cause of a copy, by its direction and its bytes. Flags are shorter than a row of another
// kind.
std::string CauseOf(const Transfer& copy, const ModelConfig& config) {
  const auto is_rows_of = [&](int64_t columns) {
    return copy.bytes % (columns * SizeOf(DType::kF32)) == 0;
  };
  if (copy.kind == TransferKind::kFromHost) return kStepIn;
  if (copy.kind == TransferKind::kWithin) return "within the GPU";
  if (copy.bytes <= kMostRows * SizeOf(DType::kI32)) return kFlagsOut;
  if (is_rows_of(config.vocab)) return kLogitsOut;
  if (is_rows_of(config.mla.d)) return kHiddenOut;
  return fmt::format("{} bytes, to the host", copy.bytes);
}

// How often each cause copied; a wait has the cause of the copy before it.
using Causes = std::map<std::string, int>;
Causes CausesOf(std::span<const Transfer> transfers, const ModelConfig& config) {
  Causes out;
  std::string awaited;
  for (const Transfer& t : transfers) {
    if (t.kind == TransferKind::kWait) {
      ++out[awaited.empty() ? "wait for no copy to the host" : "wait for " + awaited];
      awaited.clear();
      continue;
    }
    const std::string cause = CauseOf(t, config);
    ++out[cause];
    if (t.kind == TransferKind::kToHost) awaited = cause;
  }
  return out;
}

// Of one step of `sequences` sequences that decode.
Causes DecodeCauses(const DeviceModel& gpu, int64_t sequences, const std::string& drafts) {
  EngineOptions options;
  options.dtype = "bf16";
  options.cache_dtype = "int8";
  options.max_sequences = 8;
  options.draft_tokens = drafts;
  const auto run = gpu.Engine(options);
  const int64_t allocations = EmulatedCounts().allocations;
  for (int64_t i = 0; i < sequences; ++i) {
    Request r;
    r.tokens = {static_cast<int32_t>(1 + i), 2};
    r.sampling.logit_bias = {{3, 90.0f}};  // drafts are right
    r.stop.max_tokens = 20;
    r.stop.ignore_eos = true;
    EXPECT_TRUE(run->core().Submit(r));
  }
  // The prompts, and a first step of decoding, before which no draft was made.
  for (int step = 0; step < 2; ++step) EXPECT_TRUE(run->core().Step());
  const EngineStats before = run->core().Stats();
  const int64_t begin = std::ssize(EmulatedTransfers(0));
  EXPECT_TRUE(run->core().Step());
  const EngineStats after = run->core().Stats();
  EXPECT_EQ(EmulatedCounts().allocations, allocations);  // since the engine was made
  EXPECT_EQ(after.running, sequences);
  EXPECT_EQ(after.drafted_tokens - before.drafted_tokens, sequences * std::stoi(drafts));
  EXPECT_EQ(after.accepted_tokens - before.accepted_tokens, sequences * std::stoi(drafts));
  return CausesOf(EmulatedTransfers(begin), gpu.model().config());
}

// A pass of a drafting layer is a step with logits too: the host samples its token, which the
// description of the next pass brings back. The rows that accepted drafts owe are written by a step
// of each drafting layer without logits. Hidden states stay on the GPU.
TEST(TransfersOfAStep, ByCauseForOneAndEightSequencesWithAndWithoutDrafts) {
  const DeviceModel gpu("tests/goldens/v3_mtp2", Gpu(), /*mtp=*/true);
  const auto layers = static_cast<int>(gpu.model().draft_layers());
  for (const int64_t sequences : {1, 8})
    for (const int drafts : {0, 2}) {
      const int passes = 1 + drafts, without_logits = drafts > 0 ? layers : 0;
      const Causes wanted = {{kStepIn, passes + without_logits},
                             {kLogitsOut, passes},
                             {kFlagsOut, 1},
                             {fmt::format("wait for {}", kLogitsOut), passes},
                             {fmt::format("wait for {}", kFlagsOut), 1}};
      EXPECT_EQ(DecodeCauses(gpu, sequences, fmt::format("{}", drafts)), wanted)
          << sequences << " sequences, " << drafts << " drafts";
    }
}

}  // namespace
}  // namespace latte::cuda_transfers_test
