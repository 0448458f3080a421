// The results that a program takes from a queue, in the structs of the C API.
#pragma once

#include <span>
#include <vector>

#include "latte/latte.h"
#include "latte/request.h"

#include "src/capi/event_batch.h"
#include "src/embed/result_queue.h"

namespace latte::capi {

// Thread-compatible.
class ResultBatch {
 public:
  // The results, which point into this batch: valid until the next call.
  std::span<const latte_result* const> Convert(std::vector<ServiceResult> results);

 private:
  void MoveEvents();
  latte_result ToC(const ServiceResult& result, const latte_event* const*& next);

  std::vector<ServiceResult> results_;
  // The event of each result with one, and two of each whole answer: its end, which carries the
  // logprobs of the prompt, and one that carries the logprobs of its tokens in the same member.
  std::vector<TokenEvent> events_;
  EventBatch converted_;
  std::vector<latte_answer> answers_;
  std::vector<latte_result> out_;
  std::vector<const latte_result*> pointers_;
};

}  // namespace latte::capi
