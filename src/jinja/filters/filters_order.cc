// The filters that compare items: sort, unique, min, max, sum, groupby and dictsort; see filters.h.
#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "src/jinja/filters/filters.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

// The filters compare a key instead of an item: its attribute, in lower case unless case counts.
struct KeyRule {
  Value attribute;  // of each item; None: the item itself
  Value fallback;   // of an attribute that is undefined
  bool case_counts = false;

  Result<Value> Of(const Value& item, Budget* budget) const {
    Value key = item;
    if (Given(attribute)) {
      LATTE_ASSIGN_OR_RETURN(key, AttributeOf(item, attribute, fallback, budget));
    }
    return case_counts || !key.Is(Kind::kString) ? key : ChangeCase(key, "lower", budget);
  }
};

// As Python compares two lists of keys: the first that differ decide.
Result<bool> KeysBefore(const Values& a, const Values& b, Budget* budget) {
  for (size_t i = 0; i < a.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const bool same, Equal(a[i], b[i], budget));
    if (!same) return Compares("<", a[i], b[i], budget);
  }
  return false;
}

// The order of the indices of `keys`: a stable merge sort, whose comparisons may fail.
Result<std::vector<size_t>> SortedOrder(const std::vector<Values>& keys, bool down,
                                        Budget* budget) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<size_t> merged(keys.size());
  for (size_t width = 1; width < keys.size(); width *= 2) {
    for (size_t begin = 0; begin < keys.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, keys.size());
      const size_t end = std::min(middle + width, keys.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t at = begin; at < end; ++at) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          const Values& a = keys[order[left]];
          const Values& b = keys[order[right]];
          LATTE_ASSIGN_OR_RETURN(take_right,
                                 down ? KeysBefore(a, b, budget) : KeysBefore(b, a, budget));
        }
        merged[at] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

// `items` sorted by `keys`, which has one list of keys for each.
Result<Values> SortedBy(const Values& items, const std::vector<Values>& keys, bool down,
                        Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const std::vector<size_t> order, SortedOrder(keys, down, budget));
  LATTE_RETURN_IF_ERROR(budget->Spend(std::ssize(items), 160 * std::ssize(items)));
  Values out;
  out.reserve(items.size());
  for (const size_t i : order) out.push_back(items[i]);
  return out;
}

// sort(attribute="a,b.c"): by several attributes.
Result<Value> Sort(const std::string&, const Value& input, const Arguments& arguments,
                   Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a,
                         Bind(arguments, {"reverse", "case_sensitive", "attribute"}));
  std::vector<KeyRule> rules;
  if (a[2].Is(Kind::kString) && a[2].text().size() > kMaxAttributeBytes)
    return InvalidArgument("the attributes of 'sort' are too long");
  if (a[2].Is(Kind::kString))
    for (Text& path : Split(a[2].text(), ",", -1))
      rules.push_back({Value::String(std::move(path)), Value(), Truthy(a[1])});
  else
    rules.push_back({a[2], Value(), Truthy(a[1])});
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  std::vector<Values> keys(items.size());
  for (size_t i = 0; i < items.size(); ++i)
    for (const KeyRule& rule : rules) {
      LATTE_ASSIGN_OR_RETURN(Value key, rule.Of(items[i], budget));
      keys[i].push_back(std::move(key));
    }
  LATTE_ASSIGN_OR_RETURN(Values out, SortedBy(items, keys, Truthy(a[0]), budget));
  return MakeList(std::move(out));
}

// Sorts by key or by value.
Result<Value> DictSort(const std::string&, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"case_sensitive", "by", "reverse"}));
  if (!input.Is(Kind::kDict)) return InvalidArgument("'dictsort' needs a mapping");
  std::string by = "key";
  if (!a[1].Is(Kind::kUndefined)) {
    LATTE_ASSIGN_OR_RETURN(by, StringArgument(a[1], "the place of 'dictsort'"));
  }
  if (by != "key" && by != "value")
    return InvalidArgument(fmt::format("'dictsort': expected by key or value, found '{}'", by));
  const KeyRule rule = {Value::Int(by == "key" ? 0 : 1), Value(), Truthy(a[0])};
  LATTE_ASSIGN_OR_RETURN(const Value pairs, CallMethod(input, "items", {}, budget));
  const Values& items = pairs.list().items;
  std::vector<Values> keys(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(Value key, rule.Of(items[i], budget));
    keys[i].push_back(std::move(key));
  }
  LATTE_ASSIGN_OR_RETURN(Values out, SortedBy(items, keys, Truthy(a[2]), budget));
  return MakeList(std::move(out));
}

