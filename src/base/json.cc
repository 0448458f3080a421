#include "src/base/json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "src/base/json_out.h"

namespace latte {
namespace {

std::string DescribePath(const std::string& where, const std::string& key_path) {
  return key_path.empty() ? where : fmt::format("{}: '{}'", where, key_path);
}

}  // namespace

// Destroyed without memory, and by no more recursion than a document is deep.
struct Json::Value {
  using Items = std::vector<Value>;
  struct Members {
    using ByKey = std::map<std::string, Value, std::less<>>;
    ByKey by_key;
    std::vector<const ByKey::value_type*> in_order;  // of the document
  };
  // 16 bytes: a list of numbers has a value for every two bytes of its text.
  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::unique_ptr<std::string>,
               std::unique_ptr<Items>, std::unique_ptr<Members>>
      is = nullptr;

  template <class T>
  const T* As() const {
    return std::get_if<T>(&is);
  }
  const std::string* text() const { return Pointer<std::string>(); }
  Items* items() const { return Pointer<Items>(); }
  Members* members() const { return Pointer<Members>(); }

  // The text of a number, or the name of any other type.
  std::string Describe() const {
    constexpr const char* kNames[] = {"null", "boolean", "", "", "", "string", "array", "object"};
    if (const auto* v = As<int64_t>()) return fmt::format("{}", *v);
    if (const auto* v = As<uint64_t>()) return fmt::format("{}", *v);
    if (const auto* v = As<double>()) return nlohmann::json(*v).dump();
    return kNames[is.index()];
  }

 private:
  template <class T>
  T* Pointer() const {
    const auto* held = As<std::unique_ptr<T>>();
    return held == nullptr ? nullptr : held->get();
  }
};

// Builds the document and stops at the first broken limit.
class Json::Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, JsonLimits limits) : text_(text), limits_(limits) {}

  bool null() override { return Add({}) != nullptr; }
  bool boolean(bool v) override { return Add({v}) != nullptr; }
  bool number_integer(number_integer_t v) override { return Add({int64_t{v}}) != nullptr; }
  bool number_unsigned(number_unsigned_t v) override { return Add({uint64_t{v}}) != nullptr; }
  bool number_float(number_float_t v, const string_t&) override { return Add({v}) != nullptr; }
  bool string(string_t& v) override { return Add({std::make_unique<std::string>(v)}) != nullptr; }
  bool binary(binary_t&) override { return Stop("binary value"); }
  bool start_object(std::size_t) override { return Open({std::make_unique<Members>()}); }
  bool start_array(std::size_t) override { return Open({std::make_unique<Items>()}); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& v) override {
    key_ = std::move(v);
    if (stack_.back()->members()->by_key.contains(key_))
      return Stop(fmt::format("key '{}' stands twice", key_));
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    if (const std::string_view number = PythonNumber(position - 1); !number.empty())
      return Stop(fmt::format(
          "{} at byte {}, line {}{}: JSON has no such number, though Python's json module writes "
          "it; put a number or null there",
          number, position, Line(position), key_.empty() ? "" : fmt::format(", key '{}'", key_)));
    const bool range = e.id == 406;  // out_of_range: a number too large for a double
    return Stop(
        fmt::format("{} at byte {}", range ? "number out of range" : "not valid JSON", position));
  }

  Value root;
  std::string error;

 private:
  using Items = Value::Items;
  using Members = Value::Members;
  Value* Add(Value&& v) {
    if (++elements_ > limits_.max_elements) {
      Stop(fmt::format("more than {} elements", limits_.max_elements));
      return nullptr;
    }
    if (stack_.empty()) {
      root = std::move(v);
      return &root;
    }
    Value& parent = *stack_.back();
    if (Items* items = parent.items()) return &items->emplace_back(std::move(v));
    Members& members = *parent.members();
    const auto added = members.by_key.emplace(key_, std::move(v)).first;
    members.in_order.push_back(&*added);
    return &added->second;
  }
  bool Open(Value&& v) {
    if (static_cast<int>(stack_.size()) >= limits_.max_depth)
      return Stop(fmt::format("nested deeper than {} levels", limits_.max_depth));
    Value* added = Add(std::move(v));
    if (added == nullptr) return false;
    stack_.push_back(added);
    return true;
  }
  bool Close() {
    stack_.pop_back();
    return true;
  }
  bool Stop(std::string why) {
    error = std::move(why);
    return false;
  }
  // NaN or an infinity as Python spells them, if one stands at `at`, where the parser stopped.
  std::string_view PythonNumber(std::size_t at) const {
    if (at >= text_.size()) return {};
    const std::string_view rest = text_.substr(at);
    if (rest.starts_with("NaN")) return "NaN";
    if (!rest.starts_with("Infinity")) return {};
    return at > 0 && text_[at - 1] == '-' ? "-Infinity" : "Infinity";
  }
  std::ptrdiff_t Line(std::size_t position) const {
    const std::string_view before = text_.substr(0, position);
    return 1 + std::count(before.begin(), before.end(), '\n');
  }

  std::string_view text_;
  JsonLimits limits_;
  std::vector<Value*> stack_;
  std::string key_;
  int64_t elements_ = 0;
};

