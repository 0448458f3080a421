// The functions of latte.h: checks, conversions and a call of the C++ API each.
#include <memory>
#include <string>
#include <utility>

#include "latte/engine.h"
#include "latte/latte.h"

#include "src/capi/convert.h"
#include "src/capi/event_batch.h"
#include "src/capi/guarded.h"
#include "src/capi/sized.h"

#ifndef LATTE_VERSION
#error "the build passes LATTE_VERSION"
#endif

struct latte_engine {
  latte_event_sink sink = nullptr;
  void* context = nullptr;
  latte::capi::EventBatch batch;
  std::unique_ptr<latte::Engine> engine;  // last, so that it goes before what its sink uses
};

namespace latte::capi {
namespace {

Status Create(const latte_engine_options* given, latte_engine** engine) {
  LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
  *engine = nullptr;
  EngineOptions options = DefaultOptions();
  if (given != nullptr) {
    LATTE_ASSIGN_OR_RETURN(const latte_engine_options read,
                           ReadSized(given, ToC(DefaultOptions()), "latte_engine_options"));
    LATTE_ASSIGN_OR_RETURN(options, FromC(read));
  }
  auto handle = std::make_unique<latte_engine>();
  LATTE_ASSIGN_OR_RETURN(handle->engine, Engine::Create(options));
  // Set once: the C sink may then be replaced while it runs.
  handle->engine->SetEventSink([self = handle.get()](std::span<const TokenEvent> events) {
    if (self->sink == nullptr) return;
    const auto converted = self->batch.Convert(events);
    self->sink(self->context, converted.data(), converted.size());
  });
  *engine = handle.release();
  return {};
}

Status Submit(latte_engine* engine, const latte_request* given, latte_request_id* id) {
  LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
  LATTE_RETURN_IF_ERROR(NotNull(id, "id"));
  LATTE_ASSIGN_OR_RETURN(const latte_request read,
                         ReadSized(given, DefaultRequest(), "latte_request"));
  LATTE_ASSIGN_OR_RETURN(Request request, FromC(read));
  LATTE_ASSIGN_OR_RETURN(*id, engine->engine->Submit(std::move(request)));
  return {};
}

Status WaitForWork(latte_engine* engine, int64_t timeout_ms, int32_t* has_work) {
  LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
  LATTE_RETURN_IF_ERROR(NotNull(has_work, "has_work"));
  LATTE_ASSIGN_OR_RETURN(const auto deadline, Deadline(timeout_ms));
  *has_work = engine->engine->WaitForWork(deadline) ? 1 : 0;
  return {};
}

}  // namespace
}  // namespace latte::capi

using latte::Status;
using latte::capi::Guarded;
using latte::capi::NotNull;
using latte::capi::ToC;
using latte::capi::WriteSized;

const char* latte_version() { return LATTE_VERSION; }

const char* latte_code_name(int32_t code) {
  if (code < LATTE_OK || code > LATTE_INTERNAL) return "unknown";
  return latte::CodeName(static_cast<latte::Code>(code)).data();
}

const char* latte_finish_name(int32_t finish) {
  if (finish == LATTE_FINISH_NONE) return "none";
  if (finish < LATTE_FINISH_NONE || finish > LATTE_FINISH_ERROR) return "unknown";
  return latte::Name(static_cast<latte::FinishReason>(finish - LATTE_FINISH_STOP)).data();
}

latte_code latte_engine_options_init(latte_engine_options* options, size_t size) {
  return Guarded(nullptr, [&] {
    return WriteSized(options, size, ToC(latte::capi::DefaultOptions()), "latte_engine_options");
  });
}

latte_code latte_request_init(latte_request* request, size_t size) {
  return Guarded(nullptr, [&] {
    return WriteSized(request, size, latte::capi::DefaultRequest(), "latte_request");
  });
}

latte_code latte_engine_create(const latte_engine_options* options, latte_engine** engine,
                               latte_error* error) {
  return Guarded(error, [&] { return latte::capi::Create(options, engine); });
}

void latte_engine_destroy(latte_engine* engine) { delete engine; }

latte_code latte_engine_submit(latte_engine* engine, const latte_request* request,
                               latte_request_id* id, latte_error* error) {
  return Guarded(error, [&] { return latte::capi::Submit(engine, request, id); });
}

latte_code latte_engine_cancel(latte_engine* engine, latte_request_id id, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
    engine->engine->Cancel(id);
    return {};
  });
}

latte_code latte_engine_wake(latte_engine* engine, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
    engine->engine->Wake();
    return {};
  });
}

latte_code latte_engine_set_event_sink(latte_engine* engine, latte_event_sink sink, void* context,
                                       latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
    engine->sink = sink;
    engine->context = context;
    return {};
  });
}

latte_code latte_engine_step(latte_engine* engine, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
    return engine->engine->Step();
  });
}

latte_code latte_engine_wait_for_work(latte_engine* engine, int64_t timeout_ms, int32_t* has_work,
                                      latte_error* error) {
  return Guarded(error, [&] { return latte::capi::WaitForWork(engine, timeout_ms, has_work); });
}

latte_code latte_engine_save_prefixes(latte_engine* engine, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
    return engine->engine->SavePrefixes();
  });
}

latte_code latte_engine_stats(latte_engine* engine, latte_stats* stats, latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
    LATTE_RETURN_IF_ERROR(NotNull(stats, "stats"));
    return WriteSized(stats, stats->size, ToC(engine->engine->Stats()), "latte_stats");
  });
}

latte_code latte_engine_settled_options(latte_engine* engine, latte_engine_options* options,
                                        latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(engine, "engine"));
    LATTE_RETURN_IF_ERROR(NotNull(options, "options"));
    return WriteSized(options, options->size, ToC(engine->engine->options()),
                      "latte_engine_options");
  });
}
