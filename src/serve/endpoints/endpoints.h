// Answers requests: checks the access to each, and passes it to the code of its endpoint. I/O
// thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/api/common/request.h"
#include "src/http/server.h"
#include "src/serve/endpoints/access.h"
#include "src/serve/endpoints/reply.h"
#include "src/serve/endpoints/routes.h"
#include "src/serve/generations.h"
#include "src/serve/info.h"
#include "src/serve/observe/request_id.h"
#include "src/serve/workers.h"

namespace latte {

// One answered request, for the log. Texts of clients are as they came.
struct AnsweredRequest {
  TakenId id;
  std::string method;
  std::string path;
  std::string peer;
  bool by_web_page = false;  // the web page loads its files or looks at figures
  Reply::Outcome outcome;
};

struct EndpointHooks {
  std::function<std::string()> metrics;   // body of GET /metrics
  std::function<std::string()> requests;  // body of GET /requests
  // A fresh id, or the one that the client sent, for a request that is let in.
  std::function<TakenId(std::string_view given)> request_id;
  std::function<void(const AnsweredRequest&)> answered;
  // Before a request had an id; `head`: null if it is not even proper HTTP.
  std::function<void(const HttpRequest* head, int status)> refused;
};

// The objects that they use. All must outlive it.
struct EndpointParts {
  HttpServer* http = nullptr;
  Workers* workers = nullptr;  // for requests that generate nothing
  Generations* generations = nullptr;
  const Access* access = nullptr;
  const ApiModel* model = nullptr;
  int64_t max_tokenize_bytes = 0;  // ServeOptions
  int64_t max_answer_bytes = 0;
  EndpointHooks hooks;
};

class Endpoints final : public HttpHandler {
 public:
  enum class State { kLoading, kReady, kDraining, kFailed };

  explicit Endpoints(std::string version) : version_(std::move(version)) {}
  // Before the server runs.
  void Connect(EndpointParts parts) { parts_ = std::move(parts); }

  State state() const { return state_; }
  void SetReady(ServedModel served);
  // Requests that need the model get 503 from now on, with the reason in words.
  void SetLoading(std::string why);
  void SetDraining() { state_ = State::kDraining; }
  void SetFailed() { state_ = State::kFailed; }

  std::optional<HttpResponse> CheckHead(const HttpRequest& head) override;
  void Handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) override;
  HttpResponse BadRequest(const HttpRequest* head, int status, std::string_view message) override;

 private:
  std::optional<HttpResponse> Refuse(const HttpRequest& head) const;
  HttpResponse Preflight(const HttpRequest& head) const;
  void AddCors(const HttpRequest& request, HttpFields* fields) const;
  std::shared_ptr<Reply> MakeReply(const HttpRequest& request, TakenId id,
                                   std::shared_ptr<HttpExchange> exchange) const;
  void Dispatch(const RouteMatch& match, const std::string& id, HttpRequest request,
                const std::shared_ptr<Reply>& reply);
  void Generate(ApiEndpoint endpoint, const std::string& id, HttpRequest request,
                const std::shared_ptr<Reply>& reply);
  HttpResponse Readiness() const;
  std::string WhyNotReady() const;
  // Runs `work` with the request's body on a worker thread and answers with what it returns.
  void Work(const std::shared_ptr<Reply>& reply, HttpRequest request,
            std::function<Result<std::string>(std::string_view body)> work);

  std::string version_;
  EndpointParts parts_;
  std::shared_ptr<const ServedModel> served_;  // once loaded; workers keep it too
  State state_ = State::kLoading;
  std::string why_loading_ = "the model is being loaded";
};

}  // namespace latte
