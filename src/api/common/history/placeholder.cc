#include "src/api/common/history/placeholder.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace latte {
namespace {

struct Medium {
  std::string_view type;
  std::string_view name;
};
constexpr auto kMedia = std::to_array<Medium>({{"image_url", "image"},
                                               {"input_image", "image"},
                                               {"output_image", "image"},
                                               {"image", "image"},
                                               {"input_audio", "audio"},
                                               {"output_audio", "audio"},
                                               {"audio", "audio"},
                                               {"video_url", "video"},
                                               {"input_video", "video"},
                                               {"video", "video"},
                                               {"file", "file"},
                                               {"input_file", "file"},
                                               {"document", "document"},
                                               {"container_upload", "file"}});

// Members with text for a reader. Others are ids, states, or data in base64.
constexpr auto kReadable = std::to_array<std::string_view>(
    {"name",    "tool_name",  "server_label", "action",    "query",
     "queries", "pattern",    "input",        "arguments", "code",
     "command", "title",      "url",          "source",    "filename",
     "text",    "content",    "stdout",       "stderr",    "logs",
     "outputs", "output",     "results",      "tools",     "tool_references",
     "error",   "error_code", "message"});

void AddReadable(const Json& value, std::string* out) {
  if (value.is_string()) {
    const std::string text = *value.AsString();
    if (!text.empty() && !text.starts_with("data:")) *out += (out->empty() ? "" : "\n") + text;
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) AddReadable(value.At(i), out);
  } else if (value.is_object()) {
    for (const std::string_view key : kReadable) {
      const auto member = value.Find(key);
      if (!member) continue;
      const bool is_call = (key == "input" || key == "arguments") && member->is_object();
      if (is_call)
        *out += (out->empty() ? "" : "\n") + member->Text();
      else
        AddReadable(*member, out);
    }
  }
}

}  // namespace

bool IsMedia(std::string_view type) {
  return std::any_of(kMedia.begin(), kMedia.end(),
                     [&](const Medium& medium) { return medium.type == type; });
}

std::string ReadableText(const Json& part) {
  std::string out;
  AddReadable(part, &out);
  return out;
}

std::string Placeholder(std::string_view type, const Json& part) {
  for (const Medium& medium : kMedia)
    if (medium.type == type) return fmt::format("({} left out: the model reads text)", medium.name);
  const std::string text = ReadableText(part);
  return text.empty() ? fmt::format("({})", type) : fmt::format("({}: {})", type, text);
}

tl::unexpected<Error> NoSuchPart(const Json& part, std::string_view type, std::string_view where) {
  return Unsupported(fmt::format("{}: parts of type '{}' are not supported{}; the model reads text",
                                 part.path(), type, where));
}

}  // namespace latte
