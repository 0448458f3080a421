// The transcripts of tests/data/tools: answers of models with calls, and the expected results. For
// tests.
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/chat/tools/tool_call_parser.h"

namespace latte::testing_support {

struct TranscriptCall {
  std::string id;
  std::string name;
  std::string arguments;
  bool done = false;
  bool operator==(const TranscriptCall&) const = default;
};

// An answer as it is read.
struct TranscriptAnswer {
  std::string reasoning;
  std::string content;
  std::vector<TranscriptCall> calls;
  bool operator==(const TranscriptAnswer&) const = default;
};

struct Transcript {
  std::string name;
  ToolFormat format;
  std::string text;
  bool in_thought = false;
  bool cut = false;
  std::shared_ptr<const KnownFunctions> functions;
  TranscriptAnswer answer;
  bool has_reasoning = false;
};

inline void AddEvents(const std::vector<ToolEvent>& events, TranscriptAnswer* out) {
  for (const ToolEvent& event : events) {
    if (event.kind == ToolEvent::Kind::kContent) out->content += event.text;
    if (event.kind == ToolEvent::Kind::kCallBegin)
      out->calls.push_back({.id = event.id, .name = event.text});
    if (event.kind == ToolEvent::Kind::kArguments) out->calls[event.call].arguments += event.text;
    if (event.kind == ToolEvent::Kind::kCallEnd) out->calls[event.call].done = true;
  }
}

inline std::string Describe(const TranscriptAnswer& answer) {
  std::string out = "reasoning: " + answer.reasoning + "\ncontent: " + answer.content + "\n";
  for (const TranscriptCall& call : answer.calls)
    out += "call " + call.id + " " + call.name + " " + call.arguments +
           (call.done ? " done\n" : " not done\n");
  return out;
}

inline Json ReadTranscriptFile(const std::string& name) {
  const std::string path = std::string(LATTE_SOURCE_DIR) + "/tests/data/tools/" + name;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return Json::Parse(text.str(), path).value();
}

// "texts": pairs of a function and a parameter of type string. "schemas": the schema of each
// function's parameters, or the name of a file.
inline std::shared_ptr<const KnownFunctions> FunctionsOf(const Json& transcript) {
  auto out = std::make_shared<KnownFunctions>();
  const Json pairs = transcript.Get("texts").value();
  for (size_t k = 0; k < pairs.size(); ++k) {
    ValueSchema& schema =
        (*out)[pairs.At(k).At(0).AsString().value()].named[pairs.At(k).At(1).AsString().value()];
    schema = {.types = kJsonString, .plain_text = true};
  }
  std::optional<Json> schemas = transcript.Find("schemas");
  if (schemas && schemas->is_string()) schemas = ReadTranscriptFile(schemas->AsString().value());
  if (!schemas) return out;
  const Status read = schemas->ForEachMember([&](const std::string& name, const Json& schema) {
    (*out)[name] = ParametersOf(schema);
    return Status();
  });
  return read ? out : nullptr;
}

inline std::vector<Transcript> ReadTranscripts(ToolFormat format) {
  const Json list = ReadTranscriptFile(std::string(Name(format)) + ".json");
  std::vector<Transcript> out;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json json = list.At(i);
    Transcript one{.name = json.GetString("name").value(), .format = format};
    one.text = json.GetString("text").value();
    one.in_thought = json.GetBoolOr("in_thought", false).value();
    one.cut = json.GetBoolOr("cut", false).value();
    one.has_reasoning = json.Find("reasoning").has_value();
    one.answer.reasoning = json.GetStringOr("reasoning", "").value();
    one.answer.content = json.GetString("content").value();
    const Json calls = json.Get("calls").value();
    for (size_t k = 0; k < calls.size(); ++k)
      one.answer.calls.push_back({calls.At(k).GetString("id").value(),
                                  calls.At(k).GetString("name").value(),
                                  calls.At(k).GetString("arguments").value(),
                                  calls.At(k).GetBoolOr("done", true).value()});
    one.functions = FunctionsOf(json);
    out.push_back(std::move(one));
  }
  return out;
}

constexpr ToolFormat kToolFormats[] = {ToolFormat::kDeepseekV3, ToolFormat::kDeepseekV31,
                                       ToolFormat::kDeepseekV32, ToolFormat::kKimiK2,
                                       ToolFormat::kGlm};

}  // namespace latte::testing_support
