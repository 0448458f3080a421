// Calls everything that a template can call, as the tables of the code list it, with large operands
// and in loops: what is added to a table is tested here too.
#include "src/jinja/limits/budget.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "src/base/limits/cpu_time.h"
#include "src/jinja/call.h"
#include "src/jinja/operators.h"
#include "src/jinja/template.h"
#include "tests/support/sanitizers.h"

namespace latte::jinja::budget_test {
namespace {

constexpr size_t kLong = 1 << 20;  // bytes of a long text; a pass over it costs 4,096 steps

Value UserString(std::string text) { return Value::String(Text(std::move(text), false)); }

Value ListOf(std::vector<Value> items, bool tuple = false) {
  return MakeList(std::move(items), tuple).value();
}

// Origins that change with every byte.
Value Motley() {
  Text text;
  for (size_t i = 0; i < kLong; ++i) text.Append(i % 3 == 0 ? " " : "a", i % 2 == 0);
  return Value::String(std::move(text));
}

Value DictWithKeys(size_t count, size_t size) {
  std::vector<Dict::Entry> entries;
  for (size_t i = 0; i < count; ++i)
    entries.emplace_back(Text(std::string(size, 'a') + std::to_string(i), true), Value::Int(1));
  return MakeDict(std::move(entries)).value();
}

Value Deep() {
  Value value = UserString(std::string(100, 'a'));
  for (int i = 0; i < 60; ++i) value = ListOf({value, value});
  return value;
}

// Operands by name, made outside of the templates, so that they cost nothing there.
Value Variables() {
  const std::string plain(kLong, 'a');
  const Value text = UserString(plain);
  std::vector<Value> words;
  for (int i = 0; i < 2000; ++i) words.push_back(UserString(std::to_string(i)));
  std::vector<Dict::Entry> out;
  const auto add = [&](const char* name, Value value) {
    out.emplace_back(Text(name, true), std::move(value));
  };
  add("text", text);
  add("twin", UserString(plain));  // equal, but not the same
  add("near", UserString(plain.substr(1) + "b"));
  add("spaces", UserString(std::string(kLong, ' ')));
  add("lines", UserString(std::string(kLong, '\n')));
  add("controls", UserString(std::string(kLong, '\x01')));
  add("digits", UserString(std::string(kLong, '1')));
  add("formats", UserString(std::string(kLong / 2, '%') + std::string(kLong / 2, '{')));
  add("motley", Motley());
  add("texts", ListOf(std::vector<Value>(2000, text)));
  add("pairs", ListOf(std::vector<Value>(2000, ListOf({text, text}, true))));
  add("tuple", ListOf(std::vector<Value>(2000, text), true));
  add("words", ListOf(words));
  add("numbers", ListOf(std::vector<Value>(20000, Value::Int(1))));
  add("keys", DictWithKeys(2000, 500));
  add("long_keys", DictWithKeys(8, kLong));
  add("deep", Deep());
  add("number", Value::Int(1'000'000));
  add("real", Value::Float(1e300));
  add("nothing", Value());
  return MakeDict(std::move(out)).value();
}

constexpr std::string_view kOperands[] = {"text",   "near",    "spaces",  "lines",  "controls",
                                          "digits", "formats", "motley",  "texts",  "pairs",
                                          "tuple",  "words",   "numbers", "keys",   "long_keys",
                                          "deep",   "number",  "real",    "nothing"};
constexpr std::string_view kArguments[] = {
    "",        "text",           "'a'",         "twin, text", "'', text",    "motley, 'b'",
    "tuple",   "texts",          "deep",        "number",     "number, 'a'", "attribute='a.b'",
    "'upper'", "'map', 'upper'", "'in', texts", "indent=text"};

// A share of the default limits, so that all calls together take less than a minute, under
// ThreadSanitizer some minutes. The processor time is far more than the steps need, also with
// sanitizers.
constexpr Limits kShare = {.steps = testing_support::kUnderTsan ? 500 : 20'000,
                           .total_bytes = 64 << 20,
                           .string_bytes = 8 << 20,
                           .cpu_seconds = 2};

class Bombs {
 public:
  // Renders 5,000 times, and expects that steps, bytes or an error end it.
  void InLoop(const std::string& statement) {
    Ends("{% for i in range(5000) %}" + statement + "{% endfor %}", kShare);
  }

