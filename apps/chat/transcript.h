// A conversation in a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/chat/template_format.h"

namespace latte {

// JSON: {"latte_chat": 1, "model": …, "messages": [{"role", "content", "reasoning_content"}]}.
std::string TranscriptText(const std::string& model, const std::vector<ChatMessage>& messages);

// The messages of such a text: at most one system message, first, then questions and answers in
// turn. Errors: kCorrupt naming `where`, expected and found.
[[nodiscard]] Result<std::vector<ChatMessage>> ParseTranscript(std::string_view text,
                                                               const std::string& where);

// Writes the file completely or not at all. It replaces conversations only.
// Errors: kInvalidArgument for a file of another kind; of OutputFile.
[[nodiscard]] Status SaveTranscript(const std::string& path, const std::string& model,
                                    const std::vector<ChatMessage>& messages);
// Errors: of ReadFile and ParseTranscript.
[[nodiscard]] Result<std::vector<ChatMessage>> LoadTranscript(const std::string& path);

}  // namespace latte
