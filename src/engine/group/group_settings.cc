#include "src/engine/group/group_settings.h"

#include "src/engine/group/wire_fields.h"

namespace latte {

std::vector<std::byte> WriteSettings(const Settings& settings) {
  WireWriter out;
  out.Int(settings.pages);
  out.Int(settings.spread);
  WriteFields(settings.options, out);
  return out.Take();
}

Result<Settings> ReadSettings(std::span<const std::byte> message, const ModelConfig& config,
                              const Machine& machine, const RankShare& share) {
  WireReader in(message);
  EngineOptions options;
  const int64_t pages = in.Int();
  const int64_t spread = in.Int();
  ReadFields(options, in);
  if (!in.ok() || pages < 1 || spread < 1)
    return Corrupt("the settings of the leader: expected the options of this build, found others");
  // Sizes are the leader's; only what follows from its choices is resolved.
  LATTE_ASSIGN_OR_RETURN(Settings out, ResolveOptionsForOne(options, config, machine, 1, share));
  out.options = options;
  out.pages = pages;
  out.spread = spread;
  return out;
}

}  // namespace latte
