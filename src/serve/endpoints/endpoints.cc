#include "src/serve/endpoints/endpoints.h"

#include <utility>

#include <fmt/format.h>

#include "src/api/error_body.h"
#include "src/api/messages/request.h"
#include "src/base/strings.h"
#include "src/serve/web/web_page.h"

namespace latte {
namespace {

bool IsJson(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return EqualNoCase(type, "application/json");
}

std::string_view StateName(Endpoints::State state) {
  switch (state) {
    case Endpoints::State::kLoading:
      return "loading";
    case Endpoints::State::kReady:
      return "ready";
    case Endpoints::State::kDraining:
      return "draining";
    case Endpoints::State::kFailed:
      break;
  }
  return "failed";
}

}  // namespace

void Endpoints::SetReady(ServedModel served) {
  served_ = std::make_shared<const ServedModel>(std::move(served));
  if (state_ == State::kLoading) state_ = State::kReady;
}

void Endpoints::SetLoading(std::string why) {
  state_ = State::kLoading;
  why_loading_ = std::move(why);
}

std::string Endpoints::WhyNotReady() const {
  switch (state_) {
    case State::kLoading:
      return why_loading_ + "; try again later";
    case State::kDraining:
      return "the server is shutting down and takes no new requests";
    default:
      return "the engine has failed; the server ends";
  }
}

void Endpoints::AddCors(const HttpRequest& request, HttpFields* fields) const {
  const std::optional<std::string> origin = parts_.access->AllowedOrigin(request);
  if (!origin) return;
  fields->Add("Access-Control-Allow-Origin", *origin);
  fields->Add("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  fields->Add("Vary", "Origin");
}

// The question of a browser before it sends a request with JSON or a key.
HttpResponse Endpoints::Preflight(const HttpRequest& head) const {
  HttpResponse response{.status = 204, .content_type = ""};
  response.fields.Add("Access-Control-Allow-Methods", "GET, HEAD, POST");
  const std::string_view fields = head.fields.Find("Access-Control-Request-Headers");
  response.fields.Add("Access-Control-Allow-Headers",
                      fields.empty() ? "Authorization, Content-Type" : std::string(fields));
  response.fields.Add("Access-Control-Max-Age", "600");
  return response;
}

std::optional<HttpResponse> Endpoints::Refuse(const HttpRequest& head) const {
  const ErrorForm form = ErrorFormOf(head.path);
  if (const auto refusal = parts_.access->CheckSite(head))
    return RefusalResponse(refusal->status, refusal->message, form);
  if (head.method == "OPTIONS" && parts_.access->AllowedOrigin(head)) return Preflight(head);
  const RouteResult found = FindRoute(head);
  // A client without a key does not learn which paths there are.
  if (!found.match || !found.match->is_public)
    if (const auto refusal = parts_.access->CheckKey(head))
      return RefusalResponse(refusal->status, refusal->message, form);
  if (!found.match) {
    HttpResponse response = RefusalResponse(found.error.status, found.error.message, form);
    if (!found.error.allow.empty()) response.fields.Add("Allow", found.error.allow);
    return response;
  }
  if (found.match->has_body && !IsJson(head.fields.Find("Content-Type")))
    return RefusalResponse(
        415, "Content-Type: expected application/json; a body in another format is not read", form);
  if (found.match->needs_model && state_ != State::kReady)
    return RefusalResponse(503, WhyNotReady(), form);
  return std::nullopt;
}

std::optional<HttpResponse> Endpoints::CheckHead(const HttpRequest& head) {
  std::optional<HttpResponse> response = Refuse(head);
  if (!response) return std::nullopt;
  AddCors(head, &response->fields);
  // It is not listed: nothing would take it off the list, and it is not this client's to take.
  response->fields.Add("X-Request-Id", RequestIdFor(head.fields.Find("X-Request-Id")));
  if (response->status >= 400 && parts_.hooks.refused)
    parts_.hooks.refused(&head, response->status);
  return response;
}

HttpResponse Endpoints::BadRequest(const HttpRequest* head, int status, std::string_view message) {
  if (parts_.hooks.refused) parts_.hooks.refused(nullptr, status);
  return RefusalResponse(status, message, head ? ErrorFormOf(head->path) : ErrorForm::kOpenAi);
}

std::shared_ptr<Reply> Endpoints::MakeReply(const HttpRequest& request, TakenId id,
                                            std::shared_ptr<HttpExchange> exchange) const {
  HttpFields fields;
  fields.Add("X-Request-Id", *id);
  // Anthropic's clients know the id by this name.
  if (ErrorFormOf(request.path) == ErrorForm::kAnthropic) fields.Add("Request-Id", *id);
  AddCors(request, &fields);
  AnsweredRequest answered{std::move(id), request.method,       request.path,
                           request.peer,  IsByWebPage(request), {}};
  return Reply::Create(std::move(exchange), std::move(fields), ErrorFormOf(request.path),
                       [this, answered](const Reply::Outcome& outcome) mutable {
                         answered.outcome = outcome;
                         parts_.hooks.answered(answered);
                       });
}

void Endpoints::Handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  const RouteResult found = FindRoute(request);
  TakenId taken = parts_.hooks.request_id(request.fields.Find("X-Request-Id"));
  const std::string id = *taken;
  // The reply's end alone keeps the id taken.
  const std::shared_ptr<Reply> reply = MakeReply(request, std::move(taken), std::move(exchange));
  // The state may have changed while the body arrived.
  if (found.match->needs_model && state_ != State::kReady)
    return reply->Respond(RefusalResponse(503, WhyNotReady(), ErrorFormOf(request.path)));
  Dispatch(*found.match, id, std::move(request), reply);
}

HttpResponse Endpoints::Readiness() const {
  if (state_ != State::kReady) return RefusalResponse(503, WhyNotReady());
  return {.body = R"({"status":"ready"})"};
}

void Endpoints::Dispatch(const RouteMatch& match, const std::string& id, HttpRequest request,
                         const std::shared_ptr<Reply>& reply) {
  const ApiModel& model = *parts_.model;
  const int64_t most = parts_.max_answer_bytes;
  switch (match.route) {
    case Route::kPage:
      return reply->Respond(WebResponse(*FindWebFile(request.path), request));
    case Route::kHealth:
      return reply->Json(fmt::format(R"({{"status":"ok","state":"{}"}})", StateName(state_)));
    case Route::kReady:
      return reply->Respond(Readiness());
    case Route::kVersion:
      return reply->Json(VersionBody(version_));
    case Route::kMetrics:
      return reply->Respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                             .body = parts_.hooks.metrics()});
    case Route::kModels:
      return reply->Json(ModelsBody(*served_));
    case Route::kModel: {
      const Result<std::string> body = ModelBody(*served_, match.rest);
      return body ? reply->Json(*body) : reply->Fail(body.error());
    }
    case Route::kProps:
      return reply->Json(PropsBody(*served_, model));
    case Route::kRequests:
      return reply->Json(parts_.hooks.requests());
    case Route::kTokenize:
      return Work(reply, std::move(request), [served = served_, &model, most](auto body) {
        return TokenizeBody(body, *served, model, most);
      });
    case Route::kDetokenize:
      return Work(reply, std::move(request),
                  [&model, most](auto body) { return DetokenizeBody(body, model, most); });
    case Route::kApplyTemplate:
      return Work(reply, std::move(request),
                  [&model](auto body) { return ApplyTemplateBody(body, model); });
    case Route::kCompletions:
      return Generate(ApiEndpoint::kCompletions, id, std::move(request), reply);
    case Route::kChat:
      return Generate(ApiEndpoint::kChat, id, std::move(request), reply);
    case Route::kResponses:
      return Generate(ApiEndpoint::kResponses, id, std::move(request), reply);
    case Route::kMessages:
      return Generate(ApiEndpoint::kMessages, id, std::move(request), reply);
    case Route::kCountTokens:
      return Work(reply, std::move(request), [served = served_, &model](auto body) {
        return CountTokensBody(body, served->names, model);
      });
  }
}

