#include "src/jobs/inspect.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/base/limits/memory.h"
#include "src/base/math.h"
#include "src/chat/prompt.h"
#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/config/model_size.h"
#include "src/checkpoint/gguf/gguf.h"
#include "src/checkpoint/model_files.h"
#include "src/engine/route/spread_rule.h"
#include "src/engine/settings.h"
#include "src/kernels/kernel_text.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/path_cost.h"

namespace latte {
namespace {

JsonOut ParamsJson(const ParamCount& count, int64_t bytes_each) {
  return {{"embedding", count.embedding * bytes_each},
          {"head", count.head * bytes_each},
          {"attention", count.attention * bytes_each},
          {"indexer", count.indexer * bytes_each},
          {"dense_mlp", count.dense_mlp * bytes_each},
          {"routed_experts", count.routed_experts * bytes_each},
          {"shared_experts", count.shared_experts * bytes_each},
          {"router", count.router * bytes_each},
          {"norms", count.norms * bytes_each},
          {"mtp", count.mtp * bytes_each}};
}

// Whether the file names show that the folder should hold weights, readable or not.
bool HoldsWeights(const std::string& path) {
  if (IsGgufPath(path)) return true;
  std::error_code error;
  std::filesystem::directory_iterator it(path, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) return true;
  }
  return false;
}

// The tensors of a folder.
struct StoredWeights {
  int64_t bytes = 0;
  std::string dtype;                                         // of most bytes
  std::map<std::string, std::pair<int64_t, int64_t>> types;  // tensors and bytes of each
  MemoryRoom room;                                           // with all files
};

// Null for a config alone.
Result<std::optional<StoredWeights>> Stored(const std::string& path, const ModelConfig& config,
                                            const ComputeDevice& device) {
  if (!HoldsWeights(path)) return std::nullopt;
  LATTE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  StoredWeights out;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    out.bytes += tensor.bytes;
    auto& [count, bytes] = out.types[tensor.dtype_name];
    ++count;
    bytes += tensor.bytes;
    if (bytes >= out.types[out.dtype].second) out.dtype = tensor.dtype_name;
  }
  out.room = device.RoomFor(config, &checkpoint, {});
  return out;
}

// "a scale per row": the weights that share one.
std::string ScaleText(const QuantScheme& scheme) {
  constexpr int64_t kAll = QuantScheme::kAll;
  if (scheme.block_rows == kAll && scheme.block_columns == kAll) return "a scale per matrix";
  if (scheme.block_columns == kAll) return "a scale per row";
  if (scheme.block_rows == 1) return fmt::format("a scale per {} weights", scheme.block_columns);
  return fmt::format("a scale per {} x {} weights", scheme.block_rows, scheme.block_columns);
}

// "F32 (61 tensors, 2.1 MB), Q4_K (485 tensors, 3.20 GB)": a GGUF file has a type for each tensor.
std::string TypesText(const StoredWeights& stored) {
  std::string out;
  for (const auto& [type, of_type] : stored.types)
    if (of_type.first > 0)
      out += fmt::format("{}{} ({} {}, {})", out.empty() ? "" : ", ", type, of_type.first,
                         of_type.first == 1 ? "tensor" : "tensors", MemoryText(of_type.second));
  return out;
}

// "BF16", or "8 bits, compressed-tensors, a scale per row".
std::string FormatText(const QuantConfig& quant, const std::optional<StoredWeights>& stored) {
  if (!stored) return "BF16";
  if (quant.schemes.empty()) return stored->dtype;
  if (quant.format().everywhere) return TypesText(*stored);
  std::string out;
  for (const QuantScheme& scheme : quant.schemes)
    out += fmt::format("{}{} bits, {}, {}", out.empty() ? "" : "; ", scheme.bits,
                       scheme.format->method, ScaleText(scheme));
  return out;
}

