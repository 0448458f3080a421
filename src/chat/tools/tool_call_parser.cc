#include "src/chat/tools/tool_call_parser.h"

#include <algorithm>

#include "src/base/strings.h"
#include "src/chat/tools/call_name.h"
#include "src/chat/tools/mark_search.h"

namespace latte {
namespace {

using Kind = ToolEvent::Kind;

constexpr size_t kMaxName = 512;      // of a function or parameter, before the mark that ends it
constexpr size_t kMaxMark = 64;       // more than the longest mark
constexpr size_t kMaxSkipped = 1024;  // white space and marks before a call

bool IsSpace(char c) { return kSpaces.find(c) != std::string_view::npos; }

// The mark that `text` begins with; empty: none.
std::string_view BeginsWith(std::string_view text, std::span<const std::string_view> marks) {
  const auto found =
      std::ranges::find_if(marks, [&](std::string_view mark) { return text.starts_with(mark); });
  return found == marks.end() ? std::string_view() : *found;
}

// Whether more text can make one of `marks` of `text`.
bool MayBegin(std::string_view text, std::span<const std::string_view> marks) {
  return std::ranges::any_of(marks, [&](std::string_view mark) { return mark.starts_with(text); });
}

// What stands between the marks of a key.
struct ParameterKey {
  std::string_view name;
  ParameterValue::Says says = ParameterValue::Says::kNothing;
};

// GLM: NAME</arg_key>. DeepSeek-V3.2: NAME" string="true; some answers lack the type.
std::optional<ParameterKey> ReadParameterKey(ToolFormat format, std::string_view text) {
  using Says = ParameterValue::Says;
  ParameterKey out;
  if (format == ToolFormat::kGlm) {
    constexpr std::string_view kEnd = "</arg_key>";
    text = Trimmed(text);
    if (!text.ends_with(kEnd)) return std::nullopt;
    out.name = Trimmed(text.substr(0, text.size() - kEnd.size()));
  } else {
    constexpr std::string_view kType = "\" string=\"";
    const size_t type = text.rfind(kType);
    out.name = text.substr(0, type);
    if (type != text.npos) {
      const std::string_view says = text.substr(type + kType.size());
      if (says != "true" && says != "false") return std::nullopt;
      out.says = says == "true" ? Says::kText : Says::kJson;
    }
  }
  if (out.name.empty()) return std::nullopt;
  return out;
}

}  // namespace

ToolCallParser::ToolCallParser(ToolFormat format, std::shared_ptr<const KnownFunctions> known)
    : format_(format), syntax_(SyntaxOf(format)), known_(std::move(known)) {}

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
  arguments_ = {};
  keys_.clear();
  ++calls_;
  out_.push_back(
      {.kind = Kind::kCallBegin, .call = calls_ - 1, .text = std::move(name), .id = std::move(id)});
  state_ = syntax_.parameter_begin.empty() ? State::kArguments : State::kParameters;
}

// An object without members, where the model wrote nothing.
void ToolCallParser::EndCall() {
  skipped_.clear();
  std::string rest;
  if (state_ == State::kArguments)
    arguments_.Finish(&rest);
  else
    rest = keys_.empty() ? "{}" : "}";
  Emit(Kind::kArguments, rest);
  Emit(Kind::kCallEnd, "");
  state_ = in_block_ ? State::kBlock : State::kAfterCall;
}

// The answer ends inside a call: its arguments are no JSON, so that no reader takes them for whole.
void ToolCallParser::CutCall() {
  std::string rest;
  if (state_ == State::kArguments)
    arguments_.Cut(&rest);
  else if (state_ == State::kValue)
    value_->Cut(&rest);
  else if (keys_.empty())
    rest = "{";
  EmitArguments(rest);
}

// The value of a key that stands twice is left out.
void ToolCallParser::EmitArguments(std::string_view text) {
  if (!repeated_) Emit(Kind::kArguments, text);
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
  const FoundMark found = FindMark(CallOpenings(format_), held_);
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
  if (const auto end = BeginsWith(held_, syntax_.block_ends); !end.empty()) {
    // A block without calls is an answer without calls; the model wrote nothing else.
    Take(end.size());
    skipped_.clear();
    in_block_ = false;
    state_ = State::kAfterCall;
    return true;
  }
  if (syntax_.call_begin.starts_with(held_) || MayBegin(held_, syntax_.block_ends)) return false;
  if (calls_ > 0 && Trimmed(skipped_).empty()) skipped_.clear();
  return GiveBack();
}

