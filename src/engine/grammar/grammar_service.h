// Compiles the grammars of requests on a thread of its own: a large one takes seconds, and no step
// waits for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "src/grammar/grammar.h"

namespace latte {

// A grammar that is being compiled.
class GrammarJob {
 public:
  explicit GrammarJob(Grammar grammar) : grammar_(std::move(grammar)) {}

  bool done() const { return done_.load(std::memory_order_acquire); }
  // Requires: done(). Errors: as GrammarCompiler::Compile.
  const Result<std::shared_ptr<const CompiledGrammar>>& compiled() const { return compiled_; }

 private:
  friend class GrammarService;
  const Grammar grammar_;
  Result<std::shared_ptr<const CompiledGrammar>> compiled_;
  std::atomic<bool> done_ = false;
};

// Thread-safe. The thread begins with the first grammar.
class GrammarService {
 public:
  // tokenizer: null: every grammar is refused. vocab: of the model. on_done: called on the thread
  // after each grammar.
  GrammarService(const Tokenizer* tokenizer, int64_t vocab, std::function<void()> on_done)
      : tokenizer_(tokenizer), vocab_(vocab), on_done_(std::move(on_done)) {}
  // Waits for the grammar that is being compiled; drops the others.
  ~GrammarService();

  // Errors: kInvalidArgument without a tokenizer; kUnsupported without a library; kExhausted if too
  // many grammars wait.
  [[nodiscard]] Result<std::shared_ptr<const GrammarJob>> Start(Grammar grammar);

 private:
  void Loop();
  Result<std::shared_ptr<const CompiledGrammar>> Compile(const Grammar& grammar);

  const Tokenizer* const tokenizer_;
  const int64_t vocab_;
  const std::function<void()> on_done_;
  std::unique_ptr<GrammarCompiler> compiler_;  // the thread's own
  std::mutex mutex_;                           // guards what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<GrammarJob>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace latte
