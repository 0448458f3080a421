#include "apps/flags/engine_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/engine/core/compute_device.h"
#include "src/engine/route/spread_rule.h"

namespace latte {

Result<MemoryPlan> PlanEngine(const EngineOptions& options, const ModelFiles& files) {
  LATTE_ASSIGN_OR_RETURN(const ComputeDevice device, ComputeDevice::Open(options.device));
  LATTE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(files.dir));
  MemoryRoom room = device.RoomFor(files.config, &checkpoint, options);
  // Other machines may take some of the ranks: then there is more room than planned.
  room.processes = std::max(options.tp, options.dp);
  LATTE_ASSIGN_OR_RETURN(const Settings settings,
                         ResolveOptions(options, files.config, device.machine(), room));
  const EngineOptions& resolved = settings.options;
  const std::optional<Settings> spread = SpreadSettings(settings);
  const int64_t longest = spread ? spread->options.max_tokens : resolved.max_tokens;
  const int64_t asked = std::min(options.max_tokens, files.config.max_position);
  if (longest < asked)
    return InvalidArgument(fmt::format(
        "--context: expected at most {} tokens, which the cache holds here, found {}; give a "
        "smaller one, or make room: --cache-dtype fp8, a smaller copy of the weights{}",
        longest, options.max_tokens, options.cache_bytes > 0 ? ", a larger --cache-bytes" : ""));
  EngineOptions wanted = resolved;
  wanted.max_tokens = asked > 0 ? asked : files.config.max_position;
  return MemoryPlan{
      .available_bytes = room.available_bytes,
      .weight_bytes = room.weight_bytes,
      .workspace_bytes = room.step_bytes + PrefillWorkspaceBytes(files.config, resolved),
      .workspace_tokens = ExpandedTokens(resolved),
      .page_bytes = settings.cache_spec.bytes_per_page(),
      .page_tokens = resolved.page_tokens,
      .pages = settings.pages,
      .max_tokens = resolved.max_tokens,
      .spread_tokens = spread ? longest : 0,
      .model_tokens = files.config.max_position,
      .asked_tokens = options.max_tokens,
      .wanted_workspace_bytes = room.step_bytes + PrefillWorkspaceBytes(files.config, wanted),
      .wanted_cache_bytes =
          settings.owners().PagesOf(0, CeilDiv(wanted.max_tokens, resolved.page_tokens)) *
          settings.cache_spec.bytes_per_page(),
      .max_sequences = resolved.max_sequences,
      .cache_dtype = resolved.cache_dtype.empty() ? resolved.dtype : resolved.cache_dtype,
      .processes = room.processes,
      .cache_ranks = resolved.dcp,
      .gpu = room.gpu};
}

}  // namespace latte
