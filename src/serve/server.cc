#include "src/serve/server.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <malloc.h>

#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"
#include "src/http/server.h"
#include "src/serve/endpoints/access.h"
#include "src/serve/endpoints/endpoints.h"
#include "src/serve/generations.h"
#include "src/serve/observe/observer.h"
#include "src/serve/restarts.h"
#include "src/serve/workers.h"
#include "src/text/unicode/visible.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

// Answers that are complete get so long to reach their clients.
constexpr auto kFlushTime = std::chrono::seconds(1);
constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kSecond = std::chrono::seconds(1);
// A step that takes longer is told in the log, once.
constexpr double kLongStepSeconds = 10;

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

HttpServerOptions HttpOptions(const ServeOptions& options) {
  HttpServerOptions out;
  out.host = options.host;
  out.port = options.port;
  out.unix_socket = options.uds;
  out.tls_certificate = options.ssl_certfile;
  out.tls_key = options.ssl_keyfile;
  out.max_connections = options.max_connections;
  out.max_head_bytes = options.max_head_bytes;
  out.max_body_bytes = options.max_body_bytes;
  out.max_bodies_bytes = options.max_bodies_bytes;
  out.max_unsent_bytes = options.max_unsent_bytes;
  out.max_answers_bytes = options.max_answers_bytes;
  out.head_timeout = Milliseconds(options.head_timeout);
  out.body_timeout = Milliseconds(options.body_timeout);
  out.idle_timeout = Milliseconds(options.idle_timeout);
  out.stall_timeout = Milliseconds(options.stall_timeout);
  return out;
}

// The server's life: loading, ready, draining, stopped.
class Server {
 public:
  Server(const ServeParts& parts, Access access, std::unique_ptr<Observer> observer)
      : parts_(parts),
        access_(std::move(access)),
        observer_(std::move(observer)),
        endpoints_(parts.version) {}

  Status Run();

 private:
  Status Open();
  EndpointHooks Hooks();
  ServerSnapshot Snapshot() const;
  void SayAddresses() const;
  void SayReady() const;
  void StartEngine(EngineLoader load);
  void OnLoaded();
  void OnFailed(const Error& error);
  void Restart(const Error& error);
  void OnSignal();
  void Tick();
  void WatchStep();
  void StopAfter(Clock::duration time);
  [[noreturn]] void Leave(int exit_code);
  Status End();

  const ServeParts& parts_;
  Access access_;
  std::unique_ptr<Observer> observer_;
  Endpoints endpoints_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<Workers> workers_;           // for requests that generate
  std::unique_ptr<Workers> counting_workers_;  // for those that only count or tokenise
  std::unique_ptr<Generations> generations_;
  Restarts restarts_;
  std::unique_ptr<EngineThread> engine_;
  std::optional<Error> failure_;  // why the server ends
  bool stuck_ = false;            // the engine's thread does not come back
  bool was_ready_ = false;
  bool told_long_step_ = false;
  Clock::time_point drain_until_;
  std::optional<Clock::time_point> stop_at_;
  Clock::time_point next_second_;
};

Status Server::Open() {
  LATTE_ASSIGN_OR_RETURN(http_, HttpServer::Listen(HttpOptions(parts_.options), &endpoints_));
  const auto most_waiting = static_cast<size_t>(parts_.options.max_parsing);
  workers_ = std::make_unique<Workers>(parts_.options.workers, most_waiting,
                                       [this] { http_->Post([this] { workers_->Deliver(); }); });
  counting_workers_ = std::make_unique<Workers>(
      1, most_waiting, [this] { http_->Post([this] { counting_workers_->Deliver(); }); });
  GenerationParts generation{.http = http_.get(),
                             .workers = workers_.get(),
                             .model = parts_.model,
                             .names = parts_.names,
                             .rules = {.max_n = parts_.options.max_n,
                                       .max_prompts = parts_.options.max_prompts,
                                       .max_logprobs = parts_.options.max_logprobs,
                                       .max_answer_bytes = parts_.options.max_answer_bytes,
                                       .min_priority = parts_.options.min_priority},
                             .observer = observer_.get()};
  generations_ = std::make_unique<Generations>(std::move(generation));
  endpoints_.Connect({.http = http_.get(),
                      .workers = counting_workers_.get(),
                      .generations = generations_.get(),
                      .access = &access_,
                      .model = parts_.model,
                      .max_tokenize_bytes = parts_.options.max_tokenize_bytes,
                      .max_answer_bytes = parts_.options.max_answer_bytes,
                      .hooks = Hooks()});
  http_->OnSignal({SIGINT, SIGTERM}, [this](int) { OnSignal(); });
  http_->Repeat(kTick, [this] { Tick(); });
  return {};
}

