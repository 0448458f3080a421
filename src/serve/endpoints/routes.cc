#include "src/serve/endpoints/routes.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/api/error_body.h"
#include "src/base/fields/suggest.h"
#include "src/base/strings.h"
#include "src/serve/web/web_page.h"

namespace latte {
namespace {

// A path below /v1 is served without that, too: clients differ in whether their base URL contains
// it.
struct Entry {
  std::string_view path;  // with a slash at its end: and a name
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
    Entry{"/v1/models/", "GET", Route::kModel, false, true},
    Entry{"/props", "GET", Route::kProps, false, true},
    Entry{"/requests", "GET", Route::kRequests},
    Entry{"/apply-template", "POST", Route::kApplyTemplate, false, true},
    Entry{"/v1/tokenize", "POST", Route::kTokenize, false, true},
    Entry{"/v1/detokenize", "POST", Route::kDetokenize, false, true},
    Entry{"/v1/completions", "POST", Route::kCompletions, false, true, true},
    Entry{"/v1/chat/completions", "POST", Route::kChat, false, true, true},
    Entry{"/v1/responses", "POST", Route::kResponses, false, true, true},
    Entry{"/v1/messages", "POST", Route::kMessages, false, true, true},
    Entry{"/v1/messages/count_tokens", "POST", Route::kCountTokens, false, true},
};

constexpr std::string_view kV1 = "/v1";

// Longer paths get no hint, which takes longer than the square of the length.
constexpr size_t kLongestWithHint = 256;

// Interfaces that other servers have under these paths, with or without /v1, and the reason why
// Latte has not.
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
    Missing{"/v1/rerank", "ranking is not available: Latte generates text"},
    Missing{"/v1/score", "scores are not available; see prompt_logprobs of /v1/completions"},
    Missing{"/api/", "Ollama's API is not available; use /v1/chat/completions"},
};

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

const Entry* FindEntry(std::string_view path) {
  for (const Entry& entry : kRoutes) {
    const bool named = path.size() > entry.path.size() && path.starts_with(entry.path);
    if (entry.path.ends_with('/') ? named : path == entry.path) return &entry;
  }
  return nullptr;
}

// The path of the route that serves `path`: "/chat/completions" → "/v1/chat/completions".
std::optional<std::string> ServedPath(std::string_view path) {
  if (FindEntry(path) != nullptr) return std::string(path);
  std::string below = fmt::format("{}{}", kV1, path);
  return FindEntry(below) != nullptr ? std::optional(std::move(below)) : std::nullopt;
}

// The path that was meant, where a base URL and a path were joined to something longer:
// "//v1/models", "/v1/v1/models", "/v1/chat/completions/v1/models" → "/v1/models".
std::optional<std::string> MeantPath(std::string_view path) {
  if (path.size() > kLongestWithHint) return std::nullopt;
  std::string whole;  // without empty segments
  for (const char c : path)
    if (c != '/' || !whole.ends_with('/')) whole += c;
  if (whole.ends_with('/')) whole.pop_back();
  for (size_t at = 0; at < whole.size(); at = std::min(whole.find('/', at + 1), whole.size()))
    if (auto served = ServedPath(std::string_view(whole).substr(at))) return served;
  return std::nullopt;
}

// Why there is nothing under `path`.
std::string NoRoute(const std::string& path) {
  if (const auto meant = MeantPath(path))
    return fmt::format("{}: no such path; did you mean {}? Check the base URL of the client", path,
                       *meant);
  const std::string below = fmt::format("{}{}", kV1, path);
  for (const Missing& missing : kMissing)
    if (path.starts_with(missing.prefix) || below.starts_with(missing.prefix))
      return fmt::format("{}: {}", path, missing.why);
  std::vector<std::string> known;
  for (const Entry& entry : kRoutes) known.emplace_back(entry.path);
  const std::string hint = path.size() > kLongestWithHint ? "" : DidYouMean(path, known);
  return fmt::format("{}: no such path{}", path,
                     hint.empty() ? "; docs/serving.md lists them" : hint);
}

RouteError WrongMethod(const HttpRequest& request, std::string_view expected) {
  const std::string allow = expected == "GET" ? "GET, HEAD" : std::string(expected);
  return {405,
          fmt::format("{}: expected the method {}, found {}", request.path, allow, request.method),
          allow};
}

}  // namespace

ErrorForm ErrorFormOf(std::string_view path) {
  constexpr std::string_view kMessages = "/v1/messages";
  const auto is_below = [&](std::string_view whole) { return whole.starts_with(kMessages); };
  const bool anthropic = is_below(path) || path.starts_with(kMessages.substr(kV1.size())) ||
                         is_below(MeantPath(path).value_or(""));
  return anthropic ? ErrorForm::kAnthropic : ErrorForm::kOpenAi;
}

RouteResult FindRoute(const HttpRequest& request) {
  if (FindWebFile(request.path) != nullptr) {
    if (!Accepts(request.method, "GET")) return {{}, WrongMethod(request, "GET")};
    return {RouteMatch{.route = Route::kPage, .is_public = true}, {}};
  }
  std::string_view path = request.path;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::optional<std::string> served = ServedPath(path);
  if (!served) return {{}, {404, NoRoute(request.path)}};
  const Entry& entry = *FindEntry(*served);
  if (!Accepts(request.method, entry.method)) return {{}, WrongMethod(request, entry.method)};
  RouteMatch match{.route = entry.route,
                   .is_public = entry.is_public,
                   .needs_model = entry.needs_model,
                   .has_body = entry.method == "POST",
                   .is_generation = entry.is_generation};
  if (entry.route == Route::kModel)
    match.rest = PercentDecode(std::string_view(*served).substr(entry.path.size()));
  return {std::move(match), {}};
}

}  // namespace latte
