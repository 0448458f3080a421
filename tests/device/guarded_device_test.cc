// The model and the engine give the same bytes on a device whose memory the host cannot read.
#include "tests/device/guarded_device.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/core/given_sequence.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/mla.h"
#include "src/models/registry.h"
#include "src/tensor/transfer.h"
#include "tests/support/engine_run.h"
#include "tests/support/parameter_name.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/step/single_steps.h"

namespace latte::guarded_device_test {
namespace {

using testing_support::EngineRun;
using testing_support::GuardedDevice;
using testing_support::Outcome;
using testing_support::TestDevice;

const Machine& HostMachine() {
  static const Machine machine = *Machine::Detect();
  return machine;
}
const Machine kTestMachine = {.isa = {IsaFamily::kTest, 0}};

// No address of anything.
DeviceStream TestStream() {
  static int stream;
  return &stream;
}

std::string PathOf(const std::string& model) { return std::string(LATTE_SOURCE_DIR) + "/" + model; }

std::unique_ptr<Model> Load(const std::string& model, const Device& device, bool mtp = false) {
  TestDevice().Expect(nullptr);
  auto loaded = LoadModel(PathOf(model), {.device = &device, .mtp = mtp});
  EXPECT_TRUE(loaded) << ToString(loaded.error());
  return std::move(*loaded);
}

std::vector<int32_t> Tokens(int64_t count, const ModelConfig& config, uint64_t seed) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<int32_t>(Mix64(seed * 1000 + static_cast<uint64_t>(i)) %
                                       static_cast<uint64_t>(config.vocab)));
  return out;
}

TEST(GuardedDeviceTest, TheHostCannotReadOutsideOfOpsAndCopies) {
  Tensor x(DType::kF32, {4}, TestDevice());
  const std::vector<float> values = {1, 2, 3, 4};
  TestDevice().Expect(nullptr);
  TestDevice().CopyFromHost(x.view().data, values.data(), 16, nullptr);
  Tensor y(DType::kF32, {4}, TestDevice());
  {
    ThreadPool threads(2);
    latte::Run<AddOp>({x, y}, Exec{.threads = &threads, .machine = &kTestMachine});
  }
  EXPECT_EQ(CopyToHost(std::span(y.Ptr<float>(), 4), TestDevice(), nullptr), values);
  EXPECT_DEATH(y.Ptr<float>()[0] = 0, "");
  EXPECT_DEATH(std::memcpy(y.view().data, values.data(), 4), "");
}

// Kernels of the processor are not selected for the device: they would read its memory as the host.
TEST(GuardedDeviceTest, RunsNoKernelOfAnotherFamily) {
  EXPECT_EQ(Select<AddOp>({1, 1}, kTestMachine).name, "test");
  EXPECT_NE(Select<AddOp>({1, 1}, HostMachine()).name, "test");
}

class OnDevice : public testing::TestWithParam<const char*> {
 protected:
  // The logits of a prompt in chunks, then of generated tokens.
  static std::vector<float> Logits(const Model& model, AttentionMode mode, DType dtype) {
    const std::vector<int32_t> tokens = Tokens(100, model.config(), 1);
    EngineOptions options;
    options.attention = Name(mode);
    options.dtype = Name(dtype);
    options.prefill_workspace_tokens = 48;
    options.page_tokens = 16;
    options.threads = 2;
    auto settings = ResolveOptionsForOne(options, model.config(), HostMachine(), 100);
    EXPECT_TRUE(settings) << ToString(settings.error());
    settings->options.max_batch_tokens = 40;
    const bool host = model.device().is_host();
    const auto sequence =
        GivenSequence::Create(model, host ? HostMachine() : kTestMachine, *settings).value();
    std::vector<float> out;
    const auto append = [&](int64_t, const TensorView& logits) -> Status {
      out.insert(out.end(), logits.Ptr<float>(), logits.Ptr<float>() + logits.elements());
      return {};
    };
    EXPECT_TRUE(sequence->AppendPrompt(std::span(tokens).first(95), append));
    for (const int32_t token : std::span(tokens).subspan(95))
      EXPECT_TRUE(sequence->AppendGenerated(token, append));
    return out;
  }
};

