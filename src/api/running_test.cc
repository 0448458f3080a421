#include "src/api/running.h"

#include <map>

#include "src/api/common/error.h"
#include "src/api/completions/logprobs.h"
#include "src/base/json_out.h"
#include "tests/support/byte_source.h"
#include "tests/support/property.h"

namespace latte::running_test {
namespace {

using testing_support::ByteSource;

constexpr auto kChat = ApiEndpoint::kChat;
constexpr auto kCompletions = ApiEndpoint::kCompletions;

const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

ApiRunning Running(ApiReply reply) {
  ApiRequest request;
  request.requests.resize(reply.prompts.size());
  request.reply = std::move(reply);
  return {std::move(request), &Tiny(), "7", 11};
}

// The JSON documents of a stream. A text that is no whole list of events gives null.
std::vector<JsonOut> Chunks(std::string_view sse) {
  std::vector<JsonOut> out;
  while (!sse.empty()) {
    const size_t end = sse.find("\n\n");
    if (!sse.starts_with("data: ") || end == std::string_view::npos) return {nullptr};
    const std::string_view data = sse.substr(6, end - 6);
    out.push_back(data == "[DONE]" ? JsonOut("[DONE]") : JsonOut::parse(data));
    sse.remove_prefix(end + 2);
  }
  return out;
}

TokenLogprobs Logprobs(ByteSource* choose, int count) {
  TokenLogprobs out{{choose->Below(200), -1.5F}, {}};
  for (int i = 0; i < count; ++i) out.top.push_back({200 + i, -0.5F});
  return out;
}

ApiReply RandomReply(ByteSource* choose) {
  ApiReply reply;
  reply.endpoint = choose->Below(2) == 0 ? kChat : kCompletions;
  const bool chat = reply.endpoint == kChat;
  reply.model = "m";
  reply.fingerprint = "fp_1";
  reply.n = 1 + choose->Below(3);
  reply.logprobs = choose->Below(4) - 1;
  reply.prompt_logprobs = choose->Below(3) - 1;
  reply.echo = !chat && choose->Below(2) == 1;
  reply.in_thought = chat && choose->Below(2) == 1;
  reply.include_usage = choose->Below(2) == 1;
  reply.continuous_usage = reply.include_usage && choose->Below(2) == 1;
  reply.prompts.resize(chat ? 1 : static_cast<size_t>(1 + choose->Below(3)), {.first_token = 5});
  return reply;
}

struct PlacedEvent {
  size_t prompt = 0;
  TokenEvent event;
};

// Events of all choices in a random order, as an engine makes them for this reply.
class RandomEvents {
 public:
  RandomEvents(const ApiReply& reply, ByteSource* choose)
      : reply_(reply),
        choose_(choose),
        counts_(reply.prompts.size() * static_cast<size_t>(reply.n)) {}

  std::vector<PlacedEvent> Make() {
    for (size_t i = 0; i < counts_.size(); ++i) open_.push_back(i);
    std::vector<PlacedEvent> events;
    while (!open_.empty()) events.push_back(Next());
    return events;
  }

 private:
  PlacedEvent Next() {
    const size_t at = static_cast<size_t>(choose_->Below(static_cast<int32_t>(open_.size())));
    const size_t index = open_[at];
    const size_t n = static_cast<size_t>(reply_.n);
    PlacedEvent out{index / n, {}};
    TokenEvent& event = out.event;
    event.choice = static_cast<int>(index % n);
    event.prompt_tokens = 3 + static_cast<int64_t>(out.prompt);
    event.cached_tokens = static_cast<int64_t>(out.prompt);
    if (counts_[index] == 0 &&
        (reply_.prompt_logprobs >= 0 || (reply_.echo && reply_.logprobs >= 0)))
      event.prompt_logprobs = {Logprobs(choose_, 2), Logprobs(choose_, 1)};
    const bool ends = choose_->empty() || choose_->Below(6) == 0;
    if (!ends || choose_->Below(2) == 0) AddToken(&event, &counts_[index]);
    event.generated_tokens = counts_[index];
    if (!ends) return out;
    event.finish = choose_->Below(2) == 0 ? FinishReason::kStop : FinishReason::kLength;
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(at));
    return out;
  }