// How chats are written for the model: "template" (the checkpoint's), the name of a built-in
// format, or null.
void AddChat(const std::string& path, const ModelConfig& config, JsonOut& out) {
  out["tokenizer_tokens"] = nullptr;
  out["chat_format"] = nullptr;
  const Result<Tokenizer> tokenizer = LoadTokenizer(path);
  if (!tokenizer) return;
  out["tokenizer_tokens"] = tokenizer->vocab_size();
  const Result<ChatPromptBuilder> chat = ChatPromptBuilder::Create(*tokenizer, config);
  if (chat) out["chat_format"] = ChatFormatName(chat->format());
}

// The cache of an engine with its default options.
CacheSpec DefaultCache(const ModelConfig& config) {
  CacheSpec out = CacheSpecFor(config, AttentionMode::kAuto, CacheDType::Plain(DType::kBF16),
                               EngineOptions().page_tokens);
  out.layers += config.mtp_layers;
  return out;
}

// The default context of such an engine on this machine.
int64_t DefaultContext(const ModelConfig& config, const CacheSpec& cache, const MemoryRoom& room) {
  EngineOptions options = {.max_tokens = config.max_position};
  options.prefill_workspace_tokens =
      PrefillWorkspaceTokens(options.max_tokens, options.max_sequences, options.page_tokens);
  return LargestContext(config, options, cache, room.free_bytes());
}

// A GPU must hold this for one sequence of so many tokens: {"tokens", "step_bytes", "cache_bytes"}.
JsonOut GpuNeeds(const ModelConfig& config, const CacheSpec& cache, const MemoryRoom& room,
                 int64_t tokens) {
  EngineOptions options = {.max_tokens = tokens};
  options.prefill_workspace_tokens =
      PrefillWorkspaceTokens(tokens, options.max_sequences, options.page_tokens);
  return {{"tokens", tokens},
          {"step_bytes", room.step_bytes + PrefillWorkspaceBytes(config, options)},
          {"cache_bytes", CeilDiv(tokens, cache.page_tokens) * cache.bytes_per_page()}};
}

// {"name", "weight_bytes", "needs"}; null for the host.
JsonOut GpuJson(const ModelConfig& config, const CacheSpec& cache, const MemoryRoom& room) {
  if (room.gpu.empty()) return nullptr;
  JsonOut needs = JsonOut::array();
  const auto add = [&](int64_t tokens) { needs.push_back(GpuNeeds(config, cache, room, tokens)); };
  add(std::min<int64_t>(4096, config.max_position));
  if (config.max_position >= 32768) add(32768);
  return {{"name", room.gpu}, {"weight_bytes", room.weight_bytes}, {"needs", needs}};
}

// Adds the kernels of an op and marks the one that runs `shape`.
template <class Op>
void AddRows(JsonOut& out, const typename Op::Shape& shape, const Machine& machine) {
  const Kernel<Op>& chosen = Select<Op>(shape, machine);
  for (const Kernel<Op>& row : Kernels<Op>())
    out.push_back({{"op", Op::kName},
                   {"name", row.name},
                   {"isa", Name(row.isa)},
                   {"types", TypesText(row)},
                   {"block", row.tile == nullptr ? "" : row.tile()},
                   {"when", WhenText(row)},
                   {"order", row.order},
                   {"chosen", row.name == chosen.name}});
}

// Adds a line for every range of M, from 1 to kMostRows, that one kernel serves. shape(m).
template <class Op, class F>
void AddRangesOfM(JsonOut& out, const std::string& what, const Machine& machine, const F& shape) {
  constexpr int64_t kMostRows = 512;
  const Kernel<Op>* serves = nullptr;
  int64_t begin = 1;
  const auto add = [&](int64_t end) {
    const std::string rows = end == kMostRows ? fmt::format("M ≥ {}", begin)
                             : begin == end   ? fmt::format("M = {}", begin)
                                              : fmt::format("M = {}–{}", begin, end);
    out.push_back({{"op", Op::kName},
                   {"shape", fmt::format("{}, {}", what, rows)},
                   {"kernel", serves->name}});
  };
  for (int64_t m = 1; m <= kMostRows; ++m) {
    const Kernel<Op>* kernel = &Select<Op>(shape(m), machine);
    if (serves != nullptr && serves != kernel) {
      add(m - 1);
      begin = m;
    }
    serves = kernel;
  }
  add(kMostRows);
}

