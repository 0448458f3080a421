// One line on standard error that is kept up to date: how far a long job is.
#pragma once

#include <cstdint>
#include <string_view>

namespace latte {

// "writing  1.50 of 31.41 GB". On a terminal at every whole percent, else at the end only.
void ShowBytes(std::string_view what, int64_t done, int64_t total);

}  // namespace latte
