// Compiles the grammars of requests on separate threads: a large grammar takes seconds, and neither
// a step nor another grammar waits for it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "src/engine/grammar/job_threads.h"
#include "src/grammar/grammar.h"

namespace latte {

// A grammar that is being compiled.
class GrammarJob {
 public:
  using Time = std::chrono::steady_clock::time_point;

  GrammarJob(Grammar grammar, Time asked) : grammar_(std::move(grammar)), asked_(asked) {}

  bool done() const { return done_.load(std::memory_order_acquire); }
  // Requires: done(). Errors: as GrammarCompiler::Compile.
  const Result<std::shared_ptr<const CompiledGrammar>>& compiled() const { return compiled_; }

 private:
  friend class GrammarService;
  const Grammar grammar_;
  const Time asked_;
  std::atomic<Time> begun_ = Time::max();
  std::atomic<bool> dropped_ = false;
  Result<std::shared_ptr<const CompiledGrammar>> compiled_;
  std::atomic<bool> done_ = false;
};

// Thread-safe. Threads begin with the first grammar.
class GrammarService {
 public:
  using MakeCompiler = std::function<Result<std::unique_ptr<GrammarCompiler>>()>;
  using Now = std::function<std::chrono::steady_clock::time_point()>;

  // The most that compiling one grammar takes, and that it waits for a thread.
  static constexpr std::chrono::seconds kMostTime{30};
  static constexpr std::chrono::seconds kMostWait{60};
  // A compilation cannot be cut short. One that takes too long keeps its thread until it ends.
  static constexpr size_t kThreads = 4;
  static constexpr size_t kMostWaiting = 64;

  // make_compiler: called once, on one of the threads; null: every grammar is refused. on_done:
  // called on a thread after each grammar.
  GrammarService(MakeCompiler make_compiler, Now now, std::function<void()> on_done)
      : make_compiler_(std::move(make_compiler)),
        now_(std::move(now)),
        on_done_(std::move(on_done)) {}

  // Errors: kInvalidArgument without a compiler; kUnsupported without a library; kExhausted if too
  // many grammars wait.
  [[nodiscard]] Result<std::shared_ptr<GrammarJob>> Start(Grammar grammar);

  // Whether the job may go on. Errors: kUnsupported for one that takes too long, kExhausted for one
  // that has waited too long. Then it is dropped: if it has not begun, it never will.
  [[nodiscard]] Status CheckTime(GrammarJob& job) const;

 private:
  void Run(GrammarJob& job);
  Result<std::shared_ptr<const CompiledGrammar>> Compile(const Grammar& grammar);

  const MakeCompiler make_compiler_;
  const Now now_;
  const std::function<void()> on_done_;
  std::mutex mutex_;  // guards compiler_, which is thread-safe itself
  std::unique_ptr<GrammarCompiler> compiler_;
  JobThreads threads_{{.threads = kThreads, .in_background = true}};  // the first to end
};

}  // namespace latte
