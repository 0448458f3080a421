// The values of the template interpreter, with Python's rules for truth, equality, order, str() and
// repr(). Values passed in never change. Lists made inside a template can grow, but cannot form a
// cycle. No value gives access to anything outside the template.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "latte/status.h"

#include "src/jinja/limits/budget.h"
#include "src/jinja/text.h"

namespace latte::jinja {

class Value;
struct List;
struct Dict;
struct Namespace;
struct Callable;

// The length of a message about a value: a name in a template can have megabytes.
constexpr size_t kMaxMessageBytes = 4096;
std::string CutMessage(std::string_view message);

struct Undefined {
  std::shared_ptr<const std::string> what;  // the expression, for messages: "'x' is undefined"
};
struct None {};

enum class Kind {  // in the order of Value's alternatives
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kDict,
  kNamespace,
  kCallable
};

// Cheap to copy: lists and dicts are shared. Thread-compatible.
class Value {
 public:
  Value();                                       // None
  static Value MakeUndefined(std::string what);  // keeps the first kMaxMessageBytes
  static Value Bool(bool b) { return Value(Data(b)); }
  static Value Int(int64_t i) { return Value(Data(i)); }
  static Value Float(double d) { return Value(Data(d)); }
  static Value String(Text text);
  static Value String(std::string_view bytes, bool from_template = true);
  static Value Wrap(std::shared_ptr<List> list) { return Value(Data(std::move(list))); }
  static Value Wrap(std::shared_ptr<const Dict> dict) { return Value(Data(std::move(dict))); }
  static Value Wrap(Namespace* ns) { return Value(Data(ns)); }
  static Value Wrap(std::shared_ptr<const Callable> f) { return Value(Data(std::move(f))); }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool Is(Kind k) const { return kind() == k; }
  // like Python's int, which includes bool
  bool is_integer() const { return Is(Kind::kInt) || Is(Kind::kBool); }
  bool is_number() const { return is_integer() || Is(Kind::kFloat); }

  // Whether no other value shares the content: the operation that returned the value made it.
  bool is_only_holder() const;

  // Requires: the value has that kind.
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const;  // also of a bool
  double number() const;    // of any number
  const Text& text() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  const std::string& bytes() const { return text().bytes(); }
  List& list() const { return *std::get<std::shared_ptr<List>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace* ns() const { return std::get<Namespace*>(data_); }
  const Callable& callable() const { return *std::get<std::shared_ptr<const Callable>>(data_); }
  const std::string& undefined() const { return *std::get<Undefined>(data_).what; }

 private:
  using Data = std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>,
                            std::shared_ptr<List>, std::shared_ptr<const Dict>, Namespace*,
                            std::shared_ptr<const Callable>>;
  explicit Value(Data data) : data_(std::move(data)) {}
  Data data_;
};

struct List {
  std::vector<Value> items;
  bool tuple = false;
  bool group = false;  // a tuple of groupby(): its items are also called grouper and list
  bool frozen = true;  // passed in from outside, or appended to a list: append and pop are refused
  int depth = 1;
};

// Keys are strings, numbers and None, in insertion order. Numbers that are equal are one key.
struct Dict {
  struct Entry {
    Entry(Text k, Value v) : key(Value::String(std::move(k))), value(std::move(v)) {}
    Entry(Value k, Value v) : key(std::move(k)), value(std::move(v)) {}
    Value key;
    Value value;
  };
  std::vector<Entry> entries;
  std::vector<uint32_t> sorted;  // indices of entries, sorted by KeyOrder
  int depth = 1;

  // Null if absent, also for a value that cannot be a key.
  const Value* Find(std::string_view key) const;
  const Value* Find(const Value& key) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
};

// A function of the interpreter, a method with its object, or a macro.
struct Callable {
  enum class Type { kFunction, kMethod, kMacro };
  Type type = Type::kFunction;
  std::string name;
  Value self;      // the object of a method
  int macro = -1;  // the node of a macro
  int scope = 0;   // where a macro was defined; `birth` tells whether it still is that scope
  int64_t birth = 0;
};

// Deeper containers are refused. One that holds a list which grew later is at most twice as deep.
constexpr int kMaxValueDepth = 100;

// Errors of all three: kInvalidArgument if containers nest deeper than kMaxValueDepth.
[[nodiscard]] Result<Value> MakeList(std::vector<Value> items, bool tuple = false,
                                     bool frozen = false);
// The last of equal keys wins. Requires: every key is one (IsKey).
[[nodiscard]] Result<Value> MakeDict(std::vector<Dict::Entry> entries);
// For MakeDict, which compares the keys while it sorts them. Errors: kExhausted.
[[nodiscard]] Status SpendKeys(const std::vector<Dict::Entry>& entries, Budget* budget);
Value MakeStrings(std::vector<Text> texts);

bool IsKey(const Value& value);  // whether it can be the key of a dict
// Negative, zero or positive: a total order of keys. Numbers come before strings.
int KeyOrder(const Value& a, const Value& b);

std::string_view TypeName(const Value& value);  // Python's names: "str", "NoneType"
bool Truthy(const Value& value);
[[nodiscard]] Result<bool> Equal(const Value& a, const Value& b, Budget* budget);
// Unordered only for NaN. Errors: kInvalidArgument unless both are numbers, strings, lists or
// tuples; `op` is for the message.
[[nodiscard]] Result<std::partial_ordering> Compare(const Value& a, const Value& b,
                                                    std::string_view op, Budget* budget);
// Exact, also between a 64-bit integer and a float. Requires: both are numbers.
std::partial_ordering CompareNumbers(const Value& a, const Value& b);

// Python's str(), where an undefined value is empty, and repr().
[[nodiscard]] Result<Text> Str(const Value& value, Budget* budget);
[[nodiscard]] Result<Text> ReprText(const Value& value, Budget* budget);
std::string FloatRepr(double value);

// The items that a `for` iterates over: items, keys or characters; none for an undefined value.
// Spends for a pass over items that are strings.
[[nodiscard]] Result<std::vector<Value>> Items(const Value& value, Budget* budget);

}  // namespace latte::jinja
