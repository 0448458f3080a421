// Compares the interpreter with jinja2 on small templates, and checks the refusals. The templates
// and their output are in tests/data/chat/snippets.json, which tools/chat/make_goldens.py writes,
// and expressions.json, which tools/chat/expressions.py writes.
#include "src/jinja/template.h"

#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/jinja/json.h"
#include "tests/support/sanitizers.h"
#include "tests/support/small_stack.h"

namespace latte::jinja::template_test {
namespace {

RenderOptions Options() {
  RenderOptions options;
  options.unix_seconds = 1700000000;
  return options;
}

Result<Text> Render(std::string_view source, const std::string& variables = "{}",
                    const RenderOptions& options = Options()) {
  LATTE_ASSIGN_OR_RETURN(const Template parsed, Template::Parse(source));
  return parsed.Render(ParseJson(variables, "variables").value(), options);
}

std::string Bytes(std::string_view source, const std::string& variables = "{}") {
  const Result<Text> text = Render(source, variables);
  return text ? text->bytes() : ToString(text.error());
}

// Expects a template to end soon, whatever it computes.
Error EndsSoon(std::string_view source, const std::string& variables = "{}") {
  const std::clock_t begin = std::clock();  // processor time, because the machine may be busy
  const Result<Text> text = Render(source, variables);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 10) << source.substr(0, 80);  // leaves room for sanitizers
  EXPECT_FALSE(text) << source.substr(0, 80);
  return text ? Error{Code::kOk, ""} : text.error();
}

std::string Repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

void ExpectSnippetsOf(const std::string& path, const char* key, size_t at_least) {
  ASSERT_EQ(setenv("TZ", "UTC", 1), 0);
  tzset();
  const Result<std::string> read = ReadFile(path, 1 << 26);
  ASSERT_TRUE(read) << ToString(read.error());
  const Value file = ParseJson(*read, "snippets").value();
  const Value& variables = *file.dict().Find("variables");
  const std::vector<Value>& rows = file.dict().Find(key)->list().items;
  EXPECT_GE(rows.size(), at_least);
  for (const Value& row : rows) {
    const std::string& source = row.list().items[0].bytes();
    const Value& expected = row.list().items[1];
    const Result<Template> parsed = Template::Parse(source);
    const Result<Text> text =
        parsed ? parsed->Render(variables, Options()) : tl::unexpected(parsed.error());
    if (expected.Is(Kind::kString)) {
      EXPECT_EQ(text ? text->bytes() : ToString(text.error()), expected.bytes()) << source;
    } else {
      EXPECT_FALSE(text) << source << "\n" << text->bytes();
    }
  }
}

void ExpectSnippets(const char* key, size_t at_least) {
  ExpectSnippetsOf(std::string(LATTE_SOURCE_DIR) + "/tests/data/chat/snippets.json", key, at_least);
}

TEST(JinjaTemplate, SnippetsEqualJinja2) { ExpectSnippets("immutable", 550); }
TEST(JinjaTemplate, SnippetsThatChangeListsEqualJinja2) { ExpectSnippets("mutable", 8); }

// LATTE_TEST_EXPRESSIONS names another file of expressions, with another seed.
TEST(JinjaTemplate, RandomExpressionsEqualJinja2) {
  const char* const other = std::getenv("LATTE_TEST_EXPRESSIONS");
  ExpectSnippetsOf(
      other ? other : std::string(LATTE_SOURCE_DIR) + "/tests/data/chat/expressions.json",
      "immutable", 2000);
}

TEST(JinjaTemplate, ErrorsNameLineAndColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"a\n{{ 1 + }}", "line 2, column 8: expected an expression, found '}}'"},
      {"é {{ x.y }}", "line 1, column 7: 'x' is undefined"},
      {"{% if 1 %}\n\n {% nope %}{% endif %}", "line 3, column 5: the tag 'nope' is not supported"},
      {"{{ 1 | nope }}", "column 6: the filter 'nope' is not supported"},
      {"{{ 1 is nope }}", "column 9: the test 'nope' is not supported"},
      {"{{ 2 ** 63 }}", "column 6: the result does not fit in 64 bits"},
      {"{{ (-8) ** 0.5 }}", "column 9: a fractional power of a negative number"},
      {"{{ 10.0 ** 400 }}", "the power is beyond the range of a float"},
      {"{{ 9223372036854775807 | sum }}", "column 24: 'int' is not iterable"},
      {"{{ [9223372036854775807, 1] | sum }}", "the result does not fit in 64 bits"},
      {"{{ 1e300 | int }}{{ '9' * 20 }}", "column 10: the result does not fit in 64 bits"},
      {"{{ ('9' * 20) | int }}", "the number does not fit in 64 bits"},
      {"{{ [1, 'a'] | sort }}", "column 13: '<' cannot compare 'str' with 'int'"},
      {"{{ [[1], {}] | unique }}", "'unique' cannot hold a 'list'"},
      {"{{ {[1]: 2} }}", "a key of type 'list' is not supported"},
      {"{{ '%d' % 'a' }}", "column 9: a format of type 'd' cannot take 'str'"},
      {"{{ '%d %d' % 1 }}", "'%': fewer values than the format takes"},
      {"{{ '%d' % (1, 2) }}", "'%': more values than the format takes"},
      {"{{ '{:q}'.format(1) }}", "the format 'q' is wrong or not supported"},
      {"{{ 1 | round(2, 'up') }}", "expected the method common, ceil or floor, found 'up'"},
      {"{% set x = 'a' | safe %}", "'safe' is supported only where its result is printed"},
      {"a\n{% raw %}{{ x }}", "line 2, column 1: '{% raw %}' without '{% endraw %}'"},
      {"{% filter upper %}x", "expected '{% endfilter %}', found the end"},
      {"{% filter nope %}x{% endfilter %}", "column 4: the filter 'nope' is not supported"},
      {"{% call 1 %}x{% endcall %}", "expected a call before it"},
      {"{% for x in [1] %}{% filter upper %}{% break %}{% endfilter %}{% endfor %}",
       "expected a loop around it"},
      {"{% set ns = namespace() %}{% for x in [1] %}{% macro m() %}{{ x }}{% endmacro %}"
       "{% set ns.m = m %}{% endfor %}{{ ns.m() }}",
       "a call of macro 'm' after the loop or macro around it has ended"},
      {"{% for x in y recursive %}{% endfor %}", "a recursive loop is not supported"},
      {"{% include 'x' %}", "the tag 'include' is not supported"},
      {"{{ raise_exception('no tools here') }}", "refuses these messages: no tools here"},
      {"{{ 'abc' }", "column 10: '}' closes nothing"},
      {"{{ \"x }}", "string without its closing quote"},
  };
  for (const auto& [source, message] : cases) {
    const Result<Text> text = Render(source);
    ASSERT_FALSE(text) << source;
    EXPECT_NE(text.error().message.find(message), std::string::npos) << text.error().message;
    EXPECT_NE(text.error().message.find("line "), std::string::npos) << text.error().message;
  }
}

