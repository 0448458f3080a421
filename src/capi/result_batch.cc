#include "src/capi/result_batch.h"

#include <utility>

#include "src/capi/convert.h"

namespace latte::capi {

std::span<const latte_result* const> ResultBatch::Convert(std::vector<ServiceResult> results) {
  results_ = std::move(results);
  events_.clear();
  answers_.clear();
  out_.clear();
  pointers_.clear();
  MoveEvents();
  const latte_event* const* next = converted_.Convert(events_).data();
  answers_.reserve(results_.size());
  out_.reserve(results_.size());
  pointers_.reserve(results_.size());
  for (const ServiceResult& result : results_) {
    out_.push_back(ToC(result, next));
    pointers_.push_back(&out_.back());
  }
  return pointers_;
}

void ResultBatch::MoveEvents() {
  for (ServiceResult& result : results_) {
    const size_t begin = events_.size();
    if (result.event) {
      events_.push_back(std::move(*result.event));
    } else if (result.answer) {
      events_.push_back(std::move(result.answer->end));
      events_.back().prompt_logprobs = std::move(result.answer->prompt_logprobs);
      events_.emplace_back().prompt_logprobs = std::move(result.answer->logprobs);
    }
    for (size_t i = begin; i < events_.size(); ++i) {
      events_[i].request = result.id;  // not the engine's own, which the program does not know
      events_[i].user_data = result.user_data;
    }
  }
}

latte_result ResultBatch::ToC(const ServiceResult& result, const latte_event* const*& next) {
  latte_result out = {.size = sizeof(latte_result),
                      .request = result.id,
                      .user_data = result.user_data,
                      .event = nullptr,
                      .answer = nullptr,
                      .bytes = {result.bytes.c_str(), result.bytes.size()},
                      .last = result.last ? 1 : 0,
                      .error_code = result.error ? capi::ToC(result.error->code) : LATTE_OK,
                      .error_message = result.error ? result.error->message.c_str() : ""};
  if (result.event) {
    out.event = *next++;
  } else if (result.answer) {
    const latte_event* end = *next++;
    const latte_event* tokens = *next++;
    const WholeAnswer& answer = *result.answer;
    answers_.push_back({.size = sizeof(latte_answer),
                        .choice = end->choice,
                        .finish = end->finish,
                        .tokens = answer.tokens.data(),
                        .token_count = answer.tokens.size(),
                        .text = {answer.text.c_str(), answer.text.size()},
                        .logprobs = tokens->prompt_logprobs,
                        .prompt_logprobs = end->prompt_logprobs,
                        .prompt_logprob_count = end->prompt_logprob_count,
                        .end = end});
    out.answer = &answers_.back();
  }
  return out;
}

}  // namespace latte::capi
