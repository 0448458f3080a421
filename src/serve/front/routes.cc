#include "src/serve/front/routes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/serve/page/page.h"

namespace latte {
namespace {

struct Entry {
  std::string_view path;
  std::string_view method;
  Route route;
  bool is_public = false;
  bool needs_model = false;
  bool is_generation = false;
};

constexpr std::array kRoutes = {
    Entry{"/health", "GET", Route::kHealth, true},
    Entry{"/ready", "GET", Route::kReady, true},
    Entry{"/version", "GET", Route::kVersion},
    Entry{"/metrics", "GET", Route::kMetrics},
    Entry{"/v1/models", "GET", Route::kModels, false, true},
    Entry{"/props", "GET", Route::kProps, false, true},
    Entry{"/requests", "GET", Route::kRequests},
    Entry{"/tokenize", "POST", Route::kTokenize, false, true},
    Entry{"/detokenize", "POST", Route::kDetokenize, false, true},
    Entry{"/apply-template", "POST", Route::kApplyTemplate, false, true},
    Entry{"/v1/tokenize", "POST", Route::kTokenize, false, true},
    Entry{"/v1/detokenize", "POST", Route::kDetokenize, false, true},
    Entry{"/v1/completions", "POST", Route::kCompletions, false, true, true},
    Entry{"/v1/chat/completions", "POST", Route::kChat, false, true, true},
    Entry{"/v1/responses", "POST", Route::kResponses, false, true, true},
    Entry{"/v1/messages", "POST", Route::kMessages, false, true, true},
    Entry{"/v1/messages/count_tokens", "POST", Route::kCountTokens, false, true},
};

// Interfaces that other servers have under these paths, and the reason why Latte has not.
struct Missing {
  std::string_view prefix;
  std::string_view why;
};
constexpr std::array kMissing = {
    Missing{"/v1/responses/",
            "this server stores no responses; send the whole conversation to /v1/responses"},
    Missing{"/v1/conversations",
            "this server stores no conversations; send each whole to /v1/responses"},
    Missing{"/v1/messages/batches", "this server stores no batches"},
    Missing{"/v1/embeddings", "embeddings are not available: Latte generates text"},
    Missing{"/v1/audio", "audio is not available: Latte generates text"},
    Missing{"/v1/images", "images are not available: Latte generates text"},
    Missing{"/v1/moderations", "moderation is not available: Latte generates text"},
    Missing{"/v1/files", "this server stores no files; use `latte batch`"},
    Missing{"/v1/batches", "this server stores no batches; use `latte batch`"},
    Missing{"/v1/chat/completions/", "this server stores no completions"},
};

constexpr std::string_view kModelPrefix = "/v1/models/";

// Text that is no valid escape stays as it is: it names no model then.
std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

bool Accepts(std::string_view method, std::string_view of_route) {
  return method == of_route || (of_route == "GET" && method == "HEAD");
}

RouteError WrongMethod(const HttpRequest& request, std::string_view expected) {
  const std::string allow = expected == "GET" ? "GET, HEAD" : std::string(expected);
  return {405,
          fmt::format("{}: expected the method {}, found {}", request.path, allow, request.method),
          allow};
}

}  // namespace

ErrorForm ErrorFormOf(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorForm::kAnthropic : ErrorForm::kOpenAi;
}

RouteResult FindRoute(const HttpRequest& request) {
  if (FindPageFile(request.path) != nullptr) {
    if (!Accepts(request.method, "GET")) return {{}, WrongMethod(request, "GET")};
    return {RouteMatch{.route = Route::kPage, .is_public = true}, {}};
  }
  std::string_view path = request.path;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  for (const Entry& entry : kRoutes) {
    if (entry.path != path) continue;
    if (!Accepts(request.method, entry.method)) return {{}, WrongMethod(request, entry.method)};
    return {RouteMatch{.route = entry.route,
                       .is_public = entry.is_public,
                       .needs_model = entry.needs_model,
                       .has_body = entry.method == "POST",
                       .is_generation = entry.is_generation},
            {}};
  }
  if (path.starts_with(kModelPrefix)) {
    if (!Accepts(request.method, "GET")) return {{}, WrongMethod(request, "GET")};
    return {RouteMatch{.route = Route::kModel,
                       .rest = PercentDecode(path.substr(kModelPrefix.size())),
                       .needs_model = true},
            {}};
  }
  for (const Missing& missing : kMissing)
    if (request.path.starts_with(missing.prefix))
      return {{}, {404, fmt::format("{}: {}", request.path, missing.why)}};
  return {{}, {404, fmt::format("{}: no such path; docs/serving.md lists them", request.path)}};
}

}  // namespace latte