TEST_P(OnDevice, LogitsHaveTheBytesOfTheHost) {
  const auto host = Load(GetParam(), HostDevice());
  const auto device = Load(GetParam(), TestDevice());
  const int64_t before = TestDevice().accesses();
  using Way = std::pair<AttentionMode, DType>;
  for (const auto& [mode, dtype] :
       {Way{AttentionMode::kDecompressed, DType::kF32},
        Way{AttentionMode::kDecompressed, DType::kBF16}, Way{AttentionMode::kLatent, DType::kBF16},
        Way{AttentionMode::kAbsorbed, DType::kBF16}, Way{AttentionMode::kAbsorbed, DType::kF16}}) {
    const std::vector<float> expected = Logits(*host, mode, dtype);
    const std::vector<float> found = Logits(*device, mode, dtype);
    ASSERT_EQ(expected.size(), found.size());
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)), 0)
        << Name(mode) << " " << Name(dtype);
  }
  EXPECT_GT(TestDevice().accesses(), before + 1000);
}

// Every format of weights: repacked ones too lie on the device.
INSTANTIATE_TEST_SUITE_P(Models, OnDevice,
                         testing::Values("models/tiny", "tests/goldens/v2_group",
                                         "tests/goldens/v32", "tests/goldens/glm52",
                                         "tests/goldens/mistral4", "tests/goldens/minicpm3",
                                         "tests/goldens/fp8", "tests/goldens/int8",
                                         "tests/goldens/pack4_zeros", "tests/goldens/pack8",
                                         "tests/goldens/awq", "tests/goldens/gptq"),
                         testing_support::LastPartOfPath);

// Requests that share prefixes, fork, preempt each other, and are found on disk.
std::vector<Outcome> Serve(const Model& model, const std::string& cache_dir, int64_t cache_pages,
                           int64_t& disk_tokens) {
  EngineOptions options;
  options.page_tokens = 16;
  options.max_tokens = 256;
  options.max_sequences = 8;
  options.max_batch_tokens = 48;
  options.threads = 2;
  options.cache_dir = cache_dir;
  options.cache_bytes = cache_pages * CacheSpecFor(model.config(), AttentionMode::kAuto,
                                                   CacheDType::Plain(DType::kBF16), 16)
                                          .bytes_per_page();
  const auto settings = ResolveOptions(options, model.config(), HostMachine(), {});
  EXPECT_TRUE(settings) << ToString(settings.error());
  const bool host = model.device().is_host();
  if (!host) TestDevice().Expect(TestStream());
  auto run = EngineRun::Over({.model = &model,
                              .machine = host ? &HostMachine() : &kTestMachine,
                              .host = &HostMachine(),
                              .stream = host ? nullptr : TestStream()},
                             *settings);
  EXPECT_TRUE(run) << ToString(run.error());
  for (const int64_t length : {100, 40, 110, 7}) {
    Request r;
    r.tokens = Tokens(length, model.config(), length >= 100 ? 1 : 2);
    r.sampling = {.temperature = 0.9, .seed = static_cast<uint64_t>(length)};
    r.stop.max_tokens = 20;
    r.stop.ignore_eos = true;
    r.n = length == 40 ? 3 : 1;
    r.logprobs = 2;
    r.prompt_logprobs = length == 7 ? 1 : -1;
    EXPECT_TRUE((*run)->core().Submit(r));
    if (length == 40) continue;  // computed with the next one
    EXPECT_EQ((*run)->Finish(), "");
  }
  EXPECT_EQ((*run)->Finish(), "");
  EXPECT_TRUE((*run)->core().SavePrefixes());
  disk_tokens = (*run)->core().Stats().disk_tokens;
  std::vector<Outcome> out;
  for (const auto& [key, outcome] : (*run)->outcomes()) out.push_back(outcome);
  return out;
}

