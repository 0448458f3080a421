#include "src/chat/tools/tool_call_parser.h"

#include <gtest/gtest.h>

#include "tests/support/byte_source.h"
#include "tests/support/property.h"
#include "tests/support/transcripts.h"

namespace latte::tool_call_parser_test {
namespace {

using testing_support::AddEvents;
using testing_support::ByteSource;
using testing_support::Describe;
using testing_support::kToolFormats;
using testing_support::ReadTranscripts;
using testing_support::Transcript;
using testing_support::TranscriptAnswer;
using Kind = ToolEvent::Kind;

TranscriptAnswer Read(const Transcript& transcript, const std::vector<std::string>& pieces) {
  ToolCallParser parser(transcript.format, transcript.functions);
  TranscriptAnswer out;
  for (const std::string& piece : pieces) AddEvents(parser.Add(piece), &out);
  AddEvents(parser.Finish(transcript.cut), &out);
  return out;
}

// The transcripts without reasoning, which the parser does not see.
std::vector<Transcript> Transcripts() {
  std::vector<Transcript> out;
  for (const ToolFormat format : kToolFormats)
    for (Transcript& one : ReadTranscripts(format))
      if (!one.has_reasoning) out.push_back(std::move(one));
  return out;
}

TEST(ToolCallParser, ReadsTranscripts) {
  for (const Transcript& one : Transcripts())
    EXPECT_EQ(Describe(Read(one, {one.text})), Describe(one.answer))
        << Name(one.format) << ": " << one.name;
}

TEST(ToolCallParser, ReadsTheSameHoweverTheTextIsCut) {
  for (const Transcript& one : Transcripts()) {
    std::vector<std::string> bytes;
    for (const char c : one.text) bytes.emplace_back(1, c);
    EXPECT_EQ(Describe(Read(one, bytes)), Describe(one.answer)) << one.name;
    for (size_t cut = 0; cut < one.text.size(); ++cut)
      ASSERT_EQ(Describe(Read(one, {one.text.substr(0, cut), one.text.substr(cut)})),
                Describe(one.answer))
          << Name(one.format) << ": " << one.name << ", cut at " << cut;
  }
}

// Marks of the format and texts in any order.
std::string AnyText(ToolFormat format, ByteSource* choose) {
  const ToolSyntax& syntax = SyntaxOf(format);
  std::vector<std::string_view> parts = {"a",
                                         " ",
                                         "\n",
                                         "{",
                                         "}",
                                         "\"",
                                         "<",
                                         "é",
                                         "\">",
                                         "function",
                                         "``",
                                         "</arg_key>",
                                         "\" string=\"true",
                                         "<｜tool▁sep｜>"};
  for (const std::string_view text : CallOpenings(format)) parts.push_back(text);
  for (const ToolMark& mark : syntax.name_ends) parts.push_back(mark.text);
  for (const ToolMark& mark : syntax.call_ends) parts.push_back(mark.text);
  parts.insert(parts.end(), syntax.block_ends.begin(), syntax.block_ends.end());
  for (const std::string_view text :
       {syntax.call_begin, syntax.parameter_begin, syntax.key_end, syntax.value_end})
    parts.push_back(text);
  std::string out;
  while (!choose->empty())
    out += parts[static_cast<size_t>(choose->Below(static_cast<int32_t>(parts.size())))];
  return out;
}

TEST(ToolCallParser, AnyTextReadsTheSameHoweverItIsCut) {
  testing_support::CheckProperty(
      3'000, 40, [](const std::vector<uint8_t>& what, uint8_t format, size_t at, bool cut) {
        ByteSource choose(what);
        Transcript one{.format = kToolFormats[format % std::size(kToolFormats)], .cut = cut};
        one.text = AnyText(one.format, &choose);
        std::vector<std::string> bytes;
        for (const char c : one.text) bytes.emplace_back(1, c);
        const std::string whole = Describe(Read(one, {one.text}));
        at %= one.text.size() + 1;
        RC_ASSERT(Describe(Read(one, {one.text.substr(0, at), one.text.substr(at)})) == whole);
        RC_ASSERT(Describe(Read(one, bytes)) == whole);
      });
}

TEST(ToolCallParser, LongTextsReadTheSameHoweverTheyAreCut) {
  for (const size_t length : {500, 510, 512, 513, 560, 580, 1100, 70'000}) {
    const std::string filler(length, 'x');
    const std::string spaces(length, ' ');
    for (const std::string& text :
         {"<tool_call>" + filler + "\n</tool_call>", "<tool_call>" + spaces + "f\n</tool_call>",
          "<tool_call>f\n" + spaces + "</tool_call>",
          "<tool_call>f\n<arg_key>" + filler + "</arg_key><arg_value>1</arg_value></tool_call>",
          "<tool_call>f\n<arg_key>a</arg_key><arg_value>" + filler + "</arg_value></tool_call>"}) {
      const Transcript one{.format = ToolFormat::kGlm, .text = text};
      std::vector<std::string> bytes;
      for (const char c : text) bytes.emplace_back(1, c);
      EXPECT_EQ(Describe(Read(one, bytes)), Describe(Read(one, {text}))) << length;
    }
  }
}

TEST(ToolCallParser, TextWithoutCallsIsContent) {
  testing_support::CheckProperty(1'000, 40, [](const std::string& text, uint8_t format) {
    const Transcript one{.format = kToolFormats[format % std::size(kToolFormats)]};
    RC_ASSERT(Read(one, {text}).content == text);
  });
}

// A client sees arguments while they are generated.
TEST(ToolCallParser, GivesArgumentsAsTheyCome) {
  ToolCallParser parser(ToolFormat::kKimiK2);
  EXPECT_EQ(parser.Add("Hi.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:3"),
            (std::vector<ToolEvent>{{Kind::kContent, 0, "Hi."}}));
  EXPECT_EQ(parser.Add("<|tool_call_argument_begin|>{\"a\""),
            (std::vector<ToolEvent>{{Kind::kCallBegin, 0, "f", "functions.f:3"},
                                    {Kind::kArguments, 0, "{\"a\""}}));
  EXPECT_EQ(parser.Add(": \"New <|"), (std::vector<ToolEvent>{{Kind::kArguments, 0, ": \"New "}}));
  EXPECT_EQ(parser.Add("Y\"}<|tool_call_end|>"),
            (std::vector<ToolEvent>{{Kind::kArguments, 0, "<|Y\"}"}, {Kind::kCallEnd, 0, ""}}));
  EXPECT_EQ(parser.calls(), 1u);
}

TEST(ToolCallParser, GivesTextParametersAsTheyCome) {
  ToolCallParser parser(ToolFormat::kDeepseekV32);
  parser.Add("<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n");
  EXPECT_EQ(parser.Add("<｜DSML｜parameter name=\"q\" string=\"true\">New \"Y"),
            (std::vector<ToolEvent>{{Kind::kArguments, 0, R"({"q": "New \"Y)"}}));
}

TEST(FindToolFormat, FollowsTheTemplateAndElseTheChatFormat) {
  const auto of_template = [](std::string_view text) {
    return FindToolFormat(ChatFormat::kTemplate, text);
  };
  EXPECT_EQ(of_template("'<｜tool▁calls▁begin｜>' + '\\n```json\\n'"), ToolFormat::kDeepseekV3);
  EXPECT_EQ(of_template("'<｜tool▁calls▁begin｜>'"), ToolFormat::kDeepseekV31);
  EXPECT_EQ(of_template("<｜DSML｜function_calls>"), ToolFormat::kDeepseekV32);
  EXPECT_EQ(of_template("<|tool_calls_section_begin|>"), ToolFormat::kKimiK2);
  EXPECT_EQ(of_template("<tool_call>{{ n }}<arg_key>"), ToolFormat::kGlm);
  EXPECT_EQ(of_template("<tool_call>{{ tojson }}"), std::nullopt);
  EXPECT_EQ(FindToolFormat(ChatFormat::kDeepseekR1, ""), ToolFormat::kDeepseekV3);
  EXPECT_EQ(FindToolFormat(ChatFormat::kDeepseekV2, ""), std::nullopt);
}

}  // namespace
}  // namespace latte::tool_call_parser_test
