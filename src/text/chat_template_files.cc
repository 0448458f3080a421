#include "src/text/chat_template_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/file.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr int64_t kMaxTemplateBytes = int64_t{256} << 20;
constexpr std::string_view kDefault = "default";
constexpr std::string_view kFolder = "additional_chat_templates";

struct NamedTemplate {
  std::string name;
  std::string text;
};

// "'rag', 'tool_use'"; long lists are cut.
std::string Names(const std::vector<NamedTemplate>& templates) {
  constexpr size_t kListed = 8;
  std::vector<std::string> names;
  for (const NamedTemplate& t : templates)
    names.push_back(names.size() == kListed ? "…" : fmt::format("'{}'", Printable(t.name, 60)));
  names.resize(std::min(names.size(), kListed + 1));
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<std::vector<NamedTemplate>> ReadNamed(const Json& value) {
  std::vector<NamedTemplate> out;
  if (value.is_object()) {
    LATTE_RETURN_IF_ERROR(
        value.ForEachMember([&](const std::string& name, const Json& member) -> Status {
          LATTE_ASSIGN_OR_RETURN(std::string text, member.AsString());
          out.push_back({name, std::move(text)});
          return {};
        }));
    return out;
  }
  for (size_t i = 0; i < value.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(std::string name, value.At(i).GetString("name"));
    LATTE_ASSIGN_OR_RETURN(std::string text, value.At(i).GetString("template"));
    out.push_back({std::move(name), std::move(text)});
  }
  return out;
}

// Returns the default template if there are several.
ChatTemplate Choose(const std::vector<NamedTemplate>& templates, const std::string& where) {
  ChatTemplate out;
  bool found = false;
  for (const NamedTemplate& t : templates) {
    if (t.name == kDefault) {
      out.text = t.text;
      found = true;
    } else {
      out.unused.push_back(fmt::format("'{}' of {}", Printable(t.name, 60), where));
    }
  }
  if (!found && !templates.empty())
    out.problem =
        Error{Code::kUnsupported,
              fmt::format("{}: expected a chat template named 'default', found {}; put the one to "
                          "use into chat_template.jinja next to the tokenizer's files",
                          where, Names(templates))};
  return out;
}

// Reads chat_template.json, which transformers saves with processors.
Result<ChatTemplate> LoadJson(const std::string& dir) {
  const std::string path = dir + "/chat_template.json";
  if (!Exists(path)) return ChatTemplate();
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTemplateBytes));
  const Result<Json> document = Json::Parse(text, path);
  if (document) return ReadChatTemplate(*document);
  ChatTemplate out;
  out.problem = document.error();
  return out;
}

// Reads additional_chat_templates/NAME.jinja.
Result<ChatTemplate> LoadFolder(const std::string& dir) {
  const std::string folder = fmt::format("{}/{}", dir, kFolder);
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == ".jinja") files.push_back(it->path().stem().string());
  std::sort(files.begin(), files.end());
  std::vector<NamedTemplate> templates;
  for (const std::string& name : files) {
    LATTE_ASSIGN_OR_RETURN(std::string text,
                           ReadFile(fmt::format("{}/{}.jinja", folder, name), kMaxTemplateBytes));
    templates.push_back({name, std::move(text)});
  }
  return Choose(templates, folder);
}

Result<ChatTemplate> LoadJinja(const std::string& dir) {
  const std::string path = dir + "/chat_template.jinja";
  ChatTemplate out;
  if (!Exists(path)) return out;
  LATTE_ASSIGN_OR_RETURN(out.text, ReadFile(path, kMaxTemplateBytes));
  return out;
}

// Adds `next`, which is found at a place that is searched after the place of `chosen`.
void Append(ChatTemplate next, std::string_view where, ChatTemplate* chosen) {
  if (chosen->text.empty()) {
    chosen->text = std::move(next.text);
    if (!chosen->text.empty()) chosen->problem.reset();
  } else if (!next.text.empty() && next.text != chosen->text) {
    chosen->unused.push_back(fmt::format("that of {}", where));
  }
  if (chosen->text.empty() && !chosen->problem) chosen->problem = std::move(next.problem);
  chosen->unused.insert(chosen->unused.end(), next.unused.begin(), next.unused.end());
}

}  // namespace

ChatTemplate ReadChatTemplate(const Json& document) {
  ChatTemplate out;
  const std::optional<Json> value = document.Find("chat_template");
  if (!value) return out;
  if (value->is_array() || value->is_object()) {
    const Result<std::vector<NamedTemplate>> named = ReadNamed(*value);
    if (named) return Choose(*named, value->path());
    out.problem = named.error();
    return out;
  }
  Result<std::string> text = value->AsString();
  if (text)
    out.text = *std::move(text);
  else
    out.problem = std::move(text).error();
  return out;
}

Result<ChatTemplate> LoadChatTemplate(const std::string& dir, ChatTemplate configured) {
  LATTE_ASSIGN_OR_RETURN(ChatTemplate chosen, LoadJinja(dir));
  Append(std::move(configured), "tokenizer_config.json", &chosen);
  LATTE_ASSIGN_OR_RETURN(ChatTemplate json, LoadJson(dir));
  Append(std::move(json), "chat_template.json", &chosen);
  LATTE_ASSIGN_OR_RETURN(ChatTemplate folder, LoadFolder(dir));
  Append(std::move(folder), kFolder, &chosen);
  return chosen;
}

}  // namespace latte