EndpointHooks Server::Hooks() {
  EndpointHooks hooks;
  hooks.metrics = [this] {
    observer_->metrics().Observe(Snapshot());
    return observer_->metrics().Text();
  };
  hooks.requests = [this] { return observer_->RequestsJson(); };
  hooks.request_id = [this](std::string_view given) { return observer_->ids().Take(given); };
  hooks.answered = [this](const AnsweredRequest& answered) { observer_->Answered(answered); };
  hooks.refused = [this](const HttpRequest* head, int status) {
    observer_->RefusedHead(head, status);
  };
  return hooks;
}

ServerSnapshot Server::Snapshot() const {
  ServerSnapshot out{.http = http_->stats(),
                     .ready = endpoints_.state() == Endpoints::State::kReady,
                     .restarts = restarts_.count(),
                     .log_dropped = observer_->log().dropped(),
                     .records = {.request_ids = observer_->ids().size(),
                                 .views = observer_->views(),
                                 .figures = observer_->views(),
                                 .generations = generations_->size(),
                                 .prompts = generations_->prompts(),
                                 .parsing = workers_->waiting()}};
  if (const Engine* engine = engine_->engine()) out.engine = restarts_.Total(engine->Stats());
  if (const auto age = engine_->StepAge()) out.step_seconds = Seconds(*age);
  return out;
}

void Server::SayAddresses() const {
  for (const std::string& url : http_->urls()) parts_.say("listening on " + url);
  if (IsLoopback(parts_.options.host))
    parts_.say("only this machine can reach it; --host 0.0.0.0 opens it to the network");
  else if (!parts_.options.host.empty() && !access_.has_keys())
    parts_.say(
        "warning: every machine that reaches this address may use the server; --api-key "
        "asks for a key");
}

// The address of a server on this machine that listens on all of its addresses.
std::string AddressHere(std::string url) {
  for (const auto& [all, here] : {std::pair("//0.0.0.0:", "//127.0.0.1:"), {"//[::]:", "//[::1]:"}})
    if (const size_t at = url.find(all); at != std::string::npos)
      return url.replace(at, std::string_view(all).size(), here);
  return url;
}

// A request to copy, line by line: `say` shows a line feed as \x0a.
void Server::SayReady() const {
  std::string url = AddressHere(http_->urls().front());
  std::string flags;
  const bool is_unix = url.starts_with("unix:");
  if (is_unix) {
    flags = fmt::format("--unix-socket '{}' ", url.substr(5));
    url = "http://localhost";
  }
  if (access_.has_keys()) flags += "-H 'Authorization: Bearer KEY' ";
  parts_.say("ready; try");
  parts_.say(fmt::format("  curl {}{}/v1/{}completions -H 'Content-Type: application/json' \\",
                         flags, url, parts_.model->chat ? "chat/" : ""));
  parts_.say(fmt::format(
      "    -d '{}'", parts_.model->chat ? R"({"messages": [{"role": "user", "content": "Hello"}]})"
                                        : R"({"prompt": "Once upon a time"})"));
  if (!is_unix) parts_.say("or open " + url + "/ in a browser");
}

void Server::StartEngine(EngineLoader load) {
  EngineThread::Hooks hooks;
  hooks.loaded = [this] { http_->Post([this] { OnLoaded(); }); };
  hooks.failed = [this](const Error& error) { http_->Post([this, error] { OnFailed(error); }); };
  hooks.events = [this](std::vector<TokenEvent> events) {
    http_->Post([this, events = std::move(events)] {
      const Status delivered = CatchExhaustion([&]() -> Status {
        generations_->Deliver(events);
        observer_->metrics().Observe(Snapshot());
        return {};
      });
      engine_->Delivered();  // in any case: the engine waits for it
      // Events were lost, and with them parts of answers.
      if (!delivered) generations_->FailAll(delivered.error());
    });
  };
  engine_ = std::make_unique<EngineThread>(std::move(load), std::move(hooks));
}

void Server::OnLoaded() {
  Engine* engine = engine_->engine();
  generations_->SetEngine(engine);
  endpoints_.SetReady({.names = parts_.names,
                       .created = UnixSeconds(),
                       .max_model_len = engine->options().max_tokens,
                       .mha_bytes_per_token = parts_.mha_bytes_per_token,
                       .engine = engine->options(),
                       .plan = parts_.plan,
                       .version = parts_.version});
  restarts_.Ready(Clock::now());
  const bool first = !std::exchange(was_ready_, true);
  if (first) observer_->metrics().SetEngine(engine->options(), engine->Stats().pages_total);
  if (endpoints_.state() != Endpoints::State::kReady) return;
  if (first) SayReady();
  observer_->log().Info("ready");  // last: a line of the log does not fall into the command to copy
}

void Server::OnFailed(const Error& error) {
  const bool draining = endpoints_.state() == Endpoints::State::kDraining;
  if (parts_.restarts && was_ready_ && !stuck_ && !draining) return Restart(error);
  failure_ = error;
  observer_->log().Error("the engine has failed", {{"error", error.message}});
  endpoints_.SetFailed();
  generations_->FailAll({Code::kUnavailable, "the engine has failed: " + error.message});
  StopAfter(kFlushTime);
}