TEST(JinjaTemplate, EndlessWorkEndsSoon) {
  const char* const sources[] = {
      "{% for i in range(10000000000) %}{% endfor %}",
      "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99999) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{{ 'x' * 1000000000 }}",
      "{{ [0] * 1000000000 }}",
      "{{ ('x' * 1000000) * 1000000 }}",
      "{% set a = 'x' * 60000000 %}{% for i in range(99999) %}{{ a }}{% endfor %}",
      "{% set a = 'x' * 60000000 %}{% for i in range(99999) %}{% set b = a ~ i %}{% endfor %}",
      "{% set a = 'x' * 9000000 %}{% for i in range(99999) %}{% if 'y' in a %}{% endif %}{% endfor "
      "%}",
      "{% set ns = namespace(l=[0]) %}{% for i in range(99999) %}"
      "{% set ns.l = [ns.l, ns.l] %}{% endfor %}",
      "{% set a = [0] %}{% set ns = namespace(l=a) %}{% for i in range(60) %}"
      "{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[0]) %}{% for i in range(60) %}"
      "{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l | tojson | length }}",
      "{% set ns = namespace(a=[0], b=[0]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}"
      "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
      "{% set ns = namespace(m={}) %}{% for i in range(99999) %}{% set ns.m = [ns.m.get] %}"
      "{% set ns.m = {'a': ns.m} %}{% endfor %}",
      "{% set a = 'a' * 30000000 %}{{ a.split('a') | length }}",
      "{% set a = 'a' * 60000000 %}{{ a.replace('', 'bbbb') | length }}",
      "{% set a = 'a' * 30000000 %}{{ a | list | length }}",
      "{% set a = 'a' * 8000000 %}{% set b = 'a' * 4000000 + 'b' %}{{ b in a }}",
      "{% set a = 'a' * 8000000 %}{{ (a + 'c').strip(a + 'b') | length }}",
      "{% set q = [] %}{% for i in range(99999) %}{% for j in range(99) %}"
      "{% set _ = q.append('x') %}{% endfor %}{% endfor %}",
      "{{ range(99999) | map('string') | map('upper') | join(',') * 1000 }}",
      "{{ [1] | map(attribute='a.' * 30000000) | list }}{{ [1] | sort(attribute='a,' * 9999999) }}",
      "{{ 2 ** 9223372036854775807 }}",
      "{{ 3 ** 40 ** 40 }}",
      "{{ 'x' | indent(99999999999) }}",
      "{{ ('a\\n' * 9000000) | indent(1000) }}",
      "{{ 'x' | center(9223372036854775807) }}{{ 'x'.zfill(9223372036854775807) }}",
      "{{ '%99999999999d' % 1 }}",
      "{{ '%*d' % (9223372036854775807, 1) }}",
      "{{ '%.99999999999f' % 1.5 }}",
      "{{ '{:9999999999}'.format(1) }}",
      "{{ '{:01000000,}'.format(1) }}",
      "{{ ('%s' * 30000000) % (1, 2) }}",
      "{{ [1] | batch(9223372036854775807, 'x') | list }}",
      "{{ [1] | slice(9223372036854775807) | list }}",
      "{% set a = range(99999) | list %}{% for i in a %}{% set b = a | sort(reverse=true) %}"
      "{% endfor %}",
      "{% for i in range(99999) %}{% set b = range(99999) | unique | list %}{% endfor %}",
      "{{ dict(range(60000) | batch(2)).items() | unique | list | length }}",
      "{% set ns = namespace(l=(0,)) %}{% for i in range(60) %}{% set ns.l = (ns.l, ns.l) %}"
      "{% endfor %}{{ ns.l < ns.l }}{{ [ns.l, ns.l] | sort }}",
      "{{ (('1_' * 30000000) ~ 'x') | int }}{{ 'x' * 99999999 }}",
      "{% set a = 'é' * 9000000 %}{% for i in range(9999) %}{% set b = a | upper %}{% endfor %}",
  };
  for (const char* source : sources) {
    const Error error = EndsSoon(source);
    EXPECT_TRUE(error.code == Code::kExhausted || error.code == Code::kInvalidArgument)
        << source << "\n"
        << ToString(error);
  }
}

