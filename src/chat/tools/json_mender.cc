#include "src/chat/tools/json_mender.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/base/strings.h"

namespace latte {
namespace {

constexpr std::string_view kReplacement = "\\ufffd";

bool IsJsonSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

size_t CountDigits(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin());
}

bool IsJsonNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const size_t whole = CountDigits(text);
  if (whole == 0 || (whole > 1 && text.front() == '0')) return false;
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    const size_t digits = CountDigits(text.substr(1));
    if (digits == 0) return false;
    text.remove_prefix(1 + digits);
  }
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && CountDigits(text) == text.size();
}

// The escape of a control character, a quote or a backslash.
std::string EscapeOf(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
  }
}

// One character of a text, between quotes.
void AppendPlain(char c, std::string* out) {
  if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\')
    *out += EscapeOf(c);
  else
    *out += c;
}

bool IsHighSurrogate(char16_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(char16_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

char16_t UnitOf(std::string_view digits) {
  return static_cast<char16_t>(std::stoul(std::string(digits), nullptr, 16));
}

}  // namespace

std::string_view JsonOfWord(std::string_view text) {
  struct Word {
    std::string_view text;
    std::string_view json;
  };
  constexpr auto kWords = std::to_array<Word>({{"true", "true"},
                                               {"True", "true"},
                                               {"TRUE", "true"},
                                               {"false", "false"},
                                               {"False", "false"},
                                               {"FALSE", "false"},
                                               {"null", "null"},
                                               {"None", "null"},
                                               {"NULL", "null"},
                                               {"undefined", "null"},
                                               {"NaN", "null"},
                                               {"nan", "null"},
                                               {"-NaN", "null"},
                                               {"Infinity", "null"},
                                               {"+Infinity", "null"},
                                               {"-Infinity", "null"},
                                               {"inf", "null"},
                                               {"-inf", "null"}});
  const auto* const word = std::find_if(kWords.begin(), kWords.end(),
                                        [&](const Word& known) { return known.text == text; });
  if (word != kWords.end()) return word->json;
  if (!IsJsonNumber(text)) return {};
  return Json::Parse(text, "number") ? text : "null";  // out of range: infinite
}

std::string EscapedJson(std::string_view text) {
  std::string out;
  for (const char c : text) AppendPlain(c, &out);
  return out;
}

void JsonMender::Push(std::string_view text, std::string* out) {
  out_ = out;
  for (const char c : text) Step(c);
}

void JsonMender::Step(char c) {
  switch (state_) {
    case State::kValue:
      return StepValue(c);
    case State::kKey:
      return StepKey(c);
    case State::kColon:
      return StepColon(c);
    case State::kString:
      return escape_.empty() ? StepString(c) : StepEscape(c);
    case State::kWord:
      return StepWord(c);
    case State::kAfter:
      return StepAfter(c);
    case State::kDone:
      if (IsJsonSpace(c)) return Put({&c, 1});
      state_ = State::kOver;
      return;
    case State::kOver:
      return;
  }
}

void JsonMender::Put(std::string_view text) {
  if (is_key_)
    key_ += text;
  else if (muted_ == 0)
    *out_ += text;
}

void JsonMender::PutHeld() { Put(std::exchange(held_, {})); }

void JsonMender::StepValue(char c) {
  if (IsJsonSpace(c)) {
    if (held_.empty())
      Put({&c, 1});
    else
      held_ += c;
    return;
  }
  if (c == ',' || c == ':') return;  // one too many
  if (c == ']' || c == '}') {
    if (in_object()) PutNull();
    return Close(c);
  }
  PutHeld();
  if (c == '{' || c == '[') return Begin(c);
  if (c == '"' || c == '\'') {
    state_ = State::kString;
    quote_ = c;
    return Put("\"");
  }
  state_ = State::kWord;
  word_ = c;
}

void JsonMender::StepKey(char c) {
  if (IsJsonSpace(c)) {
    if (held_.empty())
      Put({&c, 1});
    else
      held_ += c;
    return;
  }
  if (c == ',' || c == ':') return;
  if (c == ']' || c == '}') return Close(c);
  is_key_ = true;
  key_.clear();
  if (c == '"' || c == '\'') {
    state_ = State::kString;
    quote_ = c;
    return Put("\"");
  }
  state_ = State::kWord;
  word_ = c;
}

void JsonMender::StepColon(char c) {
  if (IsJsonSpace(c)) return Put({&c, 1});
  Put(":");
  state_ = State::kValue;
  if (c == ':') return;
  if (c != ',' && c != '}' && c != ']') return StepValue(c);
  PutNull();
  StepAfter(c);
}

// The value that a name lacks.
void JsonMender::PutNull() {
  Put("null");
  EndValue();
}

void JsonMender::StepAfter(char c) {
  if (IsJsonSpace(c)) return Put({&c, 1});
  if (c == ']' || c == '}') return Close(c);
  if (c == ':') return;
  held_ = ",";
  state_ = in_object() ? State::kKey : State::kValue;
  if (c != ',') Step(c);  // the comma is missing
}

void JsonMender::Begin(char opener) {
  Put({&opener, 1});
  closers_ += opener == '{' ? '}' : ']';
  if (opener == '{') names_.emplace_back();
  state_ = opener == '{' ? State::kKey : State::kValue;
}

void JsonMender::Close(char closer) {
  const size_t matching = closers_.rfind(closer);
  if (matching == closers_.npos) return;  // it closes nothing
  while (closers_.size() > matching) CloseInnermost();
}

void JsonMender::CloseInnermost() {
  if (!held_.empty()) Put(std::string_view(held_).substr(1));  // the comma was one too many
  held_.clear();
  const char closer = closers_.back();
  closers_.pop_back();
  if (closer == '}') names_.pop_back();
  Put({&closer, 1});
  EndValue();
}

void JsonMender::EndValue() {
  if (muted_ == closers_.size()) muted_ = 0;
  state_ = closers_.empty() ? State::kDone : State::kAfter;
}

// A name that stands twice is left out, with its value.
void JsonMender::EndKey() {
  is_key_ = false;
  state_ = State::kColon;
  const Result<Json> name = Json::Parse(key_, "name");
  const Result<std::string> text =
      name ? name->AsString() : Result<std::string>(key_);  // which is no UTF-8
  if (!names_.back().insert(*text).second && muted_ == 0) {
    held_.clear();
    muted_ = closers_.size();
  }
  PutHeld();
  Put(std::exchange(key_, {}));
}

void JsonMender::EndString() {
  DropSurrogate();
  Put("\"");
  if (is_key_)
    EndKey();
  else
    EndValue();
}

void JsonMender::StepString(char c) {
  if (c == '\\') {
    escape_ = c;
    return;
  }
  if (c == quote_) return EndString();
  DropSurrogate();
  std::string text;
  AppendPlain(c, &text);
  Put(text);
}

void JsonMender::StepEscape(char c) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr size_t kLength = 6;  // of \uXXXX
  if (escape_.size() == 1 && c == 'u') {
    escape_ += c;
    return;
  }
  if (escape_.size() > 1 && HexDigit(c) >= 0) {
    escape_ += c;
    if (escape_.size() == kLength) EndEscape(UnitOf(std::string_view(escape_).substr(2)));
    return;
  }
  DropSurrogate();
  const std::string begun = std::exchange(escape_, {});
  if (begun.size() == 1 && kEscapes.find(c) != kEscapes.npos) return Put(begun + c);
  if (begun.size() == 1 && c == '\'') return Put("'");
  Put("\\" + begun);  // no escape: a backslash of the text
  StepString(c);
}