  void AddToken(TokenEvent* event, int64_t* count) {
    constexpr std::string_view kTexts[] = {"a",   "",      "<think>", "</thi",
                                           "nk>", "\"é\n", "🙂",    " "};
    ++*count;
    event->token = 7;
    event->text = kTexts[choose_->Below(std::size(kTexts))];
    if (reply_.logprobs >= 0) event->logprobs = Logprobs(choose_, reply_.logprobs);
  }

  const ApiReply& reply_;
  ByteSource* choose_;
  std::vector<int64_t> counts_;  // tokens of each choice
  std::vector<size_t> open_;     // choices that have not ended
};

void AppendTo(JsonOut* list, const JsonOut& more) {
  if (list->is_null())
    *list = more;
  else
    for (const JsonOut& item : more) list->push_back(item);
}

// Joins the chunks of one choice to the choice of a whole answer.
void Join(const JsonOut& chunk, bool chat, JsonOut* choice) {
  JsonOut& out = *choice;
  if (chat) {
    for (const auto& [key, value] : chunk["delta"].items()) {
      JsonOut& member = out["message"][key];
      member = (member.is_null() ? "" : member.get<std::string>()) + value.get<std::string>();
    }
  } else {
    out["text"] = out.value("text", "") + chunk["text"].get<std::string>();
  }
  for (const auto& [key, list] : chunk["logprobs"].items()) {
    if (!list.is_null())
      AppendTo(&out["logprobs"][key], list);
    else
      out["logprobs"][key] = nullptr;
  }
  if (!chunk["finish_reason"].is_null()) out["finish_reason"] = chunk["finish_reason"];
  if (chunk.contains("prompt_logprobs")) out["prompt_logprobs"] = chunk["prompt_logprobs"];
}

// What both forms of a choice say, in one order. A whole answer tells empty lists and reasoning
// that a stream has no chunk for.
std::string Shown(JsonOut choice, bool chat) {
  if (chat) {
    JsonOut& message = choice["message"];
    message.erase("refusal");
    if (message.contains("reasoning_content") && message["reasoning_content"] == "")
      message.erase("reasoning_content");
  }
  JsonOut& logprobs = choice["logprobs"];
  const JsonOut lists = logprobs;
  for (const auto& [key, list] : lists.items())
    if (list.empty()) logprobs.erase(key);
  if (logprobs.empty()) choice.erase("logprobs");
  std::map<std::string, std::string> members;
  const JsonOut flat = choice.flatten();
  for (const auto& [key, value] : flat.items()) members[key] = Dump(value);
  std::string out;
  for (const auto& [key, value] : members) out += key + " = " + value + "\n";
  return out;
}

class Compare {
 public:
  explicit Compare(const ApiReply& reply) : reply_(reply), chat_(reply.endpoint == kChat) {}

  void Run(const std::vector<PlacedEvent>& events) {
    ApiReply streamed = reply_;
    streamed.stream = true;
    ApiRunning whole = Running(reply_);
    ApiRunning stream = Running(streamed);
    std::string sse;
    for (const auto& [prompt, event] : events) {
      RC_ASSERT(!whole.done() && !stream.done());
      whole.Add(prompt, event, nullptr);
      stream.Add(prompt, event, &sse);
    }
    RC_ASSERT(whole.done() && stream.done());
    const JsonOut body = JsonOut::parse(whole.Body());
    const std::vector<JsonOut> chunks = Chunks(sse);
    RC_ASSERT(chunks.back() == "[DONE]");
    std::vector<JsonOut> choices(body["choices"].size(), JsonOut::object());
    for (size_t i = 0; i + 1 < chunks.size(); ++i) {
      CheckChunk(chunks[i], body, i + 2 == chunks.size());
      for (const JsonOut& choice : chunks[i]["choices"]) {
        JsonOut& joined = choices.at(choice["index"]);
        RC_ASSERT(!joined.contains("finish_reason"));
        joined["index"] = choice["index"];
        Join(choice, chat_, &joined);
      }
    }
    for (size_t i = 0; i < choices.size(); ++i)
      RC_ASSERT(Shown(choices[i], chat_) == Shown(body["choices"][i], chat_));
  }