TEST(GuardedDeviceTest, TheEngineGivesTheSameAnswers) {
  const auto host = Load("models/tiny", HostDevice());
  const auto device = Load("models/tiny", TestDevice());
  const testing_support::ScratchDir host_dir;
  const testing_support::ScratchDir device_dir;
  for (const int64_t pages : {200, 14}) {
    int64_t host_disk = 0, device_disk = 0;
    const std::vector<Outcome> expected = Serve(*host, host_dir.path(), pages, host_disk);
    const std::vector<Outcome> found = Serve(*device, device_dir.path(), pages, device_disk);
    EXPECT_EQ(host_disk, device_disk);
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(expected[i].tokens, found[i].tokens) << i;
      EXPECT_EQ(expected[i].logprobs, found[i].logprobs) << i;
      EXPECT_EQ(expected[i].prompt_logprobs, found[i].prompt_logprobs) << i;
      EXPECT_EQ(expected[i].cached_tokens, found[i].cached_tokens) << i;
    }
  }
  EXPECT_EQ(TestDevice().strays(), 0) << "ops or copies on another stream than the engine's";
}

// Marks what a model computes between the embedding and the logits.
class PassesMarked final : public Model {
 public:
  explicit PassesMarked(const Model& model) : model_(model) {}

  const ModelConfig& config() const override { return model_.config(); }
  const Device& device() const override { return model_.device(); }
  int64_t draft_layers() const override { return model_.draft_layers(); }
  void Forward(StepContext& step, const TensorView& h) const override {
    const GuardedDevice::InPass pass(TestDevice());
    model_.Forward(step, h);
  }
  void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const override {
    const GuardedDevice::InPass pass(TestDevice());
    model_.Logits(step, h, logits);
  }
  void Draft(StepContext& step, DraftRun run, const TensorView& h,
             const TensorView& z) const override {
    const GuardedDevice::InPass pass(TestDevice());
    model_.Draft(step, run, h, z);
  }
  void AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const override {
    const GuardedDevice::InPass pass(TestDevice());
    model_.AppendDraftRows(step, run, h);
  }
  void DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                   const TensorView& logits) const override {
    const GuardedDevice::InPass pass(TestDevice());
    model_.DraftLogits(step, layer, z, logits);
  }

 private:
  const Model& model_;
};

// The cause of a copy, by its direction and size. The largest step takes more bytes than a page.
std::string CauseOf(const GuardedDevice::CopyRecord& copy, const EngineCore& core) {
  if (copy.in_pass) return "inside a pass";
  const int64_t page_bytes = core.settings().cache_spec.bytes_per_page();
  if (copy.direction == GuardedDevice::Direction::kWithin) return "within the device";
  if (copy.direction == GuardedDevice::Direction::kFromHost)
    return copy.bytes == page_bytes ? "pages from disk" : "steps";
  if (copy.bytes == page_bytes) return "pages to disk";
  return copy.bytes <= kLogitBlockRows * SizeOf(DType::kI32) ? "flags of rows" : "logits";
}

struct PassCase {
  const char* model;
  const char* drafts;
};

class CopiesTest : public testing::TestWithParam<PassCase> {};