TEST(JinjaTemplate, RecursionEndsSoon) {
  const char* const sources[] = {
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(a=m()) %}{% endmacro %}{{ m() }}",
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
      "{% macro m(n) %}{% for i in [1, 2] %}{% if n %}{{ m(n) ~ m(n) }}{% endif %}{% endfor %}"
      "{% endmacro %}{{ m(1) }}",
      "{% macro a() %}{% macro b() %}{{ a() }}{% endmacro %}{{ b() }}{% endmacro %}{{ a() }}",
      "{% macro m() %}{{ caller() }}{% endmacro %}"
      "{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}",
      "{% macro m() %}{% filter upper %}{% with a = m() %}{% endwith %}{% endfilter %}"
      "{% endmacro %}{{ m() }}",
  };
  for (const char* source : sources) EXPECT_EQ(EndsSoon(source).code, Code::kExhausted) << source;
}

TEST(JinjaTemplate, DeepNestingIsRefusedWhenParsed) {
  constexpr size_t kMany = 100'000;
  const std::string sources[] = {
      "{{ " + Repeated("(", kMany) + "1" + Repeated(")", kMany) + " }}",
      "{{ " + Repeated("(", kMany),
      "{{ " + Repeated("[", kMany) + Repeated("]", kMany) + " }}",
      "{{ " + Repeated("{'a':", kMany) + "1" + Repeated("}", kMany) + " }}",
      "{{ " + Repeated("not ", kMany) + "1 }}",
      "{{ " + Repeated("- ", kMany) + "1 }}",
      "{{ 1" + Repeated(" + 1", kMany) + " }}",
      "{{ 1" + Repeated(" or 1", kMany) + " }}",
      "{{ x" + Repeated(".y", kMany) + " }}",
      "{{ x" + Repeated("[0]", kMany) + " }}",
      "{{ x" + Repeated("()", kMany) + " }}",
      "{{ x" + Repeated(" | trim", kMany) + " }}",
      "{{ " + Repeated("1 if 1 else ", kMany) + "1 }}",
      "{{ " + Repeated("x is in ", kMany) + "x }}",
      Repeated("{% if 1 %}", kMany),
      Repeated("{% filter upper %}", kMany),
      Repeated("{% with a = 1 %}", kMany),
      Repeated("{% call m() %}", kMany),
      "{{ 1" + Repeated(" ** 1", kMany) + " }}",
      "{{ x" + Repeated(" | safe", kMany) + " }}",
      Repeated("{% for x in y %}", kMany) + Repeated("{% endfor %}", kMany),
  };
  for (const std::string& source : sources)
    EXPECT_EQ(EndsSoon(source).code, Code::kInvalidArgument) << source.substr(0, 40);
}