std::string Dump(const JsonOut& value, int indent) {
  return value.dump(indent, ' ', false, JsonOut::error_handler_t::replace);
}

Json::Json(std::shared_ptr<const Value> root, const Value* value, std::string where,
           std::string key_path)
    : root_(std::move(root)),
      value_(value),
      where_(std::move(where)),
      key_path_(std::move(key_path)),
      path_(DescribePath(where_, key_path_)) {}

Result<Json> Json::Parse(std::string_view text, std::string where, JsonLimits limits) {
  Builder builder(text, limits);
  const auto refuse = [&](std::string_view found) {
    return Corrupt(fmt::format("{}: expected a JSON document, found: {}", where, found));
  };
  if (!nlohmann::json::sax_parse(text, &builder))
    return refuse(builder.error.empty() ? "not valid JSON" : builder.error);
  // The library takes a NUL for the end of its input, and would ignore whatever follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    return refuse(fmt::format("a NUL byte at byte {}, which is not valid JSON", nul + 1));
  auto root = std::make_shared<const Value>(std::move(builder.root));
  const Value* value = root.get();
  return Json(std::move(root), value, std::move(where), "");
}

Result<JsonOut> ParseToEdit(std::string_view text, const std::string& where) {
  LATTE_RETURN_IF_ERROR(Json::Parse(text, where));  // within the limits, so that this is too
  return JsonOut::parse(text, nullptr, false);
}

// Recursion is no deeper than a document may be.
void Json::Append(const Value& value, std::string* out) {
  auto separate = [&, first = true]() mutable {
    if (!std::exchange(first, false)) *out += ',';
  };
  if (const Value::Items* items = value.items()) {
    *out += '[';
    for (const Value& item : *items) {
      separate();
      Append(item, out);
    }
    *out += ']';
  } else if (const Value::Members* members = value.members()) {
    *out += '{';
    for (const auto* member : members->in_order) {
      separate();
      *out += Dump(JsonOut(member->first)) + ':';
      Append(member->second, out);
    }
    *out += '}';
  } else if (const std::string* text = value.text()) {
    *out += Dump(JsonOut(*text));
  } else if (const auto* truth = value.As<bool>()) {
    *out += *truth ? "true" : "false";
  } else {
    *out += value.Describe();  // a number or null
  }
}

std::string Json::Text() const {
  std::string out;
  Append(*value_, &out);
  return out;
}

Json Json::Child(const Value& value, std::string_view key) const {
  return Json(root_, &value, where_,
              key_path_.empty() ? std::string(key) : fmt::format("{}.{}", key_path_, key));
}

tl::unexpected<Error> Json::WrongType(std::string_view expected) const {
  return Corrupt(fmt::format("{}: expected {}, found {}", path_, expected, value_->Describe()));
}

