#include "src/engine/settings.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/fields/fields.h"
#include "src/base/limits/memory.h"
#include "src/base/math.h"
#include "src/base/range.h"
#include "src/base/strings.h"
#include "src/checkpoint/weight_memory.h"
#include "src/layers/linear.h"
#include "src/layers/mla/path_cost.h"
#include "src/tensor/arithmetic.h"

namespace latte {
namespace {

// The memory for the cache: what the workspace leaves, without a tenth that is put aside.
int64_t CacheRoom(const ModelConfig& config, const EngineOptions& options, int64_t free_bytes) {
  return std::max<int64_t>(0, (free_bytes - PrefillWorkspaceBytes(config, options)) / 10 * 9);
}

// All the room, but no more than all sequences can fill twice: once in use and once kept for later
// prompts. If the room is too small for the context, the context becomes what fits.
void SizeByDefault(const ModelConfig& config, int64_t free_bytes, Settings* settings) {
  EngineOptions& o = settings->options;
  const int64_t page_bytes = settings->cache_spec.bytes_per_page();
  const int64_t fits = LargestContext(config, o, settings->cache_spec, free_bytes);
  const bool whole = fits == o.max_tokens;
  o.max_tokens = fits;
  const int64_t pages =  // of a rank
      settings->owners().PagesOf(0, CeilDiv(fits, o.page_tokens));
  o.cache_bytes =
      whole ? std::min(CacheRoom(config, o, free_bytes), 2 * o.max_sequences * pages * page_bytes)
            : pages * page_bytes;
}

Error TooFewPages(const Settings& settings) {
  return {
      Code::kExhausted,
      fmt::format("cache-bytes: expected at least two pages of {} bytes ({} tokens each), found "
                  "{} bytes; give it more, or use fewer --page-tokens or a smaller --cache-dtype",
                  settings.cache_spec.bytes_per_page(), settings.options.page_tokens,
                  settings.options.cache_bytes)};
}

// Too few pages by default.
Error NoRoom(const ModelConfig& config, const Settings& settings, const MemoryRoom& room) {
  if (!room.available_bytes)
    return {Code::kUnavailable,
            "cache-bytes: expected to find out how much memory is available, found nothing in "
            "/proc/meminfo; say how large the cache may be, such as --cache-bytes 1G"};
  EngineOptions least = settings.options;
  least.max_tokens = 2 * least.page_tokens;
  const int64_t workspace = PrefillWorkspaceBytes(config, least);
  if (!room.gpu.empty())
    return {Code::kExhausted,
            fmt::format("GPU memory: expected room for weights ({}), steps ({}) and cache (two "
                        "pages: {}), found {} free on {}; use {}, a smaller --max-batch-tokens or "
                        "--max-sequences, or end other programs that use the GPU",
                        MemoryText(room.weight_bytes), MemoryText(room.step_bytes + workspace),
                        MemoryText(2 * settings.cache_spec.bytes_per_page()),
                        MemoryText(*room.available_bytes), room.gpu, SmallerModel(config))};
  const bool weights_fit = room.weight_bytes < *room.available_bytes;
  return {
      Code::kExhausted,
      fmt::format("memory: expected room for weights ({}), prefill workspace ({}) and cache (two "
                  "pages: {}), found {} available; use {}, or set --cache-bytes, such as 1G, to {}",
                  MemoryText(room.weight_bytes), MemoryText(workspace),
                  MemoryText(2 * settings.cache_spec.bytes_per_page()),
                  MemoryText(*room.available_bytes), SmallerModel(config),
                  weights_fit ? "take that much regardless"
                              : "go on with weights that are read from disk for every token")};
}

std::vector<int64_t> DivisorsOf(int64_t n) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

}  // namespace

namespace {

// "cpu", "cuda" or "cuda:N".
bool IsDeviceName(std::string_view name) {
  if (name == "cpu" || name == "cuda") return true;
  constexpr std::string_view kNumbered = "cuda:";
  const std::string_view number = name.substr(std::min(kNumbered.size(), name.size()));
  return name.starts_with(kNumbered) && number.size() <= 3 && IsDigits(number);
}

}  // namespace

Status EngineOptions::Validate() const {
  LATTE_RETURN_IF_ERROR(CheckFields(*this, '-'));
  if (!IsDeviceName(device))
    return InvalidArgument(fmt::format("device: expected cpu, cuda or cuda:N, found '{}'", device));
  LATTE_RETURN_IF_ERROR(
      InRange("max-batch-tokens", max_batch_tokens, max_sequences + 1, int64_t{1} << 20));
  if (!cache_dir.empty() && !prefix_cache)
    return InvalidArgument(
        "cache-dir: expected the prefix cache to be on, found it off; leave out --no-prefix-cache "
        "or --cache-dir");
  const int64_t ranks = std::max(tp, dp);
  if (ranks > 1 && device != "cpu")
    return Unsupported(fmt::format(
        "device: expected cpu with {}, because several processes cannot compute on GPUs, found {}",
        dcp > 1 ? "--dcp" : "--tp or --dp", device));
  if (tp != 1 && tp % dp != 0)
    return InvalidArgument(fmt::format("dp: expected a divisor of tp ({}): {}, found {}", tp,
                                       fmt::join(DivisorsOf(tp), ", "), dp));
  if (const int64_t of_group = ranks / dp; of_group % dcp != 0)
    return InvalidArgument(
        fmt::format("dcp: expected a divisor of the ranks of a group ({}): {}, found {}", of_group,
                    fmt::join(DivisorsOf(of_group), ", "), dcp));
  if (dcp > 1 && attention == "decompressed")
    return Unsupported(
        "attention: expected a mode that caches latents with --dcp, because keys and values of "
        "heads are divided among ranks already, found decompressed; use --attention auto");
  if (dp_spread_tokens > 0 && (dp == 1 || dcp > 1 || attention == "decompressed"))
    return InvalidArgument(fmt::format(
        "dp-spread-tokens: expected 0 without --dp, with --dcp or with --attention decompressed, "
        "because then no request is spread over groups, found {}",
        dp_spread_tokens));
  if (ep != 1 && ep != ranks)
    return InvalidArgument(
        fmt::format("ep: expected 1 or the number of all processes ({}), found {}", ranks, ep));
  if (expert_exchange == "all-to-all" && (ep == 1 || dp == 1))
    return InvalidArgument(fmt::format(
        "expert-exchange: expected --ep {} and --dp with all-to-all, found ep {}, dp {}", ranks, ep,
        dp));
  return {};
}

int64_t PrefillWorkspaceTokens(int64_t max_tokens, int64_t max_sequences, int64_t page_tokens) {
  constexpr int64_t kMost = 128 * 1024;
  return std::min(std::max(8 * max_tokens, 4 * max_sequences * page_tokens), kMost);
}

int64_t ExpandedTokens(const EngineOptions& options) {
  return std::min(options.prefill_workspace_tokens, options.max_tokens);
}

int64_t PrefillWorkspaceBytes(const ModelConfig& config, const EngineOptions& options) {
  const MlaDims& dims = config.mla;
  const int64_t expanded = dims.h * (dims.n + dims.v) + 2 * dims.latent();
  return ExpandedTokens(options) * expanded * SizeOf(DType::kF32);
}

int64_t LargestContext(const ModelConfig& config, const EngineOptions& options,
                       const CacheSpec& cache, int64_t free_bytes) {
  EngineOptions tried = options;
  const PageOwners owners{options.dcp, options.page_tokens};
  const auto fits = [&](int64_t pages) {
    tried.max_tokens = std::min(options.max_tokens, pages * options.page_tokens);
    return owners.PagesOf(0, pages) * cache.bytes_per_page() <=
           CacheRoom(config, tried, free_bytes);
  };
  int64_t pages = 0;  // fit
  for (int64_t beyond = CeilDiv(options.max_tokens, options.page_tokens) + 1; beyond - pages > 1;) {
    const int64_t middle = pages + (beyond - pages) / 2;
    if (fits(middle))
      pages = middle;
    else
      beyond = middle;
  }
  return std::min(options.max_tokens, pages * options.page_tokens);
}

int64_t StepWorkspaceBytes(const ModelConfig& config, const EngineOptions& options) {
  // Generous: several rows of each kind per token live at once.
  constexpr int64_t kRowsAtOnce = 8;
  const MlaDims& dims = config.mla;
  const int64_t widest = std::max({dims.d, dims.h * (dims.qk() + dims.v), config.dense_width});
  const int64_t experts = config.moe.chosen * (dims.d + config.moe.width);
  const IndexerDims& indexer = config.indexer;
  const int64_t choice = indexer.heads * (indexer.width + 1) + indexer.width +
                         std::min(indexer.topk, options.max_tokens);
  const int64_t logits = options.max_sequences * config.vocab;
  return PrefillWorkspaceBytes(config, options) +
         (options.max_batch_tokens * (kRowsAtOnce * widest + 2 * experts + choice) + logits) *
             SizeOf(DType::kF32);
}

MlaPath Settings::PathOf(const MlaDims& dims, int64_t new_tokens, int64_t cached_tokens) const {
  if (attention != AttentionMode::kAuto || deterministic == Determinism::kStrict)
    return PromptPath(attention);
  return ChoosePath(dims, {new_tokens, cached_tokens}, rates, indexer).path;
}

void Settings::SizeForOne(int64_t computed) {
  options.max_sequences = 1;
  options.max_tokens = computed + 1;
  // The prefix cache may hold its own copy of the last whole page of a prompt.
  const int64_t of_rank = owners().PagesOf(0, CeilDiv(options.max_tokens, options.page_tokens)) +
                          (options.prefix_cache ? 1 : 0);
  pages = of_rank * options.dcp;
  options.cache_bytes = of_rank * cache_spec.bytes_per_page();
}

bool NeedsMtp(const EngineOptions& options, const ModelConfig& config) {
  return config.mtp_layers > 0 && options.draft_tokens != "0" && options.drafter == "mtp";
}

namespace {

// Errors: kInvalidArgument for drafts that the model cannot make.
Result<int64_t> DraftTokens(const EngineOptions& options, const ModelConfig& config) {
  const bool can_draft = options.drafter == "lookup" || config.mtp_layers > 0;
  if (options.draft_tokens == "auto") return can_draft ? kMostDrafts : 0;
  const int64_t tokens = options.draft_tokens.front() - '0';
  if (tokens > 0 && !can_draft)
    return InvalidArgument(fmt::format(
        "draft-tokens: expected auto or 0, because this model has no multi-token-prediction "
        "layer, found {}; use --drafter lookup",
        tokens));
  return tokens;
}

// The choices of the options, before any size is filled in.
Result<Settings> ParseChoices(const EngineOptions& options, const ModelConfig& config,
                              const Machine& machine, const RankShare& share) {
  LATTE_RETURN_IF_ERROR(options.Validate());
  Settings out;
  out.options = options;
  LATTE_ASSIGN_OR_RETURN(out.attention, ParseAttentionMode(options.attention));
  LATTE_ASSIGN_OR_RETURN(out.deterministic, ParseDeterminism(options.deterministic));
  LATTE_ASSIGN_OR_RETURN(out.dtype, ParseArithmetic(options.dtype));
  LATTE_ASSIGN_OR_RETURN(out.expert_exchange, ParseExpertExchange(options.expert_exchange));
  out.cache = CacheDType::Plain(out.dtype);
  if (!options.cache_dtype.empty()) {
    LATTE_ASSIGN_OR_RETURN(out.cache, ParseCacheDType(options.cache_dtype));
  }
  LATTE_RETURN_IF_ERROR(CheckCacheDType(out.attention, out.cache));
  LATTE_ASSIGN_OR_RETURN(out.draft_tokens, DraftTokens(options, config));
  LATTE_RETURN_IF_ERROR(CheckMode(config, out.attention));
  out.sparse_from = SparseFrom(config, out.attention);
  if (out.sparse_from != kNeverSparse) out.indexer = config.indexer;
  if (options.dcp > 1 && out.sparse_from != kNeverSparse &&
      out.deterministic == Determinism::kStrict)
    return Unsupported(
        "deterministic: expected on or off with --dcp for a model that chooses keys (sparse "
        "attention), because the chosen keys of a split lie on several ranks, found strict");
  if (options.dp_spread_tokens > 0 && out.sparse_from != kNeverSparse &&
      out.deterministic == Determinism::kStrict)
    return Unsupported(fmt::format(
        "dp-spread-tokens: expected 0 with --deterministic strict for a model that chooses keys "
        "(sparse attention), because the chosen keys of a split lie on several ranks, found {}",
        options.dp_spread_tokens));
  ModelConfig of_rank = config;
  of_rank.mla.h = share.Of(config.mla.h);
  if (share.count > 1 && !options.cache_dir.empty() &&
      PromptPath(out.attention) == MlaPath::kDecompressed)
    return InvalidArgument(
        "cache-dir: expected a mode of attention that caches latents, because each rank has other "
        "heads, found decompressed; use --attention auto");
  if (of_rank.mla.h == 0 && PromptPath(out.attention) == MlaPath::kDecompressed)
    return InvalidArgument(fmt::format(
        "attention: expected a mode that caches latents, because {} ranks share {} heads, found "
        "decompressed; use --attention auto",
        share.count, config.mla.h));
  out.cache_spec = CacheSpecFor(of_rank, out.attention, out.cache, options.page_tokens);
  out.adapts_drafts = options.draft_tokens == "auto";
  out.drafts_by_mtp = out.draft_tokens > 0 && options.drafter == "mtp";
  if (out.drafts_by_mtp) out.cache_spec.layers += config.mtp_layers;
  FoundRates found = MachineRates(machine);
  out.rates = std::move(found.rates);
  out.rates_warning = std::move(found.warning);
  return out;
}

}  // namespace

Result<Settings> ResolveOptionsForOne(const EngineOptions& options, const ModelConfig& config,
                                      const Machine& machine, int64_t computed,
                                      const RankShare& share) {
  LATTE_ASSIGN_OR_RETURN(Settings out, ParseChoices(options, config, machine, share));
  out.SizeForOne(computed);
  EngineOptions& o = out.options;
  if (o.prefill_workspace_tokens == 0)
    o.prefill_workspace_tokens = PrefillWorkspaceTokens(o.max_tokens, 1, o.page_tokens);
  return out;
}

std::vector<MlaPath> PathsOf(const Settings& settings) {
  std::vector<MlaPath> out = {DecodePath(settings.attention)};
  // Under auto a prompt takes this path or that of decoding.
  if (const MlaPath path = PromptPath(settings.attention); path != out.front()) out.push_back(path);
  if (settings.sparse_from != kNeverSparse) out.push_back(MlaPath::kSparse);
  return out;
}

Result<Settings> ResolveOptions(const EngineOptions& options, const ModelConfig& config,
                                const Machine& machine, const MemoryRoom& room,
                                const RankShare& share) {
  LATTE_ASSIGN_OR_RETURN(Settings out, ParseChoices(options, config, machine, share));
  EngineOptions& o = out.options;
  if (o.max_tokens == 0 || o.max_tokens > config.max_position) o.max_tokens = config.max_position;
  out.longest = o.max_tokens;
  if (o.prefill_workspace_tokens == 0)
    o.prefill_workspace_tokens =
        PrefillWorkspaceTokens(o.max_tokens, o.max_sequences, o.page_tokens);
  if (options.cache_bytes == 0) SizeByDefault(config, room.free_bytes(), &out);

  const int64_t page_bytes = out.cache_spec.bytes_per_page();
  const int64_t of_rank = o.cache_bytes / page_bytes;
  out.pages = of_rank * o.dcp;
  if (of_rank < 2)
    return tl::unexpected(options.cache_bytes == 0 ? NoRoom(config, out, room) : TooFewPages(out));
  o.cache_bytes = of_rank * page_bytes;
  o.max_tokens = std::min(o.max_tokens, out.owners().MostPages(of_rank) * o.page_tokens);
  return out;
}

}  // namespace latte
