#include "src/jinja/value.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "src/text/unicode/unicode.h"

namespace latte::jinja {
namespace {

Status TooDeep() {
  return InvalidArgument(fmt::format("values nest deeper than {}", kMaxValueDepth));
}

int DepthOf(const Value& value) {
  if (value.Is(Kind::kList)) return value.list().depth;
  if (value.Is(Kind::kCallable)) return 1 + DepthOf(value.callable().self);
  return value.Is(Kind::kDict) ? value.dict().depth : 0;
}

}  // namespace

Value::Value() : data_(None{}) {}

Value Value::MakeUndefined(std::string what) {
  if (what.size() > kMaxMessageBytes) what = CutMessage(what);
  return Value(Data(Undefined{std::make_shared<const std::string>(std::move(what))}));
}
Value Value::String(Text text) {
  return Value(Data(std::make_shared<const Text>(std::move(text))));
}
Value Value::String(std::string_view bytes, bool from_template) {
  return String(Text(std::string(bytes), from_template));
}

bool Value::is_only_holder() const {
  const auto alone = [](const auto& shared) { return shared.use_count() == 1; };
  switch (kind()) {
    case Kind::kUndefined:
      return alone(std::get<Undefined>(data_).what);
    case Kind::kString:
      return alone(std::get<std::shared_ptr<const Text>>(data_));
    case Kind::kList:
      return alone(std::get<std::shared_ptr<List>>(data_));
    case Kind::kDict:
      return alone(std::get<std::shared_ptr<const Dict>>(data_));
    case Kind::kCallable:
      return alone(std::get<std::shared_ptr<const Callable>>(data_));
    default:
      return false;
  }
}

int64_t Value::integer() const {
  return Is(Kind::kBool) ? static_cast<int64_t>(boolean()) : std::get<int64_t>(data_);
}
double Value::number() const {
  return Is(Kind::kFloat) ? std::get<double>(data_) : static_cast<double>(integer());
}

std::string CutMessage(std::string_view message) {
  if (message.size() <= kMaxMessageBytes) return std::string(message);
  const std::string_view part = message.substr(0, kMaxMessageBytes);
  return std::string(part.substr(0, ValidUtf8Prefix(part))) + "…";
}

namespace {

// The order of keys of different kinds.
int KeyClass(const Value& key) { return key.is_number() ? 0 : key.Is(Kind::kString) ? 1 : 2; }

}  // namespace

bool IsKey(const Value& value) {
  return value.is_number() || value.Is(Kind::kString) || value.Is(Kind::kNone);
}

int KeyOrder(const Value& a, const Value& b) {
  if (KeyClass(a) != KeyClass(b)) return KeyClass(a) - KeyClass(b);
  if (a.Is(Kind::kString)) return a.bytes().compare(b.bytes());
  if (a.Is(Kind::kNone)) return 0;
  const std::partial_ordering order = CompareNumbers(a, b);
  if (order == std::partial_ordering::unordered)  // NaN comes first
    return (std::isnan(a.number()) ? 0 : 1) - (std::isnan(b.number()) ? 0 : 1);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

const Value* Dict::Find(std::string_view key) const {
  const auto at =
      std::lower_bound(sorted.begin(), sorted.end(), key, [this](uint32_t i, std::string_view k) {
        const Value& other = entries[i].key;
        const int kind = KeyClass(other);
        return kind < 1 || (kind == 1 && other.bytes() < k);
      });
  if (at == sorted.end()) return nullptr;
  const Entry& found = entries[*at];
  return found.key.Is(Kind::kString) && found.key.bytes() == key ? &found.value : nullptr;
}

const Value* Dict::Find(const Value& key) const {
  if (!IsKey(key)) return nullptr;
  const auto at = std::lower_bound(
      sorted.begin(), sorted.end(), key,
      [this](uint32_t i, const Value& k) { return KeyOrder(entries[i].key, k) < 0; });
  return at != sorted.end() && KeyOrder(entries[*at].key, key) == 0 ? &entries[*at].value : nullptr;
}

Result<Value> MakeList(std::vector<Value> items, bool tuple, bool frozen) {
  auto list = std::make_shared<List>();
  for (const Value& item : items) list->depth = std::max(list->depth, 1 + DepthOf(item));
  if (list->depth > kMaxValueDepth) LATTE_RETURN_IF_ERROR(TooDeep());
  list->items = std::move(items);
  list->tuple = tuple;
  list->frozen = frozen;
  return Value::Wrap(std::move(list));
}

Value MakeStrings(std::vector<Text> texts) {
  auto list = std::make_shared<List>();
  list->frozen = false;
  for (Text& text : texts) list->items.push_back(Value::String(std::move(text)));
  return Value::Wrap(std::move(list));
}

Result<Value> MakeDict(std::vector<Dict::Entry> entries) {
  auto dict = std::make_shared<Dict>();
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return KeyOrder(entries[a].key, entries[b].key) < 0;
  });
  // If keys are equal, the first one determines the place and the last one the value, as in Python.
  std::vector<bool> dropped(entries.size());
  for (size_t i = order.size(); i-- > 1;) {
    if (KeyOrder(entries[order[i - 1]].key, entries[order[i]].key) != 0) continue;
    entries[order[i - 1]].value = std::move(entries[order[i]].value);
    dropped[order[i]] = true;
  }
  std::vector<uint32_t> place(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (dropped[i]) continue;
    place[i] = static_cast<uint32_t>(dict->entries.size());
    dict->depth = std::max(dict->depth, 1 + DepthOf(entries[i].value));
    dict->entries.push_back(std::move(entries[i]));
  }
  for (const uint32_t i : order)
    if (!dropped[i]) dict->sorted.push_back(place[i]);
  if (dict->depth > kMaxValueDepth) LATTE_RETURN_IF_ERROR(TooDeep());
  return Value::Wrap(std::shared_ptr<const Dict>(std::move(dict)));
}

