// The report of latte inspect for people.
#pragma once

#include <string>

#include "src/base/json_out_fwd.h"

namespace latte {

// A few lines with sizes in GB: shape, parameters, weights, tokenizer, context, cache and memory.
// `report`: of InspectModel.
std::string InspectSummary(const JsonOut& report);

}  // namespace latte
