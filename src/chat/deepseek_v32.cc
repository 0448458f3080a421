// DeepSeek-V3.2 has no template. This is the algorithm of its reference encoder.
//
// The prompt begins with BOS. A system message is its text, then the tools. <U>TEXT<A> is followed
// by <think> where the model should think and by </think> elsewhere. Reasoning is kept only after
// the last message of a user. Calls and results are marked with a token of their own (DSML).
//
// The reference opens the answer together with the user's text or the results, so that a system
// message which follows becomes the beginning of the answer. Here it comes before the opening, and
// an answer to a system message alone is opened, too.
#include <algorithm>

#include <fmt/format.h>

#include "src/chat/encoders.h"
#include "src/jinja/json.h"

namespace latte {
namespace {

using jinja::Text;
using jinja::Value;

constexpr std::string_view kV32End = "<｜end▁of▁sentence｜>";

constexpr std::string_view kToolsBefore =
    "## Tools\n\n"
    "You have access to a set of tools you can use to answer the user's question.\n"
    "You can invoke functions by writing a \"<｜DSML｜function_calls>\" block like the following "
    "as "
    "part of your reply to the user:\n"
    "<｜DSML｜function_calls>\n"
    "<｜DSML｜invoke name=\"$FUNCTION_NAME\">\n"
    "<｜DSML｜parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE"
    "</｜DSML｜parameter>\n"
    "...\n"
    "</｜DSML｜invoke>\n"
    "<｜DSML｜invoke name=\"$FUNCTION_NAME2\">\n"
    "...\n"
    "</｜DSML｜invoke>\n"
    "</｜DSML｜function_calls>\n\n"
    "String and scalar parameters should be specified as is without any escaping or quotes, while "
    "lists and objects should use JSON format. The \"string\" attribute should be set to \"true\" "
    "for string type parameters and \"false\" for other types (numbers, booleans, arrays, "
    "objects).\n\n"
    "If the thinking_mode is enabled, then after function results you should strongly consider "
    "outputting a thinking block. Here is an example:\n\n"
    "<｜DSML｜function_calls>\n...\n</｜DSML｜function_calls>\n\n"
    "<function_results>\n...\n</function_results>\n\n"
    "<think>...thinking about results</think>\n\n"
    "Here are the functions available in JSONSchema format:\n<functions>\n";
constexpr std::string_view kToolsAfter = "\n</functions>\n";

class V32Encoder {
 public:
  V32Encoder(std::vector<ChatMessage> messages, const ChatOptions& options)
      : messages_(std::move(messages)), options_(options) {
    for (size_t i = 0; i < messages_.size(); ++i) places_.push_back(i);
  }

  Result<Text> Encode() {
    PlaceTools();
    if (options_.thinks()) DropDevelopers();
    out_.TemplateText("<｜begin▁of▁sentence｜>");
    for (size_t i = 0; i < messages_.size(); ++i) LATTE_RETURN_IF_ERROR(Write(i));
    if (options_.add_generation_prompt) OpenAfterSystem(true);
    Open();
    return out_.Take();
  }

 private:
  auto Bad(size_t i, std::string_view why) const {
    return BadMessage(ChatFormat::kDeepseekV32, places_[i], why);
  }

  // Tools and the response format go into the first system message, which is added if there is
  // none.
  void PlaceTools() {
    const auto is_system = [](const ChatMessage& m) { return m.role == "system"; };
    const bool needed = options_.tools || options_.response_format;
    if (needed && (messages_.empty() || !is_system(messages_[0]))) {
      ChatMessage system;
      system.role = "system";
      messages_.insert(messages_.begin(), std::move(system));
      places_.insert(places_.begin(), 0);
    }
  }

  int64_t LastUser() const {
    for (size_t i = messages_.size(); i-- > 0;)
      if (messages_[i].role == "user" || messages_[i].role == "developer")
        return static_cast<int64_t>(i);
    return -1;
  }

  // Where the reference encoder drops reasoning, it also drops developer messages before the last
  // user message.
  void DropDevelopers() {
    const int64_t last = LastUser();
    std::vector<ChatMessage> kept;
    std::vector<size_t> places;
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (messages_[i].role == "developer" && static_cast<int64_t>(i) < last) continue;
      kept.push_back(std::move(messages_[i]));
      places.push_back(places_[i]);
    }
    messages_ = std::move(kept);
    places_ = std::move(places);
  }

  std::string_view Think(bool yes) const {
    return yes && options_.thinks() ? "<think>" : "</think>";
  }

  // Writes the beginning of an answer that is due.
  void Open() {
    out_.TemplateText(opening_);
    opening_.clear();
  }

  // `thinks`: whether the answer comes after the last message of a user.
  void OpenAfterSystem(bool thinks) {
    if (after_system_) opening_ = fmt::format("<｜Assistant｜>{}", Think(thinks));
    after_system_ = false;
  }

  Status WriteSystem(size_t i) {
    const std::string content = messages_[i].content.value_or("");
    if (!opening_.empty() && !content.empty()) out_.TemplateText("\n\n");
    out_.UserText(content);
    if (opening_.empty()) after_system_ = after_system_ || !content.empty();
    return i == 0 ? WriteTools("\n\n") : Status();
  }