void Server::Restart(const Error& error) {
  const Engine* const engine = engine_->engine();
  const auto delay = restarts_.Failed(Clock::now(), engine ? engine->Stats() : EngineStats());
  observer_->log().Error("the engine has failed and is started again",
                         {{"error", error.message}, {"in_ms", delay.count()}});
  endpoints_.SetLoading("the engine is started again, as it has failed: " + error.message);
  generations_->SetEngine(nullptr);
  generations_->FailAll({Code::kUnavailable, "the engine has failed: " + error.message});
  // What remains of the engine may take seconds to end, before another is loaded and not on this
  // thread: the loader is its only owner.
  StartEngine([this, delay, failed = std::shared_ptr<EngineThread>(std::move(engine_))]() mutable
              -> Result<std::unique_ptr<Engine>> {
    failed.reset();
    if (!restarts_.Wait(delay)) return Fail(Code::kCancelled, "the server is shutting down");
    return parts_.load();
  });
}

void Server::OnSignal() {
  if (endpoints_.state() == Endpoints::State::kDraining) {  // the second one
    if (stop_at_) return http_->Stop();
    generations_->FailAll({Code::kUnavailable, "the server is shutting down"});
    return StopAfter(kFlushTime);
  }
  const bool loading = endpoints_.state() == Endpoints::State::kLoading;
  observer_->log().Info("shutting down", {{"running", static_cast<int64_t>(generations_->size())}});
  endpoints_.SetDraining();
  drain_until_ = Clock::now() + Milliseconds(parts_.options.drain_timeout);
  if (loading || generations_->size() == 0) StopAfter(loading ? Clock::duration{} : kFlushTime);
}

void Server::StopAfter(Clock::duration time) {
  if (stop_at_) return;
  http_->StopAccepting();
  stop_at_ = Clock::now() + time;
}

void Server::Tick() {
  // What could not be told for lack of memory.
  workers_->Deliver();
  counting_workers_->Deliver();
  const Clock::time_point now = Clock::now();
  const bool flushed = http_->stats().unsent_bytes == 0;
  if (stop_at_ && (now >= *stop_at_ || flushed)) return http_->Stop();
  if (endpoints_.state() == Endpoints::State::kDraining && !stop_at_) {
    if (now >= drain_until_)
      generations_->FailAll({Code::kUnavailable, "the server is shutting down"});
    if (generations_->size() == 0) StopAfter(kFlushTime);
  }
  if (now < next_second_) return;
  next_second_ = now + kSecond;
  generations_->Tick();
  if (const Engine* engine = engine_->engine())
    observer_->Tick(restarts_.Total(engine->Stats()), http_->stats().connections);
  WatchStep();
}

void Server::WatchStep() {
  const auto age = engine_->StepAge();
  const double seconds = age ? Seconds(*age) : 0;
  const bool is_long = seconds > kLongStepSeconds;
  if (is_long && !told_long_step_)
    observer_->log().Warning("a step takes long", {{"seconds", seconds}});
  told_long_step_ = is_long;
  const double most = parts_.options.step_timeout;
  if (most == 0 || seconds < most || stuck_) return;
  stuck_ = true;
  OnFailed({Code::kUnavailable,
            fmt::format("a step takes longer than --step-timeout {} s and counts as stuck", most)});
}

// Ends the process while the engine's thread still runs: it cannot be joined soon, so nothing that
// it uses may be destroyed.
void Server::Leave(int exit_code) {
  observer_.reset();  // writes the last lines of the log
  std::_Exit(exit_code);
}

Status Server::End() {
  if (stuck_) {
    std::fputs(fmt::format("latte: {}\n", VisibleLine(ToString(*failure_))).c_str(), stderr);
    Leave(ExitCode(failure_->code));
  }
  // A large model may load for minutes. There are no prefixes yet that could be lost.
  const bool loading = !failure_ && engine_->engine() == nullptr;
  if (loading && !parts_.end_loading) Leave(0);
  if (loading) parts_.end_loading();
  restarts_.Stop();
  workers_.reset();  // before what their jobs refer to
  counting_workers_.reset();
  const Status saved = engine_->Stop();
  if (failure_) return tl::unexpected(*failure_);
  return saved;
}

Status Server::Run() {
  LATTE_RETURN_IF_ERROR(Open());
  SayAddresses();
  StartEngine(parts_.load);
  http_->Run();
  return End();
}

}  // namespace

Status Serve(const ServeParts& parts) {
  // Large blocks go back to the system when they are freed. By default, malloc keeps blocks of up
  // to 32 MiB for the thread that freed them, and a large request keeps that much from all others.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  LATTE_RETURN_IF_ERROR(parts.options.Validate());
  LATTE_ASSIGN_OR_RETURN(Access access, Access::Create(parts.options));
  LATTE_ASSIGN_OR_RETURN(auto observer,
                         Observer::Create(parts.options, parts.names.front(), parts.version));
  Server server(parts, std::move(access), std::move(observer));
  return server.Run();
}

}  // namespace latte
