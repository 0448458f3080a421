#include "src/chat/tools/call_arguments.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "src/base/json.h"
#include "src/base/strings.h"

namespace latte {
namespace {

constexpr size_t kMostHeld = 64 << 10;

// The text inside a fence of Markdown; all of a text without one.
std::string_view WithoutFence(std::string_view text) {
  constexpr std::string_view kFence = "```";
  if (!text.starts_with(kFence)) return text;
  text.remove_prefix(kFence.size());
  text.remove_prefix(std::min(text.find_first_of("{\n"), text.size()));
  if (text.ends_with(kFence)) text.remove_suffix(kFence.size());
  return Trimmed(text);
}

std::string Quoted(std::string_view text) { return '"' + EscapedJson(text) + '"'; }

std::string Mended(std::string_view text) {
  std::string out;
  JsonMender mender;
  mender.Push(text, &out);
  mender.Finish(&out);
  return out;
}

// Some models quote the object, or put it into a fence.
std::string ObjectOf(std::string_view text) {
  const std::string_view inner = WithoutFence(Trimmed(text));
  if (inner.starts_with('{')) return Mended(inner);
  if (inner.empty() || JsonOfWord(inner) == "null") return "{}";
  if (inner.starts_with('"'))
    if (const auto json = Json::Parse(inner, "arguments"); json && json->is_string()) {
      const std::string quoted = *json->AsString();
      if (Trimmed(quoted).starts_with('{')) return Mended(Trimmed(quoted));
    }
  return "{" + Quoted(kInvalidJson) + ": " + Quoted(text) + "}";
}

// Whether `text`, which begins with no white space, can be the beginning of a number, of a word
// that JSON has, or of a quoted text.
bool MayBeginScalar(std::string_view text) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"true", "false", "null", "True", "False", "None", "TRUE", "FALSE", "NULL"});
  if (std::string_view("-0123456789\"").find(text.front()) != std::string_view::npos) return true;
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return word.starts_with(Trimmed(text)); });
}

JsonType TypeOfWord(std::string_view json) {
  if (json == "null") return kJsonNull;
  return json == "true" || json == "false" ? kJsonBoolean : kJsonInteger;
}

}  // namespace

void JsonArguments::Push(std::string_view text, std::string* out) {
  if (!is_object_ && text_.empty()) {
    const size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
    *out += text.substr(0, begin);
    text.remove_prefix(begin);
    is_object_ = text.starts_with('{');
  }
  if (is_object_)
    mender_.Push(text, out);
  else
    text_ += text;
}

void JsonArguments::Finish(std::string* out) {
  if (is_object_)
    mender_.Finish(out);
  else
    *out += ObjectOf(std::exchange(text_, {}));
}

void JsonArguments::Cut(std::string* out) {
  if (is_object_) return mender_.Cut(out);
  // Nothing at all would be read as an object without members.
  *out += '{';
  if (!text_.empty()) *out += Quoted(kInvalidJson) + ": \"" + EscapedJson(text_);
  text_.clear();
}

ParameterValue::ParameterValue(ValueSchema schema, Says says)
    : schema_(std::move(schema)), says_(says) {
  const bool is_text = schema_.plain_text && says_ != Says::kJson;
  if (is_text || (may_be_text() && says_ == Says::kText)) form_ = Form::kText;
}

// `begun`: from the first byte that is no white space.
ParameterValue::Form ParameterValue::FormOf(std::string_view begun) const {
  constexpr size_t kLongestWord = 5;
  if (begun.front() == '{' || begun.front() == '[') {
    const bool is_json = !may_be_text() || (says_ == Says::kJson && schema_ == ValueSchema());
    return is_json ? Form::kJson : Form::kHeld;
  }
  if (may_be_text() && says_ != Says::kJson && !MayBeginScalar(begun)) return Form::kText;
  return begun.size() > kLongestWord ? Form::kHeld : Form::kUnknown;
}

// Decides as early as a few bytes can: what can only be a text is a text at once.
void ParameterValue::Push(std::string_view text, std::string* out) {
  while (!text.empty() && form_ == Form::kUnknown) {
    held_ += text.front();
    text.remove_prefix(1);
    if (begun_ > 0 || kSpaces.find(held_.back()) == kSpaces.npos) ++begun_;
    if (begun_ > 0) form_ = FormOf(std::string_view(held_).substr(held_.size() - begun_));
    if (form_ == Form::kJson) mender_.Push(std::exchange(held_, {}), out);
    if (held_.size() > kMostHeld) form_ = Form::kText;
  }
  if (form_ == Form::kJson) return mender_.Push(text, out);
  held_ += text;
  if (form_ != Form::kText && held_.size() > kMostHeld) form_ = Form::kText;
  if (form_ == Form::kText) PutText(out);
}

void ParameterValue::PutText(std::string* out) {
  if (!std::exchange(quoted_, true)) *out += '"';
  *out += EscapedJson(std::exchange(held_, {}));
}

void ParameterValue::Finish(std::string* out) {
  switch (form_) {
    case Form::kText:
      PutText(out);
      *out += '"';
      return;
    case Form::kJson:
      return mender_.Finish(out);
    case Form::kUnknown:
    case Form::kHeld:
      *out += Decide(held_);
  }
}

void ParameterValue::Cut(std::string* out) {
  if (form_ == Form::kText) PutText(out);
  if (form_ == Form::kJson) mender_.Cut(out);
  *out += Trimmed(std::exchange(held_, {}));
}

// A JSON string where the schema allows none: what the string says counts if the schema allows
// that.
std::optional<std::string> ParameterValue::Unquoted(const Json& json) const {
  if (!json.is_string() || may_be_text()) return std::nullopt;
  const std::string text = *json.AsString();
  const std::string inner(JsonOfWord(Trimmed(text)));
  if (inner.empty() || !schema_.allows(TypeOfWord(inner))) return std::nullopt;
  return inner;
}

std::string ParameterValue::Decide(std::string_view text) const {
  const std::string_view trimmed = Trimmed(text);
  const Result<Json> json = Json::Parse(trimmed, "value");
  if (json) {
    const auto listed = [&](const std::string& value) { return schema_.values.contains(value); };
    const bool lists_text = may_be_text() && !listed(json->Text()) && listed(Quoted(trimmed));
    if (lists_text) return Quoted(trimmed);
    if (schema_.allows(TypeOf(*json))) return std::string(trimmed);
    if (auto inner = Unquoted(*json)) return *std::move(inner);
  }
  const std::string_view word = JsonOfWord(trimmed);
  if (json && !may_be_text()) return std::string(trimmed);
  const bool says_word = says_ == Says::kJson && schema_.allows(TypeOfWord(word));
  if (!json && !word.empty() && (!may_be_text() || says_word)) return std::string(word);
  return Quoted(text);
}

}  // namespace latte
