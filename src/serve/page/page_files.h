// The files of the web page, as the build embeds them (cmake/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace latte {

struct PageFile {
  std::string_view name;  // in src/serve/page/files
  std::string_view content_type;
  std::string_view etag;  // of the contents, with its quotes
  std::string_view body;
};

std::span<const PageFile> PageFiles();

}  // namespace latte