// The keys that were seen, as in a set of Python.
class SeenKeys {
 public:
  // Whether the key is new. Errors: kInvalidArgument for a value that a set cannot hold.
  Result<bool> Add(const Value& key, Budget* budget) {
    if (key.Is(Kind::kUndefined)) return !std::exchange(undefined_, true);
    if (IsKey(key)) {
      LATTE_RETURN_IF_ERROR(budget->Spend(1, 96));
      if (key.Is(Kind::kString)) {  // each comparison is a pass over it
        const auto comparisons = static_cast<size_t>(std::bit_width(simple_.size()));
        LATTE_RETURN_IF_ERROR(budget->SpendPass(key.text().size() * comparisons));
      }
      return simple_.insert(key).second;
    }
    if (!key.Is(Kind::kList) || !key.list().tuple)
      return InvalidArgument(fmt::format("'unique' cannot hold a '{}'", TypeName(key)));
    for (const Value& other : tuples_) {
      LATTE_ASSIGN_OR_RETURN(const bool same, Equal(key, other, budget));
      if (same) return false;
    }
    tuples_.push_back(key);
    return true;
  }

 private:
  struct Before {
    bool operator()(const Value& a, const Value& b) const { return KeyOrder(a, b) < 0; }
  };
  std::set<Value, Before> simple_;
  Values tuples_;
  bool undefined_ = false;
};

Result<Value> Unique(const std::string&, const Value& input, const Arguments& arguments,
                     Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"case_sensitive", "attribute"}));
  const KeyRule rule = {a[1], Value(), Truthy(a[0])};
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  SeenKeys seen;
  Values out;
  for (const Value& item : items) {
    LATTE_ASSIGN_OR_RETURN(const Value key, rule.Of(item, budget));
    LATTE_ASSIGN_OR_RETURN(const bool fresh, seen.Add(key, budget));
    if (fresh) out.push_back(item);
  }
  return MakeList(std::move(out));
}

// min and max: the first of equal ones.
Result<Value> Extreme(const std::string& name, const Value& input, const Arguments& arguments,
                      Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"case_sensitive", "attribute"}));
  const KeyRule rule = {a[1], Value(), Truthy(a[0])};
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  if (items.empty())
    return Value::MakeUndefined(fmt::format("no {} item, the sequence is empty", name));
  size_t best = 0;
  LATTE_ASSIGN_OR_RETURN(Value best_key, rule.Of(items[0], budget));
  for (size_t i = 1; i < items.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(Value key, rule.Of(items[i], budget));
    LATTE_ASSIGN_OR_RETURN(const bool better,
                           Compares(name == "max" ? ">" : "<", key, best_key, budget));
    if (!better) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

Result<Value> Sum(const std::string&, const Value& input, const Arguments& arguments,
                  Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"attribute", "start"}));
  const bool begins = arguments.positional.size() > 1 ||
                      std::any_of(arguments.named.begin(), arguments.named.end(),
                                  [](const auto& argument) { return argument.first == "start"; });
  Value total = begins ? a[1] : Value::Int(0);
  if (total.Is(Kind::kString)) return InvalidArgument("'sum' adds no strings; use 'join'");
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  for (Value item : items) {
    LATTE_RETURN_IF_ERROR(budget->Spend(1));
    if (Given(a[0])) {
      LATTE_ASSIGN_OR_RETURN(item, AttributeOf(item, a[0], Value(), budget));
    }
    LATTE_ASSIGN_OR_RETURN(total, BinaryOperation("+", total, item, budget));
  }
  return total;
}

// Pairs of a key and the items that have it, in the order of the keys.
Result<Value> GroupBy(const std::string&, const Value& input, const Arguments& arguments,
                      Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a,
                         Bind(arguments, {"attribute", "default", "case_sensitive"}, 1));
  const KeyRule rule = {a[0], a[1], Truthy(a[2])};
  const KeyRule shown = {a[0], a[1], true};
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  std::vector<Values> keys(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(Value key, rule.Of(items[i], budget));
    keys[i].push_back(std::move(key));
  }
  LATTE_ASSIGN_OR_RETURN(const std::vector<size_t> order, SortedOrder(keys, false, budget));
  LATTE_RETURN_IF_ERROR(budget->Spend(std::ssize(items), 320 * std::ssize(items)));
  Values out;
  for (size_t at = 0; at < order.size();) {
    const size_t first = order[at];
    Values members;
    for (bool same = true; same;) {
      members.push_back(items[order[at++]]);
      same = at < order.size();
      if (!same) break;
      LATTE_ASSIGN_OR_RETURN(same, Equal(keys[order[at]][0], keys[first][0], budget));
    }
    LATTE_ASSIGN_OR_RETURN(Value key, shown.Of(items[first], budget));
    LATTE_ASSIGN_OR_RETURN(Value list, MakeList(std::move(members)));
    LATTE_ASSIGN_OR_RETURN(Value group, MakeList({std::move(key), std::move(list)}, true));
    group.list().group = true;
    out.push_back(std::move(group));
  }
  return MakeList(std::move(out));
}

constexpr FilterRow kOrderFilters[] = {
    {"sort", Sort},   {"dictsort", DictSort}, {"unique", Unique},   {"min", Extreme},
    {"max", Extreme}, {"sum", Sum},           {"groupby", GroupBy},
};

}  // namespace

std::span<const FilterRow> OrderFilters() { return kOrderFilters; }

}  // namespace latte::jinja
