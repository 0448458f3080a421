#include "src/engine/grammar/mask_worker.h"

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"

namespace latte {

std::span<const uint32_t> AnswerGrammar::Mask(int64_t row) const {
  const size_t words = masks.size() / static_cast<size_t>(rows);
  return std::span(masks).subspan(static_cast<size_t>(row) * words, words);
}

void ComputeMasks(const MaskJob& job, int64_t vocab) {
  AnswerGrammar& answer = *job.answer;
  GrammarMatcher& matcher = *answer.matcher;
  const size_t words = MaskWords(vocab);
  answer.masks.clear();
  answer.rows = 0;
  answer.status = {};
  int accepted = 0;
  try {
    while (true) {
      answer.masks.resize((static_cast<size_t>(accepted) + 1) * words);
      matcher.FillMask(std::span(answer.masks).last(words));
      answer.rows = accepted + 1;
      const auto next = static_cast<size_t>(accepted);
      if (next == job.drafts.size() || !InMask(answer.Mask(accepted), job.drafts[next]) ||
          !matcher.Accept(job.drafts[next]))
        break;
      ++accepted;
    }
    matcher.Rollback(accepted);
  } catch (const std::exception& thrown) {
    answer.status = tl::unexpected(ErrorOf(thrown));
  }
}

MaskWorker::~MaskWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MaskWorker::Start(std::vector<MaskJob> jobs) {
  jobs_ = std::move(jobs);
  if (jobs_.empty()) return;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error&) {
      return RunAll();  // no thread is left: the step waits
    }
  }
  {
    const std::lock_guard lock(mutex_);
    busy_ = true;
  }
  changed_.notify_all();
}

void MaskWorker::Wait() {
  if (jobs_.empty()) return;
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  counters_.wait_seconds += SecondsSince(start);
  for (const MaskJob& job : jobs_) counters_.masks += job.answer->rows;
  jobs_.clear();
}

void MaskWorker::RunAll() {
  const auto start = std::chrono::steady_clock::now();
  for (const MaskJob& job : jobs_) ComputeMasks(job, vocab_);
  counters_.seconds += SecondsSince(start);
}

void MaskWorker::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || busy_; });
    if (stopping_) return;
    lock.unlock();
    RunAll();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace latte
