#include "src/serve/engine_thread.h"

#include <exception>
#include <utility>

#include "src/base/limits/out_of_memory.h"

namespace latte {
namespace {

// A receiver that is further behind gets the processor before the next step.
constexpr int kMostUndelivered = 8;
constexpr auto kPatience = std::chrono::seconds(1);

int64_t SteadyNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

EngineThread::EngineThread(EngineLoader load, Hooks hooks)
    : load_(std::move(load)), hooks_(std::move(hooks)), thread_([this] { Loop(); }) {}

EngineThread::~EngineThread() {
  if (thread_.joinable()) thread_.join();
}

void EngineThread::Delivered() {
  if (undelivered_.fetch_sub(1) >= kMostUndelivered) undelivered_.notify_one();
}

std::optional<std::chrono::nanoseconds> EngineThread::StepAge() const {
  const int64_t began = step_began_.load(std::memory_order_relaxed);
  if (began == 0) return std::nullopt;
  return std::chrono::nanoseconds(SteadyNow() - began);
}

Status EngineThread::Stop() {
  stopping_ = true;
  undelivered_ = 0;
  undelivered_.notify_one();
  if (Engine* engine = ready_.load()) engine->Wake();
  if (thread_.joinable()) thread_.join();
  return saved_;
}

void EngineThread::Loop() {
  Status status;
  try {
    status = Drive();
  } catch (const std::exception& thrown) {
    status = tl::unexpected(ErrorOf(thrown));
  }
  step_began_ = 0;
  if (!status) hooks_.failed(status.error());
}

Status EngineThread::Drive() {
  LATTE_ASSIGN_OR_RETURN(engine_, load_());
  engine_->SetEventSink([this](std::span<const TokenEvent> events) {
    std::vector<TokenEvent> copy(events.begin(), events.end());
    undelivered_.fetch_add(1);
    hooks_.events(std::move(copy));
  });
  ready_.store(engine_.get(), std::memory_order_release);
  hooks_.loaded();
  while (!stopping_) {
    step_began_ = SteadyNow();
    const Status stepped = engine_->Step();
    step_began_ = 0;
    if (!stepped) return stepped;
    WaitForReceiver();
    engine_->WaitForWork(std::chrono::steady_clock::now() + kPatience);
  }
  saved_ = engine_->SavePrefixes();
  return {};
}

void EngineThread::WaitForReceiver() {
  for (int waiting = undelivered_; waiting >= kMostUndelivered && !stopping_;
       waiting = undelivered_)
    undelivered_.wait(waiting);
}

}  // namespace latte
