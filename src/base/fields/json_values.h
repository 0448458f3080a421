// Small tests and reads of JSON values, which the tables of fields name.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "src/base/json.h"

namespace latte {

inline bool IsBool(const Json& v) { return v.is_bool(); }
inline bool IsTrue(const Json& v) { return v.is_bool() && v.AsBool() == true; }
inline bool IsFalse(const Json& v) { return v.is_bool() && v.AsBool() == false; }
inline bool IsOne(const Json& v) { return v.is_number() && v.AsDouble() == 1.0; }
inline bool IsList(const Json& v) { return v.is_array(); }
inline bool IsObject(const Json& v) { return v.is_object(); }
inline bool IsEmptyList(const Json& v) { return v.is_array() && v.size() == 0; }
// An array or an object without members.
inline bool IsEmpty(const Json& v) { return IsEmptyList(v) || (v.is_object() && v.size() == 0); }
inline bool IsEmptyText(const Json& v) { return v.is_string() && v.AsString() == ""; }
inline bool Never(const Json&) { return false; }

inline bool IsOneOf(const Json& v, std::initializer_list<std::string_view> texts) {
  return v.is_string() && std::find(texts.begin(), texts.end(), *v.AsString()) != texts.end();
}

// A name that nothing keeps.
inline constexpr std::string_view kShortName = "a string of at most 4096 bytes";
inline bool IsShortName(const Json& v) {
  constexpr size_t kLongest = 4096;
  return v.is_string() && v.AsString()->size() <= kLongest;
}

// Stores a value that was read, or returns its error.
template <class T, class U>
Status Set(Result<T> value, U* out) {
  LATTE_ASSIGN_OR_RETURN(*out, std::move(value));
  return {};
}

}  // namespace latte
