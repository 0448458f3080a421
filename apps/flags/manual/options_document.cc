#include "apps/flags/manual/options_document.h"

#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "latte/latte.h"
#include "latte/options.h"
#include "latte/request.h"

#include "apps/flags/aliases/aliases.h"
#include "apps/flags/manual/environment.h"
#include "src/base/fields/fields.h"
#include "src/serve/options.h"

namespace latte {
namespace {

constexpr std::string_view kOptionsHead = R"(# Options

<!-- `latte inspect --options` writes this page. -->

This page lists the meaning of each flag, environment variable and struct member. Commands that run an engine take the flags
of the engine; `latte serve` also takes flags of the server, `latte run` and `latte chat` also take flags of requests.
`--help` of a command lists its flags.

A flag overrides its variable, a variable overrides the file of options, and that overrides the default. A command reads
the variables of its own flags; an empty variable counts as unset. A bad value ends the command with exit code 2 and a
message that names the flag, the variable, or the file and line. A note reports an unknown variable with a
name similar to one of Latte's. Bytes may have a suffix: `512M`, `16G`. For switches without a value, variables are `1` or `0`.

Members have the same name in C++ and in C. The last column gives the smallest `size` of a C struct that has the member.

## A file of options

`latte serve` and `latte batch` read a TOML file with `--config FILE`. Its keys are the names or the flags of the engine's
and the server's options below, with `_` or `-`, at the top of the file or in the tables `[engine]` and `[serve]`; one
file may hold both, for both commands. Unknown keys, wrong types and values out of range are errors.

```toml
model = "path/to/checkpoint"

[engine]
cache_bytes = "16G"          # or a number of bytes
context = 32768
prefix_cache = true          # switches: true or false, by the meaning of the name

[serve]
port = 8000
served_model_name = ["chat", "default"]
```

`latte serve --print-config` prints all options in this form, each with the flag, variable or line that sets it.
`latte serve --dry-run` prints the memory plan without loading the weights (exit code 2 if it does not fit).
)";

std::string VariableRows() {
  std::string out = "\n## Other environment variables\n\n| Variable | Meaning |\n|---|---|\n";
  for (const EnvironmentVariable& variable : EnvironmentVariables())
    out += fmt::format("| `{}` | {} |\n", variable.name, variable.meaning);
  return out;
}

std::string Code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", text); }

std::string DefaultText(bool value) { return value ? "on" : "off"; }
std::string DefaultText(double value) { return fmt::format("{}", value); }
std::string DefaultText(const std::string& value) { return Code(value); }
template <class Integer>
requires std::is_integral_v<Integer> std::string DefaultText(Integer value) {
  return fmt::format("{}", value);
}
template <class T>
std::string DefaultText(const std::vector<T>&) {
  return "none";
}

// The names of a field in its JSON request, where they differ from the member's.
std::string NameText(const Field& field, bool requests) {
  const std::string_view key = JsonKey(field);
  if (!requests || key == field.name) return Code(field.name);
  return Code(field.name) + (key.empty() ? "" : fmt::format(", JSON {}", Code(key)));
}

// Bytes of a C struct that has the member, which ends there.
template <class C, class Member>
size_t SizeWith(const C& c, const Member& member) {
  return static_cast<size_t>(reinterpret_cast<const char*>(&member + 1) -
                             reinterpret_cast<const char*>(&c));
}

// The default of a field, in words.
template <class Value>
std::string Fallback(const Field& field, const Value& value) {
  if (!field.fallback.empty()) return std::string(field.fallback);
  if constexpr (std::is_same_v<Value, bool>)
    if (!field.choices.empty()) return Code(Choices(field)[value ? 0 : 1]);
  return DefaultText(value);
}

// The rows of the server's options, which C does not have.
std::string ServeRows() {
  constexpr std::string_view kColumns =
      "| Name | Flag | Variable | Default | Values | Meaning |\n|---|---|---|---|---|---|\n";
  std::string out;
  const ServeOptions defaults;
  ServeOptions::VisitFields([&](const Field& field, auto member) {
    if (!field.group.empty()) out += fmt::format("\n### {}\n\n{}", field.group, kColumns);
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", Code(field.name),
                       Code(FlagNames(field)), Code(Variable(field)),
                       Fallback(field, member(defaults)), ValuesText(field), field.help);
  });
  return out;
}

// The rows of one struct and its counterpart in C.
template <class T, class C>
class Rows {
 public:
  // Headings stand before the groups of fields that have one.
  static std::string Make(bool requests) {
    Rows rows{requests};
    T::VisitFields(rows);
    return rows.text_;
  }

  template <class Member>
  void operator()(const Field& field, Member member) {
    Add(field, member, fmt::to_string(SizeWith(c_, member(c_))));
  }
  template <class Member>
  void operator()(const Field& field, Member member, OnlyInCpp) {
    Add(field, member, "not in C");
  }
  template <class Member, class Array>
  void operator()(const Field& field, Member member, Array array) {
    const auto members = array(c_);
    Add(field, member,
        fmt::format("{}, as {}", SizeWith(c_, members.count), Code(members.data_name)));
  }

 private:
  explicit Rows(bool requests) : requests_(requests) {
    if (requests_) text_ += kColumns;
  }

  template <class Member>
  void Add(const Field& field, Member member, const std::string& in_c) {
    if (!field.group.empty() && !requests_)
      text_ += fmt::format("\n### {}\n\n{}", field.group, kColumns);
    const std::string fallback = Fallback(field, member(defaults_));
    const std::string flag = field.flag == "MODEL" ? "MODEL" : FlagNames(field);
    text_ += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", NameText(field, requests_),
                         Code(flag), Code(Variable(field)), fallback, ValuesText(field), field.help,
                         in_c);
  }

  static constexpr std::string_view kColumns =
      "| Name | Flag | Variable | Default | Values | Meaning | C, from size |\n"
      "|---|---|---|---|---|---|---|\n";

  bool requests_ = false;
  T defaults_ = {};
  C c_ = {};
  std::string text_;
};

}  // namespace

std::string ValuesText(const Field& field) {
  std::string text = Expected(field);
  constexpr std::string_view kInterval = "a number in ";
  if (text.starts_with(kInterval)) text = text.substr(kInterval.size());
  if (field.range.power_of_two) text += ", power of two";
  if (field.most > 0)
    text = (text.empty() ? "" : text + "; ") + fmt::format("at most {}", field.most);
  return text;
}

std::string OptionsDocument() {
  std::string out(kOptionsHead);
  out += "\n## The engine: `latte::EngineOptions`, `latte_engine_options`\n";
  out += Rows<EngineOptions, latte_engine_options>::Make(false);
  out += "\n## The server: `latte serve`\n";
  out += ServeRows();
  out +=
      "\n## Requests\n\nIn C all are members of `latte_request`. A name is also the key of "
      "JSON requests ([api_fields.md](api_fields.md)).\n";
  out += "\n### How tokens are sampled: `latte::SamplingParams`\n\n";
  out += Rows<SamplingParams, latte_request>::Make(true);
  out += "\n### When an answer ends: `latte::StopConditions`\n\n";
  out += Rows<StopConditions, latte_request>::Make(true);
  out += "\n### The content of answers: `latte::Request`\n\n";
  out += Rows<Request, latte_request>::Make(true);
  out += VariableRows();
  out += AliasesDocument();
  return out;
}

}  // namespace latte
