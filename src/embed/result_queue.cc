#include "src/embed/result_queue.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace latte {

bool WholeAnswer::Add(const TokenEvent& event) {
  if (event.token) tokens.push_back(*event.token);
  text += event.text;
  if (event.logprobs) logprobs.push_back(*event.logprobs);
  prompt_logprobs.insert(prompt_logprobs.end(), event.prompt_logprobs.begin(),
                         event.prompt_logprobs.end());
  if (!event.finish) return false;
  choice = event.choice;
  end = event;
  return true;
}

ResultQueue::~ResultQueue() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ResultQueue::Push(ServiceResult result) {
  const std::lock_guard lock(mutex_);
  results_.push_back(std::move(result));
}

void ResultQueue::Raise() {
  const uint64_t one = 1;
  if (descriptor_ >= 0) [[maybe_unused]]
    const auto written = write(descriptor_, &one, sizeof one);
}

void ResultQueue::Signal() {
  const std::lock_guard lock(mutex_);
  if (results_.empty() || std::exchange(signalled_, true)) return;
  Raise();
  ready_.notify_all();
}

std::vector<ServiceResult> ResultQueue::Take(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  ready_.wait_until(lock, deadline, [&] { return signalled_; });
  if (std::exchange(signalled_, false) && descriptor_ >= 0) {
    uint64_t count = 0;
    [[maybe_unused]] const auto got = read(descriptor_, &count, sizeof count);
  }
  return std::exchange(results_, {});
}

Result<int> ResultQueue::Descriptor() {
  const std::lock_guard lock(mutex_);
  if (descriptor_ >= 0) return descriptor_;
  descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor_ < 0)
    return Fail(Code::kExhausted,
                std::string("the system gives no file descriptor: ") + std::strerror(errno));
  if (signalled_) Raise();
  return descriptor_;
}

}  // namespace latte
