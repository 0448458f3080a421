// Which files of a repository are downloaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/hub/repo/listing.h"

namespace latte {

struct Selection {
  std::vector<std::string> include;  // patterns; empty: what Latte reads
  std::vector<std::string> exclude;  // patterns
};

// Shell pattern as huggingface_hub applies it: '*' matches '/', too, and "dir/" means "dir/*".
bool MatchesPattern(std::string_view path, std::string_view pattern);

// What Latte reads: in the top folder weights (*.safetensors, but no second copy in consolidated*.safetensors),
// *.json, *.jinja, *.model and *.txt, and chat templates in additional_chat_templates; also README and
// LICENSE.
bool IsReadByLatte(std::string_view path);

// The chosen files, the small ones of the repository first, then in its order.
// Errors: kNotFound if nothing is chosen, or if the choice is Latte's and has no *.safetensors.
[[nodiscard]] Result<std::vector<HubFile>> SelectFiles(const Listing& listing,
                                                       const Selection& selection);

}  // namespace latte
