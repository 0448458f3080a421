// The methods of lists and dicts, and the search in all methods; see call.h.
#include "src/jinja/methods.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

// Makes every list in `value` unchangeable, and returns its depth. A list that others hold never
// changes after that, so no list can come to contain itself, and depths stay known.
Result<int> FreezeLists(const Value& value, Budget* budget) {
  LATTE_RETURN_IF_ERROR(budget->Spend(1));
  int depth = 0;
  if (value.Is(Kind::kCallable)) return Unsupported("append() of a function is not supported");
  if (value.Is(Kind::kDict)) {
    depth = 1;
    for (const Dict::Entry& entry : value.dict().entries) {
      LATTE_ASSIGN_OR_RETURN(const int inner, FreezeLists(entry.value, budget));
      depth = std::max(depth, 1 + inner);
    }
  } else if (value.Is(Kind::kList)) {
    List& list = value.list();
    depth = 1;
    for (const Value& item : list.items) {
      LATTE_ASSIGN_OR_RETURN(const int inner, FreezeLists(item, budget));
      depth = std::max(depth, 1 + inner);
    }
    // A list that was passed in is frozen already; other renderings may read it now.
    if (!list.frozen) {
      list.frozen = true;
      list.depth = depth;
    }
  }
  return depth;
}

Result<Value> Append(const Value& self, std::string_view, const Arguments& arguments,
                     Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(Values a, Bind(arguments, {"item"}, 1));
  LATTE_ASSIGN_OR_RETURN(const int depth, FreezeLists(a[0], budget));
  List& list = self.list();
  if (list.frozen)
    return InvalidArgument("append() to a list that was passed in, or is in another list");
  if (depth >= kMaxValueDepth)
    return InvalidArgument(fmt::format("values nest deeper than {}", kMaxValueDepth));
  LATTE_RETURN_IF_ERROR(budget->Spend(1, 32));
  list.depth = std::max(list.depth, 1 + depth);
  list.items.push_back(std::move(a[0]));
  return Value();
}

Result<Value> Pop(const Value& self, std::string_view, const Arguments& arguments, Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"index"}));
  LATTE_ASSIGN_OR_RETURN(int64_t index, IntegerArgument(a[0], -1, "the index"));
  List& list = self.list();
  if (list.frozen)
    return InvalidArgument("pop() from a list that was passed in, or is in another list");
  const auto size = static_cast<int64_t>(list.items.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(1 + size / 8));
  index += index < 0 ? size : 0;
  if (index < 0 || index >= size) return InvalidArgument("pop() from beyond the list");
  Value out = list.items[static_cast<size_t>(index)];
  list.items.erase(list.items.begin() + index);
  return out;
}

// index and count of a list.
Result<Value> FindItem(const Value& self, std::string_view name, const Arguments& arguments,
                       Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"item"}, 1));
  int64_t count = 0;
  const Values& items = self.list().items;
  for (size_t i = 0; i < items.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const bool same, Equal(items[i], a[0], budget));
    if (same && name == "index") return Value::Int(static_cast<int64_t>(i));
    count += same ? 1 : 0;
  }
  if (name == "index") return InvalidArgument("the item is not in the list");
  return Value::Int(count);
}

Result<Value> Copy(const Value& self, std::string_view, const Arguments& arguments,
                   Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  if (self.Is(Kind::kDict)) return self;  // no method changes a dict
  LATTE_ASSIGN_OR_RETURN(Values items, Items(self, budget));
  return MakeList(std::move(items));
}

Result<Value> DictParts(const Value& self, std::string_view name, const Arguments& arguments,
                        Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  Values out;
  const auto count = static_cast<int64_t>(self.dict().entries.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(count, 160 * count));
  for (const Dict::Entry& entry : self.dict().entries) {
    if (name == "items") {
      LATTE_ASSIGN_OR_RETURN(Value pair, MakeList({entry.key, entry.value}, true));
      out.push_back(std::move(pair));
    } else {
      out.push_back(name == "keys" ? entry.key : entry.value);
    }
  }
  return MakeList(std::move(out), false, true);
}

Result<Value> GetKey(const Value& self, std::string_view, const Arguments& arguments, Budget*) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"key", "default"}, 1));
  if (a[0].Is(Kind::kList) || a[0].Is(Kind::kDict))
    return InvalidArgument(fmt::format("a '{}' cannot be a key", TypeName(a[0])));
  if (const Value* found = self.dict().Find(a[0])) return *found;
  return arguments.positional.size() + arguments.named.size() > 1 ? a[1] : Value();
}

constexpr MethodRow kContainerMethods[] = {
    {Kind::kList, "append", Append},    {Kind::kList, "pop", Pop},
    {Kind::kList, "index", FindItem},   {Kind::kList, "count", FindItem},
    {Kind::kList, "copy", Copy},        {Kind::kDict, "get", GetKey},
    {Kind::kDict, "items", DictParts},  {Kind::kDict, "keys", DictParts},
    {Kind::kDict, "values", DictParts}, {Kind::kDict, "copy", Copy},
};

std::array<std::span<const MethodRow>, 2> MethodTables() {
  return {TextMethods(), std::span<const MethodRow>(kContainerMethods)};
}

const MethodRow* FindMethod(const Value& self, std::string_view name) {
  const bool tuple = self.Is(Kind::kList) && self.list().tuple;
  if (tuple && (name == "append" || name == "pop" || name == "copy")) return nullptr;
  for (const std::span<const MethodRow> table : MethodTables())
    for (const MethodRow& row : table)
      if (row.kind == self.kind() && row.name == name) return &row;
  return nullptr;
}

}  // namespace

bool IsMethod(const Value& self, std::string_view name) {
  return FindMethod(self, name) != nullptr;
}

std::vector<std::string_view> MethodNames(Kind kind) {
  std::vector<std::string_view> out;
  for (const std::span<const MethodRow> table : MethodTables())
    for (const MethodRow& row : table)
      if (row.kind == kind) out.push_back(row.name);
  return out;
}

Result<Value> CallMethod(const Value& self, const std::string& name, const Arguments& arguments,
                         Budget* budget) {
  LATTE_RETURN_IF_ERROR(SpendArguments(arguments, budget));
  LATTE_RETURN_IF_ERROR(budget->SpendOperand(self));
  return FindMethod(self, name)->method(self, name, arguments, budget);
}

}  // namespace latte::jinja
