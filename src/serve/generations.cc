#include "src/serve/generations.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "src/api/request.h"
#include "src/base/json_out.h"
#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"
#include "src/serve/prefix_salt.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

// A stream says that it lives after so long without a token.
constexpr auto kQuietStream = std::chrono::seconds(10);

}  // namespace

struct Generations::Generation {
  std::string id;
  std::string salt_secret;
  std::shared_ptr<void> listed;  // by the observer, until the end
  std::shared_ptr<Reply> reply;
  std::optional<Workers::Ticket> parsing;
  std::optional<ApiRunning> running;  // once parsed
  std::vector<RequestId> requests;    // of the engine
  std::vector<uint64_t> places;       // keys of places_
  std::string unwritten;              // events of the step that is being delivered
  bool touched = false;               // by that step
  bool over = false;
  Clock::time_point last_write = Clock::now();
};

Generations::~Generations() = default;

void Generations::SetEngine(Engine* engine) {
  engine_ = engine;
  if (engine != nullptr) parts_.rules.max_model_len = engine->options().max_tokens;
}

void Generations::Start(ArrivedRequest arrived, const std::shared_ptr<Reply>& reply) {
  auto g = std::make_shared<Generation>();
  g->id = arrived.id;
  g->salt_secret = std::move(arrived.salt_secret);
  g->reply = reply;
  // In this order: once it is running, the end of its client ends it, even if what follows throws.
  reply->OnGone([this, weak = std::weak_ptr(g)] {
    if (const auto left = weak.lock()) Cancel(left);
  });
  g->listed = parts_.observer->Began(arrived.id, arrived.endpoint, arrived.client);
  running_.insert(g);
  auto request = std::make_shared<Result<ApiRequest>>();
  const CountedBody& body = arrived.body;
  g->parsing = parts_.workers->Post({
      .bytes = body.size(),
      .run = [request, endpoint = arrived.endpoint, body, model = parts_.model,
              rules = parts_.rules] { *request = ParseApiBody(endpoint, body, *model, rules); },
      // The body counts until the engine, which has limits of its own, has the prompts.
      .ended =
          [this, request, g, body](Status status) {
            g->parsing.reset();
            if (!status) return End(g, std::move(status).error());
            OnParsed(g, std::move(*request));
          },
  });
  if (!g->parsing)
    End(g, Error{Code::kExhausted, "too many requests wait to be parsed; try again later"});
}

Status Generations::Check(const ApiRequest& request) const {
  const std::string& name = request.reply.model;
  if (std::find(parts_.names.begin(), parts_.names.end(), name) != parts_.names.end()) return {};
  return NotFound(
      fmt::format("model: expected '{}', found '{}'", fmt::join(parts_.names, "' or '"), name));
}

void Generations::OnParsed(const std::shared_ptr<Generation>& g, Result<ApiRequest> request) {
  if (g->over) return;
  const Status begun = CatchExhaustion([&] { return Begin(g, std::move(request)); });
  if (!begun) End(g, begun.error());
}

Status Generations::Begin(const std::shared_ptr<Generation>& g, Result<ApiRequest> request) {
  if (!request) return tl::unexpected(std::move(request).error());
  if (engine_ == nullptr) return Fail(Code::kUnavailable, "the model is not loaded");
  LATTE_RETURN_IF_ERROR(Check(*request));
  parts_.observer->Parsed(g->id, *request);
  g->running.emplace(std::move(*request), parts_.model, g->id, UnixSeconds());
  return Submit(g);
}

Status Generations::Submit(const std::shared_ptr<Generation>& g) {
  // The entries below have room then, so that the end finds all of them.
  g->places.reserve(g->running->prompts());
  g->requests.reserve(g->running->prompts());
  for (size_t i = 0; i < g->running->prompts(); ++i) {
    Request request = g->running->TakePrompt(i);
    request.cache_salt = PrefixSalt(g->salt_secret, std::move(request.cache_salt));
    request.user_data = next_++;
    g->places.push_back(request.user_data);
    places_.emplace(request.user_data, Place{g, i});
    LATTE_ASSIGN_OR_RETURN(const RequestId id, engine_->Submit(std::move(request)));
    g->requests.push_back(id);
  }
  return {};
}

