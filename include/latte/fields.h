// Describes the fields of EngineOptions, SamplingParams, StopConditions and Request. Each struct
// lists its fields once, in its VisitFields. Validation, command-line flags, environment variables,
// the C structs, keys of JSON requests and docs/options.md follow from that list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace latte {
inline namespace v0_2 {

// The field has no flag, or no key in JSON requests.
inline constexpr std::string_view kNoName = "-";

// The numbers that a field accepts.
struct FieldRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;     // `low` itself is refused
  bool power_of_two = false;  // of whole numbers
};

// One field. Texts are plain ASCII, so that --help can show them.
struct Field {
  std::string_view name;  // of the member, in C++ and in C
  std::string_view help;  // one line, without the default
  FieldRange range = {};
  std::string_view expected = "";  // the range in words, if it is not a plain interval
  // Accepted texts: "bf16, f16 or f32". A bool lists its text for true, then its text for false.
  std::string_view choices = "";
  bool may_be_empty = false;       // an empty text is accepted in addition to `choices`
  int64_t most = 0;                // entries of a list
  std::string_view fallback = "";  // the default in words, if the value does not show it
  std::string_view flag = "";      // "-n,--max-new-tokens"; empty: --NAME, with dashes
  std::string_view json = "";      // key of JSON requests; empty: NAME
  // Heading of docs/options.md and --help; empty: the heading of the previous field.
  std::string_view group = "";
  bool bytes = false;           // accepts suffixes: 512M, 16G
  std::string_view value = "";  // word for the value in --help, "FILE"; empty: by its type
  bool expert = false;          // for few users; last in --help
};

// VisitFields(visit) calls visit(Field, member) or visit(Field, member, c_member) for every field.
//
// member(s): a reference to the field of `s`, which is the C++ struct or, if the list gives no
// c_member, the C struct.
//
// c_member describes the difference of the C struct: OnlyInCpp, or a function that returns the
// CArray of a list.
struct OnlyInCpp {};

// A list in a C struct: its address and its number of entries.
template <class T>
struct CArray {
  const T*& data;
  size_t& count;
  std::string_view data_name;
  std::string_view count_name;
};
template <class T>
CArray(const T*&, size_t&, std::string_view, std::string_view) -> CArray<T>;

}  // namespace v0_2
}  // namespace latte
