#include "apps/chat/chat_json.h"

#include <string_view>
#include <utility>

#include "apps/chat/transcript.h"
#include "apps/flags/command.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

std::string_view ReasonOf(ChatEnd end) {
  switch (end) {
    case ChatEnd::kStop:
      return "stop";
    case ChatEnd::kLength:
    case ChatEnd::kContextFull:
      return "length";
    case ChatEnd::kCancelled:
      return "cancelled";
  }
  return "";
}

JsonOut AnswerJson(const ChatAnswer& answer) {
  return {
      {"text", answer.text},
      {"finish_reason", ReasonOf(answer.end)},
      {"prompt_tokens", answer.prompt_tokens},
      {"cached_tokens", answer.reused_tokens},
      {"generated_tokens", answer.generated_tokens},
      {"time_to_first_token_s", answer.prompt_seconds},
      {"generated_tokens_per_s", PerSecond(answer.generated_tokens - 1, answer.generate_seconds)}};
}

}  // namespace

Result<std::string> AnswersJson(Conversation* chat, const std::string& model,
                                const std::vector<std::string>& questions) {
  JsonOut answers = JsonOut::array();
  for (const std::string& question : questions) {
    LATTE_ASSIGN_OR_RETURN(const ChatAnswer answer, chat->Ask(question, {}));
    answers.push_back(AnswerJson(answer));
  }
  LATTE_ASSIGN_OR_RETURN(JsonOut out,
                         ParseToEdit(TranscriptText(model, chat->Messages()), "conversation"));
  out["answers"] = std::move(answers);
  const ChatParams& params = chat->params();
  out["seed"] = nullptr;
  if (!chat->leaves_rest_to_server() || params.chosen.contains("seed"))
    out["seed"] = params.sampling.seed;
  return Dump(out, 2) + "\n";
}

}  // namespace latte
