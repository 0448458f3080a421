// The paths that the server answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/api/error_body.h"
#include "src/http/message.h"

namespace latte {

enum class Route {
  kPage,  // the files of the web page
  kHealth,
  kReady,
  kVersion,
  kMetrics,
  kModels,
  kModel,  // /v1/models/NAME
  kProps,
  kRequests,
  kTokenize,
  kDetokenize,
  kApplyTemplate,
  kCompletions,
  kChat,
  kResponses,
  kMessages,
  kCountTokens,
};

// A route, before the request's body arrives.
struct RouteMatch {
  Route route = Route::kHealth;
  std::string rest;          // of kModel: NAME, percent-decoded
  bool is_public = false;    // needs no API key
  bool needs_model = false;  // answers only once the model is loaded
  bool has_body = false;     // POST with JSON
  bool is_generation = false;
};

// Why a request has no route.
struct RouteError {
  int status = 404;
  std::string message;
  std::string allow = "";  // value of the Allow field, with 405
};

struct RouteResult {
  std::optional<RouteMatch> match;
  RouteError error;  // meaningful without a match
};

// The form of errors under a path, whether there is a route or not.
ErrorForm ErrorFormOf(std::string_view path);

// HEAD counts as GET; OPTIONS has no route here (CORS answers it before).
RouteResult FindRoute(const HttpRequest& request);

}  // namespace latte