  Error Ends(const std::string& source, const Limits& limits) {
    ++count_;
    const Result<Template> parsed = Template::Parse(source);
    EXPECT_TRUE(parsed) << source << "\n" << ToString(parsed.error());
    if (!parsed) return parsed.error();
    const double begin = ThreadCpuSeconds();
    const Result<Text> text =
        parsed->Render(variables_, {.limits = limits, .unix_seconds = 1'000'000'000});
    EXPECT_LT(ThreadCpuSeconds() - begin, 2 * limits.cpu_seconds) << source;
    if (text) return {Code::kOk, ""};
    EXPECT_EQ(text.error().message.find("processor time"), std::string::npos)
        << source << "\n"
        << ToString(text.error());
    EXPECT_LT(text.error().message.size(), 3 * kMaxMessageBytes) << source;
    return text.error();
  }

  int count() const { return count_; }

 private:
  const Value variables_ = Variables();
  int count_ = 0;
};

std::string Call(std::string_view operand, std::string_view how, std::string_view name,
                 std::string_view arguments) {
  std::string out = "{% set y = ";
  ((((out += operand) += how) += name) += "(") += arguments;
  return out += ") %}";
}

TEST(JinjaBudget, EveryFilterEndsSoon) {
  Bombs bombs;
  for (const std::string_view name : FilterNames()) {
    for (const std::string_view operand : kOperands) {
      for (const std::string_view arguments : kArguments)
        bombs.InLoop(Call(operand, " | ", name, arguments));
      bombs.InLoop("{% set y %}{{ " + std::string(operand) + " | " + std::string(name) +
                   " }}{% endset %}");
    }
  }
  EXPECT_GT(bombs.count(), 10000);
}

TEST(JinjaBudget, EveryTestEndsSoon) {
  Bombs bombs;
  for (const std::string_view name : TestNames()) {
    if (name.find_first_of("<>=!") != std::string_view::npos) continue;  // names for select() only
    for (const std::string_view operand : kOperands)
      for (const std::string_view arguments : kArguments)
        bombs.InLoop(Call(operand, " is ", name, arguments));
  }
  for (const std::string_view name : TestNames())
    for (const std::string_view operand : kOperands)
      bombs.InLoop("{% set y = texts | select('" + std::string(name) + "', " +
                   std::string(operand) + ") | list %}");
  EXPECT_GT(bombs.count(), 5000);
}

TEST(JinjaBudget, EveryMethodEndsSoon) {
  Bombs bombs;
  for (const Kind kind : {Kind::kString, Kind::kList, Kind::kDict})
    for (const std::string_view name : MethodNames(kind))
      for (const std::string_view operand : kOperands)
        for (const std::string_view arguments : kArguments)
          bombs.InLoop(Call(operand, ".", name, arguments));
  EXPECT_GT(bombs.count(), 10000);
}

TEST(JinjaBudget, EveryOperatorEndsSoon) {
  Bombs bombs;
  std::vector<std::string_view> operators(std::begin(kBinaryOperators), std::end(kBinaryOperators));
  operators.insert(operators.end(), std::begin(kComparisons), std::end(kComparisons));
  operators.insert(operators.end(), {"in", "not in", "~", "and", "or"});
  for (const std::string_view a : kOperands) {
    const std::string left(a);
    for (const std::string_view op : operators)
      for (const std::string_view b : kOperands)
        bombs.InLoop(((("{% set y = " + left + " ") += op) += " ") += std::string(b) + " %}");
    for (const char* index : {"1000", "-1", "text", "'x'", ":", "::-1", "1:", "::7", "500:501"})
      bombs.InLoop("{% set y = " + left + "[" + index + "] %}");
    for (const char* text : {"{{ @ }}", "{% for x in @ %}{% endfor %}", "{% set y = [@, @] %}",
                             "{% set y = {@: 1} %}", "{% set y = not @ %}", "{% set y = -@ %}",
                             "{% filter upper %}{{ @ }}{% endfilter %}", "{% set a, b = @ %}"}) {
      std::string statement = text;
      for (size_t at = 0; (at = statement.find('@', at)) != std::string::npos;)
        statement.replace(at, 1, left);
      bombs.InLoop(statement);
    }
  }
  EXPECT_GT(bombs.count(), 5000);
}

TEST(JinjaBudget, EveryFunctionEndsSoon) {
  Bombs bombs;
  std::vector<std::string> names(std::begin(kFunctions), std::end(kFunctions));
  names.insert(names.end(), {"loop.cycle", "loop.changed"});
  for (const std::string& name : names)
    for (const std::string_view arguments : kArguments)
      for (const std::string_view operand : kOperands) {
        bombs.InLoop("{% set y = " + name + "(" + std::string(operand) + ") %}");
        bombs.InLoop(Call("", "", name, arguments));
      }
}

// The bytes of operands count, whatever the operation counts itself.
TEST(JinjaBudget, EveryOperationPaysForItsOperands) {
  Bombs bombs;
  const Limits limits = {.steps = kLong / kBytesPerStep - 1, .cpu_seconds = 60};
  const auto expect_spent = [&](const std::string& expression) {
    EXPECT_EQ(bombs.Ends("{{ (" + expression + ") is defined }}", limits).code, Code::kExhausted)
        << expression;
  };
  for (const std::string_view name : FilterNames()) {
    if (name == "safe" || name == "escape" || name == "e" || name == "forceescape") continue;
    expect_spent(("text | " + std::string(name)));
    expect_spent(("number | " + std::string(name)) += "(text)");
  }
  for (const std::string_view name : TestNames()) {
    if (name.find_first_of("<>=!") != std::string_view::npos) continue;
    expect_spent(("number is " + std::string(name)) += "(text)");
  }
  for (const std::string_view name : MethodNames(Kind::kString)) {
    expect_spent(("text." + std::string(name)) += "()");
    expect_spent(("'a'." + std::string(name)) += "(text)");
  }
  for (const std::string_view name : MethodNames(Kind::kList))
    expect_spent(("words." + std::string(name)) += "(text)");
  for (const std::string_view name : MethodNames(Kind::kDict))
    expect_spent(("keys." + std::string(name)) += "(text)");
  for (const std::string_view op : kBinaryOperators) {
    expect_spent(("text " + std::string(op)) += " number");
    expect_spent(("number " + std::string(op)) += " text");
  }
  for (const std::string_view op : kComparisons)
    expect_spent(("text " + std::string(op)) += " twin");
  for (const char* expression :
       {"'b' in text", "text in texts", "text in keys", "keys[text]", "text[1]", "text[1:]",
        "text ~ ''", "raise_exception(text)", "dict({text: 1})", "namespace(long_keys)"})
    expect_spent(expression);
}

std::string Many(const std::string& before, int count, const std::string& after) {
  std::string out;
  for (int i = 0; i < count; ++i) ((out += before) += std::to_string(i)) += after;
  return out;
}

TEST(JinjaBudget, SearchesForNamesAndKeysCount) {
  Bombs bombs;
  const std::string loop = "{% for i in range(99999) %}";
  const std::string sources[] = {
      Many("{% set v", 6000, " = 1 %}") + loop + "{% set v5999 = v5998 %}{% endfor %}",
      "{% set ns = namespace() %}" + Many("{% set ns.v", 6000, " = 1 %}") + loop +
          "{% set ns.v5999 = ns.v5998 %}{% endfor %}",
      loop + loop + "{% set ns = namespace(keys) %}{% endfor %}{% endfor %}",
      loop + "{% set y = dict(pairs) %}{% endfor %}",
      loop + "{% set y = {text: 1, twin: 2, near: 3, text ~ 'a': 4} %}{% endfor %}",
      loop + "{% set y = pairs | unique | list %}{% endfor %}",
      loop + "{% set y = texts | unique(true) | list %}{% endfor %}",
      loop + "{% set y = long_keys == long_keys %}{% endfor %}",
      loop + "{% set y = texts == texts[:] %}{% endfor %}",
      loop + "{% set y = text.startswith((near,) * 2000) %}{% endfor %}",
  };
  for (const std::string& source : sources)
    EXPECT_EQ(bombs.Ends(source, {.cpu_seconds = 60}).code, Code::kExhausted)
        << source.substr(0, 200);
}

TEST(JinjaBudget, ProcessorTimeIsTheLastLimit) {
  const Limits limits = {.steps = int64_t{1} << 60,
                         .total_bytes = int64_t{1} << 60,
                         .string_bytes = int64_t{1} << 40,
                         .cpu_seconds = 0.05};
  for (const char* body : {"", "{% set y = i + 1 %}", "{% if text == twin %}{% endif %}"}) {
    const std::string loop = "{% for i in range(100000) %}";
    const Template parsed =
        Template::Parse(loop + loop + body + "{% endfor %}{% endfor %}").value();
    const double begin = ThreadCpuSeconds();
    const Result<Text> text = parsed.Render(Variables(), {.limits = limits, .unix_seconds = 0});
    EXPECT_LT(ThreadCpuSeconds() - begin, 5);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, Code::kExhausted);
    EXPECT_NE(text.error().message.find("more than 0.05 s of processor time"), std::string::npos)
        << text.error().message;
  }
}

TEST(JinjaBudget, ValuesAndTheirOriginsAreBoundedTogether) {
  Bombs bombs;
  const char* const sources[] = {
      // Changes of origin take more memory than the text.
      "{% set q = [] %}{% for i in range(99) %}{% set _ = q.append(motley * 3) %}{% endfor %}",
      "{% set q = [] %}{% for i in range(99) %}{% set _ = q.append(text.replace('a', 'b' ~ "
      "'c')) %}{% endfor %}",
      "{% set q = [] %}{% for i in range(9999) %}{% set _ = q.append(keys[text ~ i]) %}{% endfor "
      "%}",
      "{% set q = [] %}{% for i in range(9999) %}{% set _ = q.append(namespace(keys)) %}{% endfor "
      "%}",
      "{% set q = [] %}{% for i in range(9999) %}{% set _ = q.append(range(9999) | map('string')) "
      "%}{% endfor %}",
      "{% set q = [] %}{% for i in range(9999) %}{% set _ = q.append(text | list) %}{% endfor %}",
      "{{ ['x', ['x', ['x', ['x']]]] | tojson(indent=text * 60) }}",
      "{{ [[], [[]]] | tojson(indent=text * 30) }}{{ controls * 60 }}",
      "{{ [controls * 60] }}",
      "{{ (controls * 60) | tojson }}",
  };
  for (const char* source : sources)
    EXPECT_EQ(bombs.Ends(source, {.cpu_seconds = 60}).code, Code::kExhausted) << source;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  // The limit of all values is 512 MiB; a container that grows holds up to three times its items.
  if (!testing_support::kUnderAsan && !testing_support::kUnderTsan) {
    EXPECT_LT(usage.ru_maxrss, 1536 * 1024);
  }
}

}  // namespace
}  // namespace latte::jinja::budget_test
