// Engines over one model on the emulated GPU or on the CPU.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "src/checkpoint/model_path.h"
#include "src/engine/core/compute_device.h"
#include "src/models/registry.h"
#include "tests/support/engine_run.h"

namespace latte::testing_support {

inline const ComputeDevice& Gpu() {
  static const ComputeDevice gpu = ComputeDevice::Open("cuda").value();
  return gpu;
}
inline const ComputeDevice& Cpu() {
  static const ComputeDevice cpu = ComputeDevice::Open("cpu").value();
  return cpu;
}

// A model of the source tree on a device.
class DeviceModel {
 public:
  DeviceModel(const std::string& path, const ComputeDevice& device, bool mtp = false)
      : DeviceModel(path, device, device.machine(), mtp) {}
  // By the reference kernels. The kernels of an instruction set are no measure where a cache is
  // quantised: some round queries to bf16 or to integers.
  static DeviceModel ByReference(const std::string& path, bool mtp = false) {
    return DeviceModel(path, Cpu(), Machine{.isa = Isa::kRef}, mtp);
  }

  const Model& model() const { return *model_; }
  const Machine& machine() const { return machine_; }

  // pages: of the cache; 0: as the options say.
  std::unique_ptr<EngineRun> Engine(EngineOptions options, int64_t pages = 0) const {
    options.page_tokens = 16;
    options.threads = 1;
    options.max_tokens = 64;
    options.cache_bytes = 8 << 20;
    Settings settings =
        ResolveOptions(options, model_->config(), machine_, {int64_t{1} << 30}).value();
    if (pages > 0) settings.pages = pages;
    return EngineRun::Over({.model = model_.get(), .machine = &machine_, .host = &device_.host()},
                           settings)
        .value();
  }

 private:
  DeviceModel(const std::string& path, const ComputeDevice& device, const Machine& machine,
              bool mtp)
      : device_(device),
        machine_(machine),
        model_(LoadModel(*ResolveModelPath(std::string(LATTE_SOURCE_DIR) + "/" + path),
                         {.device = &device.device(), .mtp = mtp})
                   .value()) {}

  ComputeDevice device_;
  Machine machine_;
  std::unique_ptr<Model> model_;
};

// The answers of an engine, in the order of the requests and their choices.
inline std::vector<Outcome> AnswersOf(EngineRun& run, const std::vector<Request>& requests) {
  for (const Request& request : requests) EXPECT_TRUE(run.core().Submit(request));
  EXPECT_EQ(run.Finish(), "");
  std::vector<Outcome> out;
  for (const auto& [key, outcome] : run.outcomes()) out.push_back(outcome);
  return out;
}

// Equal tokens, and equal bits of their logprobs.
inline void ExpectSameBytes(const std::vector<Outcome>& a, const std::vector<Outcome>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tokens, b[i].tokens) << "answer " << i;
    EXPECT_EQ(a[i].logprobs, b[i].logprobs) << "answer " << i;
  }
}

}  // namespace latte::testing_support