// Deeply nested templates, which may be accepted or not, and templates that recurse without end.
std::vector<std::string> DeepTemplates() {
  std::vector<std::string> out = {
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(a=m()) %}{% endmacro %}{{ m() }}",
      "{% macro m(n) %}{% for i in [m(n)] %}{% endfor %}{% endmacro %}{{ m(1) }}",
      "{% macro m(n) %}{{ {'a': {'b': {'c': m(n) ~ 'd' | trim}}} }}{% endmacro %}{{ m(1) }}",
      "{% macro m(n) %}{{ n and m(n) and 1 or 0 if 1 else 2 }}{% endmacro %}{{ m(1) }}",
      "{% set ns = namespace(v=1) %}{% for i in range(98) %}{% set ns.v = {'a': [ns.v]} %}"
      "{% endfor %}{{ ns.v }}{{ ns.v | tojson }}",
      "{% set ns = namespace(v=1) %}{% for i in range(98) %}{% set ns.v = {'a': ns.v} %}"
      "{% endfor %}{{ ns.v == ns.v }}{{ ns.v }}{{ ns.v | tojson(indent=2) }}",
      "{% set q = [] %}{% set ns = namespace(v=q, w=1) %}{% for i in range(98) %}"
      "{% set ns.v = [ns.v] %}{% set ns.w = [ns.w] %}{% endfor %}{% set _ = q.append(ns.w) %}"
      "{{ ns.v }}{{ ns.v == ns.v }}{{ ns.v | tojson }}{{ [ns.v, ns.v] | sort }}",
  };
  const std::pair<std::string_view, std::string_view> levels[] = {
      {"(", ")"},       {"[", "]"},      {"{'a':", "}"},         {"not ", ""},
      {"- ", ""},       {"1 + ", ""},    {"1 ~ (", ")"},         {"1 if 0 else ", ""},
      {"range(", ")"},  {"x == [", "]"}, {"'' | default(", ")"}, {"x is in (", ")"},
      {"dict(a=", ")"}, {"[1][", "]"},   {"1 ** (", ")"},
  };
  for (const size_t depth : {10, 15, 18, 20, 22, 25, 50, 98, 150, 200, 390}) {
    for (const auto& [begin, end] : levels)
      out.push_back("{{ " + Repeated(begin, depth) + "1" + Repeated(end, depth) + " }}");
    for (const std::string_view tag :
         {"if 1", "for x in [1]", "set x", "filter trim", "with a = 1"}) {
      const std::string_view name = tag.substr(0, tag.find(' '));
      out.push_back(Repeated("{% " + std::string(tag) + " %}", depth) +
                    Repeated("{% end" + std::string(name) + " %}", depth));
    }
  }
  return out;
}

TEST(JinjaTemplate, NoTemplateNeedsMuchStack) {
  int rendered = 0;
  testing_support::OnSmallStack([&rendered] {
    for (const std::string& source : DeepTemplates()) rendered += Render(source) ? 1 : 0;
  });
  // The nesting of the others is refused. With sanitizers, a level takes more of the stack.
  const bool sanitized = testing_support::kUnderAsan || testing_support::kUnderTsan;
  EXPECT_GT(rendered, sanitized ? 20 : 60);
}

TEST(JinjaTemplate, LongTemplatesAreNotDeepOnes) {
  std::string chain = "{% if x == 0 %}0";
  for (int i = 1; i < 2000; ++i)
    chain += "{% elif x == " + std::to_string(i) + " %}" + std::to_string(i);
  EXPECT_EQ(Bytes(chain + "{% endif %}", R"({"x": 1999})"), "1999");
}

