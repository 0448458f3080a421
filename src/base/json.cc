#include "src/base/json.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace latte {
namespace {

using Value = nlohmann::json;

// Builds the document and stops at the first broken limit.
class Builder : public nlohmann::json_sax<Value> {
 public:
  Builder(std::string_view text, JsonLimits limits) : text_(text), limits_(limits) {}

  bool null() override { return Add(Value(nullptr)) != nullptr; }
  bool boolean(bool v) override { return Add(Value(v)) != nullptr; }
  bool number_integer(number_integer_t v) override { return Add(Value(v)) != nullptr; }
  bool number_unsigned(number_unsigned_t v) override { return Add(Value(v)) != nullptr; }
  bool number_float(number_float_t v, const string_t&) override { return Add(Value(v)) != nullptr; }
  bool string(string_t& v) override { return Add(Value(std::move(v))) != nullptr; }
  bool binary(binary_t&) override { return Stop("binary value"); }
  bool start_object(std::size_t) override { return Open(Value(Value::value_t::object)); }
  bool start_array(std::size_t) override { return Open(Value(Value::value_t::array)); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& v) override {
    key_ = std::move(v);
    if (stack_.back()->contains(key_)) return Stop(fmt::format("key '{}' stands twice", key_));
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
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    return &(parent[key_] = std::move(v));
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

std::string DescribePath(const std::string& where, const std::string& key_path) {
  return key_path.empty() ? where : fmt::format("{}: '{}'", where, key_path);
}

}  // namespace

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
  if (!Value::sax_parse(text, &builder))
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

Json Json::Child(const Value& value, std::string_view key) const {
  return Json(root_, &value, where_,
              key_path_.empty() ? std::string(key) : fmt::format("{}.{}", key_path_, key));
}

tl::unexpected<Error> Json::WrongType(std::string_view expected) const {
  return Corrupt(fmt::format("{}: expected {}, found {}", path_, expected,
                             value_->is_number() ? value_->dump() : value_->type_name()));
}

std::optional<Json> Json::Find(std::string_view key) const {
  if (!value_->is_object()) return std::nullopt;
  const auto it = value_->find(std::string(key));
  if (it == value_->end() || it->is_null()) return std::nullopt;
  return Child(*it, key);
}

Json Json::At(size_t i) const { return Child((*value_)[i], std::to_string(i)); }

Result<int64_t> Json::AsInt() const {
  if (!value_->is_number_integer()) return WrongType("an integer");
  if (value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t{INT64_MAX})
    return WrongType("an integer below 2^63");
  return value_->get<int64_t>();
}

Result<double> Json::AsDouble() const {
  if (!value_->is_number()) return WrongType("a number");
  const double v = value_->get<double>();
  if (!std::isfinite(v)) return WrongType("a finite number");
  return v;
}

Result<bool> Json::AsBool() const {
  if (!value_->is_boolean()) return WrongType("true or false");
  return value_->get<bool>();
}

Result<std::string> Json::AsString() const {
  if (!value_->is_string()) return WrongType("a string");
  return value_->get<std::string>();
}

Result<Json> Json::Get(std::string_view key) const {
  if (!value_->is_object()) return WrongType("an object");
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
  if (!value_->is_object()) return {};
  for (auto it = value_->begin(); it != value_->end(); ++it)
    LATTE_RETURN_IF_ERROR(f(it.key(), Child(*it, it.key())));
  return {};
}

}  // namespace latte
