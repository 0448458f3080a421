#include "src/engine/core/complete.h"

#include <chrono>

#include "src/base/timer.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

// Runs a step. The engine serves one answer, which may get several tokens in a step.
Result<std::vector<TokenEvent>> StepEvents(Engine& engine) {
  std::vector<TokenEvent> out;
  engine.SetEventSink(
      [&](std::span<const TokenEvent> events) { out.assign(events.begin(), events.end()); });
  const Status status = engine.Step();
  engine.SetEventSink({});
  LATTE_RETURN_IF_ERROR(status);
  return out;
}

void AddEvent(const TokenEvent& event, Completion& out) {
  if (event.token) out.tokens.push_back(*event.token);
  out.text += event.text;
  out.cached_tokens = event.cached_tokens;
  out.drafted_tokens = event.drafted_tokens;
  out.accepted_tokens = event.accepted_tokens;
}

}  // namespace

Result<Completion> Complete(Engine& engine, Request request, const StepSink& on_step) {
  Completion out;
  const Clock::time_point start = Clock::now();
  LATTE_ASSIGN_OR_RETURN(const RequestId id, engine.Submit(std::move(request)));
  std::optional<Clock::time_point> first_token;
  bool ended = false;
  while (!ended) {
    LATTE_ASSIGN_OR_RETURN(const std::vector<TokenEvent> events, StepEvents(engine));
    bool continues = true;
    if (events.empty() && on_step) continues = on_step(nullptr);
    for (const TokenEvent& event : events) {
      if (event.finish == FinishReason::kError) return tl::unexpected<Error>(event.error);
      if (!first_token && event.finish != FinishReason::kCancelled) {
        first_token = Clock::now();
        out.prompt_seconds = SecondsSince(start);
      }
      AddEvent(event, out);
      if (on_step) continues = on_step(&event) && continues;
      if (!event.finish) continue;
      out.reason = *event.finish;
      ended = true;
    }
    if (!continues && !ended) engine.Cancel(id);
  }
  if (first_token) out.generate_seconds = SecondsSince(*first_token);
  return out;
}

}  // namespace latte