void Endpoints::Generate(ApiEndpoint endpoint, const std::string& id, HttpRequest request,
                         const std::shared_ptr<Reply>& reply) {
  parts_.generations->Start({.endpoint = endpoint,
                             .id = id,
                             .client = request.peer,
                             .salt_secret = parts_.access->SaltSecret(request),
                             .body = std::move(request.body)},
                            reply);
}

void Endpoints::Work(const std::shared_ptr<Reply>& reply, HttpRequest request,
                     std::function<Result<std::string>(std::string_view body)> work) {
  const size_t bytes = request.body.size();
  if (static_cast<int64_t>(bytes) > parts_.max_tokenize_bytes)
    return reply->Respond(RefusalResponse(
        413,
        fmt::format("body: expected at most {} bytes for {}, which --max-tokenize-bytes sets, "
                    "found {}; send it in parts",
                    parts_.max_tokenize_bytes, request.path, bytes),
        ErrorFormOf(request.path)));
  auto result = std::make_shared<Result<std::string>>();
  const auto ticket = parts_.workers->Post({
      .bytes = bytes,
      .run = [result, body = std::move(request.body),
              work = std::move(work)] { *result = work(body); },
      .ended =
          [result, reply](const Status& status) {
            if (!status) return reply->Fail(status.error());
            if (!*result) return reply->Fail(result->error());
            reply->Json(std::move(**result));
          },
  });
  if (!ticket)
    return reply->Fail({Code::kExhausted, "too many requests wait to be parsed; try again later"});
  reply->OnGone([workers = parts_.workers, ticket] { workers->Drop(*ticket); });
}

}  // namespace latte