// A kind of weights: activations, weights and length of their scale groups. 0: no scales.
struct WeightKind {
  std::string_view name;
  DType x, w;
  int64_t group;
};
constexpr WeightKind kWeightKinds[] = {{"bf16 · bf16", DType::kBF16, DType::kBF16, 0},
                                       {"bf16 · f8_e4m3", DType::kBF16, DType::kF8E4M3, 128},
                                       {"i8 · i8", DType::kI8, DType::kI8, 128},
                                       {"i8 · u4", DType::kI8, DType::kU4, 32},
                                       {"bf16 · q8_0", DType::kBF16, DType::kQ8_0, 0}};

}  // namespace

Result<JsonOut> InspectModel(const std::string& path, const ModelConfig& config,
                             const ComputeDevice& device) {
  LATTE_ASSIGN_OR_RETURN(const std::optional<StoredWeights> stored, Stored(path, config, device));
  const ParamCount params = CountParams(config);
  const CacheBytes cache = CacheBytesPerToken(config, DType::kBF16);
  const int64_t bf16_bytes = (params.total() + params.mtp) * SizeOf(DType::kBF16);
  const int64_t weight_bytes = stored ? stored->bytes : bf16_bytes;
  MemoryRoom room = stored ? stored->room : device.RoomFor(config, nullptr, {});
  if (!stored) room.weight_bytes = weight_bytes;
  const int64_t total = device.is_gpu() ? device.TotalGpuBytes() : TotalMemory().value_or(0);
  const CacheSpec cached = DefaultCache(config);
  JsonOut out = {{"architecture", config.architecture},
                 {"model_type", config.model_type},
                 {"layers", config.layers},
                 {"hidden", config.mla.d},
                 {"heads", config.mla.h},
                 {"latent", config.mla.c},
                 {"rope", config.mla.r},
                 {"experts", config.moe.experts},
                 {"experts_per_token", config.moe.chosen},
                 {"vocab", config.vocab},
                 {"max_position", config.max_position},
                 {"total_params", params.total()},
                 {"active_params", CountActiveParams(config).total()},
                 {"mtp_params", params.mtp},
                 {"weight_bytes", weight_bytes},
                 {"weight_bytes_are", stored ? "those of the files" : "an estimate for bf16"},
                 {"weight_format", FormatText(config.quant, stored)},
                 {"bf16_bytes_by_component", ParamsJson(params, SizeOf(DType::kBF16))},
                 {"mla_bytes_per_token", cache.mla},
                 {"index_key_bytes_per_token", cache.index_keys},
                 {"mha_bytes_per_token", cache.mha},
                 {"gqa8_bytes_per_token", cache.gqa8},
                 {"cache_bytes_per_token", cached.bytes_per_token()},
                 {"decompressed_bytes_per_token",
                  config.mla.expanded() * cached.layers * SizeOf(DType::kBF16)},
                 {"mha_over_mla", static_cast<double>(cache.mha) / static_cast<double>(cache.mla)},
                 {"caveats", UnusedFeatures(config)},
                 {"gpu", GpuJson(config, cached, room)},
                 {"machine_memory_bytes", total},
                 {"available_memory_bytes", room.available_bytes.value_or(0)},
                 {"largest_context_here", DefaultContext(config, cached, room)}};
  AddChat(path, config, out);
  return out;
}

JsonOut InspectProcessor(const Machine& machine) {
  return {{"isa", Name(machine.isa)}, {"uarch", Name(machine.uarch)}};
}

