// Computes which tokens grammars allow while the model computes the logits that they apply to.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "src/grammar/grammar.h"

namespace latte {

// Where an answer is in its grammar, and the masks of the step's tokens.
struct AnswerGrammar {
  std::shared_ptr<const CompiledGrammar> compiled;
  std::unique_ptr<GrammarMatcher> matcher;
  std::vector<uint32_t> masks;  // [rows, words]: row i is for the token after i drafts
  int64_t rows = 0;
  Status status;  // of computing the masks

  // Requires: row < rows.
  std::span<const uint32_t> Mask(int64_t row) const;
};

// One answer of a step. The pointers must live until Wait.
struct MaskJob {
  AnswerGrammar* answer = nullptr;
  std::span<const int32_t> drafts;
};

// Fills masks and rows: of the next token, and of the tokens after drafts as far as the grammar
// allows these. The matcher ends where it began.
void ComputeMasks(const MaskJob& job, int64_t vocab);

// One more thread than those that compute; it begins with the first job. Thread-compatible.
class MaskWorker {
 public:
  explicit MaskWorker(int64_t vocab) : vocab_(vocab) {}
  ~MaskWorker();

  // Begins a step's jobs. Requires: those before have been waited for.
  void Start(std::vector<MaskJob> jobs);
  // Returns when all are done.
  void Wait();

  // Since creation, as EngineStats has them. Requires: no job is under way.
  struct Counters {
    int64_t masks = 0;
    double seconds = 0;
    double wait_seconds = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  void Loop();
  void RunAll();

  const int64_t vocab_;
  std::vector<MaskJob> jobs_;
  Counters counters_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool busy_ = false;  // jobs_ are the thread's
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace latte
