#include "src/engine/schedule/scheduler_rules.h"

namespace latte {

bool SharesGenerated(const Settings& settings) {
  return settings.deterministic != Determinism::kStrict ||
         settings.attention != AttentionMode::kAuto;
}

SchedulerOptions SchedulerRules(const Settings& settings, const MlaDims& dims) {
  SchedulerOptions out;
  out.max_batch_tokens = settings.options.max_batch_tokens;
  out.max_sequences = settings.options.max_sequences;
  out.aging_steps = settings.options.aging_steps;
  out.share_generated = SharesGenerated(settings);
  out.replay = settings.deterministic != Determinism::kOff;
  out.decode_path = DecodePath(settings.attention);
  out.chunk_path = [from = settings.sparse_from](MlaPath usual, int64_t cached_len, int64_t) {
    return cached_len >= from ? MlaPath::kSparse : usual;
  };
  out.prompt_path = [settings, dims](int64_t new_tokens, int64_t cached_tokens) {
    return settings.PathOf(dims, new_tokens, cached_tokens);
  };
  return out;
}

CacheManagerOptions CacheRules(const Settings& settings) {
  CacheManagerOptions out;
  out.pages = settings.pages;
  out.page_tokens = settings.options.page_tokens;
  out.prefix_cache = settings.options.prefix_cache;
  out.owners = settings.owners().count;
  out.lent = settings.spread > 1;
  out.save_evicted = !settings.options.cache_dir.empty();
  return out;
}

}  // namespace latte
