#include "src/openai/logprobs.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/engine/output/answer_text.h"
#include "src/text/unicode/unicode.h"

namespace latte {

std::string TokenText(const Tokenizer& tokenizer, int32_t id) {
  const std::string_view bytes = tokenizer.TokenBytes(id);
  if (ValidUtf8Prefix(bytes) == bytes.size()) return std::string(bytes);
  std::string out = "bytes:";
  for (const char byte : bytes)
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
  return out;
}

namespace {

JsonOut ChatToken(const TokenLogprob& token, const Tokenizer& tokenizer) {
  JsonOut bytes = JsonOut::array();
  for (const char byte : tokenizer.TokenBytes(token.token))
    bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", TokenText(tokenizer, token.token)},
          {"logprob", token.logprob},
          {"bytes", std::move(bytes)}};
}

std::span<const TokenLogprob> Likeliest(const TokenLogprobs& token, int count) {
  return std::span(token.top).first(std::min(token.top.size(), static_cast<size_t>(count)));
}

// The number of code points that begin in the bytes of a token.
int64_t CodePoints(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

class CompletionLists {
 public:
  CompletionLists(const OpenAiReply& reply, const Tokenizer& tokenizer, int64_t offset)
      : reply_(reply), tokenizer_(tokenizer), offset_(offset) {}

  // Adds the first token of the prompt, which has no probability: no token precedes it.
  void AddFirst(const OpenAiPrompt& prompt) {
    const std::string text = TokenText(tokenizer_, prompt.first_token);
    Add(text, nullptr, nullptr);
    if (!prompt.first_is_bos) offset_ += CodePoints(tokenizer_.TokenBytes(prompt.first_token));
  }

  // `shown`: its bytes are part of the text that the offsets refer to.
  void Add(const TokenLogprobs& token, bool shown) {
    const std::string text = TokenText(tokenizer_, token.chosen.token);
    JsonOut top = JsonOut::object();
    for (const TokenLogprob& other : Likeliest(token, reply_.logprobs))
      top[TokenText(tokenizer_, other.token)] = other.logprob;
    top[text] = token.chosen.logprob;
    Add(text, token.chosen.logprob, std::move(top));
    if (shown) offset_ += CodePoints(tokenizer_.TokenBytes(token.chosen.token));
  }

  int64_t offset() const { return offset_; }

  JsonOut Take() {
    return {{"tokens", std::move(tokens_)},
            {"token_logprobs", std::move(logprobs_)},
            {"top_logprobs", std::move(top_)},
            {"text_offset", std::move(offsets_)}};
  }

 private:
  void Add(const std::string& text, JsonOut logprob, JsonOut top) {
    tokens_.push_back(text);
    logprobs_.push_back(std::move(logprob));
    top_.push_back(std::move(top));
    offsets_.push_back(offset_);
  }

  const OpenAiReply& reply_;
  const Tokenizer& tokenizer_;
  int64_t offset_;
  JsonOut tokens_ = JsonOut::array();
  JsonOut logprobs_ = JsonOut::array();
  JsonOut top_ = JsonOut::array();
  JsonOut offsets_ = JsonOut::array();
};

}  // namespace

JsonOut ChatLogprobs(std::span<const TokenLogprobs> tokens, const Tokenizer& tokenizer) {
  JsonOut content = JsonOut::array();
  for (const TokenLogprobs& token : tokens) {
    JsonOut entry = ChatToken(token.chosen, tokenizer);
    entry["top_logprobs"] = JsonOut::array();
    for (const TokenLogprob& other : token.top)
      entry["top_logprobs"].push_back(ChatToken(other, tokenizer));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

JsonOut CompletionLogprobs(const CompletionTokens& shown, const OpenAiReply& reply,
                           const Tokenizer& tokenizer, int64_t* offset) {
  CompletionLists out(reply, tokenizer, *offset);
  if (shown.echoed != nullptr) {
    out.AddFirst(*shown.echoed);
    for (const TokenLogprobs& token : shown.prompt) out.Add(token, true);
  }
  for (const TokenLogprobs& token : shown.tokens)
    out.Add(token, reply.keep_special || IsShown(tokenizer, token.chosen.token));
  *offset = out.offset();
  return out.Take();
}

JsonOut PromptLogprobs(std::span<const TokenLogprobs> prompt, int top, const Tokenizer& tokenizer) {
  JsonOut out = JsonOut::array({nullptr});
  for (const TokenLogprobs& token : prompt) {
    JsonOut entry = JsonOut::object();
    const auto add = [&](const TokenLogprob& one) {
      entry[std::to_string(one.token)] = {{"logprob", one.logprob},
                                          {"decoded_token", TokenText(tokenizer, one.token)}};
    };
    add(token.chosen);
    for (const TokenLogprob& other : Likeliest(token, top)) add(other);
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace latte