 private:
  void CheckChunk(const JsonOut& chunk, const JsonOut& body, bool last) {
    for (const char* key : {"id", "created", "model", "system_fingerprint"})
      RC_ASSERT(chunk[key] == body[key]);
    RC_ASSERT(chunk["object"] == (chat_ ? "chat.completion.chunk" : "text_completion"));
    RC_ASSERT(chunk.contains("usage") == reply_.include_usage);
    RC_ASSERT(chunk["choices"].size() == (last && reply_.include_usage ? 0U : 1U));
    if (!reply_.include_usage) return;
    if (last)
      RC_ASSERT(chunk["usage"] == body["usage"]);
    else
      RC_ASSERT(chunk["usage"].is_null() != reply_.continuous_usage);
  }

  const ApiReply& reply_;
  bool chat_;
};

TEST(ApiRunning, AStreamSaysWhatTheWholeAnswerSays) {
  testing_support::CheckProperty(3'000, 200, [](const std::vector<uint8_t>& bytes) {
    ByteSource choose(bytes);
    const ApiReply reply = RandomReply(&choose);
    Compare(reply).Run(RandomEvents(reply, &choose).Make());
  });
}

TokenEvent Event(std::string text, std::optional<FinishReason> finish = {}) {
  TokenEvent event;
  event.token = 7;
  event.text = std::move(text);
  event.prompt_tokens = 3;
  event.generated_tokens = 1;
  event.finish = finish;
  return event;
}

