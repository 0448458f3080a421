#include "src/engine/route/spread_rule.h"

#include <algorithm>
#include <limits>

#include "src/checkpoint/config/model_size.h"
#include "src/layers/mla/path_cost.h"

namespace latte {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Between processes of one machine, as in src/layers/moe/exchange.cc.
constexpr double kExchangeSeconds = 25e-6;
constexpr double kExchangeBytesPerSecond = 10e9;

// Of one token over `keys` keys, in all layers.
double AttentionSeconds(const ModelConfig& config, const MlaRates& rates, int64_t keys) {
  const PathChoice cost = ChoosePath(config.mla, {1, keys}, rates, config.indexer);
  return static_cast<double>(config.layers) * (cost.absorbed.seconds + cost.sparse.seconds) +
         static_cast<double>(IndexedLayers(config)) * cost.indexer.seconds;
}

double PassSeconds(const ModelConfig& config, const MlaRates& rates) {
  const ParamCount active = CountActiveParams(config);
  const auto weights = static_cast<double>(active.total() - active.embedding);
  return weights * static_cast<double>(SizeOf(DType::kBF16)) / (rates.memory_gbps * 1e9);
}

// Per layer: results of heads to their ranks and back, rows of experts.
double ExchangeSeconds(const ModelConfig& config, int64_t groups) {
  constexpr double kExchanges = 3;
  const MlaDims& dims = config.mla;
  const double others = static_cast<double>(groups - 1) / static_cast<double>(groups);
  const auto numbers = static_cast<double>(dims.h * (2 * dims.v + 1) + dims.d);
  return static_cast<double>(config.layers) *
         (kExchanges * kExchangeSeconds +
          others * numbers * static_cast<double>(SizeOf(DType::kF32)) / kExchangeBytesPerSecond);
}

}  // namespace

std::optional<Settings> SpreadSettings(const Settings& group) {
  const EngineOptions& o = group.options;
  const bool merges_splits = group.deterministic == Determinism::kStrict;
  if (o.dp == 1 || o.dcp > 1 || !group.cache_spec.Has(StreamId::kLatent) ||
      (merges_splits && group.sparse_from != kNeverSparse))
    return std::nullopt;
  Settings out = group;
  out.spread = o.dp;
  out.pages = group.pages * o.dp;
  out.options.max_tokens =
      std::min(group.longest, out.owners().MostPages(group.pages) * o.page_tokens);
  // The two engines share a workspace.
  out.options.prefill_workspace_tokens = ExpandedTokens(o);
  return out;
}

SpreadCost CostOfSpreading(const ModelConfig& config, const MlaRates& rates, int64_t groups,
                           int64_t tokens) {
  return {AttentionSeconds(config, rates, tokens) -
              AttentionSeconds(config, rates, CeilDiv(tokens, groups)),
          PassSeconds(config, rates), ExchangeSeconds(config, groups)};
}

std::optional<int64_t> SpreadPaysFrom(const ModelConfig& config, const MlaRates& rates,
                                      int64_t groups, int64_t longest) {
  const auto pays = [&](int64_t tokens) {
    return CostOfSpreading(config, rates, groups, tokens).pays();
  };
  if (longest < 1 || !pays(longest)) return std::nullopt;
  int64_t least = 1;
  int64_t most = longest;
  while (least < most) {
    const int64_t middle = least + (most - least) / 2;
    if (pays(middle))
      most = middle;
    else
      least = middle + 1;
  }
  return most;
}

SpreadRule::SpreadRule(const Settings& group, const ModelConfig& config)
    : from_(group.options.dp_spread_tokens), group_tokens_(group.options.max_tokens) {
  if (from_ > 0) return;
  from_ = SpreadPaysFrom(config, group.rates, group.options.dp, group.longest).value_or(kNever);
}

}  // namespace latte
