// The record of `latte bench model` as text for people.
#pragma once

#include <string>

#include "src/base/json_out_fwd.h"

namespace latte {

// Speed first, then the sizes, then the operations of each phase and the rates of the machine while
// it ran. Titles replace the keys of the record; figures that say the same twice are left out.
std::string ModelTable(const JsonOut& record);

}  // namespace latte
