#include "src/engine/link/engine_messages.h"

#include <algorithm>

#include "src/engine/group/wire_fields.h"

namespace latte {
namespace {

constexpr int64_t kCodes = static_cast<int64_t>(Code::kInternal) + 1;
constexpr int64_t kReasons = static_cast<int64_t>(FinishReason::kError) + 1;

// An enumerator below `count`.
template <class T>
T ReadEnum(int64_t count, WireReader& from) {
  const int64_t value = from.Int();
  if (value < 0 || value >= count) from.Fail();
  return from.good() ? static_cast<T>(value) : T{};
}

void WriteLogprob(const TokenLogprob& one, WireWriter& to) {
  WriteValue(one.token, to);
  WriteValue(one.logprob, to);
}

TokenLogprob ReadLogprob(WireReader& from) {
  TokenLogprob one;
  ReadValue(one.token, from);
  ReadValue(one.logprob, from);
  return one;
}

void WriteLogprobs(const TokenLogprobs& all, WireWriter& to) {
  WriteLogprob(all.chosen, to);
  to.Int(std::ssize(all.top));
  for (const TokenLogprob& one : all.top) WriteLogprob(one, to);
}

TokenLogprobs ReadLogprobs(WireReader& from) {
  TokenLogprobs all;
  all.chosen = ReadLogprob(from);
  for (int64_t rest = from.Int(); rest > 0 && from.good(); --rest)
    all.top.push_back(ReadLogprob(from));
  return all;
}

// The numbers of an event or of counters, in one order for both directions.
template <class Event, class F>
void VisitNumbers(Event& e, const F& visit) {
  visit(e.request);
  visit(e.user_data);
  visit(e.choice);
  visit(e.text);
  visit(e.prompt_tokens);
  visit(e.cached_tokens);
  visit(e.queue_seconds);
  visit(e.prefill_seconds);
  visit(e.generated_tokens);
  visit(e.drafted_tokens);
  visit(e.accepted_tokens);
  visit(e.stop_string);
}

template <class Stats, class F>
void VisitCounters(Stats& s, const F& visit) {
  visit(s.waiting);
  visit(s.running);
  visit(s.pages_total);
  visit(s.pages_used);
  visit(s.pages_cached);
  visit(s.page_bytes);
  visit(s.page_tokens);
  visit(s.steps);
  visit(s.requests_finished);
  visit(s.requests_failed);
  visit(s.requests_cancelled);
  visit(s.preemptions);
  visit(s.prompt_tokens);
  visit(s.cached_tokens);
  visit(s.disk_tokens);
  visit(s.computed_tokens);
  visit(s.generated_tokens);
  visit(s.step_seconds);
  visit(s.forward_seconds);
  visit(s.drafted_tokens);
  visit(s.accepted_tokens);
  visit(s.masks);
  visit(s.mask_seconds);
  visit(s.mask_wait_seconds);
  visit(s.idle_tokens);
}

}  // namespace

void Write(const Request& request, WireWriter& to) {
  to.Text(request.prompt);
  to.List(std::span<const int32_t>(request.tokens));
  WriteFields(request.sampling, to);
  WriteFields(request.stop, to);
  WriteFields(request, to);
}

Request ReadRequest(WireReader& from) {
  Request out;
  out.prompt = from.Text();
  const std::span<const int32_t> tokens = from.List<int32_t>();
  out.tokens.assign(tokens.begin(), tokens.end());
  ReadFields(out.sampling, from);
  ReadFields(out.stop, from);
  ReadFields(out, from);
  return out;
}

void Write(const Error& error, WireWriter& to) {
  to.Int(static_cast<int64_t>(error.code));
  to.Text(error.message);
}

Error ReadError(WireReader& from) {
  Error out;
  out.code = ReadEnum<Code>(kCodes, from);
  out.message = from.Text();
  return out;
}

void Write(const TokenEvent& event, WireWriter& to) {
  VisitNumbers(event, [&](const auto& value) { WriteValue(value, to); });
  to.Int(event.token ? 1 : 0);
  if (event.token) WriteValue(*event.token, to);
  to.Int(event.logprobs ? 1 : 0);
  if (event.logprobs) WriteLogprobs(*event.logprobs, to);
  to.Int(std::ssize(event.prompt_logprobs));
  for (const TokenLogprobs& one : event.prompt_logprobs) WriteLogprobs(one, to);
  to.Int(event.finish ? 1 : 0);
  if (!event.finish) return;
  to.Int(static_cast<int64_t>(*event.finish));
  if (*event.finish == FinishReason::kError) Write(event.error, to);
}

TokenEvent ReadEvent(WireReader& from) {
  TokenEvent out;
  VisitNumbers(out, [&](auto& value) { ReadValue(value, from); });
  if (from.Int() != 0) ReadValue(out.token.emplace(), from);
  if (from.Int() != 0) out.logprobs = ReadLogprobs(from);
  for (int64_t rest = from.Int(); rest > 0 && from.good(); --rest)
    out.prompt_logprobs.push_back(ReadLogprobs(from));
  if (from.Int() == 0) return out;
  out.finish = ReadEnum<FinishReason>(kReasons, from);
  if (*out.finish == FinishReason::kError) out.error = ReadError(from);
  return out;
}

void Write(const EngineStats& stats, WireWriter& to) {
  VisitCounters(stats, [&](const auto& value) { WriteValue(value, to); });
}

EngineStats ReadStats(WireReader& from) {
  EngineStats out;
  VisitCounters(out, [&](auto& value) { ReadValue(value, from); });
  return out;
}

void AddRefusal(const Request& request, const Error& error, std::vector<TokenEvent>& events) {
  for (int choice = 0; choice < std::max(request.n, 1); ++choice) {
    TokenEvent& event = events.emplace_back();
    event.request = request.id;
    event.user_data = request.user_data;
    event.choice = choice;
    event.finish = FinishReason::kError;
    event.error = error;
  }
}

void WriteEvents(std::span<const TokenEvent> events, WireWriter& to) {
  to.Int(std::ssize(events));
  for (const TokenEvent& event : events) Write(event, to);
}

std::vector<TokenEvent> ReadEvents(WireReader& from) {
  std::vector<TokenEvent> out;
  for (int64_t rest = from.Int(); rest > 0 && from.good(); --rest) out.push_back(ReadEvent(from));
  return out;
}

}  // namespace latte
