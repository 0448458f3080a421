#include "src/api/common/neutral_fields.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/format.h>

#include "src/base/fields/json_values.h"

namespace latte {
namespace {

// {"type": "text"}, where all other members are null.
bool IsTextModality(const Json& v) {
  return IsEmpty(v) || (v.is_array() && v.size() == 1 && IsOneOf(v.At(0), {"text"}));
}

// {"include_usage": true, …}
bool IsSwitches(const Json& v) {
  if (!v.is_object()) return false;
  return v
      .ForEachMember([&](const std::string& name, const Json& value) -> Status {
        if (value.is_bool() || !v.Find(name)) return {};
        return InvalidArgument(name);
      })
      .has_value();
}

enum class NeutralPlace { kBoth, kChat, kCompletions };

struct Neutral {
  std::string_view name;
  NeutralPlace where;
  bool (*changes_nothing)(const Json& value);
  std::string_view taken;  // description of accepted values; empty: only null is accepted
};

constexpr auto kNeutral = std::to_array<Neutral>({
    // The user, and accounting by the service.
    {"user", NeutralPlace::kBoth, IsShortName, kShortName},
    {"safety_identifier", NeutralPlace::kBoth, IsShortName, kShortName},
    {"prompt_cache_key", NeutralPlace::kBoth, IsShortName, kShortName},
    {"prompt_cache_retention", NeutralPlace::kBoth, IsShortName, kShortName},
    {"request_id", NeutralPlace::kBoth, IsShortName, kShortName},  // X-Request-Id names a request
    {"rid", NeutralPlace::kBoth, IsShortName, kShortName},
    {"metadata", NeutralPlace::kBoth, IsObject, "an object"},
    {"store", NeutralPlace::kBoth, IsBool, "true or false"},
    {"service_tier", NeutralPlace::kBoth,
     [](const Json& v) {
       return IsOneOf(v, {"auto", "default"});
     },
     "auto or default"},
    {"stream_options", NeutralPlace::kBoth, IsSwitches, "an object of switches"},
    {"prediction", NeutralPlace::kChat, IsObject, "an object"},
    // The older names of tools and tool_choice.
    {"functions", NeutralPlace::kChat, IsEmpty, "[]"},
    {"function_call", NeutralPlace::kChat,
     [](const Json& v) {
       return IsOneOf(v, {"none", "auto"});
     },
     "none or auto"},
    {"web_search_options", NeutralPlace::kChat, Never, ""},
    // The format of the answer.
    {"modalities", NeutralPlace::kChat, IsTextModality, R"(["text"])"},
    {"audio", NeutralPlace::kChat, Never, ""},
    {"verbosity", NeutralPlace::kChat, [](const Json& v) { return IsOneOf(v, {"medium"}); },
     "medium"},
    {"suffix", NeutralPlace::kCompletions, IsEmptyText, "an empty string"},
    {"include_reasoning", NeutralPlace::kChat, IsTrue, "true"},
    {"separate_reasoning", NeutralPlace::kChat, IsTrue, "true"},
    {"stream_reasoning", NeutralPlace::kChat, IsBool, "true or false"},
    {"include_stop_str_in_output", NeutralPlace::kBoth, IsFalse, "false"},
    {"no_stop_trim", NeutralPlace::kBoth, IsFalse, "false"},
    {"spaces_between_special_tokens", NeutralPlace::kBoth, IsBool, "true or false"},
    {"return_token_ids", NeutralPlace::kBoth, IsFalse, "false"},
    {"return_tokens_as_token_ids", NeutralPlace::kBoth, IsFalse, "false"},
    {"detokenize", NeutralPlace::kBoth, IsTrue, "true"},
    // The prompt.
    {"add_generation_prompt", NeutralPlace::kChat, IsTrue, "true"},
    {"continue_final_message", NeutralPlace::kChat, IsFalse, "false"},
    {"add_special_tokens", NeutralPlace::kChat, IsFalse, "false (the template writes them)"},
    {"add_special_tokens", NeutralPlace::kCompletions, IsTrue,
     "true (a prompt of ids is taken as it is)"},
    {"chat_template", NeutralPlace::kChat, Never, ""},
    {"documents", NeutralPlace::kChat, IsEmpty, "[]"},
    {"mm_processor_kwargs", NeutralPlace::kChat, IsEmpty, "{}"},
    // Speed and progress.
    {"cache_prompt", NeutralPlace::kBoth, IsBool, "true or false"},
    {"timings_per_token", NeutralPlace::kBoth, IsFalse, "false"},
    {"return_progress", NeutralPlace::kBoth, IsFalse, "false"},
    // Other sampling methods.
    {"use_beam_search", NeutralPlace::kBoth, IsFalse, "false"},
    {"early_stopping", NeutralPlace::kBoth, IsFalse, "false"},
    {"length_penalty", NeutralPlace::kBoth, IsOne, "1"},
    {"bad_words", NeutralPlace::kBoth, IsEmpty, "[]"},
    {"logits_processors", NeutralPlace::kBoth, IsEmpty, "[]"},
});

}  // namespace

std::optional<Status> CheckNeutralField(ApiEndpoint endpoint, std::string_view name,
                                        const Json& value) {
  if (name == "best_of" && endpoint == ApiEndpoint::kCompletions) return Status();
  const NeutralPlace here =
      endpoint == ApiEndpoint::kChat ? NeutralPlace::kChat : NeutralPlace::kCompletions;
  const auto* const found =
      std::find_if(kNeutral.begin(), kNeutral.end(), [&](const Neutral& field) {
        return field.name == name && (field.where == NeutralPlace::kBoth || field.where == here);
      });
  if (found == kNeutral.end()) return std::nullopt;
  if (found->changes_nothing(value)) return Status();
  return Unsupported(
      found->taken.empty()
          ? value.path() + ": this field is not supported; leave it out"
          : fmt::format("{}: this value is not supported; what changes nothing is taken: {}",
                        value.path(), found->taken));
}

std::vector<std::string> NeutralFieldNames() {
  std::vector<std::string> names = {"best_of"};  // of CheckBestOf
  for (const Neutral& field : kNeutral) names.emplace_back(field.name);
  return names;
}

Status CheckBestOf(const Json& body) {
  const auto best_of = body.Find("best_of");
  if (!best_of) return {};
  const auto answers = body.Find("n");
  LATTE_ASSIGN_OR_RETURN(const int64_t n, answers ? answers->AsWhole() : Result<int64_t>(1));
  LATTE_ASSIGN_OR_RETURN(const int64_t drawn, best_of->AsWhole());
  if (drawn == n) return {};
  return Unsupported(
      fmt::format("{}: choosing the best of several answers is not supported; expected n, which is "
                  "{}, found {}",
                  best_of->path(), n, drawn));
}

}  // namespace latte
