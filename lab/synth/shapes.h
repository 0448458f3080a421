// The shapes of published models.
#pragma once

#include <string_view>

namespace latte {

// The text of shapes.json, as the build embeds it: the config.json of each shape, by its name.
std::string_view ShapesJson();

}  // namespace latte
