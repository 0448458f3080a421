// Declares JsonOut, for headers: nlohmann-json takes seconds to compile. json_out.h defines it.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace latte {

// A document that we write: keys stay in the order in which they were added.
using JsonOut = nlohmann::ordered_json;

}  // namespace latte
