#include "apps/flags/engine_flags.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "src/base/fields/fields.h"
#include "src/base/range.h"
#include "src/engine/settings.h"

namespace latte {
namespace {

Flag AddNuma(const FlagSet& app, std::string& numa) {
  return app.Group("Expert")
      .Add("--numa", numa,
           "memory of caches and scratch: where it is first used, or spread over all memory nodes "
           "(default: first-touch)")
      .Value("first-touch|interleave");
}

}  // namespace

void EngineFlags::AddForOneSequence(const FlagSet& app, const EngineUses& uses) {
  flags_.values.max_sequences = 1;
  flags_.values.prefix_cache = false;
  flags_.values.prefill_workspace_tokens = 4096;
  if (!uses.drafts) flags_.values.draft_tokens.assign(1, '0');
  step_tokens_ = flags_.values.max_batch_tokens;
  flags_.Add(app, [&](const Field& field, std::string_view group) {
    return group == "Computation" || (uses.context && field.name == "max_tokens") ||
           (uses.drafts && group == "Speculation") ||
           (uses.ranks && group == "Ranks" && field.name != "dp_spread_tokens");
  });
  others_.emplace_back("--numa", AddNuma(app, numa_));
  others_.emplace_back(
      "--max-batch-tokens",
      app.Group("Expert").Add("--max-batch-tokens", *step_tokens_,
                              "prompt tokens per step; 0: all at once (default: 512)"));
}

void EngineFlags::AddAll(const FlagSet& app, const EngineUses& uses) {
  if (!uses.drafts) flags_.values.draft_tokens.assign(1, '0');
  flags_.Add(app, [&](const Field& field, std::string_view group) {
    if (group == "Speculation") return uses.drafts;
    const bool of_groups = field.name == "dp" || field.name == "dp_policy";
    return uses.ranks || group != "Ranks" || (uses.groups && of_groups);
  });
  others_.emplace_back("--numa", AddNuma(app, numa_));
}

std::vector<std::string> EngineFlags::Given() const {
  std::vector<std::string> out = flags_.Given();
  for (const auto& [name, flag] : others_)
    if (flag.given()) out.push_back(name);
  return out;
}

Status EngineFlags::ApplyStep(EngineOptions& out) const {
  constexpr int64_t kMany = int64_t{1} << 30;
  constexpr int64_t kMostPerStep = int64_t{1} << 20;
  const Field field = FieldOf<EngineOptions>("max_batch_tokens");
  int64_t tokens = *step_tokens_;
  const bool given = others_.back().second.given();
  if (!given) LATTE_RETURN_IF_ERROR(ReadVariable(field, &tokens));
  LATTE_RETURN_IF_ERROR(InRange(given ? LongFlag(field) : Variable(field), tokens, 0, kMany));
  LATTE_RETURN_IF_ERROR(
      InRange("--prefill-workspace-tokens", out.prefill_workspace_tokens, 1, kMany));
  // A step has room for more tokens than sequences; no byte depends on it.
  const int64_t least = out.max_sequences + 1;
  out.max_batch_tokens = tokens == 0 ? kMostPerStep : std::clamp(tokens, least, kMostPerStep);
  return {};
}

namespace {

void WarnIfUnused(const StructFlags<EngineOptions>& flags, const ConfigFile& file,
                  const EngineOptions& options) {
  const std::string source = flags.SourceOf(FieldOf<EngineOptions>("int8_activations"), file);
  if (!source.empty() && options.int8_activations && options.dtype == "f32")
    Warn(source + ": int8 has no effect under --dtype f32");
}

// The variable of --context had another name, which must not be ignored in silence.
Status RefuseFormerVariable() {
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  if (!is_set("LATTE_MAX_TOKENS") || is_set("LATTE_CONTEXT")) return {};
  return InvalidArgument("LATTE_MAX_TOKENS: expected LATTE_CONTEXT, its present name");
}

}  // namespace

Result<EngineOptions> EngineFlags::Options(const std::string& model, const ConfigFile& file) const {
  LATTE_RETURN_IF_ERROR(RefuseFormerVariable());
  EngineOptions out = flags_.values;
  out.model = model;
  LATTE_RETURN_IF_ERROR(flags_.Apply(out, file));
  if (step_tokens_) LATTE_RETURN_IF_ERROR(ApplyStep(out));
  LATTE_RETURN_IF_ERROR(flags_.Validate(out, file));
  LATTE_RETURN_IF_ERROR(SetMemoryPolicy(numa_));
  WarnIfUnused(flags_, file, out);
  return out;
}

void WarnOfUnused(const ModelConfig& config) {
  for (const std::string& caveat : UnusedFeatures(config)) Warn(caveat);
}

void WarnIfDense(const ModelConfig& config, AttentionMode mode) {
  const std::string warning = DenseWarning(config, mode);
  if (!warning.empty()) Warn(warning);
}

void Introduce(const Engine& engine, const ModelConfig& config) {
  const EngineStats stats = engine.Stats();
  const EngineOptions& options = engine.options();
  WarnOfUnused(config);
  if (const auto mode = ParseAttentionMode(options.attention)) WarnIfDense(config, *mode);
  Tell(
      fmt::format("cache: {} pages of {} tokens, {} tokens, {} bytes; longest sequence {} "
                  "tokens\nprefill workspace: {} tokens, {} bytes\n",
                  stats.pages_total, stats.page_tokens, stats.pages_total * stats.page_tokens,
                  stats.pages_total / options.dcp * stats.page_bytes, options.max_tokens,
                  ExpandedTokens(options), PrefillWorkspaceBytes(config, options)));
}

}  // namespace latte
