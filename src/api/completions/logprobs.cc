#include "src/api/completions/logprobs.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/api/common/json_text.h"
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

void Separate(std::string* list) {
  if (!list->ends_with('[') && !list->ends_with('{')) *list += ',';
}

void AppendField(std::string_view name, double value, std::string* out) {
  *out += name;
  AppendJsonNumber(value, out);
}

// Without the closing brace.
void AppendChatToken(const TokenLogprob& token, const Tokenizer& tokenizer, std::string* out) {
  *out += R"({"token":)";
  AppendJsonString(TokenText(tokenizer, token.token), out);
  AppendField(R"(,"logprob":)", token.logprob, out);
  *out += R"(,"bytes":[)";
  for (const char byte : tokenizer.TokenBytes(token.token)) {
    Separate(out);
    fmt::format_to(std::back_inserter(*out), "{}", static_cast<unsigned char>(byte));
  }
  *out += ']';
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
  CompletionLists(const ApiReply& reply, const Tokenizer& tokenizer, int64_t offset)
      : reply_(reply), tokenizer_(tokenizer), offset_(offset) {}

  // Adds the first token of the prompt, which has no probability: no token precedes it.
  void AddFirst(const ApiPrompt& prompt) {
    logprobs_ += "null";
    top_ += "null";
    AddText(TokenText(tokenizer_, prompt.first_token));
    if (!prompt.first_is_bos) offset_ += CodePoints(tokenizer_.TokenBytes(prompt.first_token));
  }

  // `shown`: its bytes are part of the text that the offsets refer to.
  void Add(const TokenLogprobs& token, bool shown) {
    // Tokens with the same text are one member; the chosen token's value counts.
    std::vector<std::pair<std::string, double>> top;
    const auto set = [&](const TokenLogprob& one) {
      std::string text = TokenText(tokenizer_, one.token);
      const auto same = std::find_if(top.begin(), top.end(),
                                     [&](const auto& member) { return member.first == text; });
      if (same != top.end())
        same->second = one.logprob;
      else
        top.emplace_back(std::move(text), one.logprob);
    };
    for (const TokenLogprob& other : Likeliest(token, reply_.logprobs)) set(other);
    set(token.chosen);
    Separate(&top_);
    top_ += '{';
    for (const auto& [text, logprob] : top) {
      Separate(&top_);
      AppendJsonString(text, &top_);
      AppendField(":", logprob, &top_);
    }
    top_ += '}';
    Separate(&logprobs_);
    AppendJsonNumber(token.chosen.logprob, &logprobs_);
    AddText(TokenText(tokenizer_, token.chosen.token));
    if (shown) offset_ += CodePoints(tokenizer_.TokenBytes(token.chosen.token));
  }

  int64_t offset() const { return offset_; }

  void AppendTo(std::string* out) const {
    *out += R"({"tokens":)" + tokens_ + R"(],"token_logprobs":)";
    *out += logprobs_;
    *out += R"(],"top_logprobs":)";
    *out += top_;
    *out += R"(],"text_offset":)";
    *out += offsets_;
    *out += "]}";
  }

 private:
  void AddText(std::string_view text) {
    Separate(&tokens_);
    AppendJsonString(text, &tokens_);
    Separate(&offsets_);
    fmt::format_to(std::back_inserter(offsets_), "{}", offset_);
  }

  const ApiReply& reply_;
  const Tokenizer& tokenizer_;
  int64_t offset_;
  std::string tokens_ = "[";
  std::string logprobs_ = "[";
  std::string top_ = "[";
  std::string offsets_ = "[";
};

}  // namespace

void AppendChatLogprobs(std::span<const TokenLogprobs> tokens, const Tokenizer& tokenizer,
                        std::string* out) {
  *out += R"({"content":[)";
  for (const TokenLogprobs& token : tokens) {
    Separate(out);
    AppendChatToken(token.chosen, tokenizer, out);
    *out += R"(,"top_logprobs":[)";
    for (const TokenLogprob& other : token.top) {
      Separate(out);
      AppendChatToken(other, tokenizer, out);
      *out += '}';
    }
    *out += "]}";
  }
  *out += R"(],"refusal":null})";
}

void AppendCompletionLogprobs(const CompletionTokens& shown, const ApiReply& reply,
                              const Tokenizer& tokenizer, int64_t* offset, std::string* out) {
  CompletionLists lists(reply, tokenizer, *offset);
  if (shown.echoed != nullptr) {
    lists.AddFirst(*shown.echoed);
    for (const TokenLogprobs& token : shown.prompt) lists.Add(token, true);
  }
  for (const TokenLogprobs& token : shown.tokens)
    lists.Add(token, reply.keep_special || IsShown(tokenizer, token.chosen.token));
  *offset = lists.offset();
  lists.AppendTo(out);
}

void AppendPromptLogprobs(std::span<const TokenLogprobs> prompt, int top,
                          const Tokenizer& tokenizer, std::string* out) {
  *out += "[null";
  for (const TokenLogprobs& token : prompt) {
    *out += ",{";
    const auto add = [&](const TokenLogprob& one) {
      Separate(out);
      fmt::format_to(std::back_inserter(*out), R"("{}":{{"logprob":)", one.token);
      AppendJsonNumber(one.logprob, out);
      *out += R"(,"decoded_token":)";
      AppendJsonString(TokenText(tokenizer, one.token), out);
      *out += '}';
    };
    add(token.chosen);
    const std::span<const TokenLogprob> others = Likeliest(token, top);
    for (size_t i = 0; i < others.size(); ++i) {
      // A member stands once.
      const auto same = [&](const TokenLogprob& one) { return one.token == others[i].token; };
      if (!same(token.chosen) &&
          std::none_of(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(i), same))
        add(others[i]);
    }
    *out += '}';
  }
  *out += ']';
}

// A byte is at most two escapes of six characters (a token of /v1/completions stands in two lists),
// or one and a number of three digits. Names, brackets and numbers take less than 96 characters.
int64_t MaxLogprobsBytes(std::span<const TokenLogprobs> tokens, const Tokenizer& tokenizer) {
  int64_t bytes = 0;
  const auto add = [&](const TokenLogprob& one) {
    bytes += 96 + 12 * static_cast<int64_t>(tokenizer.TokenBytes(one.token).size());
  };
  for (const TokenLogprobs& token : tokens) {
    add(token.chosen);
    for (const TokenLogprob& other : token.top) add(other);
  }
  return bytes;
}

}  // namespace latte