TEST(ApiRunning, ChunksOfAChat) {
  ApiReply reply{.endpoint = kChat, .model = "m", .stream = true};
  ApiRunning running = Running(reply);
  std::string sse;
  running.Add(0, Event("Hi", FinishReason::kStop), &sse);
  const std::string begin =
      R"(data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":11,"model":"m","choices":[{"index":0,)";
  EXPECT_EQ(
      sse,
      begin +
          R"("delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          begin +
          R"("delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          begin +
          R"("delta":{},"logprobs":null,"finish_reason":"stop"}]})"
          "\n\ndata: [DONE]\n\n");
}

TEST(ApiRunning, AnErrorInTheMiddleEndsTheStream) {
  for (const ApiEndpoint endpoint : {kChat, kCompletions}) {
    ApiReply reply{.endpoint = endpoint, .model = "m", .stream = true, .n = 2};
    reply.include_usage = true;
    ApiRunning running = Running(reply);
    std::string sse;
    running.Add(0, Event("Hi"), &sse);
    ASSERT_FALSE(running.done());
    TokenEvent bad = Event("", FinishReason::kError);
    bad.choice = 1;
    bad.error = {Code::kInternal, "not a number"};
    running.Add(0, bad, &sse);
    ASSERT_TRUE(running.done() && running.error());
    const std::vector<JsonOut> chunks = Chunks(sse);
    EXPECT_EQ(chunks.back(), "[DONE]");
    const JsonOut& error = chunks[chunks.size() - 2]["error"];
    EXPECT_EQ(error["message"], "not a number");
    EXPECT_EQ(error["type"], "server_error");
    EXPECT_EQ(error["code"], "internal");
  }
}

TEST(ApiRunning, ReasoningIsCounted) {
  ApiRunning running = Running({.endpoint = kChat, .model = "m"});
  const char* const texts[] = {"<think>", "so", "</think>", "yes"};
  int64_t tokens = 0;
  for (const char* text : texts) {
    TokenEvent event = Event(text);
    event.generated_tokens = ++tokens;
    if (tokens == 4) event.finish = FinishReason::kStop;
    running.Add(0, event, nullptr);
  }
  const JsonOut usage = JsonOut::parse(running.Body())["usage"];
  EXPECT_EQ(usage["completion_tokens"], 4);
  EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"], 3);
}

// An event with the log-probabilities of every kind of token.
TokenEvent EventWithTop(int tokens) {
  TokenEvent event;
  event.text = "a";
  event.logprobs = {{0, -1.25F}, {}};
  for (int32_t id = 0; id < tokens; ++id)
    event.logprobs->top.push_back({id, -12.345678F / static_cast<float>(id + 1)});
  return event;
}

TEST(ApiRunning, AnAnswerThatGrowsBeyondItsLimitFails) {
  for (const ApiEndpoint endpoint : {kChat, kCompletions}) {
    ApiReply reply{.endpoint = endpoint, .max_answer_bytes = 4000, .logprobs = 4};
    ApiRunning running = Running(reply);
    int events = 0;
    for (; !running.done(); ++events) {
      ASSERT_LT(events, 100) << "a limit that does not hold";
      running.Add(0, EventWithTop(4), nullptr);
    }
    ASSERT_TRUE(running.error());
    EXPECT_GT(events, 1);
    EXPECT_EQ(running.error()->code, Code::kInvalidArgument);
    EXPECT_NE(running.error()->message.find("4000 bytes"), std::string::npos);
  }
}

TEST(ApiRunning, PlainTextCountsTowardsTheLimitToo) {
  ApiRunning running = Running({.endpoint = kChat, .max_answer_bytes = 1000});
  TokenEvent event;
  event.text = std::string(100, '\1');  // six characters each in JSON
  running.Add(0, event, nullptr);
  EXPECT_FALSE(running.error());
  running.Add(0, event, nullptr);
  EXPECT_TRUE(running.error());
}

TEST(ApiRunning, AStreamIsLimitedOnlyInWhatComesAtOnce) {
  ApiReply reply{.endpoint = kCompletions, .stream = true, .max_answer_bytes = 4000};
  reply.logprobs = 4;
  ApiRunning running = Running(reply);
  std::string sse;
  for (int i = 0; i < 100; ++i) running.Add(0, EventWithTop(4), &sse);
  EXPECT_FALSE(running.error());
  TokenEvent first;
  first.prompt_logprobs.assign(20, *EventWithTop(4).logprobs);
  ApiRunning with_prompt = Running(reply);
  sse.clear();
  with_prompt.Add(0, first, &sse);
  ASSERT_TRUE(with_prompt.error());
  EXPECT_EQ(Chunks(sse).back(), "[DONE]");
}

TEST(ApiRunning, ATokenThatIsListedTwiceIsOneMember) {
  const std::vector<TokenLogprobs> tokens = {{{7, -1}, {{7, -1}, {8, -2}, {8, -2}, {9, -3}}}};
  std::string out;
  AppendPromptLogprobs(tokens, 4, Tiny().tokenizer, &out);
  EXPECT_EQ(Json::Parse(out, "list").value().At(1).size(), 3) << out;
}

TEST(ApiRunning, TheLimitIsNotPassedUnnoticed) {
  const int vocabulary = Tiny().tokenizer.vocab_size();
  const std::vector<TokenLogprobs> all(3, *EventWithTop(vocabulary).logprobs);
  const auto most = static_cast<size_t>(MaxLogprobsBytes(all, Tiny().tokenizer));
  std::string chat;
  AppendChatLogprobs(all, Tiny().tokenizer, &chat);
  EXPECT_LE(chat.size(), most);
  std::string prompt;
  AppendPromptLogprobs(all, vocabulary, Tiny().tokenizer, &prompt);
  EXPECT_LE(prompt.size(), most);
  std::string completion;
  ApiReply reply{.endpoint = kCompletions};
  reply.logprobs = vocabulary;
  int64_t offset = 0;
  AppendCompletionLogprobs({.tokens = all}, reply, Tiny().tokenizer, &offset, &completion);
  EXPECT_LE(completion.size(), most);
}

}  // namespace
}  // namespace latte::running_test
