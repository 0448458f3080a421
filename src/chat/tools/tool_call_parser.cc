#include "src/chat/tools/tool_call_parser.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/base/strings.h"

namespace latte {
namespace {

using Kind = ToolEvent::Kind;

constexpr size_t kMaxName = 512;      // of a function or parameter, before the mark that ends it
constexpr size_t kMaxMark = 64;       // more than the longest mark
constexpr size_t kMaxSkipped = 1024;  // white space and marks before a call
constexpr size_t kMaxValue = 64 << 10;
bool IsSpace(char c) { return kSpaces.find(c) != std::string_view::npos; }

// A mark in a text.
struct Found {
  size_t at = std::string_view::npos;
  ToolMark mark;
  size_t certain = 0;  // bytes before which no mark can begin, whatever follows the text
  explicit operator bool() const { return at != std::string_view::npos; }
};

Found Find(std::span<const ToolMark> marks, std::string_view text) {
  Found found;
  found.certain = text.size();
  for (const ToolMark& mark : marks) {
    const size_t at = text.find(mark.text);
    const bool longer = at == found.at && mark.text.size() > found.mark.text.size();
    if (at != std::string_view::npos && (at < found.at || longer)) {
      found.at = at;
      found.mark = mark;
    }
    found.certain = std::min(found.certain, text.size() - BeginningOf(mark.text, text));
  }
  return found;
}

Found Find(std::span<const std::string_view> texts, std::string_view text) {
  std::vector<ToolMark> marks;
  for (const std::string_view mark : texts) marks.push_back({mark});
  return Find(marks, text);
}

Found Find(std::string_view mark, std::string_view text) {
  const ToolMark only{mark};
  return Find(std::span(&only, 1), text);
}

// Names of functions are letters, digits and a few signs; other models' names are not known.
bool IsName(std::string_view name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7f ||
           std::string_view("<>{}\"`").find(c) != std::string_view::npos;
  });
}

struct CallName {
  std::string id;
  std::string name;
};

// "functions.NAME:INDEX", which is also the id. Some answers lack the prefix or the index.
CallName KimiName(std::string_view id) {
  std::string_view name = id;
  if (name.starts_with("functions.")) name.remove_prefix(std::string_view("functions.").size());
  const size_t colon = name.rfind(':');
  if (colon != std::string_view::npos &&
      name.find_first_not_of("0123456789", colon + 1) == std::string_view::npos)
    name = name.substr(0, colon);
  return {std::string(id), std::string(name)};
}

// `text`: from the beginning of a call to the end of its name.
std::optional<CallName> ReadCallName(ToolFormat format, std::string_view text) {
  text = Trimmed(text);
  CallName out;
  if (format == ToolFormat::kKimiK2) {
    out = KimiName(text);
  } else if (format == ToolFormat::kDeepseekV3) {
    constexpr std::string_view kType = "function<｜tool▁sep｜>";
    if (!text.starts_with(kType)) return std::nullopt;
    out.name = Trimmed(text.substr(kType.size()));
  } else {
    out.name = text;
  }
  if (!IsName(out.name)) return std::nullopt;
  return out;
}

// The text inside the quotes of a JSON string.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
  }
  return out;
}

bool IsJson(std::string_view text) { return Json::Parse(text, "value").has_value(); }

}  // namespace

ToolCallParser::ToolCallParser(ToolFormat format, std::shared_ptr<const TextParameters> texts)
    : format_(format), syntax_(SyntaxOf(format)), texts_(std::move(texts)) {}

void ToolCallParser::Emit(Kind kind, std::string_view text) {
  if (text.empty() && kind != Kind::kCallEnd) return;
  const size_t call = kind == Kind::kContent ? 0 : calls_ - 1;
  if (!out_.empty() && out_.back().kind == kind && out_.back().call == call)
    out_.back().text += text;
  else
    out_.push_back({.kind = kind, .call = call, .text = std::string(text)});
}

std::string ToolCallParser::Take(size_t n) {
  std::string out = held_.substr(0, n);
  held_.erase(0, n);
  return out;
}

bool ToolCallParser::SkipSpace() {
  size_t n = 0;
  while (n < held_.size() && IsSpace(held_[n]) && skipped_.size() + n < kMaxSkipped) ++n;
  skipped_ += Take(n);
  return skipped_.size() < kMaxSkipped;
}

bool ToolCallParser::GiveBack() {
  Emit(Kind::kContent, skipped_);
  skipped_.clear();
  in_block_ = false;
  state_ = State::kContent;
  return true;
}