TEST(JinjaTemplate, NothingBeyondTheValuesCanBeReached) {
  for (const char* source :
       {"{{ ''.__class__.__mro__ }}", "{{ ().__class__.__base__.__subclasses__() }}",
        "{{ self.__init__.__globals__ }}", "{{ namespace.__init__ }}x{{ range.__self__.y }}",
        "{{ messages.__len__() }}", "{{ cycler.__init__.__globals__.os.system('x') }}",
        "{{ x.append(1) }}"})
    EXPECT_FALSE(Render(source, R"({"messages": [], "x": [0]})")) << source;
  EXPECT_EQ(Bytes("{{ ''.__class__ }}|{{ x.__class__ is defined }}", R"({"x": {}})"), "|False");
}

std::string Trusted(std::string_view source, const std::string& variables) {
  const Result<Text> text = Render(source, variables);
  if (!text) return ToString(text.error());
  std::string out;
  size_t begin = 0;
  for (const Text::Run& run : text->runs()) {
    const std::string part = text->bytes().substr(begin, run.end - begin);
    out += run.from_template ? part : "<" + part + ">";
    begin = run.end;
  }
  return out;
}

TEST(JinjaTemplate, TrustFollowsTextThroughEveryOperation) {
  const std::string v = R"({"c": "a|B|é", "d": {"k": "v"}, "l": ["x", "y"]})";
  const std::pair<const char*, const char*> cases[] = {
      {"A{{ c }}B", "A<a|B|é>B"},
      {"{{ 'A' + c + 'B' }}", "A<a|B|é>B"},
      {"{{ 'A' ~ c ~ 1 }}", "A<a|B|é>1"},
      {"{{ c.split('|')[-1] }}|", "<é>|"},
      {"{{ ('x' + c)[1:2] }}{{ ('x' + c)[::-1] }}", "<aé|B|a>x"},
      {"{{ c.replace('|', '/') }}", "<a>/<B>/<é>"},
      {"{{ ('  ' + c + ' ') | trim }}", "<a|B|é>"},
      {"{{ l | join('-') }}", "<x>-<y>"},
      {"{{ 'Q' ~ (l[0] | upper) }}", "Q<X>"},
      {"{{ d | tojson }}", "<{\"k\": \"v\"}>"},
      {"{{ d }}", "<{'k': 'v'}>"},
      {"{% for k in d %}{{ k }}{% endfor %}{% for x in 'ab' %}{{ x }}{% endfor %}", "<k>ab"},
      {"{% set t %}[{{ c }}]{% endset %}{{ t }}", "[<a|B|é>]"},
      {"{% macro m(x) %}({{ x }}){% endmacro %}{{ m(c) }}{{ m('y') }}", "(<a|B|é>)(y)"},
      {"{{ '{}={}'.format('n', l[1]) }}", "n=<y>"},
      {"{{ c * 2 }}", "<a|B|éa|B|é>"},
      {"{{ '%s=%3s' % ('n', l[1]) }}", "n=  <y>"},
      {"{{ '{0:>3}'.format(l[0]) }}", "  <x>"},
      {"{{ (c ~ '\n' ~ c) | indent(2) }}", "<a|B|é>\n  <a|B|é>"},
      {"{{ 'q-' ~ l[0] | title }}", "q-<X>"},
      {"{{ l | sort(reverse=true) | join('+') }}", "<y>+<x>"},
      {"{{ l[0].center(3, '.') }}", ".<x>."},
      {"{{ c | e }}{{ '<' | e }}", "<a|B|é>&lt;"},
      {"{{ '+'.join(l) }}", "<x>+<y>"},
      {"{% filter upper %}a{{ c }}{% endfilter %}", "A<A|B|É>"},
      {"{% macro m() %}({{ caller() }}){% endmacro %}{% call m() %}{{ c }}{% endcall %}",
       "(<a|B|é>)"},
  };
  for (const auto& [source, expected] : cases) EXPECT_EQ(Trusted(source, v), expected) << source;
}

