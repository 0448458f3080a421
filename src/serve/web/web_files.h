// The files of the web page, as the build embeds them (cmake/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace latte {

struct WebFile {
  std::string_view name;  // below src/serve/web/files; libraries/NAME: a library of the build
  std::string_view content_type;
  std::string_view etag;  // of the contents, with its quotes
  std::string_view body;
};

std::span<const WebFile> WebFiles();

// Which libraries the page has, in words for `latte --version`: "Markdown by marked 4.2.3, …".
std::string_view WebLibraries();

}  // namespace latte
