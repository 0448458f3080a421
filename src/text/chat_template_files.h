// The chat template of a checkpoint, from wherever its makers put it: chat_template.jinja, the key
// chat_template of tokenizer_config.json, chat_template.json, additional_chat_templates/. One that
// is of no use is no error here: most of what a model does needs none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

struct ChatTemplate {
  std::string text;                     // empty: there is none
  std::vector<std::string> left_aside;  // others that are there: "'rag' of tokenizer_config.json"
  std::optional<Error> problem;         // why `text` is empty although something is there
};

// The member chat_template of `document`: a text, an array of {name, template}, or an object of
// templates by name. Of several the one named "default" counts.
ChatTemplate ReadChatTemplate(const Json& document);

// The template of the folder `dir`, whose tokenizer_config.json says `configured`. The first of the
// places above that has a template counts, as in transformers.
// Errors: of ReadFile.
[[nodiscard]] Result<ChatTemplate> LoadChatTemplate(const std::string& dir,
                                                    ChatTemplate configured);

}  // namespace latte
