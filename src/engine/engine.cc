#include "latte/engine.h"

#include <cstring>

#include <fmt/format.h>
#include <xxhash.h>

#include "src/base/limits/memory.h"
#include "src/base/limits/out_of_memory.h"
#include "src/checkpoint/check_weights.h"
#include "src/checkpoint/model_path.h"
#include "src/checkpoint/weight_memory.h"
#include "src/checkpoint/weights_key.h"
#include "src/engine/engine_core.h"
#include "src/models/registry.h"

namespace latte {
namespace {

// Rows depend on the weights and on how they are computed: an engine that computes otherwise must
// not find them.
ModelKey RowsKey(std::string_view weights_key, const Settings& s, const Machine& machine) {
  const std::string text = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}", weights_key, Name(s.attention), Name(s.deterministic), Name(s.dtype),
      s.options.int8_activations, Name(machine.isa), s.options.prefill_workspace_tokens);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  ModelKey key;
  static_assert(sizeof(bytes.digest) == key.size());
  std::memcpy(key.data(), bytes.digest, key.size());
  return key;
}

}  // namespace

struct Engine::Impl {
  static Result<std::unique_ptr<Impl>> Load(const EngineOptions& options);

  Machine machine;
  std::unique_ptr<Model> model;
  std::optional<Tokenizer> tokenizer;
  std::unique_ptr<EngineCore> core;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  return CatchExhaustion([&]() -> Result<std::unique_ptr<Engine>> {
    LATTE_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Load(options));
    return std::unique_ptr<Engine>(new Engine(std::move(impl)));
  });
}

Result<std::unique_ptr<Engine::Impl>> Engine::Impl::Load(const EngineOptions& options) {
  LATTE_RETURN_IF_ERROR(options.Validate());
  auto impl = std::make_unique<Impl>();
  LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(options.model));
  LATTE_ASSIGN_OR_RETURN(impl->machine, Machine::Detect());
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(dir));
  LATTE_ASSIGN_OR_RETURN(Checkpoint mapped, Checkpoint::Open(dir));
  // Before loading: weights that are repacked then count once.
  const MemoryRoom room{AvailableMemory(), WeightMemory(mapped)};
  LATTE_ASSIGN_OR_RETURN(impl->model, LoadModel(dir, config, std::move(mapped)));
  if (options.check_weights) {
    LATTE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(dir));
    LATTE_RETURN_IF_ERROR(CheckWeights(checkpoint));
  }
  LATTE_ASSIGN_OR_RETURN(impl->tokenizer, Tokenizer::Load(dir));
  LATTE_ASSIGN_OR_RETURN(const Settings settings,
                         Settle(options, impl->model->config(), impl->machine, room));
  ModelKey key = {};
  if (!options.cache_dir.empty()) {
    LATTE_ASSIGN_OR_RETURN(const std::string weights_key, WeightsKey(dir));
    key = RowsKey(weights_key, settings, impl->machine);
  }
  const EngineParts parts{impl->model.get(), &impl->machine, &*impl->tokenizer};
  LATTE_ASSIGN_OR_RETURN(impl->core, EngineCore::Create(parts, settings, key));
  return impl;
}

Result<RequestId> Engine::Submit(Request request) {
  return CatchExhaustion([&] { return impl_->core->Submit(std::move(request)); });
}
void Engine::Cancel(RequestId id) { impl_->core->Cancel(id); }
void Engine::SetEventSink(EventSink sink) { impl_->core->SetEventSink(std::move(sink)); }
Status Engine::Step() { return impl_->core->Step(); }
bool Engine::WaitForWork(std::chrono::steady_clock::time_point deadline) {
  return impl_->core->WaitForWork(deadline);
}
void Engine::Wake() { impl_->core->Wake(); }
Status Engine::SavePrefixes() {
  return CatchExhaustion([&] { return impl_->core->SavePrefixes(); });
}
EngineStats Engine::Stats() const { return impl_->core->Stats(); }
const std::string& Engine::rates_warning() const { return impl_->core->settings().rates_warning; }
const EngineOptions& Engine::options() const { return impl_->core->settings().options; }

}  // namespace latte