Status SpendKeys(const std::vector<Dict::Entry>& entries, Budget* budget) {
  const auto comparisons = static_cast<size_t>(std::bit_width(entries.size()));
  for (const Dict::Entry& entry : entries) {
    const size_t size = entry.key.Is(Kind::kString) ? entry.key.text().size() : 0;
    LATTE_RETURN_IF_ERROR(budget->SpendPass(size * comparisons));
  }
  return {};
}

std::string_view TypeName(const Value& value) {
  constexpr std::string_view kNames[] = {"undefined", "NoneType", "bool", "int",       "float",
                                         "str",       "list",     "dict", "Namespace", "function"};
  if (value.Is(Kind::kList) && value.list().tuple) return "tuple";
  return kNames[static_cast<size_t>(value.kind())];
}

bool Truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return value.number() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
      return !value.list().items.empty();
    case Kind::kDict:
      return !value.dict().entries.empty();
    case Kind::kNamespace:
    case Kind::kCallable:
      return true;
  }
  return false;
}

namespace {

Result<bool> EqualLists(const List& a, const List& b, Budget* budget) {
  if (a.tuple != b.tuple || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const bool same, Equal(a.items[i], b.items[i], budget));
    if (!same) return false;
  }
  return true;
}

Result<bool> EqualDicts(const Dict& a, const Dict& b, Budget* budget) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const Dict::Entry& entry : a.entries) {
    LATTE_RETURN_IF_ERROR(budget->SpendOperand(entry.key));
    const Value* other = b.Find(entry.key);
    if (!other) return false;
    LATTE_ASSIGN_OR_RETURN(const bool same, Equal(entry.value, *other, budget));
    if (!same) return false;
  }
  return true;
}

}  // namespace

Result<bool> Equal(const Value& a, const Value& b, Budget* budget) {
  LATTE_RETURN_IF_ERROR(budget->Spend(1));
  if (a.is_number() && b.is_number()) return CompareNumbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kString:
      if (a.text().size() != b.text().size()) return false;
      LATTE_RETURN_IF_ERROR(budget->SpendPass(a.text().size()));
      return a.bytes() == b.bytes();
    case Kind::kList:
      return EqualLists(a.list(), b.list(), budget);
    case Kind::kDict:
      return EqualDicts(a.dict(), b.dict(), budget);
    case Kind::kNamespace:
      return a.ns() == b.ns();
    case Kind::kCallable:
      return &a.callable() == &b.callable();
    default:
      return true;
  }
}

