#include "src/engine/complete.h"

#include <chrono>

#include "src/base/timer.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

// Runs a step. The engine serves one answer, which has at most one event in a step.
Result<std::optional<TokenEvent>> StepEvent(Engine& engine) {
  std::optional<TokenEvent> event;
  engine.SetEventSink([&](std::span<const TokenEvent> events) { event = events.front(); });
  const Status status = engine.Step();
  engine.SetEventSink({});
  LATTE_RETURN_IF_ERROR(status);
  return event;
}

}  // namespace

Result<Completion> Complete(Engine& engine, Request request, const StepSink& on_step) {
  Completion out;
  const Clock::time_point start = Clock::now();
  LATTE_ASSIGN_OR_RETURN(const RequestId id, engine.Submit(std::move(request)));
  std::optional<Clock::time_point> first_token;
  while (true) {
    LATTE_ASSIGN_OR_RETURN(const std::optional<TokenEvent> event, StepEvent(engine));
    if (event) {
      if (event->finish == FinishReason::kError) return tl::unexpected<Error>(event->error);
      if (!first_token && event->finish != FinishReason::kCancelled) {
        first_token = Clock::now();
        out.prompt_seconds = SecondsSince(start);
      }
      if (event->token) out.tokens.push_back(*event->token);
      out.text += event->text;
      out.cached_tokens = event->cached_tokens;
    }
    const bool continues = !on_step || on_step(event ? &*event : nullptr);
    if (event && event->finish) {
      out.reason = *event->finish;
      break;
    }
    if (!continues) engine.Cancel(id);
  }
  if (first_token) out.generate_seconds = SecondsSince(*first_token);
  return out;
}

}  // namespace latte
