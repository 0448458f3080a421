#include "src/engine/output/output_streams.h"

#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::output_streams_test {
namespace {

struct StreamedAnswer {
  std::string text;
  std::string stop_string;
  std::optional<FinishReason> finish;
  bool operator==(const StreamedAnswer&) const = default;
};

// The events of a request whose answer is the bytes of `text`, which then ends by itself.
StreamedAnswer StreamText(Request request, std::string_view text) {
  const Tokenizer tokenizer = Tokenizer::FromJson(Dump(SmallTokenizer())).value();
  ModelConfig config;
  config.vocab = tokenizer.vocab_size();
  Settings settings;
  settings.options.max_tokens = 1000;
  settings.options.max_sequences = 1;
  request.tokens = {'a'};
  const auto state = MakeRequestState(std::move(request), {&config, &settings, &tokenizer}).value();
  OutputStreams streams(&tokenizer);
  Output& output = *state->outputs.front();
  bool ended = false;
  for (size_t i = 0; i < text.size() && !ended; ++i)
    ended = streams.Accept(output, {.token = static_cast<uint8_t>(text[i])},
                           static_cast<int64_t>(i) + 2);
  if (!ended) streams.End(output, FinishReason::kStop, {});
  StreamedAnswer out;
  for (const TokenEvent& event : streams.events()) {
    out.text += event.text;
    out.stop_string = event.stop_string;
    out.finish = event.finish;
  }
  return out;
}

Request ChatRequest(const std::string& reasoning, const std::string& call_format = "") {
  Request out;
  out.stop.strings = {"END"};
  out.reasoning = reasoning;
  out.call_format = call_format;
  return out;
}

constexpr auto kStop = FinishReason::kStop;

TEST(OutputStreams, StopStringsOfAChatCountInItsContent) {
  const std::string thought = "END?</think>The END.";
  EXPECT_EQ(StreamText(ChatRequest("begun"), thought),
            (StreamedAnswer{"END?</think>The ", "END", kStop}));
  EXPECT_EQ(StreamText(ChatRequest("none"), thought), (StreamedAnswer{"", "END", kStop}));
  EXPECT_EQ(StreamText(ChatRequest("possible"), "<think>" + thought),
            (StreamedAnswer{"<think>END?</think>The ", "END", kStop}));
  EXPECT_EQ(StreamText(ChatRequest("possible"), thought), (StreamedAnswer{"", "END", kStop}));
}

TEST(OutputStreams, StopStringsOfAChatDoNotCountInCalls) {
  const std::string call = "<tool_call>f<arg_key>a</arg_key><arg_value>END</arg_value></tool_call>";
  EXPECT_EQ(StreamText(ChatRequest("possible", "glm"), call), (StreamedAnswer{call, "", kStop}));
  EXPECT_EQ(StreamText(ChatRequest("begun", "glm"), "END" + call + "END"),
            (StreamedAnswer{"END" + call, "END", kStop}));
}

// Its last text is content only because the answer ends there.
TEST(OutputStreams, TheEndOfAnAnswerMayUncoverAStopString) {
  EXPECT_EQ(StreamText(ChatRequest("possible", "glm"), "<tool_call>END"),
            (StreamedAnswer{"<tool_call>", "END", kStop}));
  Request limited = ChatRequest("possible", "glm");
  limited.stop.max_tokens = 14;
  EXPECT_EQ(StreamText(limited, "<tool_call>END and more"),
            (StreamedAnswer{"<tool_call>", "END", kStop}));
  limited.stop.max_tokens = 13;
  EXPECT_EQ(StreamText(limited, "<tool_call>END and more"),
            (StreamedAnswer{"<tool_call>EN", "", FinishReason::kLength}));
}

TEST(OutputStreams, AChatMustSayWhatItIs) {
  Request request = ChatRequest("sometimes");
  EXPECT_NE(request.Validate().error().message.find("reasoning: expected none, possible or begun"),
            std::string::npos);
  request = ChatRequest("begun", "xml");
  EXPECT_NE(request.Validate().error().message.find("call_format: expected deepseek_v3"),
            std::string::npos);
}

}  // namespace
}  // namespace latte::output_streams_test
