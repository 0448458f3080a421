#include "src/engine/core/create_engine.h"

#include <cstring>

#include <fmt/format.h>
#include <xxhash.h>

#include "src/base/limits/out_of_memory.h"
#include "src/checkpoint/weights_key.h"
#include "src/engine/core/compute_device.h"
#include "src/engine/core/engine_core.h"
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

// What an engine is made over, alive as long as the engine.
struct LoadedModel {
  ModelFiles files;
  ComputeDevice device;
  std::unique_ptr<Model> model;
};

Result<CreatedEngine> Create(const EngineOptions& options, ModelFiles files, RankWorld* ranks,
                             const LoadingHooks& hooks) {
  LATTE_RETURN_IF_ERROR(options.Validate());
  LATTE_ASSIGN_OR_RETURN(ComputeDevice device, ComputeDevice::Open(options.device));
  if (device.is_gpu() && ranks != nullptr)
    return Unsupported("--device cuda: expected one process, found --tp or --dp");
  auto loaded =
      std::make_shared<LoadedModel>(LoadedModel{std::move(files), std::move(device), nullptr});
  const std::string& dir = loaded->files.dir;
  LATTE_ASSIGN_OR_RETURN(Checkpoint mapped, Checkpoint::Open(dir));
  // Before loading: weights that are repacked then count once.
  MemoryRoom room = loaded->device.RoomFor(loaded->files.config, &mapped, options);
  if (ranks != nullptr) room.processes = ranks->on_this_machine();
  LATTE_RETURN_IF_ERROR(CheckWeightsFit(loaded->files.config, room));
  ModelOptions wanted;
  wanted.device = &loaded->device.device();
  wanted.mtp = NeedsMtp(options, loaded->files.config);
  wanted.larger_than_memory = room.exceeds_memory();
  wanted.mtp_optional = options.draft_tokens == "auto";
  wanted.repacked = hooks.repacked;
  if (ranks != nullptr) LATTE_RETURN_IF_ERROR(ranks->AnnounceModel(options.model, wanted));
  Result<std::unique_ptr<Model>> model =
      LoadModel(dir, loaded->files.config, std::move(mapped), wanted);
  const bool in_groups = ranks != nullptr && ranks->groups() > 1;
  if (ranks != nullptr)
    model = in_groups ? ranks->ShareInGroups(std::move(model)) : ranks->Share(std::move(model));
  LATTE_ASSIGN_OR_RETURN(loaded->model, std::move(model));
  if (options.check_weights) {
    LATTE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(dir));
    LATTE_RETURN_IF_ERROR(CheckWeights(checkpoint, hooks.checked));
  }
  LATTE_ASSIGN_OR_RETURN(const Settings settings,
                         ResolveOptions(options, loaded->model->config(), loaded->device.machine(),
                                        room, wanted.share));
  ModelKey key = {};
  if (!options.cache_dir.empty()) {
    LATTE_ASSIGN_OR_RETURN(const std::string weights_key, WeightsKey(dir));
    key = RowsKey(weights_key, settings, loaded->device.machine());
  }
  const EngineParts parts{.model = loaded->model.get(),
                          .machine = &loaded->device.machine(),
                          .tokenizer = &loaded->files.tokenizer,
                          .owner = loaded,
                          .host = &loaded->device.host()};
  const auto make = [&](const Settings& own, StepAnnouncer* followers,
                        std::shared_ptr<RunnerMemory> memory) {
    EngineParts all = parts;
    all.followers = followers;
    all.memory = std::move(memory);
    return EngineCore::Create(all, own, key);
  };
  CreatedEngine out;
  out.model = loaded->model.get();
  out.machine = &loaded->device.machine();
  for (std::string warning : {settings.rates_warning, loaded->model->drafts_left_out()})
    if (!warning.empty()) out.warnings.push_back(std::move(warning));
  if (in_groups) {
    LATTE_ASSIGN_OR_RETURN(out.engine, ranks->JoinEngines(settings, key, make));
  } else {
    LATTE_ASSIGN_OR_RETURN(
        out.engine, make(settings, ranks == nullptr ? nullptr : &ranks->followers(), nullptr));
  }
  return out;
}

}  // namespace

Result<CreatedEngine> CreateEngine(const EngineOptions& options, ModelFiles files, RankWorld* ranks,
                                   const LoadingHooks& hooks) {
  return CatchExhaustion([&] { return Create(options, std::move(files), ranks, hooks); });
}

Result<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  return CatchExhaustion([&]() -> Result<std::unique_ptr<Engine>> {
    LATTE_RETURN_IF_ERROR(options.Validate());
    for (const auto& [name, value] : {std::pair("tp", options.tp), std::pair("dp", options.dp)})
      if (value > 1)
        return Unsupported(fmt::format(
            "{}: expected 1, because only the commands of latte start other processes, found {}",
            name, value));
    LATTE_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::Load(options.model));
    LATTE_ASSIGN_OR_RETURN(CreatedEngine created,
                           latte::Create(options, std::move(files), nullptr, {}));
    return std::move(created.engine);
  });
}

}  // namespace latte