namespace {

// An integer beyond 2^53 may be no double: its conversion would make different numbers equal.
std::partial_ordering CompareIntegerToFloat(int64_t i, double d) {
  if (std::isnan(d)) return std::partial_ordering::unordered;
  if (d >= 0x1p63) return std::partial_ordering::less;
  if (d < -0x1p63) return std::partial_ordering::greater;
  const auto whole = static_cast<int64_t>(d);  // rounds towards zero
  if (i != whole) return i <=> whole;
  return 0.0 <=> d - static_cast<double>(whole);
}

// As Python: the order of the first items that differ, else of the lengths.
Result<std::partial_ordering> CompareLists(const List& a, const List& b, std::string_view op,
                                           Budget* budget) {
  for (size_t i = 0; i < std::min(a.items.size(), b.items.size()); ++i) {
    LATTE_ASSIGN_OR_RETURN(const bool same, Equal(a.items[i], b.items[i], budget));
    if (!same) return Compare(a.items[i], b.items[i], op, budget);
  }
  return std::partial_ordering(a.items.size() <=> b.items.size());
}

}  // namespace

std::partial_ordering CompareNumbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.integer() <=> b.integer();
  if (a.is_integer()) return CompareIntegerToFloat(a.integer(), b.number());
  if (b.is_integer()) return 0 <=> CompareIntegerToFloat(b.integer(), a.number());
  return a.number() <=> b.number();
}

Result<std::partial_ordering> Compare(const Value& a, const Value& b, std::string_view op,
                                      Budget* budget) {
  LATTE_RETURN_IF_ERROR(budget->Spend(1));
  if (a.is_number() && b.is_number()) return CompareNumbers(a, b);
  if (a.Is(Kind::kString) && b.Is(Kind::kString)) {
    LATTE_RETURN_IF_ERROR(budget->SpendPass(std::min(a.text().size(), b.text().size())));
    // The byte order of UTF-8 is the order of code points.
    return std::partial_ordering(a.bytes() <=> b.bytes());
  }
  if (a.Is(Kind::kList) && b.Is(Kind::kList) && a.list().tuple == b.list().tuple)
    return CompareLists(a.list(), b.list(), op, budget);
  for (const Value* v : {&a, &b})
    if (v->Is(Kind::kUndefined)) return InvalidArgument(v->undefined());
  return InvalidArgument(
      fmt::format("'{}' cannot compare '{}' with '{}'", op, TypeName(a), TypeName(b)));
}

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto shortest = [&](std::chars_format format) {
    return std::string(buffer, std::to_chars(buffer, buffer + 64, value, format).ptr);
  };
  // Python uses an exponent below 1e-4 and from 1e16 on.
  const double size = std::fabs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e16)) return shortest(std::chars_format::scientific);
  std::string digits = shortest(std::chars_format::fixed);
  return digits.find('.') == std::string::npos ? digits + ".0" : digits;
}

Result<std::vector<Value>> Items(const Value& value, Budget* budget) {
  std::vector<Value> out;
  if (value.Is(Kind::kUndefined)) return out;
  if (value.Is(Kind::kList)) {
    out = value.list().items;
  } else if (value.Is(Kind::kDict)) {
    for (const Dict::Entry& entry : value.dict().entries) out.push_back(entry.key);
  } else if (value.Is(Kind::kString)) {
    LATTE_RETURN_IF_ERROR(
        budget->Spend(CodePoints(value.bytes()), 128 * CodePoints(value.bytes())));
    for (size_t at = 0; at < value.text().size();) {
      const size_t next = NextCodePoint(value.bytes(), at);
      out.push_back(Value::String(value.text().Slice(at, next)));
      at = next;
    }
    return out;
  } else {
    return InvalidArgument(fmt::format("'{}' is not iterable", TypeName(value)));
  }
  const auto count = static_cast<int64_t>(out.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(count, 32 * count));
  // The caller reads the items that it asks for.
  for (const Value& item : out) LATTE_RETURN_IF_ERROR(budget->SpendOperand(item));
  return out;
}

}  // namespace latte::jinja