JsonOut InspectKernels(const ModelConfig& config, const Machine& machine) {
  const auto [d, h, cq, c, n, r, v, bias, eps] = config.mla;
  const DType bf16 = DType::kBF16;
  const int64_t experts = std::max<int64_t>(config.moe.experts, 1);
  const int64_t chosen = std::max<int64_t>(config.moe.chosen, 1);
  JsonOut out = JsonOut::array();
  AddRows<GemmOp>(out, {1, 1, c + r, d, bf16, bf16}, machine);
  AddRows<GemmTOp>(out, {h, 1, n, c, bf16, bf16}, machine);
  AddRows<MlaDecodeOp>(out, {1, h, c, r, 64, bf16}, machine);
  if (config.indexer.heads > 0)
    AddRows<IndexTopKOp>(
        out, {1, config.indexer.heads, config.indexer.width, config.indexer.topk, 64, bf16},
        machine);
  AddRows<MhaOp>(out, {1, 1, h, n, r, v, bf16}, machine);
  AddRows<MergeSplitsOp>(out, {h, c}, machine);
  AddRows<LseMergeOp>(out, {h, v}, machine);
  AddRows<AppendOp>(out, {1, c, r, bf16}, machine);
  AddRows<GatherPagesOp>(out, {1, c + r, c, bf16}, machine);
  AddRows<RouteOp>(out, {1, experts, chosen}, machine);
  AddRows<ExpertGemmOp>(out, {experts, chosen, config.moe.width, d, bf16, bf16}, machine);
  AddRows<CombineOp>(out, {1, d, chosen}, machine);
  AddRows<RmsNormOp>(out, {1, d, bf16}, machine);
  AddRows<RopeOp>(out, {1, h, r, config.rope.interleaved}, machine);
  AddRows<AddOp>(out, {1, d}, machine);
  AddRows<GatherOp>(out, {1, d, bf16, DType::kF32}, machine);
  AddRows<CastOp>(out, {d}, machine);
  AddRows<QuantizeRowsOp>(out, {1, d, 128}, machine);
  return out;
}

JsonOut InspectSelection(const ModelConfig& config, const Machine& machine) {
  const MlaDims& a = config.mla;
  JsonOut out = JsonOut::array();
  for (const WeightKind& kind : kWeightKinds)
    AddRangesOfM<GemmOp>(
        out, fmt::format("{}, N = {}, K = {}", kind.name, a.c + a.r, a.d), machine, [&](int64_t m) {
          const int64_t x_group = kind.x == DType::kI8 ? 128 : 0;
          return GemmOp::Shape{1, m, a.c + a.r, a.d, kind.x, kind.w, x_group, kind.group};
        });
  for (const WeightKind& kind : kWeightKinds) {
    const int64_t rows = kind.w == DType::kF8E4M3 ? 128 : kind.group == 0 ? 0 : 1;
    const int64_t group = kind.w == DType::kI8 ? a.c : kind.group;
    AddRangesOfM<GemmTOp>(out, fmt::format("bf16 · {}, N = {}, K = {}", Name(kind.w), a.n, a.c),
                          machine, [&](int64_t m) {
                            return GemmTOp::Shape{a.h,          m,      a.n,   a.c,
                                                  DType::kBF16, kind.w, group, rows};
                          });
  }
  for (const CacheFormat kind : {CacheFormat::kPlain, CacheFormat::kF8, CacheFormat::kF8Dense,
                                 CacheFormat::kI8, CacheFormat::kQ6}) {
    const DType cache = kind == CacheFormat::kPlain ? DType::kBF16 : DType::kU8;
    const MlaDecodeOp::Shape shape = {1, a.h, a.c, a.r, 64, cache, kind};
    out.push_back({{"op", MlaDecodeOp::kName},
                   {"shape", fmt::format("{} cache, H = {}", Name(CacheDType{cache, kind}), a.h)},
                   {"kernel", Select<MlaDecodeOp>(shape, machine).name}});
  }
  for (const DType arithmetic : {DType::kBF16, DType::kF32}) {
    const MhaOp::Shape shape = {512, 512, a.h, a.n, a.r, a.v, arithmetic};
    out.push_back({{"op", MhaOp::kName},
                   {"shape", fmt::format("{}, H = {}", Name(arithmetic), a.h)},
                   {"kernel", Select<MhaOp>(shape, machine).name}});
  }
  return out;
}

