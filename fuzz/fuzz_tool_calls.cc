// Reader of calls in answers: a byte that chooses the format, a byte that chooses the end, the text
// of an answer. However the text is cut, the events say the same, and all of it without a call is
// content.
#include <string>

#include "fuzz/fuzz_input.h"
#include "src/base/json.h"
#include "src/chat/tools/tool_call_parser.h"
#include "src/text/unicode/unicode.h"

namespace latte::fuzz {
namespace {

constexpr std::string_view kSchema = R"({"properties": {"a": {"type": "string"},
  "b": {"type": ["integer", "array", "object"]}, "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
  "d": {"enum": ["1", 2, null]}}})";

struct Read {
  std::string content;
  std::string calls;
  std::string arguments;  // of the call that is open
  size_t ended = 0;
  bool operator==(const Read&) const = default;
};

void Add(const std::vector<ToolEvent>& events, Read* out) {
  for (const ToolEvent& event : events) {
    if (event.kind == ToolEvent::Kind::kContent) {
      out->content += event.text;
    } else if (event.kind == ToolEvent::Kind::kArguments) {
      out->calls += event.text;
      out->arguments += event.text;
    } else if (event.kind == ToolEvent::Kind::kCallBegin) {
      Require(!event.text.empty(), "a call has a name");
      out->calls += "\n" + event.id + " " + event.text + " ";
      out->arguments.clear();
    } else {
      ++out->ended;
      // Deeper JSON than Latte reads is JSON too.
      const auto json = Json::Parse(out->arguments, "arguments", {.max_depth = 10'000});
      const bool utf8 = ValidUtf8Prefix(out->arguments) == out->arguments.size();
      Require(!utf8 || (json && json->is_object()), "arguments are an object");
    }
  }
}

Read ReadText(ToolFormat format, std::string_view text, size_t step, bool cut) {
  // Parameters of every kind: a text, no text, either, unknown.
  static const auto known = [] {
    auto out = std::make_shared<KnownFunctions>();
    (*out)["f"] = ParametersOf(Json::Parse(kSchema, "schema").value());
    return out;
  }();
  ToolCallParser parser(format, known);
  Read out;
  for (size_t begin = 0; begin < text.size(); begin += step)
    Add(parser.Add(text.substr(begin, step)), &out);
  Add(parser.Finish(cut), &out);
  Require(out.ended <= parser.calls() && out.ended + 1 >= parser.calls(),
          "every call but the last ends");
  Require(out.ended == parser.calls() || !out.arguments.empty(),
          "arguments that are cut are not empty, as if the call had none");
  return out;
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  if (size < 2) return 0;
  const auto format = static_cast<ToolFormat>(data[0] % 5);
  const bool cut = data[1] % 2 != 0;
  const std::string_view text = fuzz::AsText(data, size).substr(2);
  const fuzz::Read whole = fuzz::ReadText(format, text, text.size() + 1, cut);
  fuzz::Require(fuzz::ReadText(format, text, 1, cut) == whole, "bytes read as the whole text");
  fuzz::Require(fuzz::ReadText(format, text, 7, cut) == whole, "pieces read as the whole text");
  fuzz::Require(whole.content.size() <= text.size(), "content is part of the text");
  return 0;
}