void ToolCallParser::BeginCall(std::string name, std::string id) {
  skipped_.clear();
  function_ = name;
  has_arguments_ = has_parameters_ = false;
  ++calls_;
  out_.push_back(
      {.kind = Kind::kCallBegin, .call = calls_ - 1, .text = std::move(name), .id = std::move(id)});
  state_ = syntax_.parameter_begin.empty() ? State::kArguments : State::kParameters;
}

// An object without members, where the model wrote nothing.
void ToolCallParser::EndArguments() {
  if (has_parameters_)
    Emit(Kind::kArguments, "}");
  else if (!has_arguments_)
    Emit(Kind::kArguments, "{}");
}

void ToolCallParser::EndCall() {
  skipped_.clear();
  EndArguments();
  Emit(Kind::kCallEnd, "");
  state_ = in_block_ ? State::kBlock : State::kAfterCall;
}

bool ToolCallParser::Step() {
  switch (state_) {
    case State::kContent:
    case State::kAfterCall:
      return ReadContent();
    case State::kBlock:
      return ReadBlock();
    case State::kName:
      return ReadName();
    case State::kArguments:
      return ReadArguments();
    case State::kParameters:
      return ReadParameters();
    case State::kKey:
      return ReadKey();
    case State::kText:
    case State::kJson:
    case State::kValue:
      return ReadValue();
  }
  return false;
}

bool ToolCallParser::ReadContent() {
  if (state_ == State::kAfterCall) {
    const size_t begin = held_.find_first_not_of(kSpaces);
    held_.erase(0, begin);  // npos: all of it
    if (held_.empty()) return false;
  }
  const Found found = Find(CallOpenings(format_), held_);
  const size_t content = found ? found.at : found.certain;
  if (content > 0) state_ = State::kContent;
  Emit(Kind::kContent, Take(content));
  if (!found) return false;
  skipped_ = Take(found.mark.text.size());
  in_block_ = std::find(syntax_.block_begins.begin(), syntax_.block_begins.end(),
                        found.mark.text) != syntax_.block_begins.end();
  state_ = in_block_ ? State::kBlock : State::kName;
  return true;
}

bool ToolCallParser::ReadBlock() {
  if (!SkipSpace()) return GiveBack();
  if (held_.starts_with(syntax_.call_begin)) {
    skipped_ += Take(syntax_.call_begin.size());
    state_ = State::kName;
    return true;
  }
  if (held_.starts_with(syntax_.block_end)) {
    // A block without calls is an answer without calls; the model wrote nothing else.
    Take(syntax_.block_end.size());
    skipped_.clear();
    in_block_ = false;
    state_ = State::kAfterCall;
    return true;
  }
  if (syntax_.call_begin.starts_with(held_) || syntax_.block_end.starts_with(held_)) return false;
  if (calls_ > 0 && Trimmed(skipped_).empty()) skipped_.clear();
  return GiveBack();
}

bool ToolCallParser::ReadName() {
  if (!SkipSpace()) return GiveBack();
  const Found found = Find(syntax_.name_ends, held_);
  if (!found && held_.size() <= kMaxName + kMaxMark) return false;
  const auto call = found && found.at <= kMaxName
                        ? ReadCallName(format_, std::string_view(held_).substr(0, found.at))
                        : std::nullopt;
  // Only a format with parameters may end a call right after its name.
  const bool no_arguments = found && !found.mark.consumed && syntax_.parameter_begin.empty();
  if (!call || no_arguments) return GiveBack();
  Take(found.at + (found.mark.consumed ? found.mark.text.size() : 0));
  BeginCall(call->name, call->id);
  return true;
}

bool ToolCallParser::ReadArguments() {
  const Found found = Find(syntax_.call_ends, held_);
  const std::string text = Take(found ? found.at : found.certain);
  has_arguments_ = has_arguments_ || !Trimmed(text).empty();
  Emit(Kind::kArguments, text);
  if (!found) return false;
  if (found.mark.consumed) Take(found.mark.text.size());
  EndCall();
  return true;
}

bool ToolCallParser::ReadParameters() {
  if (!SkipSpace()) {  // no call is in question any more
    skipped_.clear();
    return true;
  }
  const std::string_view end = syntax_.call_ends.back().text;
  if (held_.starts_with(syntax_.parameter_begin)) {
    skipped_ = Take(syntax_.parameter_begin.size());
    state_ = State::kKey;
    return true;
  }
  if (held_.starts_with(end)) {
    Take(end.size());
    EndCall();
    return true;
  }
  if (in_block_ && held_.starts_with(syntax_.block_end)) {  // the end of the call is missing
    EndCall();
    return true;
  }
  if (syntax_.parameter_begin.starts_with(held_) || end.starts_with(held_)) return false;
  if (in_block_ && syntax_.block_end.starts_with(held_)) return false;
  skipped_.clear();
  if (held_.front() == '{' && !has_parameters_) {  // some answers have JSON instead of parameters
    state_ = State::kArguments;
    return true;
  }
  EndCall();  // what is no parameter is content
  return GiveBack();
}

