// The web page at `/`: static files in the binary. They hold no secrets and load nothing from other
// hosts. The page gets its content from the API, with the user's key.
#pragma once

#include <string_view>

#include "src/http/message.h"
#include "src/serve/web/web_files.h"

namespace latte {

// The file under a path: "/" is index.html, "/page/NAME" any other file. Null: none.
const WebFile* FindWebFile(std::string_view path);

// 200 with the file, or 304 if the client has it (If-None-Match). The header fields forbid the page
// to load scripts, styles and data from elsewhere, to run inline scripts, to parse text as HTML,
// and to be framed.
HttpResponse WebResponse(const WebFile& file, const HttpRequest& request);

// Whether the page loads itself or looks at figures: a GET of its files, or of /props or /metrics
// with the field that its scripts add. A generation is a request like any other.
bool IsByWebPage(const HttpRequest& request);

}  // namespace latte