bool Json::is_object() const { return value_->members() != nullptr; }
bool Json::is_array() const { return value_->items() != nullptr; }
bool Json::is_string() const { return value_->text() != nullptr; }
bool Json::is_integer() const { return value_->As<int64_t>() || value_->As<uint64_t>(); }
bool Json::is_number() const { return is_integer() || value_->As<double>() != nullptr; }
bool Json::is_bool() const { return value_->As<bool>() != nullptr; }

size_t Json::size() const {
  if (is_object()) return value_->members()->by_key.size();
  if (is_array()) return value_->items()->size();
  return value_->As<std::nullptr_t>() == nullptr ? 1 : 0;
}

std::optional<Json> Json::Find(std::string_view key) const {
  const Value::Members* members = value_->members();
  if (members == nullptr) return std::nullopt;
  const auto it = members->by_key.find(key);
  if (it == members->by_key.end() || it->second.As<std::nullptr_t>() != nullptr)
    return std::nullopt;
  return Child(it->second, key);
}

Json Json::At(size_t i) const { return Child((*value_->items())[i], std::to_string(i)); }

Result<int64_t> Json::AsInt() const {
  if (const auto* v = value_->As<int64_t>()) return *v;
  const auto* v = value_->As<uint64_t>();
  if (v == nullptr) return WrongType("an integer");
  if (*v > uint64_t{INT64_MAX}) return WrongType("an integer below 2^63");
  return static_cast<int64_t>(*v);
}

Result<int64_t> Json::AsWhole() const {
  constexpr double kExact = 9007199254740992;  // every whole number up to 2^53 is a double
  const auto* v = value_->As<double>();
  const bool whole = v != nullptr && std::trunc(*v) == *v && std::fabs(*v) <= kExact;
  return whole ? Result<int64_t>(static_cast<int64_t>(*v)) : AsInt();
}

Result<double> Json::AsDouble() const {
  if (const auto* v = value_->As<int64_t>()) return static_cast<double>(*v);
  if (const auto* v = value_->As<uint64_t>()) return static_cast<double>(*v);
  const auto* v = value_->As<double>();
  if (v == nullptr) return WrongType("a number");
  if (!std::isfinite(*v)) return WrongType("a finite number");
  return *v;
}

Result<bool> Json::AsBool() const {
  const auto* v = value_->As<bool>();
  return v == nullptr ? WrongType("true or false") : Result<bool>(*v);
}

Result<std::string> Json::AsString() const {
  const std::string* v = value_->text();
  return v == nullptr ? WrongType("a string") : Result<std::string>(*v);
}

Result<Json> Json::Get(std::string_view key) const {
  if (!is_object()) return WrongType("an object");
  if (auto child = Find(key)) return *child;
  return Corrupt(fmt::format("{}: key '{}' is missing", path_, key));
}

Result<int64_t> Json::GetInt(std::string_view key) const {
  return Get(key).and_then([](const Json& v) { return v.AsInt(); });
}
Result<double> Json::GetDouble(std::string_view key) const {
  return Get(key).and_then([](const Json& v) { return v.AsDouble(); });
}
Result<std::string> Json::GetString(std::string_view key) const {
  return Get(key).and_then([](const Json& v) { return v.AsString(); });
}
Result<int64_t> Json::GetIntOr(std::string_view key, int64_t fallback) const {
  const auto child = Find(key);
  return child ? child->AsInt() : Result<int64_t>(fallback);
}
Result<double> Json::GetDoubleOr(std::string_view key, double fallback) const {
  const auto child = Find(key);
  return child ? child->AsDouble() : Result<double>(fallback);
}
Result<bool> Json::GetBoolOr(std::string_view key, bool fallback) const {
  const auto child = Find(key);
  return child ? child->AsBool() : Result<bool>(fallback);
}
Result<std::string> Json::GetStringOr(std::string_view key, std::string fallback) const {
  const auto child = Find(key);
  return child ? child->AsString() : Result<std::string>(std::move(fallback));
}

Status Json::ForEachMember(const std::function<Status(const std::string&, const Json&)>& f) const {
  const Value::Members* members = value_->members();
  if (members == nullptr) return {};
  for (const auto& [key, value] : members->by_key) LATTE_RETURN_IF_ERROR(f(key, Child(value, key)));
  return {};
}

}  // namespace latte
