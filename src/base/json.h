// Reads JSON without exceptions. Depth, number of elements and duplicate keys are checked during
// parsing. Getters name the key that is wrong. json_out.h has the JSON that Latte writes.
//
// Parsed values are stored in Latte's own tree: nlohmann-json allocates while it destroys a
// value, which ends the process if memory has run out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

struct JsonLimits {
  int max_depth = 64;
  int64_t max_elements = 4'000'000;  // of any kind; a tokenizer.json of 128k tokens has 600k
};

// A value inside a parsed document, with its path for messages. Cheap to copy; keeps the document
// alive.
class Json {
 public:
  // `where` names the source in messages, e.g. "config.json".
  // Errors: kCorrupt with the byte offset, or with the limit that was passed. NaN and Infinity,
  // which Python writes and JSON does not have, are named.
  [[nodiscard]] static Result<Json> Parse(std::string_view text, std::string where,
                                          JsonLimits limits = {});

  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;
  bool is_integer() const;
  bool is_bool() const;
  size_t size() const;  // members of an object, items of an array; of null 0, of all else 1
  const std::string& path() const { return path_; }  // "config.json: 'rope_scaling.factor'"

  // The member `key`; nothing when it is absent, null, or when this is no object.
  std::optional<Json> Find(std::string_view key) const;
  // Requires: is_array(), i < size().
  Json At(size_t i) const;

  // The value itself as a type. Errors: kCorrupt naming path, expected and found type.
  [[nodiscard]] Result<int64_t> AsInt() const;    // integers only, in the range of int64
  [[nodiscard]] Result<int64_t> AsWhole() const;  // also numbers such as 4.0 and 1e3
  [[nodiscard]] Result<double> AsDouble() const;  // finite numbers
  [[nodiscard]] Result<bool> AsBool() const;
  [[nodiscard]] Result<std::string> AsString() const;

  // The member `key`, required. Errors: kCorrupt "missing key" or as above.
  [[nodiscard]] Result<Json> Get(std::string_view key) const;
  [[nodiscard]] Result<int64_t> GetInt(std::string_view key) const;
  [[nodiscard]] Result<double> GetDouble(std::string_view key) const;
  [[nodiscard]] Result<std::string> GetString(std::string_view key) const;

  // The member `key`, or the default when absent or null.
  [[nodiscard]] Result<int64_t> GetIntOr(std::string_view key, int64_t fallback) const;
  [[nodiscard]] Result<double> GetDoubleOr(std::string_view key, double fallback) const;
  [[nodiscard]] Result<bool> GetBoolOr(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string> GetStringOr(std::string_view key, std::string fallback) const;

  // Compact JSON text of the value, with the members of objects in the order of the document.
  std::string Text() const;

  // Calls f(key, value) for each member in key order until it fails. Does nothing when this is no
  // object.
  [[nodiscard]] Status ForEachMember(
      const std::function<Status(const std::string&, const Json&)>& f) const;

 private:
  struct Value;
  class Builder;
  static void Append(const Value& value, std::string* out);
  Json(std::shared_ptr<const Value> root, const Value* value, std::string where, std::string path);
  Json Child(const Value& value, std::string_view key) const;
  tl::unexpected<Error> WrongType(std::string_view expected) const;

  std::shared_ptr<const Value> root_;
  const Value* value_;
  std::string where_;
  std::string key_path_;
  std::string path_;
};

}  // namespace latte
