#include "src/serve/web/web_page.h"

#include <string>

namespace latte {
namespace {

constexpr std::string_view kIndex = "index.html";
constexpr std::string_view kFolder = "/page/";

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

// If-None-Match is "*" or a list of tags, each in quotes.
bool ClientHas(const WebFile& file, const HttpRequest& request) {
  const std::string_view tags = request.fields.Find("If-None-Match");
  return tags == "*" || tags.find(file.etag) != std::string_view::npos;
}

}  // namespace

const WebFile* FindWebFile(std::string_view path) {
  std::string_view name;
  if (path == "/") {
    name = kIndex;
  } else if (path.starts_with(kFolder) && path.substr(kFolder.size()) != kIndex) {
    name = path.substr(kFolder.size());
  }
  for (const WebFile& file : WebFiles())
    if (file.name == name) return &file;
  return nullptr;
}

HttpResponse WebResponse(const WebFile& file, const HttpRequest& request) {
  HttpResponse response;
  if (ClientHas(file, request)) {
    response.status = 304;
    response.content_type = "";
  } else {
    response.content_type = file.content_type;
    response.body = file.body;
  }
  HttpFields& fields = response.fields;
  fields.Add("ETag", std::string(file.etag));
  fields.Add("Cache-Control", "no-cache");  // ask every time: the next version of Latte has others
  fields.Add("Content-Security-Policy", std::string(kPolicy));
  fields.Add("Cross-Origin-Opener-Policy", "same-origin");
  fields.Add("Cross-Origin-Resource-Policy", "same-origin");
  fields.Add("Referrer-Policy", "no-referrer");
  return response;
}

bool IsByWebPage(const HttpRequest& request) {
  if (request.method != "GET") return false;
  if (FindWebFile(request.path) != nullptr) return true;
  const bool has_figures = request.path == "/props" || request.path == "/metrics";
  return has_figures && !request.fields.Find("X-Latte-Page").empty();
}

}  // namespace latte
