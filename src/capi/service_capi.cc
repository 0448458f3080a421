// The functions of latte_service.h on services and queues.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "latte/latte.h"

#include "src/capi/convert.h"
#include "src/capi/guarded.h"
#include "src/capi/model_handle.h"
#include "src/capi/result_batch.h"
#include "src/capi/sized.h"
#include "src/embed/service.h"

struct latte_queue {
  std::shared_ptr<latte::ResultQueue> queue = std::make_shared<latte::ResultQueue>();
  latte::capi::ResultBatch batch;
};

struct latte_service {
  std::unique_ptr<latte::Service> service;
  latte_model model;
};

namespace latte::capi {
namespace {

using Clock = std::chrono::steady_clock;

Result<latte_service_options> ReadOptions(const latte_service_options* given) {
  latte_service_options none = {};
  none.size = sizeof none;
  if (given == nullptr) return none;
  return ReadSized(given, none, "latte_service_options");
}

Result<EngineOptions> ReadEngineOptions(const latte_engine_options* given) {
  if (given == nullptr) return DefaultOptions();
  LATTE_ASSIGN_OR_RETURN(const latte_engine_options read,
                         ReadSized(given, ToC(DefaultOptions()), "latte_engine_options"));
  return FromC(read);
}

ServiceHooks HooksOf(const latte_service_options& options) {
  ServiceHooks out;
  if (options.log != nullptr)
    out.log = [options](const std::string& message) {
      options.log(options.context, message.c_str());
    };
  if (options.progress != nullptr)
    out.progress = [options](const char* what, int64_t done, int64_t total) {
      options.progress(options.context, what, done, total);
    };
  return out;
}

Status Start(const latte_service_options* given, latte_service** service) {
  LATTE_RETURN_IF_ERROR(NotNull(service, "service"));
  *service = nullptr;
  LATTE_ASSIGN_OR_RETURN(const latte_service_options options, ReadOptions(given));
  LATTE_ASSIGN_OR_RETURN(const EngineOptions engine, ReadEngineOptions(options.engine));
  LATTE_ASSIGN_OR_RETURN(auto started, Service::Start(engine, HooksOf(options)));
  auto model = started->model();
  *service = new latte_service{std::move(started), {std::move(model)}};
  return {};
}

Status Take(latte_queue* queue, int64_t timeout_ms, const latte_result* const** results,
            size_t* count) {
  LATTE_RETURN_IF_ERROR(NotNull(queue, "queue"));
  LATTE_RETURN_IF_ERROR(NotNull(results, "results"));
  LATTE_RETURN_IF_ERROR(NotNull(count, "count"));
  LATTE_ASSIGN_OR_RETURN(const auto deadline, Deadline(timeout_ms));
  const auto converted = queue->batch.Convert(queue->queue->Take(deadline));
  *results = converted.data();
  *count = converted.size();
  return {};
}

Result<Request> ReadRequest(const latte_request* given) {
  LATTE_ASSIGN_OR_RETURN(const latte_request read,
                         ReadSized(given, DefaultRequest(), "latte_request"));
  return FromC(read);
}

// Both addresses and the one that the id goes to.
Status CheckCall(latte_service* service, latte_queue* queue, latte_request_id* id) {
  LATTE_RETURN_IF_ERROR(NotNull(service, "service"));
  LATTE_RETURN_IF_ERROR(NotNull(queue, "queue"));
  return NotNull(id, "id");
}

Status SubmitRequest(latte_service* service, latte_queue* queue, const latte_request* given,
                     int32_t whole, latte_request_id* id) {
  LATTE_RETURN_IF_ERROR(CheckCall(service, queue, id));
  LATTE_ASSIGN_OR_RETURN(const bool collects, ReadFlag(whole, "whole"));
  LATTE_ASSIGN_OR_RETURN(Request request, ReadRequest(given));
  LATTE_ASSIGN_OR_RETURN(*id, service->service->Submit(queue->queue, std::move(request), collects));
  return {};
}

Status Answer(latte_service* service, latte_queue* queue, latte_text url, latte_text body,
              uint64_t user_data, latte_request_id* id) {
  LATTE_RETURN_IF_ERROR(CheckCall(service, queue, id));
  LATTE_ASSIGN_OR_RETURN(const std::string_view to, ReadText(url, "url"));
  LATTE_ASSIGN_OR_RETURN(const std::string_view json, ReadText(body, "body"));
  LATTE_ASSIGN_OR_RETURN(*id, service->service->Answer(queue->queue, to, json, user_data));
  return {};
}

Status Logits(latte_service* service, latte_queue* queue, std::span<const int32_t> tokens,
              size_t first, std::span<float> out, uint64_t user_data, latte_request_id* id) {
  LATTE_RETURN_IF_ERROR(CheckCall(service, queue, id));
  // A number that is too large for the call is too large for the sequence.
  const auto from = static_cast<int64_t>(std::min(first, tokens.size()));
  LATTE_ASSIGN_OR_RETURN(*id, service->service->Logits(queue->queue, {tokens.begin(), tokens.end()},
                                                       from, out, user_data));
  return {};
}

// Passes the results of one request to `use` until the last one. Errors: of the request as a whole.
template <class Use>
Status UseResults(latte_queue& queue, const Use& use) {
  while (true) {
    const auto results =
        queue.batch.Convert(queue.queue->Take(Clock::now() + std::chrono::hours(1)));
    for (const latte_result* result : results) {
      use(*result);
      if (result->error_code != LATTE_OK)
        return Fail(static_cast<Code>(result->error_code), result->error_message);
      if (result->last != 0) return {};
    }
  }
}

Status Generate(latte_service* service, const latte_request* request, latte_event_sink sink,
                void* context) {
  latte_queue queue;
  latte_request_id id = 0;
  LATTE_RETURN_IF_ERROR(NotNull(reinterpret_cast<const void*>(sink), "sink"));
  LATTE_RETURN_IF_ERROR(SubmitRequest(service, &queue, request, 0, &id));
  return UseResults(queue, [&](const latte_result& result) {
    if (result.event != nullptr) sink(context, &result.event, 1);
  });
}

Status Score(latte_service* service, std::span<const int32_t> tokens, float* logprobs) {
  LATTE_RETURN_IF_ERROR(NotNull(service, "service"));
  LATTE_RETURN_IF_ERROR(NotNull(logprobs, "logprobs"));
  latte_queue queue;
  Request request;
  request.tokens.assign(tokens.begin(), tokens.end());
  request.prompt_logprobs = 0;
  request.stop.max_tokens = 0;
  LATTE_RETURN_IF_ERROR(service->service->Submit(queue.queue, std::move(request), true));
  Status failed;
  const Status used = UseResults(queue, [&](const latte_result& result) {
    if (result.answer == nullptr) return;
    const latte_event& end = *result.answer->end;
    if (end.error_code != LATTE_OK)
      failed = Fail(static_cast<Code>(end.error_code), end.error_message);
    logprobs[0] = 0;
    for (size_t i = 0; i < std::min(result.answer->prompt_logprob_count, tokens.size() - 1); ++i)
      logprobs[i + 1] = result.answer->prompt_logprobs[i].chosen.logprob;
  });
  return used ? failed : used;
}

}  // namespace
}  // namespace latte::capi

