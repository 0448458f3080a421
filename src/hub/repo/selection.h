// The choice of the files to download from a repository.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/hub/repo/listing.h"

namespace latte {

struct Selection {
  std::vector<std::string> include;  // patterns; empty: what Latte reads
  std::vector<std::string> exclude;  // patterns
  std::string quant;                 // of the GGUF model that is meant
};

struct SelectedFiles {
  std::vector<HubFile> files;
  std::string gguf;   // the file, or first part, of a GGUF model; empty: the model is the folder
  std::string quant;  // of that model, if its name has one
};

// Shell pattern as huggingface_hub applies it: '*' matches '/', too, and "dir/" means "dir/*".
bool MatchesPattern(std::string_view path, std::string_view pattern);

// What Latte reads: in the top folder weights (*.safetensors, but no second copy in
// consolidated*.safetensors),
// *.json, *.jinja, *.model and *.txt, and chat templates in additional_chat_templates; also README
// and LICENSE.
bool IsReadByLatte(std::string_view path);

// The chosen files of `repo`, the small ones of the repository first, then in its order. A GGUF
// model holds its configuration and tokenizer, so its files are its parts, README and LICENSE. It
// is chosen by its quant, or without one where the repository has one GGUF model and no
// *.safetensors; patterns choose among its files.
// Errors: kNotFound if nothing is chosen, or if the choice is Latte's and has no weights that it
// reads; of ChooseGgufSet.
[[nodiscard]] Result<SelectedFiles> SelectFiles(const Listing& listing, const Selection& selection,
                                                const std::string& repo);

}  // namespace latte
