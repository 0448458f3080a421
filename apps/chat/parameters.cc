#include "apps/chat/parameters.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "apps/flags/values/field_value.h"
#include "src/base/fields/fields.h"
#include "src/base/fields/suggest.h"

namespace latte {
namespace {

// Calls visit(field, name, member) for every parameter of `params`. The name is its name in
// requests.
template <class Params, class Visit>
void ForEachParameter(Params& params, const Visit& visit) {
  const auto visit_all = [&](auto& values) {
    std::decay_t<decltype(values)>::VisitFields([&](const Field& field, auto member, auto...) {
      if constexpr (std::is_constructible_v<
                        FieldValue, std::add_pointer_t<std::decay_t<decltype(member(values))>>>)
        visit(field, std::string(JsonKey(field)), member(values));
    });
  };
  visit_all(params.sampling);
  visit_all(params.stop);
}

std::string Underscored(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

bool IsNamed(const Field& field, const std::string& key, const std::string& underscored) {
  return key == underscored || field.name == underscored;
}

std::string ValueText(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ", ") + value;
  return out.empty() ? "none" : out;
}
std::string ValueText(const LogitBias& values) {
  std::string out;
  for (const auto& [token, bias] : values)
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", token, bias);
  return out.empty() ? "none" : out;
}
template <class T>
std::string ValueText(const T& value) {
  return fmt::format("{}", value);
}

}  // namespace

std::string Unquoted(const std::string& typed) {
  const bool quoted = typed.size() >= 2 && typed.front() == '"' && typed.back() == '"' &&
                      typed.find('"', 1) == typed.size() - 1;
  return quoted ? typed.substr(1, typed.size() - 2) : typed;
}

std::vector<std::string> ParameterNames() {
  std::vector<std::string> names;
  const ChatParams params;
  ForEachParameter(
      params, [&](const Field&, const std::string& name, const auto&) { names.push_back(name); });
  return names;
}

Result<ChatParams> WithParameter(ChatParams params, std::string_view name,
                                 const std::string& text) {
  const std::string wanted = Underscored(name);
  const std::string value = Unquoted(text);
  bool found = false;
  Status read;
  ForEachParameter(params, [&](const Field& field, const std::string& key, auto& member) {
    if (!IsNamed(field, key, wanted)) return;
    found = true;
    params.chosen.emplace(field.name);
    if constexpr (requires { member.clear(); }) {  // a list
      if (value.empty()) return member.clear();
    }
    if (!ReadFieldText(field, value, &member))
      read = InvalidArgument(
          fmt::format("{}: expected {}, found '{}'", key, KindText(field, &member), text));
  });
  if (!found)
    return InvalidArgument(fmt::format("unknown parameter '{}'{}; /set lists all", name,
                                       DidYouMean(wanted, ParameterNames())));
  LATTE_RETURN_IF_ERROR(read);
  LATTE_RETURN_IF_ERROR(CheckParams(params));
  return params;
}

std::string ParametersText(const ChatParams& params, bool leaves_rest_to_server) {
  std::string out;
  ForEachParameter(params, [&](const Field& field, const std::string& name, const auto& value) {
    const bool known = !leaves_rest_to_server || params.chosen.contains(field.name);
    out += fmt::format("{:<20} {}\n", name, known ? ValueText(value) : "server's default");
  });
  return out;
}

std::string ParameterText(const ChatParams& params, std::string_view name) {
  std::string out;
  ForEachParameter(params, [&](const Field& field, const std::string& key, const auto& value) {
    if (IsNamed(field, key, Underscored(name))) out = ValueText(value);
  });
  return out;
}

}  // namespace latte
