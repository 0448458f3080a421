#include "src/jinja/operators.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/jinja/arithmetic.h"
#include "src/jinja/call.h"
#include "src/jinja/format/text_format.h"

namespace latte::jinja {
namespace {

// The number of bytes that an element of a list counts for.
constexpr int64_t kElement = 32;

Result<Value> Repeat(const Value& what, int64_t times, Budget* budget) {
  times = std::max<int64_t>(times, 0);
  const bool is_text = what.Is(Kind::kString);
  const size_t unit = is_text ? what.text().size() : what.list().items.size();
  // Checks each factor alone, so no product can overflow.
  const int64_t most = budget->limits().string_bytes / (is_text ? 1 : kElement);
  if (unit > 0 && times > most / static_cast<int64_t>(unit))
    return Exhausted(fmt::format("{} copies of {} {} are too many", times, unit,
                                 is_text ? "bytes" : "elements"));
  const int64_t size = static_cast<int64_t>(unit) * (unit > 0 ? times : 0);
  if (is_text) {
    LATTE_RETURN_IF_ERROR(
        budget->SpendString(static_cast<size_t>(size),
                            what.text().runs().size() * static_cast<size_t>(unit > 0 ? times : 0)));
    // Copies by doubling: a single character would otherwise take one step per byte.
    Text out;
    Text copies = what.text();
    for (; unit > 0 && times > 0; times /= 2) {
      if (times % 2 != 0) out.Append(copies);
      const Text half = copies;
      if (times > 1) copies.Append(half);
    }
    return Value::String(std::move(out));
  }
  LATTE_RETURN_IF_ERROR(budget->Spend(1 + size, size * kElement));
  std::vector<Value> items;
  for (int64_t i = 0; unit > 0 && i < times; ++i)
    items.insert(items.end(), what.list().items.begin(), what.list().items.end());
  return MakeList(std::move(items), what.list().tuple);
}

Result<Value> Add(const Value& a, const Value& b, Budget* budget) {
  if (a.Is(Kind::kString)) {
    LATTE_RETURN_IF_ERROR(budget->SpendString(a.text().size() + b.text().size(),
                                              a.text().runs().size() + b.text().runs().size()));
    Text out = a.text();
    out.Append(b.text());
    return Value::String(std::move(out));
  }
  std::vector<Value> items = a.list().items;
  items.insert(items.end(), b.list().items.begin(), b.list().items.end());
  const auto count = static_cast<int64_t>(items.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(count, kElement * count));
  return MakeList(std::move(items), a.list().tuple);
}

bool IsSequence(const Value& v) { return v.Is(Kind::kString) || v.Is(Kind::kList); }

// Python's slice.indices.
struct Range {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
};

Result<Range> Indices(const Value& start, const Value& stop, const Value& step, int64_t size) {
  for (const Value* v : {&start, &stop, &step})
    if (!v->Is(Kind::kNone) && !v->is_integer())
      return InvalidArgument(fmt::format("a slice needs integers, not '{}'", TypeName(*v)));
  Range range;
  range.step = step.Is(Kind::kNone) ? 1 : step.integer();
  if (range.step == 0) return InvalidArgument("the step of a slice cannot be zero");
  const bool back = range.step < 0;
  const auto bound = [&](const Value& v, int64_t missing) {
    if (v.Is(Kind::kNone)) return missing;
    const int64_t i = v.integer() < 0 ? v.integer() + size : v.integer();
    return std::clamp<int64_t>(i, back ? -1 : 0, back ? size - 1 : size);
  };
  range.start = bound(start, back ? size - 1 : 0);
  range.stop = bound(stop, back ? -1 : size);
  // A longer step has the same effect as one past the end, and adding it cannot overflow.
  range.step = std::clamp<int64_t>(range.step, -size - 1, size + 1);
  return range;
}

template <class F>
void ForEachIndex(const Range& range, F f) {
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step)
    f(static_cast<size_t>(i));
}

Result<Value> SliceText(const Text& text, const Range& range, Budget* budget) {
  const std::string_view bytes = text.bytes();
  const bool up = range.step > 0;
  if (up ? range.start >= range.stop : range.start <= range.stop) return Value::String("");
  size_t at = CodePointOffset(bytes, range.start);
  if (range.step == 1) {
    const size_t size = CodePointOffset(bytes.substr(at), range.stop - range.start);
    LATTE_RETURN_IF_ERROR(budget->SpendString(size));
    return Value::String(text.Slice(at, at + size));
  }
  LATTE_RETURN_IF_ERROR(budget->SpendString(text.size(), text.runs().size()));
  LATTE_RETURN_IF_ERROR(budget->Spend(static_cast<int64_t>(text.size()) / 8));
  Text out;
  ForEachIndex(range, [&](size_t) {
    out.AppendRange(text, at, NextCodePoint(bytes, at));
    for (int64_t i = 0; i < std::abs(range.step) && (up ? at < bytes.size() : at > 0); ++i)
      at = up ? NextCodePoint(bytes, at) : PreviousCodePoint(bytes, at);
  });
  return Value::String(std::move(out));
}

Status UndefinedOperand(const Value& value) {
  if (value.Is(Kind::kUndefined)) return InvalidArgument(value.undefined());
  return {};
}

}  // namespace

