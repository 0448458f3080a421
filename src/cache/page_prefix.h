// The inputs that determine the cached rows of a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace latte {

// The tokens up to and including the page, and the salt that separates users.
struct PagePrefix {
  std::string salt;
  std::vector<int32_t> tokens;  // a multiple of page_tokens; the page's own are the last

  bool operator==(const PagePrefix&) const = default;
};

}  // namespace latte
