// Computes the masks of grammars while the model computes the logits. An answer with a late mask
// skips steps until the mask is ready; other answers continue, and no answer changes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "src/engine/grammar/job_threads.h"
#include "src/grammar/grammar.h"

namespace latte {

// Where an answer is in its grammar, and the masks of the tokens that may come next.
struct AnswerGrammar {
  enum class State : uint8_t {
    kNone,      // the next mask has not been asked for
    kUnderWay,  // what follows up to `completed` is the worker's
    kReady,     // until a token is sampled
  };

  std::shared_ptr<const CompiledGrammar> compiled;
  std::vector<int32_t> stop_tokens;
  std::unique_ptr<GrammarMatcher> matcher;  // made with the first mask
  std::vector<int32_t> accepted;            // tokens that the matcher has not taken yet
  std::vector<int32_t> drafts;              // guesses of the tokens after them
  std::vector<uint32_t> masks;              // [rows, words]: row i is for the token after i drafts
  int64_t rows = 0;
  Status status;                // of computing the masks
  std::vector<bool> completed;  // [rows]: whether the answer may end there

  std::atomic<State> state = State::kNone;
  std::atomic<bool> slow = false;  // its masks are computed before its steps, not during them
  std::chrono::steady_clock::time_point asked;

  // Requires: row < rows.
  std::span<const uint32_t> Mask(int64_t row) const;
};

// Takes the accepted tokens, then fills masks and rows: of the next token, and of the tokens after
// drafts as far as the grammar allows these. The matcher ends where the accepted tokens end.
void ComputeMasks(AnswerGrammar& answer, int64_t vocab);

// For one thread: its threads are its own.
class MaskWorker {
 public:
  using Now = std::function<std::chrono::steady_clock::time_point()>;

  // The most that one mask takes.
  static constexpr std::chrono::seconds kMostTime{5};

  // on_late: called on another thread when a mask is ready that Wait did not wait for.
  MaskWorker(int64_t vocab, Now now, std::function<void()> on_late)
      : vocab_(vocab), now_(std::move(now)), on_late_(std::move(on_late)) {}

  // Requires: its state is kNone.
  void Start(std::shared_ptr<AnswerGrammar> answer);
  // Waits for answers of a step that has been computed, but not long for those that hold up others.
  // others: of the step, without a grammar. At the end each is ready, or late: then it stays
  // kUnderWay.
  void Wait(std::span<AnswerGrammar* const> answers, bool others);
  // Errors: kUnsupported for a mask that takes too long.
  [[nodiscard]] Status CheckTime(const AnswerGrammar& answer) const;

  // Since creation, as EngineStats has them.
  struct Counters {
    int64_t masks = 0;
    double seconds = 0;
    double wait_seconds = 0;
  };
  Counters counters() const;

 private:
  using Clock = std::chrono::steady_clock;

  void Run(AnswerGrammar& answer);
  Clock::duration Allowance();

  const int64_t vocab_;
  const Now now_;
  const std::function<void()> on_late_;
  Clock::duration allowance_ = kMostAtOnce;  // that steps may still wait for masks
  Clock::time_point allowance_at_ = Clock::now();
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable ready_;
  Counters counters_;
  bool waiting_ = false;  // a Wait is under way
  // The first to end.
  JobThreads quick_{{.threads = 2}};
  JobThreads slow_{{.threads = 2, .in_background = true}};

  // Steps wait for masks so long at once, and a tenth of the time in the long run.
  static constexpr std::chrono::milliseconds kMostAtOnce{20};
  static constexpr int kShareOfTime = 10;
};

}  // namespace latte
