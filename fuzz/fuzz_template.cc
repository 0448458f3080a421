// A chat template, then NUL and the content of a message; rendered with a small conversation and
// small budgets.
#include <string>

#include "fuzz/fuzz_input.h"
#include "src/jinja/json.h"
#include "src/jinja/template.h"
#include "src/text/unicode/unicode.h"

namespace latte::fuzz {
namespace {

using jinja::Text;
using jinja::Value;

constexpr jinja::Limits kLimits = {
    .steps = 200'000, .total_bytes = 32 << 20, .string_bytes = 4 << 20};

Text Key(std::string_view key) { return Text(std::string(key), true); }

Value Conversation(std::string_view content) {
  const Value tools = *jinja::ParseJson(
      R"([{"type": "function", "function": {"name": "f", "parameters": {"a": [1, 2.5, null]}}}])",
      "tools");
  const Value calls = *jinja::ParseJson(
      R"([{"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}])",
      "calls");
  const Value user = *jinja::MakeDict({{Key("role"), Value::String("user", false)},
                                       {Key("content"), Value::String(jinja::UserText(content))}});
  const Value assistant = *jinja::MakeDict({{Key("role"), Value::String("assistant", false)},
                                            {Key("content"), Value()},
                                            {Key("tool_calls"), calls}});
  const Value messages = *jinja::MakeList({user, assistant, user}, false, true);
  return *jinja::MakeDict({{Key("messages"), messages},
                           {Key("tools"), tools},
                           {Key("add_generation_prompt"), Value::Bool(true)},
                           {Key("thinking"), Value::Bool(false)},
                           {Key("bos_token"), Value::String("<s>")},
                           {Key("eos_token"), Value::String("</s>")}});
}

void CheckText(const Text& text) {
  Require(ValidUtf8Prefix(text.bytes()) == text.size(), "a rendering is valid UTF-8");
  size_t end = 0;
  for (const Text::Run& run : text.runs()) {
    Require(run.end > end, "no run is empty");
    end = run.end;
  }
  Require(end == text.size(), "every byte belongs to a run");
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  const auto [source, content] = fuzz::Cut(fuzz::AsText(data, size), '\0');
  const Result<jinja::Template> parsed = jinja::Template::Parse(source);
  if (!parsed) {
    fuzz::Require(parsed.error().message.find("chat template, line ") == 0, "a refusal says where");
    return 0;
  }
  const auto text = parsed->Render(fuzz::Conversation(content),
                                   {.limits = fuzz::kLimits, .unix_seconds = 1'000'000'000});
  if (text) fuzz::CheckText(*text);
  return 0;
}
