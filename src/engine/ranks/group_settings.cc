#include "src/engine/ranks/group_settings.h"

#include <type_traits>

#include "src/engine/ranks/wire.h"

namespace latte {

std::vector<std::byte> WriteSettings(const Settings& settings) {
  WireWriter out;
  out.Int(settings.pages);
  EngineOptions::VisitFields([&](const Field&, const auto& member, const auto&...) {
    const auto& value = member(settings.options);
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
      out.Text(value);
    else
      out.Int(static_cast<int64_t>(value));
  });
  return out.Take();
}

Result<Settings> ReadSettings(std::span<const std::byte> message, const ModelConfig& config,
                              const Machine& machine, const RankShare& share) {
  WireReader in(message);
  EngineOptions options;
  const int64_t pages = in.Int();
  EngineOptions::VisitFields([&](const Field&, const auto& member, const auto&...) {
    auto& value = member(options);
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>)
      value = in.Text();
    else
      value = static_cast<T>(in.Int());
  });
  if (!in.ok() || pages < 1)
    return Corrupt("the settings of the leader: expected the options of this build, found others");
  // Sizes are the leader's; only what follows from its choices is resolved.
  LATTE_ASSIGN_OR_RETURN(Settings out, ResolveOptionsForOne(options, config, machine, 1, share));
  out.options = options;
  out.pages = pages;
  return out;
}

}  // namespace latte