void JsonMender::EndEscape(char16_t unit) {
  std::string escape = std::exchange(escape_, {});
  if (IsLowSurrogate(unit)) {
    if (surrogate_.empty()) return Put(kReplacement);
    return Put(std::exchange(surrogate_, {}) + escape);
  }
  DropSurrogate();
  if (IsHighSurrogate(unit))
    surrogate_ = std::move(escape);
  else
    Put(escape);
}

void JsonMender::DropSurrogate() {
  if (surrogate_.empty()) return;
  surrogate_.clear();
  Put(kReplacement);
}

void JsonMender::StepWord(char c) {
  bool ends = c == ',' || c == ']' || c == '}' || (is_key_ && c == ':');
  if (IsJsonSpace(c) && !word_is_text_) {
    ends = is_key_ || !JsonOfWord(word_).empty();
    word_is_text_ = !ends;
  }
  if (ends) {
    EndWord();
    Step(c);
  } else {
    word_ += c;
  }
}

// Words that mean nothing in JSON are texts; white space after them separates.
void JsonMender::EndWord() {
  std::string word = std::exchange(word_, {});
  word_is_text_ = false;
  const std::string_view json = JsonOfWord(word);
  if (is_key_ || json.empty()) {
    while (!word.empty() && IsJsonSpace(word.back())) word.pop_back();
    Put('"' + EscapedJson(word) + '"');
  } else {
    Put(json);
  }
  if (is_key_)
    EndKey();
  else
    EndValue();
}

void JsonMender::Finish(std::string* out) {
  out_ = out;
  if (state_ == State::kString) {
    DropSurrogate();
    if (!escape_.empty()) Put("\\" + std::exchange(escape_, {}));
    EndString();
  }
  if (state_ == State::kWord) EndWord();
  if (state_ == State::kColon) StepColon(':');
  if (state_ == State::kValue && in_object()) PutNull();
  while (!closers_.empty()) CloseInnermost();
}

void JsonMender::Cut(std::string* out) {
  if (muted_ > 0) return;
  *out += std::exchange(held_, {}) + std::exchange(key_, {}) + std::exchange(word_, {});
  surrogate_.clear();
  escape_.clear();
}

}  // namespace latte