Result<Value> BinaryOperation(std::string_view op, const Value& a, const Value& b, Budget* budget) {
  LATTE_RETURN_IF_ERROR(budget->SpendOperand(a));
  LATTE_RETURN_IF_ERROR(budget->SpendOperand(b));
  if (op == "%" && a.Is(Kind::kString)) return FormatPercent(a.text(), b, budget);
  LATTE_RETURN_IF_ERROR(UndefinedOperand(a));
  LATTE_RETURN_IF_ERROR(UndefinedOperand(b));
  if (a.is_number() && b.is_number()) return Arithmetic(op, a, b);
  if (op == "*" && IsSequence(a) && b.is_integer()) return Repeat(a, b.integer(), budget);
  if (op == "*" && IsSequence(b) && a.is_integer()) return Repeat(b, a.integer(), budget);
  if (op == "+" && a.kind() == b.kind() && IsSequence(a) && TypeName(a) == TypeName(b))
    return Add(a, b, budget);
  return InvalidArgument(
      fmt::format("'{}' cannot join '{}' and '{}'", op, TypeName(a), TypeName(b)));
}

Result<bool> Compares(std::string_view op, const Value& a, const Value& b, Budget* budget) {
  if (op == "==" || op == "!=") {
    LATTE_ASSIGN_OR_RETURN(const bool same, Equal(a, b, budget));
    return same == (op == "==");
  }
  if (op == "in" || op == "not in") {
    LATTE_ASSIGN_OR_RETURN(const bool has, Contains(b, a, budget));
    return has == (op == "in");
  }
  LATTE_ASSIGN_OR_RETURN(const std::partial_ordering order, Compare(a, b, op, budget));
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == ">" ? order > 0 : order >= 0;
}

Result<bool> Contains(const Value& container, const Value& item, Budget* budget) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kString:
      if (item.Is(Kind::kUndefined)) return InvalidArgument(item.undefined());
      if (!item.Is(Kind::kString))
        return InvalidArgument(
            fmt::format("'in' of a string needs a string, not '{}'", TypeName(item)));
      LATTE_RETURN_IF_ERROR(budget->SpendSearch(container.text().size(), item.text().size()));
      return container.bytes().find(item.bytes()) != std::string::npos;
    case Kind::kList:
      for (const Value& other : container.list().items) {
        LATTE_ASSIGN_OR_RETURN(const bool same, Equal(other, item, budget));
        if (same) return true;
      }
      return false;
    case Kind::kDict:
      if (item.Is(Kind::kList) || item.Is(Kind::kDict))
        return InvalidArgument(fmt::format("a '{}' cannot be a key", TypeName(item)));
      LATTE_RETURN_IF_ERROR(budget->SpendOperand(item));
      return container.dict().Find(item) != nullptr;
    default:
      return InvalidArgument(fmt::format("'in' cannot look into '{}'", TypeName(container)));
  }
}

