#include "src/grammar/pattern/text_format.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

std::string DateRegex() {
  constexpr std::string_view kYear = "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})";
  constexpr std::string_view kLeapYear =
      "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)";
  return fmt::format(
      "({}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
      "02-(0[1-9]|1[0-9]|2[0-8]))|{}-02-29)",
      kYear, kLeapYear);
}

std::string TimeRegex() {
  return "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
         "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
}

std::string DurationRegex() {
  const std::string n = "[0-9]{1,6}";
  const std::string seconds = n + "S";
  const std::string minutes = fmt::format("{}M({})?", n, seconds);
  const std::string time = fmt::format("T({}H({})?|{}|{})", n, minutes, minutes, seconds);
  const std::string days = n + "D";
  const std::string months = fmt::format("{}M({})?", n, days);
  return fmt::format("P(({}Y({})?|{}|{})({})?|{}|{}W)", n, months, months, days, time, time, n);
}

constexpr std::string_view kLabel = "[A-Za-z0-9]([A-Za-z0-9-]{0,14}[A-Za-z0-9])?";

std::string HostRegex() { return fmt::format("{0}(\\.{0}){{0,2}}", kLabel); }

std::string EmailRegex() {
  return fmt::format("[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+(\\.[A-Za-z0-9_+-]+)*@{}", HostRegex());
}

std::string Ipv4Regex() {
  constexpr std::string_view kByte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return fmt::format("{0}(\\.{0}){{3}}", kByte);
}

std::string Ipv6Regex() {
  const std::string h = "[0-9A-Fa-f]{1,4}";
  std::string out = fmt::format("(({0}:){{7}}{0}|({0}:){{1,7}}:|:(:{0}){{1,7}}|::", h);
  for (int before = 1; before <= 6; ++before)
    out += fmt::format("|({0}:){{{1}}}(:{0}){{1,{2}}}", h, before, 7 - before);
  return out + ")";
}

struct UriRegexes {
  std::string segment = "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
  std::string no_colon = "([A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})";
  std::string more = fmt::format("(/{}*)*", segment);
  std::string authority = "//[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,4})?";
  std::string rooted = fmt::format("/({}+{})?", segment, more);
  std::string ends = fmt::format("(\\?({0}|[/?])*)?(#({0}|[/?])*)?", segment);
};

std::string UriRegex() {
  const UriRegexes p;
  return fmt::format("[A-Za-z][A-Za-z0-9+.-]*:({}{}|{}|{}+{}){}", p.authority, p.more, p.rooted,
                     p.segment, p.more, p.ends);
}

std::string UriReferenceRegex() {
  const UriRegexes p;
  return fmt::format("({}|({}{}|{}|{}+{})?{})", UriRegex(), p.authority, p.more, p.rooted,
                     p.no_colon, p.more, p.ends);
}

std::string UriTemplateRegex() {
  return "([A-Za-z0-9._~!$&()*+,;=:@/?#-]|%[0-9A-Fa-f]{2}|"
         "\\{[+#./;?&]?[A-Za-z0-9_]+(,[A-Za-z0-9_]+)*\\})*";
}

constexpr std::string_view kPointer = "(/([^~/]|~[01])*)*";

constexpr std::array<std::pair<std::string_view, std::string (*)()>, 18> kFormats = {{
    {"date", DateRegex},
    {"time", TimeRegex},
    {"date-time", [] { return DateRegex() + "T" + TimeRegex(); }},
    {"duration", DurationRegex},
    {"email", EmailRegex},
    {"idn-email", EmailRegex},
    {"hostname", HostRegex},
    {"idn-hostname", HostRegex},
    {"ipv4", Ipv4Regex},
    {"ipv6", Ipv6Regex},
    {"uuid", [] { return std::string("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"); }},
    {"uri", UriRegex},
    {"iri", UriRegex},
    {"uri-reference", UriReferenceRegex},
    {"iri-reference", UriReferenceRegex},
    {"uri-template", UriTemplateRegex},
    {"json-pointer", [] { return std::string(kPointer); }},
    {"relative-json-pointer", [] { return fmt::format("(0|[1-9][0-9]{{0,5}})(#|{})", kPointer); }},
}};

}  // namespace

std::string TextFormatRegex(std::string_view format) {
  for (const auto& [name, regex] : kFormats)
    if (name == format) return fmt::format("^({})$", regex());
  return {};
}

std::string TextFormatNames() {
  std::string out;
  for (const auto& [name, regex] : kFormats) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

}  // namespace latte
