// The filters by kind: each file has a table of its own, which filters.cc joins. Internal to
// src/jinja.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/jinja/call.h"

namespace latte::jinja {

// `name` is the name of the filter, for filters that share a function.
using Filter = Result<Value> (*)(const std::string& name, const Value& input,
                                 const Arguments& arguments, Budget* budget);

struct FilterRow {
  std::string_view name;
  Filter filter;
};

std::span<const FilterRow> TextFilters();    // filters_text.cc
std::span<const FilterRow> NumberFilters();  // filters_numbers.cc
std::span<const FilterRow> ListFilters();    // filters_lists.cc
std::span<const FilterRow> OrderFilters();   // filters_order.cc

constexpr size_t kMaxAttributeBytes = 4096;

// The attribute that filters name: "a.0.b" or an index. `fallback` replaces each that is undefined,
// unless it is itself undefined or None.
[[nodiscard]] Result<Value> AttributeOf(const Value& item, const Value& path, const Value& fallback,
                                        Budget* budget);

}  // namespace latte::jinja