Result<Value> GetAttribute(const Value& object, const std::string& name, Budget* budget) {
  LATTE_RETURN_IF_ERROR(UndefinedOperand(object));
  LATTE_RETURN_IF_ERROR(budget->SpendPass(name.size()));
  if (IsMethod(object, name)) {
    auto method = std::make_shared<Callable>();
    method->type = Callable::Type::kMethod;
    method->name = name;
    method->self = object;
    return Value::Wrap(std::shared_ptr<const Callable>(std::move(method)));
  }
  if (object.Is(Kind::kDict)) {
    if (const Value* value = object.dict().Find(name)) return *value;
  } else if (object.Is(Kind::kNamespace)) {
    LATTE_RETURN_IF_ERROR(budget->SpendNames(object.ns()->members.size(), name.size()));
    for (const auto& [key, value] : object.ns()->members)
      if (key == name) return value;
  } else if (object.Is(Kind::kList) && object.list().group) {
    if (name == "grouper" || name == "list") return object.list().items[name == "list" ? 1 : 0];
  }
  return Value::MakeUndefined(
      fmt::format("'{} object' has no attribute '{}'", TypeName(object), name));
}

Result<Value> GetItem(const Value& object, const Value& index, Budget* budget) {
  LATTE_RETURN_IF_ERROR(UndefinedOperand(object));
  LATTE_RETURN_IF_ERROR(UndefinedOperand(index));
  LATTE_RETURN_IF_ERROR(budget->SpendOperand(index));
  if (object.Is(Kind::kDict))
    if (const Value* value = object.dict().Find(index)) return *value;
  if (index.Is(Kind::kString)) return GetAttribute(object, index.bytes(), budget);
  if (!IsSequence(object) || !index.is_integer())
    return Value::MakeUndefined(fmt::format("'{} object' has no such element", TypeName(object)));
  LATTE_ASSIGN_OR_RETURN(const int64_t size, Length(object, budget));
  const int64_t i = index.integer() < 0 ? index.integer() + size : index.integer();
  if (i < 0 || i >= size)
    return Value::MakeUndefined(
        fmt::format("'{} object' has no element {}", TypeName(object), index.integer()));
  if (object.Is(Kind::kList)) return object.list().items[static_cast<size_t>(i)];
  return GetSlice(object, Value::Int(i), Value::Int(i + 1), Value(), budget);
}

Result<Value> GetSlice(const Value& object, const Value& start, const Value& stop,
                       const Value& step, Budget* budget) {
  LATTE_RETURN_IF_ERROR(UndefinedOperand(object));
  if (!IsSequence(object))
    return InvalidArgument(fmt::format("'{}' cannot be sliced", TypeName(object)));
  LATTE_ASSIGN_OR_RETURN(const int64_t size, Length(object, budget));
  LATTE_ASSIGN_OR_RETURN(const Range range, Indices(start, stop, step, size));
  if (object.Is(Kind::kList)) {
    std::vector<Value> items;
    LATTE_RETURN_IF_ERROR(budget->Spend(size, kElement * size));
    ForEachIndex(range, [&](size_t i) { items.push_back(object.list().items[i]); });
    return MakeList(std::move(items), object.list().tuple);
  }
  return SliceText(object.text(), range, budget);
}

Result<int64_t> Length(const Value& value, Budget* budget) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      LATTE_RETURN_IF_ERROR(budget->Spend(1 + static_cast<int64_t>(value.text().size()) / 64));
      return CodePoints(value.bytes());
    case Kind::kList:
      return static_cast<int64_t>(value.list().items.size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict().entries.size());
    default:
      return InvalidArgument(fmt::format("'{}' has no length", TypeName(value)));
  }
}

}  // namespace latte::jinja