void Generations::Deliver(std::span<const TokenEvent> events) {
  std::vector<std::shared_ptr<Generation>> touched;
  for (const TokenEvent& event : events) {
    const auto found = places_.find(event.user_data);
    if (found == places_.end()) continue;  // the client left
    const std::shared_ptr<Generation>& g = found->second.generation;
    if (g->running->done()) continue;
    const Status added = CatchExhaustion([&]() -> Status {
      parts_.observer->Event(g->id, event);
      g->running->Add(found->second.prompt, event, &g->unwritten);
      if (!std::exchange(g->touched, true)) touched.push_back(g);
      return {};
    });
    if (!added) End(std::shared_ptr(g), added.error());  // End removes `found`
  }
  for (const std::shared_ptr<Generation>& g : touched) {
    g->touched = false;
    const Status advanced = CatchExhaustion([&]() -> Status {
      Advance(g);
      return {};
    });
    if (!advanced) End(g, advanced.error());
  }
}

// Writes what a step has added to an answer.
void Generations::Advance(const std::shared_ptr<Generation>& g) {
  if (g->over) return;
  const std::optional<Error>& error = g->running->error();
  if (error && !g->reply->begun()) return End(g, error);
  if (g->running->reply().stream) Write(*g);
  // Writing may find that the client has left.
  if (!g->over && g->running->done()) End(g, error);
}

void Generations::Write(Generation& g) {
  if (g.unwritten.empty()) return;
  if (!g.reply->begun()) g.reply->BeginEvents();
  g.reply->Write(g.unwritten);
  g.unwritten.clear();
  g.last_write = Clock::now();
}

// Completes the answer. Errors: kExhausted; nothing of it has been sent then.
Status Generations::Answer(Generation& g, const std::optional<Error>& error) {
  if (error && !g.reply->begun()) {
    g.reply->Fail(*error, RetryAfter());
  } else if (!g.running->reply().stream) {
    LATTE_ASSIGN_OR_RETURN(std::string body, CatchExhaustion([&]() -> Result<std::string> {
                             return g.running->Body();
                           }));
    g.reply->Json(std::move(body));
  } else {
    // ApiRunning has written the event of an error that it knows.
    if (error && !g.running->done()) {
      std::string last;
      g.running->Fail(*error, &last);
      g.reply->Write(last);
    }
    g.reply->End();
  }
  return {};
}

void Generations::End(const std::shared_ptr<Generation>& g, std::optional<Error> error) {
  if (g->over) return;
  const std::shared_ptr<void> listed = std::move(g->listed);  // whatever throws
  Forget(*g);
  const bool parsed = g->running.has_value();
  const Status answered = CatchExhaustion([&]() -> Status {
    const Status status = Answer(*g, error);
    if (status) return {};
    error = status.error();
    return Answer(*g, error);
  });
  if (!answered) g->reply.reset();  // ends the connection
  running_.erase(g);
  if (parsed) {
    parts_.observer->Ended(g->id, g->running->usage(), error);
  } else {
    parts_.observer->Refused(g->id, *error);
  }
}

void Generations::Cancel(const std::shared_ptr<Generation>& g) {
  if (g->over) return;
  const std::shared_ptr<void> listed = std::move(g->listed);
  running_.erase(g);
  Forget(*g);
  const Error left{Code::kCancelled, "the client left"};
  if (g->running) {
    parts_.observer->Ended(g->id, g->running->usage(), left);
  } else {
    parts_.observer->Refused(g->id, left);
  }
}

// Frees what the engine still does for it.
void Generations::Forget(Generation& g) {
  g.over = true;
  if (g.parsing) parts_.workers->Drop(*g.parsing);
  for (const uint64_t place : g.places) places_.erase(place);
  const bool complete = g.running && g.running->done() && !g.running->error();
  if (engine_ == nullptr || complete) return;
  for (const RequestId request : g.requests) engine_->Cancel(request);
}

void Generations::FailAll(const Error& error) {
  while (!running_.empty()) End(std::shared_ptr(*running_.begin()), error);
}

void Generations::Tick() {
  const Clock::time_point now = Clock::now();
  const std::vector<std::shared_ptr<Generation>> all(running_.begin(), running_.end());
  for (const std::shared_ptr<Generation>& g : all) {
    if (!g->running || !g->running->reply().stream || now - g->last_write < kQuietStream) continue;
    g->running->KeepAlive(&g->unwritten);
    Write(*g);
  }
}

int Generations::RetryAfter() const {
  // One second for every 16 requests that are before it.
  return static_cast<int>(std::clamp<size_t>(running_.size() / 16, 1, 60));
}

}  // namespace latte