using latte::Status;
using latte::capi::Guarded;
using latte::capi::NotNull;
using latte::capi::ToC;
using latte::capi::WriteSized;

latte_code latte_service_start(const latte_service_options* options, latte_service** service,
                               latte_error* error) {
  return Guarded(error, [&] { return latte::capi::Start(options, service); });
}

latte_code latte_service_wait(latte_service* service, int64_t timeout_ms, int32_t* loaded,
                              latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(service, "service"));
    LATTE_RETURN_IF_ERROR(NotNull(loaded, "loaded"));
    LATTE_ASSIGN_OR_RETURN(const auto deadline, latte::capi::Deadline(timeout_ms));
    LATTE_ASSIGN_OR_RETURN(*loaded, service->service->WaitUntilLoaded(deadline));
    return {};
  });
}

void latte_service_stop(latte_service* service) { delete service; }

latte_code latte_queue_create(latte_queue** queue, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(queue, "queue"));
    *queue = new latte_queue;
    return {};
  });
}

void latte_queue_destroy(latte_queue* queue) { delete queue; }

latte_code latte_queue_take(latte_queue* queue, int64_t timeout_ms,
                            const latte_result* const** results, size_t* count,
                            latte_error* error) {
  return Guarded(error, [&] { return latte::capi::Take(queue, timeout_ms, results, count); });
}

