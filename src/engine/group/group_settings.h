// The settings of the leader, as the other ranks of its group get them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/engine/settings.h"

namespace latte {

std::vector<std::byte> WriteSettings(const Settings& settings);

// The settings of the rank that holds `share`: the leader's options and number of pages. Errors:
// kCorrupt for a message of another build; of ResolveOptionsForOne.
[[nodiscard]] Result<Settings> ReadSettings(std::span<const std::byte> message,
                                            const ModelConfig& config, const Machine& machine,
                                            const RankShare& share);

}  // namespace latte
