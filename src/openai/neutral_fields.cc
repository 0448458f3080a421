#include "src/openai/neutral_fields.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/format.h>

#include "src/openai/anthropic/fields.h"

namespace latte {
namespace {

bool IsBool(const Json& v) { return v.is_bool(); }
bool IsTrue(const Json& v) { return v.is_bool() && v.AsBool() == true; }
bool IsFalse(const Json& v) { return v.is_bool() && v.AsBool() == false; }
// A name, which nothing keeps.
bool IsName(const Json& v) {
  constexpr size_t kLongest = 4096;
  return v.is_string() && v.AsString()->size() <= kLongest;
}
bool IsObject(const Json& v) { return v.is_object(); }
bool IsEmpty(const Json& v) { return (v.is_array() || v.is_object()) && v.size() == 0; }
bool IsEmptyText(const Json& v) { return v.is_string() && v.AsString() == ""; }
bool IsOne(const Json& v) { return v.is_number() && v.AsDouble() == 1.0; }
bool Never(const Json&) { return false; }

bool IsOneOf(const Json& v, std::initializer_list<std::string_view> texts) {
  if (!v.is_string()) return false;
  return std::find(texts.begin(), texts.end(), *v.AsString()) != texts.end();
}

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

enum class Where { kBoth, kChat, kCompletions };

struct Neutral {
  std::string_view name;
  Where where;
  bool (*changes_nothing)(const Json& value);
  std::string_view taken;  // description of accepted values; empty: only null is accepted
};

constexpr std::string_view kName = "a string of at most 4096 bytes";

constexpr auto kNeutral = std::to_array<Neutral>({
    // The user, and accounting by the service.
    {"user", Where::kBoth, IsName, kName},
    {"safety_identifier", Where::kBoth, IsName, kName},
    {"prompt_cache_key", Where::kBoth, IsName, kName},
    {"prompt_cache_retention", Where::kBoth, IsName, kName},
    {"request_id", Where::kBoth, IsName, kName},  // X-Request-Id names a request
    {"rid", Where::kBoth, IsName, kName},
    {"metadata", Where::kBoth, IsObject, "an object"},
    {"store", Where::kBoth, IsBool, "true or false"},
    {"service_tier", Where::kBoth,
     [](const Json& v) {
       return IsOneOf(v, {"auto", "default"});
     },
     "auto or default"},
    {"stream_options", Where::kBoth, IsSwitches, "an object of switches"},
    {"prediction", Where::kChat, IsObject, "an object"},
    // The older names of tools and tool_choice.
    {"functions", Where::kChat, IsEmpty, "[]"},
    {"function_call", Where::kChat,
     [](const Json& v) {
       return IsOneOf(v, {"none", "auto"});
     },
     "none or auto"},
    {"web_search_options", Where::kChat, Never, ""},
    // The format of the answer.
    {"modalities", Where::kChat, IsTextModality, R"(["text"])"},
    {"audio", Where::kChat, Never, ""},
    {"verbosity", Where::kChat, [](const Json& v) { return IsOneOf(v, {"medium"}); }, "medium"},
    {"suffix", Where::kCompletions, IsEmptyText, "an empty string"},
    {"include_reasoning", Where::kChat, IsTrue, "true"},
    {"separate_reasoning", Where::kChat, IsTrue, "true"},
    {"stream_reasoning", Where::kChat, IsBool, "true or false"},
    {"include_stop_str_in_output", Where::kBoth, IsFalse, "false"},
    {"no_stop_trim", Where::kBoth, IsFalse, "false"},
    {"spaces_between_special_tokens", Where::kBoth, IsBool, "true or false"},
    {"return_token_ids", Where::kBoth, IsFalse, "false"},
    {"return_tokens_as_token_ids", Where::kBoth, IsFalse, "false"},
    {"detokenize", Where::kBoth, IsTrue, "true"},
    // The prompt.
    {"add_generation_prompt", Where::kChat, IsTrue, "true"},
    {"continue_final_message", Where::kChat, IsFalse, "false"},
    {"add_special_tokens", Where::kChat, IsFalse, "false (the template writes them)"},
    {"add_special_tokens", Where::kCompletions, IsTrue, "true (a prompt of ids is taken as it is)"},
    {"chat_template", Where::kChat, Never, ""},
    {"documents", Where::kChat, IsEmpty, "[]"},
    {"mm_processor_kwargs", Where::kChat, IsEmpty, "{}"},
    // Speed and progress.
    {"cache_prompt", Where::kBoth, IsBool, "true or false"},
    {"timings_per_token", Where::kBoth, IsFalse, "false"},
    {"return_progress", Where::kBoth, IsFalse, "false"},
    // Other sampling methods.
    {"use_beam_search", Where::kBoth, IsFalse, "false"},
    {"early_stopping", Where::kBoth, IsFalse, "false"},
    {"length_penalty", Where::kBoth, IsOne, "1"},
    {"bad_words", Where::kBoth, IsEmpty, "[]"},
    {"logits_processors", Where::kBoth, IsEmpty, "[]"},
});

}  // namespace

std::optional<Status> CheckNeutralField(OpenAiEndpoint endpoint, std::string_view name,
                                        const Json& value) {
  if (name == "best_of" && endpoint == OpenAiEndpoint::kCompletions) return Status();
  const Where here = endpoint == OpenAiEndpoint::kChat ? Where::kChat : Where::kCompletions;
  const auto* const found =
      std::find_if(kNeutral.begin(), kNeutral.end(), [&](const Neutral& field) {
        return field.name == name && (field.where == Where::kBoth || field.where == here);
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
  for (const std::string_view name : AnthropicIgnoredNames()) names.emplace_back(name);
  return names;
}

Status CheckBestOf(const Json& body) {
  const auto best_of = body.Find("best_of");
  if (!best_of) return {};
  LATTE_ASSIGN_OR_RETURN(const int64_t n, body.GetIntOr("n", 1));
  LATTE_ASSIGN_OR_RETURN(const int64_t drawn, best_of->AsInt());
  if (drawn == n) return {};
  return Unsupported(
      fmt::format("{}: choosing the best of several answers is not supported; expected n, which is "
                  "{}, found {}",
                  best_of->path(), n, drawn));
}

}  // namespace latte