TEST(JinjaTemplate, ListsDoNotFormCycles) {
  for (const char* source : {
           "{% set q = [] %}{% set _ = q.append(q) %}{{ q }}",
           "{% set q = [] %}{% set _ = q.append([q]) %}{{ q }}",
           "{% set q = [] %}{% set p = [] %}{% set _ = q.append(p) %}{% set _ = p.append(q) %}",
           "{% set q = [] %}{% set _ = q.append({'a': q}) %}{{ q | tojson }}",
           "{% set q = [] %}{% set _ = q.append(q.append) %}{{ q }}",
           "{% set q = [] %}{% set _ = q.append((q,)) %}{{ q == q }}",
       })
    EXPECT_FALSE(Render(source)) << source;
  // As deep as values may be, and a list inside that grows afterwards.
  const std::string deep =
      "{% set q = [] %}{% set ns = namespace(v=q, w=1) %}{% for i in range(98) %}"
      "{% set ns.v = [ns.v] %}{% set ns.w = [ns.w] %}{% endfor %}{% set _ = q.append(ns.w) %}";
  EXPECT_TRUE(Render(deep + "{{ ns.v }}{{ ns.v == ns.v }}"));
  EXPECT_FALSE(Render(deep + "{% set r = [] %}{% set _ = r.append(ns.v) %}"));
}

TEST(JinjaTemplate, ValuesPassedInStayAsTheyAre) {
  const Value variables = ParseJson(R"({"l": ["a"]})", "v").value();
  const Template parsed =
      Template::Parse("{% set q = l + [] %}{% set _ = q.append('b') %}{{ q }}").value();
  EXPECT_EQ(parsed.Render(variables)->bytes(), "['a', 'b']");
  EXPECT_EQ(parsed.Render(variables)->bytes(), "['a', 'b']");
  EXPECT_FALSE(Render("{{ l.pop() }}", R"({"l": ["a"]})"));
}

TEST(JinjaTemplate, InvalidUtf8IsRepaired) {
  EXPECT_EQ(Bytes("a\xFF{{ 1 }}"),
            "a\xEF\xBF\xBD"
            "1");
}

TEST(JinjaJson, ReadsWhatPythonReads) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"b": 1, "a": [true, null, -0.5e1]})", R"({"b": 1, "a": [true, null, -5.0]})"},
      {R"("\ud83d\ude00\u00e9\n")", R"("😀é\n")"},
      {R"("\ud83d x")", "\"\xEF\xBF\xBD x\""},
      {R"({"a": 1, "b": 2, "a": 3})", R"({"a": 3, "b": 2})"},
      {" [ ] ", "[]"},
      {"-0", "0"},
  };
  for (const auto& [text, expected] : cases) {
    const Result<Value> value = ParseJson(text, "t");
    ASSERT_TRUE(value) << text << ToString(value.error());
    Budget budget{Limits()};
    EXPECT_EQ(DumpJson(*value, {}, &budget).value(), expected) << text;
  }
}

TEST(JinjaJson, RefusesWhatIsNotJson) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\":1,}", "01", "1.", "+1", "nan", "\"\n\"", "\"\\x\"", "\"\\u12g4\"",
        "[1] 2", "{a: 1}", "99999999999999999999", "1e999", "'a'"})
    EXPECT_FALSE(ParseJson(text, "t")) << text;
  EXPECT_FALSE(ParseJson(Repeated("[", 100'000), "t"));
  EXPECT_FALSE(ParseJson(Repeated("{\"a\":", 100'000), "t"));
  EXPECT_EQ(ParseJson("[1, x]", "tools").error().message,
            "tools: expected a value at byte 4 of the JSON text");
}

TEST(JinjaTemplate, SourcesAreBounded) {
  const auto row = [](std::string_view begin, size_t count, std::string_view end) {
    std::string out(begin);
    for (size_t i = 0; i < count; ++i) out += (i == 0 ? "a" : ",a") + std::to_string(i);
    return out.append(end);
  };
  for (const auto& [begin, end, most] :
       std::initializer_list<std::tuple<std::string_view, std::string_view, size_t>>{
           {"{{ dict(", ")}}", 63},
           {"{% for ", " in [] %}{% endfor %}", 16},
           {"{% macro m(", ") %}{% endmacro %}", 16}}) {
    EXPECT_TRUE(Template::Parse(row(begin, most, end))) << begin;
    EXPECT_FALSE(Template::Parse(row(begin, most + 2, end))) << begin;
  }
  constexpr size_t kMost = 4 << 20;
  EXPECT_TRUE(Template::Parse(std::string(kMost, 'x')));
  for (const std::string& source : {std::string(kMost + 1, 'x'), Repeated("{{1}}", 500'001)})
    EXPECT_EQ(EndsSoon(source).code, Code::kInvalidArgument) << source.substr(0, 10);
}

}  // namespace
}  // namespace latte::jinja::template_test