bool ToolCallParser::ReadName() {
  if (!SkipSpace()) return GiveBack();
  const FoundMark found = FindMark(syntax_.name_ends, held_);
  if (!found && held_.size() <= kMaxName + kMaxMark) return false;
  std::optional<CallName> call;
  if (found && found.at <= kMaxName)
    call = ReadCallName(format_, std::string_view(held_).substr(0, found.at), known_.get());
  // Only a format with parameters may end a call right after its name.
  const bool no_arguments = found && !found.mark.consumed && syntax_.parameter_begin.empty();
  if (!call || no_arguments) return GiveBack();
  Take(found.at + (found.mark.consumed ? found.mark.text.size() : 0));
  BeginCall(call->name, call->id);
  return true;
}

bool ToolCallParser::ReadArguments() {
  const FoundMark found = FindMark(syntax_.call_ends, held_);
  std::string text;
  arguments_.Push(Take(found ? found.at : found.certain), &text);
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
  if (in_block_ && !BeginsWith(held_, syntax_.block_ends).empty()) {  // the call's end is missing
    EndCall();
    return true;
  }
  if (syntax_.parameter_begin.starts_with(held_) || end.starts_with(held_)) return false;
  if (in_block_ && MayBegin(held_, syntax_.block_ends)) return false;
  skipped_.clear();
  if (held_.front() == '{' && keys_.empty()) {  // some answers have JSON instead of parameters
    state_ = State::kArguments;
    return true;
  }
  EndCall();  // what is no parameter is content
  return GiveBack();
}

bool ToolCallParser::ReadKey() {
  const FoundMark found = FindMark(syntax_.key_end, held_);
  if (!found && held_.size() <= kMaxName + kMaxMark) return false;
  std::optional<ParameterKey> key;
  if (found && found.at <= kMaxName)
    key = ReadParameterKey(format_, std::string_view(held_).substr(0, found.at));
  if (!key) {
    const std::string rest = std::exchange(skipped_, {});
    EndCall();
    skipped_ = rest;
    return GiveBack();
  }
  BeginValue(std::string(key->name), key->says);
  Take(found.at + found.mark.text.size());
  skipped_.clear();
  return true;
}

void ToolCallParser::BeginValue(const std::string& key, ParameterValue::Says says) {
  const bool first = keys_.empty();
  repeated_ = !keys_.insert(key).second;
  EmitArguments((first ? "{\"" : ", \"") + EscapedJson(key) + "\": ");
  ValueSchema schema;
  if (known_)
    if (const auto function = known_->find(function_); function != known_->end())
      schema = function->second.Of(key);
  value_.emplace(std::move(schema), says);
  state_ = State::kValue;
}

bool ToolCallParser::ReadValue() {
  const FoundMark found = FindMark(syntax_.value_end, held_);
  std::string text;
  value_->Push(Take(found ? found.at : found.certain), &text);
  if (found) value_->Finish(&text);
  EmitArguments(text);
  if (!found) return false;
  Take(found.mark.text.size());
  repeated_ = false;
  state_ = State::kParameters;
  return true;
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
      if (!cut && Trimmed(rest) == "```") rest.clear();
      PushRest(rest);
      if (cut || !arguments_.whole())
        CutCall();
      else
        EndCall();
      break;
    case State::kValue:  // a value without its end is never whole
      PushRest(rest);
      CutCall();
      break;
    case State::kParameters:
    case State::kKey:
      if (cut) {
        CutCall();
        break;
      }
      rest.insert(0, std::exchange(skipped_, {}));
      EndCall();
      Emit(Kind::kContent, Trimmed(rest).empty() ? "" : rest);
      break;
  }
  skipped_.clear();
  return std::exchange(out_, {});
}

// Text that might have become the mark at the end of the arguments or of a value.
void ToolCallParser::PushRest(std::string_view rest) {
  std::string text;
  if (state_ == State::kArguments)
    arguments_.Push(rest, &text);
  else
    value_->Push(rest, &text);
  EmitArguments(text);
}

}  // namespace latte