bool ToolCallParser::ReadKey() {
  const Found found = Find(syntax_.key_end, held_);
  if (!found && held_.size() <= kMaxName + kMaxMark) return false;
  std::string_view key = std::string_view(held_).substr(0, found.at);
  bool valid = found && found.at <= kMaxName;
  State value = State::kJson;
  if (format_ == ToolFormat::kGlm) {
    constexpr std::string_view kEnd = "</arg_key>";
    key = Trimmed(key);
    valid = valid && key.ends_with(kEnd);
    if (valid) key = Trimmed(key.substr(0, key.size() - kEnd.size()));
    const bool text = texts_ && texts_->contains({function_, std::string(key)});
    value = text ? State::kText : State::kValue;
  } else {
    constexpr std::string_view kType = "\" string=\"";
    const size_t type = key.rfind(kType);
    valid = valid && type != std::string_view::npos;
    if (valid && key.substr(type + kType.size()) == "true") value = State::kText;
    valid = valid && (value == State::kText || key.substr(type + kType.size()) == "false");
    key = key.substr(0, type);
  }
  if (!valid || key.empty()) {
    const std::string rest = std::exchange(skipped_, {});
    EndCall();
    skipped_ = rest;
    return GiveBack();
  }
  std::string begin = has_parameters_ ? ", \"" : "{\"";
  begin += Escaped(key) + "\": ";
  if (value == State::kText) begin += '"';
  Take(found.at + found.mark.text.size());
  Emit(Kind::kArguments, begin);
  has_parameters_ = true;
  skipped_.clear();
  state_ = value;
  return true;
}

bool ToolCallParser::ReadValue() {
  const Found found = Find(syntax_.value_end, held_);
  const size_t certain = found ? found.at : found.certain;
  if (state_ == State::kValue) {
    // A long value of unknown type is taken for text.
    const size_t n = std::min(certain, kMaxValue - value_.size());
    value_ += Take(n);
    if (n < certain) {
      Emit(Kind::kArguments, '"' + Escaped(std::exchange(value_, {})));
      state_ = State::kText;
      return true;
    }
  } else {
    const std::string text = Take(certain);
    Emit(Kind::kArguments, state_ == State::kText ? Escaped(text) : text);
  }
  if (!found) return false;
  Take(found.mark.text.size());
  EndValue();
  state_ = State::kParameters;
  return true;
}

void ToolCallParser::EndValue() {
  if (state_ == State::kText) Emit(Kind::kArguments, "\"");
  if (state_ != State::kValue) return;
  const std::string value = std::exchange(value_, {});
  Emit(Kind::kArguments,
       IsJson(Trimmed(value)) ? std::string(Trimmed(value)) : '"' + Escaped(value) + '"');
}

std::vector<ToolEvent> ToolCallParser::Add(std::string_view text) {
  held_ += text;
  while (!held_.empty() && Step()) {
  }
  return std::exchange(out_, {});
}

std::vector<ToolEvent> ToolCallParser::Finish(bool cut) {
  std::string rest = std::exchange(held_, {});
  switch (state_) {
    case State::kContent:
    case State::kAfterCall:
    case State::kBlock:
    case State::kName:
      if (calls_ > 0 && Trimmed(skipped_).empty()) skipped_.clear();
      GiveBack();
      Emit(Kind::kContent, rest);
      break;
    case State::kArguments:
      // Only a code fence may stand alone of the marks that end a call.
      if (cut || Trimmed(rest) != "```") Emit(Kind::kArguments, rest);
      has_arguments_ = has_arguments_ || !Trimmed(rest).empty();
      if (!cut) EndCall();
      break;
    case State::kText:
    case State::kJson:
      Emit(Kind::kArguments, state_ == State::kText ? Escaped(rest) : rest);
      if (!cut) EndValue();
      if (!cut) EndCall();
      break;
    case State::kValue:
      value_ += rest;
      EndValue();
      if (!cut) EndCall();
      break;
    case State::kParameters:
    case State::kKey:
      if (cut) break;  // the beginning of a parameter, of an unfinished call
      rest.insert(0, std::exchange(skipped_, {}));
      EndCall();
      Emit(Kind::kContent, Trimmed(rest).empty() ? "" : rest);
      break;
  }
  skipped_.clear();
  return std::exchange(out_, {});
}

}  // namespace latte