namespace {

// The cache of a sequence on each of so many ranks that divide it (docs/ranks.md): of the first,
// which has the most, in formats of default options. None for a model that chooses keys.
JsonOut CacheOfRanks(const ModelConfig& config, int64_t tokens) {
  JsonOut out = JsonOut::array();
  const CacheSpec cache = DefaultCache(config);
  for (const int64_t ranks : {1, 2, 4, 8}) {
    if (ranks > 1 && config.indexer.heads > 0) break;
    const PageOwners owners{ranks, cache.page_tokens};
    const int64_t pages = owners.PagesOf(0, CeilDiv(tokens, cache.page_tokens));
    out.push_back({{"dcp", ranks}, {"cache_bytes", pages * cache.bytes_per_page()}});
  }
  return out;
}

// Whether requests of so many tokens are spread over groups, if a group has room for them.
JsonOut SpreadOverGroups(const ModelConfig& config, const MlaRates& rates, int64_t tokens) {
  JsonOut out = JsonOut::array();
  for (const int64_t groups : {2, 4, 8}) {
    const SpreadCost cost = CostOfSpreading(config, rates, groups, tokens);
    const auto from = SpreadPaysFrom(config, rates, groups, config.max_position);
    out.push_back({{"dp", groups},
                   {"saved_ms", cost.saved * 1e3},
                   {"pass_ms", cost.pass * 1e3},
                   {"exchange_ms", cost.exchange * 1e3},
                   {"pays", cost.pays()},
                   {"pays_from_tokens", from ? JsonOut(*from) : JsonOut(nullptr)}});
  }
  return out;
}

}  // namespace

Result<JsonOut> InspectPath(const ModelConfig& config, const PromptShape& prompt,
                            const MlaRates& rates) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (prompt.new_tokens < 1 || prompt.new_tokens > kMost)
    return InvalidArgument(
        fmt::format("--q: expected 1 to {} new tokens, found {}", kMost, prompt.new_tokens));
  if (prompt.cached_tokens < 0 || prompt.cached_tokens > kMost)
    return InvalidArgument(
        fmt::format("--kv: expected 0 to {} cached tokens, found {}", kMost, prompt.cached_tokens));
  LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
  const PathChoice choice = ChoosePath(config.mla, prompt, rates, config.indexer);
  JsonOut paths = JsonOut::array();
  const auto add = [&](std::string_view name, const PathCost& cost, int64_t layers) {
    paths.push_back({{"path", name},
                     {"gflop_per_layer", cost.flops * 1e-9},
                     {"mb_per_layer", cost.bytes * 1e-6},
                     {"ms_per_layer", cost.seconds * 1e3},
                     {"ms", cost.seconds * 1e3 * static_cast<double>(layers)}});
  };
  if (choice.dense_tokens > 0) {
    add("absorbed", choice.absorbed, config.layers);
    add("latent", choice.latent, config.layers);
  }
  if (choice.sparse_tokens > 0) {
    add("sparse", choice.sparse, config.layers);
    add("indexer", choice.indexer, IndexedLayers(config));
  }
  const MlaPath chosen = choice.dense_tokens > 0 ? choice.path : MlaPath::kSparse;
  return JsonOut{
      {"new_tokens", prompt.new_tokens},
      {"sparse_tokens", choice.sparse_tokens},
      {"cached_tokens", prompt.cached_tokens},
      {"layers", config.layers},
      {"chosen", Name(chosen)},
      {"paths", paths},
      {"cache", CacheOfRanks(config, prompt.new_tokens + prompt.cached_tokens)},
      {"spread", SpreadOverGroups(config, rates, prompt.new_tokens + prompt.cached_tokens)},
      {"rates", ToJson(rates, machine)}};
}

}  // namespace latte
