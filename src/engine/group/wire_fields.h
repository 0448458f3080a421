// Structs with a VisitFields (latte/fields.h) as messages (wire.h): one value per field, in the
// order of the list.
#pragma once

#include <bit>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "latte/fields.h"

#include "src/engine/group/wire.h"

namespace latte {

template <class T>
void WriteValue(const T& value, WireWriter& to) {
  if constexpr (std::is_same_v<T, std::string>)
    to.Text(value);
  else if constexpr (std::is_floating_point_v<T>)
    to.Int(std::bit_cast<int64_t>(static_cast<double>(value)));
  else
    to.Int(static_cast<int64_t>(value));
}
template <class T>
void ReadValue(T& value, WireReader& from) {
  if constexpr (std::is_same_v<T, std::string>)
    value = from.Text();
  else if constexpr (std::is_floating_point_v<T>)
    value = static_cast<T>(std::bit_cast<double>(from.Int()));
  else
    value = static_cast<T>(from.Int());
}

template <class A, class B>
void WriteValue(const std::pair<A, B>& value, WireWriter& to) {
  WriteValue(value.first, to);
  WriteValue(value.second, to);
}
template <class A, class B>
void ReadValue(std::pair<A, B>& value, WireReader& from) {
  ReadValue(value.first, from);
  ReadValue(value.second, from);
}

template <class T>
void WriteValue(const std::vector<T>& values, WireWriter& to) {
  to.Int(std::ssize(values));
  for (const T& value : values) WriteValue(value, to);
}
// A count beyond the end of the message ends the loop: nothing is kept of an entry that is not
// there.
template <class T>
void ReadValue(std::vector<T>& values, WireReader& from) {
  values.clear();
  for (int64_t rest = from.Int(); rest > 0 && from.good(); --rest) {
    T value{};
    ReadValue(value, from);
    if (from.good()) values.push_back(std::move(value));
  }
}

template <class T>
void WriteFields(const T& value, WireWriter& to) {
  T::VisitFields(
      [&](const Field&, const auto& member, const auto&...) { WriteValue(member(value), to); });
}
template <class T>
void ReadFields(T& value, WireReader& from) {
  T::VisitFields(
      [&](const Field&, const auto& member, const auto&...) { ReadValue(member(value), from); });
}

}  // namespace latte
