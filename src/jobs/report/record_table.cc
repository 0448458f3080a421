#include "src/jobs/report/record_table.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "src/base/json_out.h"

namespace latte {
namespace {

constexpr size_t kColumns = 120;
constexpr size_t kKeyColumns = 22;
constexpr size_t kCellColumns = 48;
constexpr size_t kGap = 2;

using Row = std::vector<std::string>;

// Code points, which are columns in the texts of a record: letters, digits and signs such as "·".
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

// The first `columns` code points.
std::string_view Cut(std::string_view text, size_t columns) {
  size_t end = 0;
  for (; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) >> 6) != 2 && columns-- == 0) break;
  return text.substr(0, end);
}

std::string TableNumber(double value) {
  const double size = std::fabs(value);
  return size >= 1000 && size < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// Lists are "a, b", objects "key=a key=b".
std::string Text(const JsonOut& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return TableNumber(value.get<double>());
  if (!value.is_structured()) return Dump(value);
  std::string out;
  for (const auto& [key, item] : value.items()) {
    if (!out.empty()) out += value.is_object() ? " " : ", ";
    if (value.is_object()) out += key + "=";
    out += Text(item);
  }
  return out;
}

std::string Cell(const JsonOut& value) {
  std::string text = Text(value);
  if (Width(text) <= kCellColumns) return text;
  return std::string(Cut(text, kCellColumns - 1)) + "…";
}

std::string Padded(std::string_view text, size_t columns, bool right) {
  const std::string pad(columns - std::min(columns, Width(text)), ' ');
  return right ? pad + std::string(text) : std::string(text) + pad;
}

// Appends "key value"; a long value is broken after words.
void AddLine(std::string_view key, std::string_view value, size_t indent, std::string& out) {
  const std::string begin = fmt::format(
      "{:{}}{} ", "", indent, Padded(key, kKeyColumns - std::min(kKeyColumns, indent), false));
  const size_t first = Width(begin);
  const size_t room = kColumns - std::min(first, kColumns / 2);
  out += begin;
  while (Width(value) > room) {
    std::string_view piece = Cut(value, room);
    const size_t blank = piece.rfind(' ');
    if (blank != std::string_view::npos && blank > 0) piece = piece.substr(0, blank);
    out += fmt::format("{}\n{:{}}", piece, "", first);
    value.remove_prefix(piece.size());
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  }
  out += fmt::format("{}\n", value);
}

// The columns of a table: all keys of its rows, in the order of their first row.
std::vector<std::string> KeysOf(const JsonOut& rows) {
  std::vector<std::string> keys;
  for (const JsonOut& row : rows)
    for (const auto& [key, value] : row.items())
      if (!value.is_null() && std::find(keys.begin(), keys.end(), key) == keys.end())
        keys.push_back(key);
  return keys;
}

// Whether `value` has the shape of a table: a list of objects, or an object of objects with equal
// keys; and a value for some key.
bool IsTable(const JsonOut& value) {
  if (!value.is_structured() || value.empty()) return false;
  const JsonOut& first = *value.begin();
  if (!first.is_object() || first.empty()) return false;
  const bool alike = std::all_of(value.begin(), value.end(), [&](const JsonOut& row) {
    if (!row.is_object()) return false;
    if (value.is_array()) return true;
    return row.size() == first.size() &&
           std::all_of(first.items().begin(), first.items().end(),
                       [&](const auto& item) { return row.contains(item.key()); });
  });
  return alike && !KeysOf(value).empty();
}

struct Column {
  Row cells;  // the heading first
  size_t width = 0;
  bool right = true;

  void Add(std::string cell, bool is_number) {
    width = std::max(width, Width(cell));
    right = right && is_number;
    cells.push_back(std::move(cell));
  }
};

// The first column has the names of an object's members; a list begins with its first key.
std::vector<Column> ColumnsOf(const JsonOut& rows) {
  std::vector<Column> columns;
  if (rows.is_object()) {
    columns.emplace_back().Add("", false);
    for (const auto& [name, row] : rows.items()) columns.back().Add(name, false);
  }
  for (const std::string& key : KeysOf(rows)) {
    columns.emplace_back().Add(key, true);
    for (const JsonOut& row : rows) {
      const JsonOut value = row.contains(key) ? row[key] : JsonOut();
      columns.back().Add(Cell(value), value.is_number() || value.is_null());
    }
  }
  return columns;
}

// Appends the rows of the columns in [begin, end), after the first column.
void AddBlock(const std::vector<Column>& columns, size_t begin, size_t end, size_t indent,
              std::string& out) {
  for (size_t row = 0; row < columns[0].cells.size(); ++row) {
    std::string line = std::string(indent, ' ') +
                       Padded(columns[0].cells[row], columns[0].width, columns[0].right);
    for (size_t i = begin; i < end; ++i)
      line += std::string(kGap, ' ') +
              Padded(columns[i].cells[row], columns[i].width, columns[i].right);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
}

// Columns that do not fit follow in a second block, with the first column again.
void AddTable(const JsonOut& rows, size_t indent, std::string& out) {
  const std::vector<Column> columns = ColumnsOf(rows);
  size_t begin = 1;
  do {
    size_t end = begin;
    size_t width = indent + columns[0].width;
    while (end < columns.size() &&
           (end == begin || width + kGap + columns[end].width <= kColumns)) {
      width += kGap + columns[end].width;
      ++end;
    }
    if (begin > 1) out += "\n";
    AddBlock(columns, begin, end, indent, out);
    begin = end;
  } while (begin < columns.size());
}

void AddMembers(const JsonOut& record, size_t indent, std::string& out) {
  for (const auto& [key, value] : record.items()) {
    const bool table = IsTable(value);
    if (!table && !(value.is_object() && !value.empty())) {
      AddLine(key, Text(value), indent, out);
      continue;
    }
    out += fmt::format("{:{}}{}\n", "", indent, key);
    if (table)
      AddTable(value, indent + 2, out);
    else
      AddMembers(value, indent + 2, out);
  }
}

}  // namespace

std::string RecordTable(const JsonOut& record) {
  std::string out;
  AddMembers(record, 0, out);
  return out;
}

}  // namespace latte