  Status WriteTools(std::string_view before) {
    LATTE_ASSIGN_OR_RETURN(const std::vector<Value> functions, ParseTools(options_));
    if (!functions.empty()) {
      out_.TemplateText(before).TemplateText(kToolsBefore);
      for (size_t k = 0; k < functions.size(); ++k) {
        LATTE_ASSIGN_OR_RETURN(const std::string json, CompactJson(functions[k]));
        out_.TemplateText(k > 0 ? "\n" : "").UserText(json);
      }
      out_.TemplateText(kToolsAfter);
    }
    if (options_.response_format) {
      LATTE_ASSIGN_OR_RETURN(const Value schema,
                             jinja::ParseJson(*options_.response_format, "response format"));
      LATTE_ASSIGN_OR_RETURN(const std::string json, CompactJson(schema));
      out_.TemplateText(
          "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to "
          "reply:\n");
      out_.UserText(json);
    }
    return {};
  }

  Status Write(size_t i) {
    const ChatMessage& message = messages_[i];
    const std::string content = message.content.value_or("");
    if (message.role == "system") return WriteSystem(i);
    if (message.role == "assistant") OpenAfterSystem(static_cast<int64_t>(i) > LastUser());
    after_system_ = false;
    Open();
    if (message.role == "tool") return WriteResult(i);
    if (message.role == "assistant") return WriteAssistant(i);
    if (message.role != "user" && message.role != "developer")
      return Bad(i, NoSuchRole(message.role));
    out_.TemplateText("<｜User｜>");
    if (message.role == "developer") {
      if (content.empty()) return Bad(i, "a developer must say something");
      out_.TemplateText("\n\n# The user's message is: ");
    }
    out_.UserText(content);
    opening_ = fmt::format("<｜Assistant｜>{}", Think(static_cast<int64_t>(i) == LastUser()));
    return {};
  }

  Status WriteResult(size_t i) {
    size_t first = i;
    while (first > 0 && messages_[first - 1].role == "tool") --first;
    if (first == 0 || messages_[first - 1].role != "assistant" ||
        messages_[first - 1].tool_calls.size() < i - first + 1)
      return Bad(i, "a result of a tool that was not called");
    const size_t calls = messages_[first - 1].tool_calls.size();
    if (i == first) out_.TemplateText("\n\n<function_results>");
    out_.TemplateText("\n<result>")
        .UserText(messages_[i].content.value_or(""))
        .TemplateText("</result>");
    if (i - first + 1 == calls) {
      out_.TemplateText("\n</function_results>");
      opening_ = fmt::format("\n\n{}", Think(static_cast<int64_t>(i) >= LastUser()));
    }
    return {};
  }

  Status WriteAssistant(size_t i) {
    const ChatMessage& message = messages_[i];
    if (options_.thinks() && static_cast<int64_t>(i) > LastUser()) {
      const std::string reasoning = message.reasoning.value_or("");
      if (reasoning.empty() && message.tool_calls.empty())
        return Bad(i, "when thinking, an answer after the last user needs its reasoning");
      out_.UserText(reasoning).TemplateText("</think>");
    }
    out_.UserText(message.content.value_or(""));
    for (size_t k = 0; k < message.tool_calls.size(); ++k) {
      out_.TemplateText(k == 0 ? "\n\n<｜DSML｜function_calls>\n" : "\n");
      LATTE_RETURN_IF_ERROR(WriteCall(i, message.tool_calls[k]));
    }
    if (!message.tool_calls.empty()) out_.TemplateText("\n</｜DSML｜function_calls>");
    out_.TemplateText(message.prefix ? "" : kV32End);
    return {};
  }

  Status WriteCall(size_t i, const ToolCall& call) {
    const Result<Value> arguments = ParseArguments(call);
    if (!arguments) return Bad(i, arguments.error().message);
    out_.TemplateText("<｜DSML｜invoke name=\"").UserText(call.name).TemplateText("\">\n");
    bool first = true;
    for (const auto& [key, value] : arguments->dict().entries) {
      const bool is_text = value.Is(jinja::Kind::kString);
      out_.TemplateText(first ? "" : "\n")
          .TemplateText("<｜DSML｜parameter name=\"")
          .UserText(key.bytes());
      out_.TemplateText(is_text ? "\" string=\"true\">" : "\" string=\"false\">");
      LATTE_ASSIGN_OR_RETURN(const std::string text,
                             is_text ? Result<std::string>(value.bytes()) : CompactJson(value));
      out_.UserText(text).TemplateText("</｜DSML｜parameter>");
      first = false;
    }
    out_.TemplateText("\n</｜DSML｜invoke>");
    return {};
  }

  std::vector<ChatMessage> messages_;
  std::vector<size_t> places_;  // of the messages as they were given, for errors
  const ChatOptions& options_;
  std::string opening_;        // of the answer that is due
  bool after_system_ = false;  // a system message stands where no answer is due
  PromptWriter out_;
};

}  // namespace

Result<Text> EncodeDeepseekV32(std::span<const ChatMessage> messages, const ChatOptions& options) {
  return V32Encoder({messages.begin(), messages.end()}, options).Encode();
}

}  // namespace latte