latte_code latte_queue_descriptor(latte_queue* queue, int32_t* descriptor, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(queue, "queue"));
    LATTE_RETURN_IF_ERROR(NotNull(descriptor, "descriptor"));
    LATTE_ASSIGN_OR_RETURN(*descriptor, queue->queue->Descriptor());
    return {};
  });
}

latte_code latte_service_submit(latte_service* service, latte_queue* queue,
                                const latte_request* request, int32_t whole, latte_request_id* id,
                                latte_error* error) {
  return Guarded(error,
                 [&] { return latte::capi::SubmitRequest(service, queue, request, whole, id); });
}

latte_code latte_service_answer(latte_service* service, latte_queue* queue, latte_text url,
                                latte_text body, uint64_t user_data, latte_request_id* id,
                                latte_error* error) {
  return Guarded(error,
                 [&] { return latte::capi::Answer(service, queue, url, body, user_data, id); });
}

latte_code latte_service_logits(latte_service* service, latte_queue* queue, const int32_t* tokens,
                                size_t count, size_t first, float* logits, size_t capacity,
                                uint64_t user_data, latte_request_id* id, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(logits, "logits"));
    LATTE_ASSIGN_OR_RETURN(const auto ids, latte::capi::ReadIds(tokens, count, "tokens"));
    return latte::capi::Logits(service, queue, ids, first, {logits, capacity}, user_data, id);
  });
}

latte_code latte_service_cancel(latte_service* service, latte_request_id id, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(service, "service"));
    service->service->Cancel(id);
    return {};
  });
}

latte_code latte_service_generate(latte_service* service, const latte_request* request,
                                  latte_event_sink sink, void* context, latte_error* error) {
  return Guarded(error, [&] { return latte::capi::Generate(service, request, sink, context); });
}

latte_code latte_service_score(latte_service* service, const int32_t* tokens, size_t count,
                               float* logprobs, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_ASSIGN_OR_RETURN(const auto ids, latte::capi::ReadIds(tokens, count, "tokens"));
    return latte::capi::Score(service, ids, logprobs);
  });
}

latte_code latte_service_stats(latte_service* service, latte_stats* stats, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(service, "service"));
    LATTE_RETURN_IF_ERROR(NotNull(stats, "stats"));
    LATTE_ASSIGN_OR_RETURN(const latte::EngineStats now, service->service->Stats());
    return WriteSized(stats, stats->size, ToC(now), "latte_stats");
  });
}

latte_code latte_service_settled_options(latte_service* service, latte_engine_options* options,
                                         latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(service, "service"));
    LATTE_RETURN_IF_ERROR(NotNull(options, "options"));
    LATTE_ASSIGN_OR_RETURN(const latte::EngineOptions* settled, service->service->SettledOptions());
    return WriteSized(options, options->size, ToC(*settled), "latte_engine_options");
  });
}

const latte_model* latte_service_model(const latte_service* service) {
  return service == nullptr ? nullptr : &service->model;
}
