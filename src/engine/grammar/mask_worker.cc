#include "src/engine/grammar/mask_worker.h"

#include <algorithm>
#include <ctime>
#include <exception>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"

namespace latte {
namespace {

// Seconds of the processor that make an answer slow: masks of usual grammars take less than one.
constexpr double kSlowMask = 3e-3;

double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Brings the matcher to the end of the answer so far.
Status CatchUp(AnswerGrammar& answer) {
  if (!answer.matcher) {
    LATTE_ASSIGN_OR_RETURN(answer.matcher,
                           GrammarMatcher::Create(answer.compiled, answer.stop_tokens));
  }
  for (const int32_t token : answer.accepted)
    if (!answer.matcher->Accept(token))
      return Internal(fmt::format("the grammar refuses token {}, which its mask allows", token));
  answer.accepted.clear();
  return {};
}

void FillMasks(AnswerGrammar& answer, size_t words) {
  GrammarMatcher& matcher = *answer.matcher;
  int accepted = 0;
  while (true) {
    answer.masks.resize((static_cast<size_t>(accepted) + 1) * words);
    matcher.FillMask(std::span(answer.masks).last(words));
    answer.completed.push_back(matcher.completed());
    answer.rows = accepted + 1;
    const auto next = static_cast<size_t>(accepted);
    if (next == answer.drafts.size() || !InMask(answer.Mask(accepted), answer.drafts[next]) ||
        !matcher.Accept(answer.drafts[next]))
      break;
    ++accepted;
  }
  matcher.Rollback(accepted);
}

}  // namespace

std::span<const uint32_t> AnswerGrammar::Mask(int64_t row) const {
  const size_t words = masks.size() / static_cast<size_t>(rows);
  return std::span(masks).subspan(static_cast<size_t>(row) * words, words);
}

void ComputeMasks(AnswerGrammar& answer, int64_t vocab) {
  answer.masks.clear();
  answer.completed.clear();
  answer.rows = 0;
  try {
    answer.status = CatchUp(answer);
    if (answer.status) FillMasks(answer, MaskWords(vocab));
  } catch (const std::exception& thrown) {
    answer.status = tl::unexpected(ErrorOf(thrown));
  }
}

void MaskWorker::Start(std::shared_ptr<AnswerGrammar> answer) {
  answer->state = AnswerGrammar::State::kUnderWay;
  answer->asked = now_();
  JobThreads& threads = answer->slow ? slow_ : quick_;
  threads.Run([this, answer = std::move(answer)] { Run(*answer); });
}

void MaskWorker::Run(AnswerGrammar& answer) {
  const auto start = Clock::now();
  const double begun = ThreadSeconds();
  ComputeMasks(answer, vocab_);
  answer.slow = ThreadSeconds() - begun > kSlowMask;
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    counters_.masks += answer.rows;
    counters_.seconds += SecondsSince(start);
    answer.state = AnswerGrammar::State::kReady;
    late = !waiting_;
  }
  ready_.notify_all();
  if (late) on_late_();
}

MaskWorker::Clock::duration MaskWorker::Allowance() {
  const auto now = Clock::now();
  allowance_ += (now - allowance_at_) / kShareOfTime;
  allowance_ = std::min<Clock::duration>(allowance_, kMostAtOnce);
  allowance_at_ = now;
  return allowance_;
}

void MaskWorker::Wait(std::span<AnswerGrammar* const> answers, bool others) {
  if (answers.empty()) return;
  const auto start = Clock::now();
  const auto is_ready = [](const AnswerGrammar* answer) {
    return answer->state == AnswerGrammar::State::kReady;
  };
  std::unique_lock lock(mutex_);
  waiting_ = true;
  // Until then no other answer is held up.
  if (!others)
    ready_.wait_until(lock, start + kMostAtOnce,
                      [&] { return std::ranges::any_of(answers, is_ready); });
  const auto alone = Clock::now();
  ready_.wait_until(lock, alone + std::max(Allowance(), Clock::duration()),
                    [&] { return std::ranges::all_of(answers, is_ready); });
  waiting_ = false;
  allowance_ -= Clock::now() - alone;
  counters_.wait_seconds += SecondsSince(start);
}

Status MaskWorker::CheckTime(const AnswerGrammar& answer) const {
  if (now_() - answer.asked <= kMostTime) return {};
  return Unsupported(fmt::format(
      "grammar: the tokens that may come next are not known after {} s; lower the counts, and "
      "avoid parts that can be told apart only much later",
      kMostTime.count()));
}

MaskWorker::Counters MaskWorker::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace latte
