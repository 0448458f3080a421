// Finds the chat template of a checkpoint in any of the usual places: chat_template.jinja, the key
// chat_template of tokenizer_config.json, chat_template.json, additional_chat_templates/. An
// unusable template is not an error at this point, because most uses of a model need no template.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

struct ChatTemplate {
  std::string text;                 // empty if there is no template
  std::vector<std::string> unused;  // templates that are present but not used: "'rag' of
                                    // tokenizer_config.json"
  std::optional<Error> problem;     // the reason why `text` is empty although a template is
                                    // present
};

// Reads the member chat_template of `document`: a string, an array of {name, template}, or an
// object of templates by name. If there are several, the one named "default" is chosen.
ChatTemplate ReadChatTemplate(const Json& document);

// Finds the template of the folder `dir`; `configured` is the template of its
// tokenizer_config.json. The first of the places listed above that has a template is used, as in
// transformers.
// Errors: as ReadFile.
[[nodiscard]] Result<ChatTemplate> LoadChatTemplate(const std::string& dir,
                                                    ChatTemplate configured);

}  // namespace latte