// A pass waits for no copy, so a device can run it as a graph. Around a pass there is one copy to
// the device and two from it per block of logits; drafts have no flags.
TEST_P(CopiesTest, NoneIsInsideAPass) {
  const bool drafts = std::string_view(GetParam().drafts) != "0";
  const auto loaded = Load(GetParam().model, TestDevice(), drafts);
  const PassesMarked model(*loaded);
  EngineOptions options;
  options.page_tokens = 16;
  options.max_tokens = 256;
  options.max_sequences = 8;
  options.max_batch_tokens = 48;
  options.threads = 2;
  options.draft_tokens = GetParam().drafts;
  options.cache_bytes = int64_t{64} << 20;
  const auto settings = ResolveOptions(options, model.config(), HostMachine(), {});
  ASSERT_TRUE(settings) << ToString(settings.error());
  TestDevice().Expect(TestStream());
  auto run = EngineRun::Over(
      {.model = &model, .machine = &kTestMachine, .host = &HostMachine(), .stream = TestStream()},
      *settings);
  ASSERT_TRUE(run) << ToString(run.error());
  for (const int64_t length : {100, 40, 7}) {
    Request r;
    r.tokens = Tokens(length, model.config(), 1);
    r.stop.max_tokens = 20;
    r.stop.ignore_eos = true;
    r.n = length == 40 ? 2 : 1;
    ASSERT_TRUE((*run)->core().Submit(r));
  }
  std::vector<GuardedDevice::CopyRecord> copies;
  TestDevice().Record(&copies);
  EXPECT_EQ((*run)->Finish(), "");
  TestDevice().Record(nullptr);
  std::map<std::string, std::pair<int64_t, int64_t>> causes;  // number, bytes
  for (const GuardedDevice::CopyRecord& copy : copies) {
    auto& [count, bytes] = causes[CauseOf(copy, (*run)->core())];
    ++count;
    bytes += copy.bytes;
  }
  const int64_t steps = (*run)->core().Stats().steps;
  std::string listed = fmt::format("{} steps of the engine", steps);
  for (const auto& [cause, use] : causes)
    listed += fmt::format("; {}: {} copies, {} bytes", cause, use.first, use.second);
  RecordProperty("copies", listed);
  std::printf("%s\n", listed.c_str());
  EXPECT_FALSE(causes.contains("inside a pass"));
  EXPECT_GE(causes["steps"].first, steps);
  EXPECT_EQ(causes["within the device"].first, 0);
  if (drafts) {
    EXPECT_GT(causes["logits"].first, causes["flags of rows"].first);
  } else {
    EXPECT_EQ(causes["logits"].first, causes["flags of rows"].first);
    EXPECT_LE(causes["steps"].first, steps + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CopiesTest,
                         testing::Values(PassCase{"tests/goldens/v2_lite", "0"},
                                         PassCase{"models/tiny", "0"}, PassCase{"models/tiny", "3"},
                                         PassCase{"tests/goldens/v32", "0"},
                                         PassCase{"tests/goldens/v32_mtp", "2"}),
                         [](const auto& tested) {
                           return fmt::format(
                               "{}_drafts_{}",
                               std::string_view(tested.param.model)
                                   .substr(std::string_view(tested.param.model).rfind('/') + 1),
                               tested.param.drafts);
                         });

// The logits of the last token after two forwards over one cache, of a model that chooses keys; or
// the drafting layer's of another one. Ops are measured.
std::vector<float> Forwards(const Device& device, bool sparse) {
  const auto model =
      sparse ? Load("tests/goldens/glm52", device) : Load("models/tiny", device, /*mtp=*/true);
  const ModelConfig& config = model->config();
  const MlaPath path = MlaPath::kLatent;
  ThreadPool threads(2);
  CacheSpec spec = CacheSpecFor(config, AttentionMode::kAuto, CacheDType::Plain(DType::kBF16), 64);
  spec.layers = config.layers + 1;
  LatentCache cache = *LatentCache::Create(spec, 2, device);
  Workspace workspace(device);
  testing_support::SingleSteps steps(
      {.model = model.get(),
       .cache = &cache,
       .workspace = &workspace,
       .exec = {.threads = &threads, .machine = device.is_host() ? &HostMachine() : &kTestMachine}},
      {DType::kBF16, 4096, true, SparseFrom(config, AttentionMode::kAuto)});
  OpTimes times;
  steps.runner().Measure(&times);
  const std::vector<int32_t> tokens = Tokens(70, config, 3);
  const std::vector<int32_t> pages = {1, 0};
  const auto first = SequenceChunk::Of(std::span(tokens).first(60), 0, path, pages);
  steps.Forward({&first, 1});
  const auto second = SequenceChunk::Of(std::span(tokens).subspan(60), 60, path, pages);
  steps.Forward({&second, 1});
  TensorView found;
  if (sparse) {
    found = steps.Logits(std::vector<int64_t>{9, 0});
  } else {
    const auto shifted = SequenceChunk::Of(std::span(tokens).subspan(61), 60, path, pages);
    steps.Draft({&shifted, 1});
    found = steps.AllDraftLogits();
  }
  EXPECT_GT(times.size(), 5u);
  return {found.Ptr<float>(), found.Ptr<float>() + found.elements()};
}

TEST(GuardedDeviceTest, DraftsHaveTheBytesOfTheHost) {
  EXPECT_EQ(Forwards(HostDevice(), false), Forwards(TestDevice(), false));
}

TEST(GuardedDeviceTest, ListsOfPositionsLieOnTheDevice) {
  EXPECT_EQ(Forwards(HostDevice(), true), Forwards(TestDevice(), true));
}

}  // namespace
}  // namespace latte::guarded_device_test
