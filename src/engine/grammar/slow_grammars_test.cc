// Grammars that take long, with an invented compiler: neither a step nor another grammar waits for
// them, and their answers are the same.
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "src/grammar/grammar.h"
#include "tests/support/engine_run.h"
#include "tests/support/fake_model.h"
#include "tests/support/plain_answer.h"

namespace latte::slow_grammars_test {
namespace {

using testing_support::AnswerPlainly;
using testing_support::EngineRun;
using testing_support::FakeModel;
using testing_support::PlainAnswer;

constexpr int64_t kMaxTokens = 128;

// Closed until it is opened.
class Gate {
 public:
  void Close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
    came_ = 0;
  }
  void Open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    ++came_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  // Until so many have come to it.
  void Await(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return came_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int came_ = 0;
};

// The names of the grammars say what they do.
struct Behaviour {
  Gate compile;                // "slow to compile"
  Gate mask;                   // "slow mask"
  std::atomic<int> masks = 0;  // of all answers
};

void UseProcessor(double seconds) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  for (const double begun = now(); now() - begun < seconds;) {
  }
}

// Takes every token.
class FakeMatcher final : public GrammarMatcher {
 public:
  FakeMatcher(std::string name, Behaviour* behaviour)
      : name_(std::move(name)), behaviour_(*behaviour) {}

  bool Accept(int32_t) override {
    ++tokens_;
    return true;
  }
  void Rollback(int tokens) override { tokens_ -= tokens; }
  void FillMask(std::span<uint32_t> mask) override {
    ++behaviour_.masks;
    if (name_ == "slow mask" && tokens_ == 2) behaviour_.mask.Pass();
    if (name_ == "heavy masks") UseProcessor(5e-3);
    std::ranges::fill(mask, ~uint32_t{0});
  }
  bool completed() const override { return true; }

 private:
  const std::string name_;
  Behaviour& behaviour_;
  int tokens_ = 0;
};

class FakeCompiled final : public CompiledGrammar {
 public:
  FakeCompiled(std::string name, Behaviour* behaviour)
      : name_(std::move(name)), behaviour_(behaviour) {}
  Result<std::unique_ptr<GrammarMatcher>> NewMatcher(std::span<const int32_t>) const override {
    return std::make_unique<FakeMatcher>(name_, behaviour_);
  }

 private:
  const std::string name_;
  Behaviour* const behaviour_;
};

class FakeCompiler final : public GrammarCompiler {
 public:
  explicit FakeCompiler(Behaviour* behaviour) : behaviour_(behaviour) {}
  Result<std::shared_ptr<const CompiledGrammar>> Compile(const Grammar& grammar) override {
    if (grammar.text == "slow to compile") behaviour_->compile.Pass();
    return std::make_shared<FakeCompiled>(grammar.text, behaviour_);
  }

 private:
  Behaviour* const behaviour_;
};

class SlowGrammarsTest : public testing::Test {
 protected:
  void TearDown() override {
    behaviour_.compile.Open();
    behaviour_.mask.Open();
  }

  void Make(const std::string& drafts = "0") {
    EngineOptions o;
    o.draft_tokens = drafts;
    if (drafts != "0") o.drafter = "lookup";
    o.page_tokens = 16;
    o.max_tokens = kMaxTokens;
    o.max_sequences = 8;
    o.max_batch_tokens = 40;
    o.threads = 1;
    o.deterministic = "strict";
    o.cache_bytes = 1 << 20;
    const auto settings = ResolveOptions(o, model_.config(), machine_, {int64_t{1} << 30});
    ASSERT_TRUE(settings) << ToString(settings.error());
    EngineParts parts{.model = &model_, .machine = &machine_};
    parts.grammar_compiler = [this] { return std::make_unique<FakeCompiler>(&behaviour_); };
    parts.now = [this] { return std::chrono::steady_clock::time_point(now_.load()); };
    auto run = EngineRun::Over(parts, *settings);
    ASSERT_TRUE(run) << ToString(run.error());
    run_ = *std::move(run);
  }

  static Request Ask(const std::string& grammar, uint64_t seed, int64_t max_tokens = 12) {
    Request r;
    for (int i = 0; i < 20; ++i)
      r.tokens.push_back(static_cast<int32_t>(Mix64(seed * 1000 + static_cast<uint64_t>(i)) % 50));
    r.grammar = grammar;
    r.sampling.seed = seed;
    r.stop.max_tokens = max_tokens;
    r.logprobs = 0;
    return r;
  }
  RequestId Submit(const Request& request) {
    const auto id = run_->core().Submit(request);
    EXPECT_TRUE(id) << ToString(id.error());
    return id ? *id : 0;
  }
  void Step() { ASSERT_TRUE(run_->core().Step()); }
  // Steps until an answer has ended.
  void RunUntilEnd(RequestId id) {
    for (int steps = 0; !run_->Of(id).finish; ++steps) {
      ASSERT_LT(steps, 100'000);
      Step();
    }
  }
  void ExpectPlain(RequestId id, const Request& request) {
    for (int choice = 0; choice < request.n; ++choice) {
      const PlainAnswer plain = AnswerPlainly(request, choice, kMaxTokens);
      EXPECT_EQ(run_->Of(id, choice).tokens, plain.tokens) << choice;
      EXPECT_EQ(run_->Of(id, choice).logprobs, plain.logprobs) << choice;
    }
  }
  void Later(std::chrono::seconds time) {
    now_ = now_.load() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(time);
  }

  Behaviour behaviour_;
  std::atomic<std::chrono::steady_clock::duration> now_{std::chrono::hours(1)};
  FakeModel model_;
  Machine machine_ = Machine::Detect().value();
  std::unique_ptr<EngineRun> run_;
};

TEST_F(SlowGrammarsTest, OtherGrammarsAreCompiledBesideASlowOne) {
  Make();
  const RequestId slow = Submit(Ask("slow to compile", 1));
  behaviour_.compile.Await(1);
  const Request usual = Ask("usual", 2);
  const Request free = Ask("", 3);
  const RequestId first = Submit(usual);
  const RequestId second = Submit(free);
  RunUntilEnd(first);
  RunUntilEnd(second);
  ExpectPlain(first, usual);
  ExpectPlain(second, free);
  EXPECT_FALSE(run_->Of(slow).finish);
  behaviour_.compile.Open();
  EXPECT_EQ(run_->Finish(), "");
  ExpectPlain(slow, Ask("slow to compile", 1));
}

TEST_F(SlowGrammarsTest, AGrammarThatIsCompiledTooLongFailsItsRequest) {
  Make();
  const RequestId slow = Submit(Ask("slow to compile", 1));
  behaviour_.compile.Await(1);
  Later(GrammarService::kMostTime);
  Step();
  EXPECT_FALSE(run_->Of(slow).finish);
  Later(std::chrono::seconds(1));
  Step();
  EXPECT_EQ(run_->Of(slow).finish, FinishReason::kError);
  EXPECT_EQ(run_->Of(slow).error.code, Code::kUnsupported);
  EXPECT_NE(run_->Of(slow).error.message.find("not compiled after 30 s"), std::string::npos);
  const Request usual = Ask("usual", 2);
  const RequestId next = Submit(usual);
  RunUntilEnd(next);
  ExpectPlain(next, usual);
  behaviour_.compile.Open();
  EXPECT_EQ(run_->Finish(), "");
}

TEST_F(SlowGrammarsTest, ThreadsThatCompileAreBounded) {
  Make();
  std::vector<RequestId> slow;
  for (size_t i = 0; i < GrammarService::kThreads; ++i)
    slow.push_back(Submit(Ask("slow to compile", i)));
  behaviour_.compile.Await(GrammarService::kThreads);
  const RequestId waits = Submit(Ask("usual", 20));
  for (size_t i = 1; i < GrammarService::kMostWaiting; ++i) Submit(Ask("usual", 100 + i));
  const auto refused = run_->core().Submit(Ask("usual", 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  Step();
  EXPECT_FALSE(run_->Of(waits).finish);
  Later(GrammarService::kMostWait + std::chrono::seconds(1));
  Step();
  for (const RequestId id : slow) EXPECT_EQ(run_->Of(id).error.code, Code::kUnsupported);
  EXPECT_EQ(run_->Of(waits).error.code, Code::kExhausted);
  behaviour_.compile.Open();
  EXPECT_EQ(run_->Finish(), "");
  const Request usual = Ask("usual", 2);
  Result<RequestId> next = run_->core().Submit(usual);
  while (!next) {  // until a thread has taken one of the dropped grammars from the queue
    ASSERT_EQ(next.error().code, Code::kExhausted);
    std::this_thread::yield();
    next = run_->core().Submit(usual);
  }
  EXPECT_EQ(run_->Finish(), "");
  ExpectPlain(*next, usual);
}

TEST_F(SlowGrammarsTest, ARequestIsCancelledWhileItsGrammarIsCompiled) {
  Make();
  Request slow = Ask("slow to compile", 1);
  slow.n = 2;
  const RequestId id = Submit(slow);
  behaviour_.compile.Await(1);
  Step();
  EXPECT_EQ(run_->core().Stats().waiting, 1);
  run_->core().Cancel(id);
  Step();
  EXPECT_EQ(run_->Of(id, 0).finish, FinishReason::kCancelled);
  EXPECT_EQ(run_->Of(id, 1).finish, FinishReason::kCancelled);
  EXPECT_EQ(run_->core().Stats().waiting, 0);
  behaviour_.compile.Open();
  EXPECT_EQ(run_->Finish(), "");
}

TEST_F(SlowGrammarsTest, OthersGoOnWithoutAnAnswerWhoseMaskIsLate) {
  for (const char* drafts : {"0", "3"}) {
    behaviour_.mask.Close();
    Make(drafts);
    const Request late = Ask("slow mask", 1);
    const Request free = Ask("", 2, 40);
    const Request usual = Ask("usual", 3, 40);
    const RequestId ids[] = {Submit(late), Submit(free), Submit(usual)};
    RunUntilEnd(ids[1]);
    RunUntilEnd(ids[2]);
    EXPECT_FALSE(run_->Of(ids[0]).finish);
    EXPECT_LE(run_->Of(ids[0]).tokens.size(), 2U);
    behaviour_.mask.Open();
    EXPECT_EQ(run_->Finish(), "");
    ExpectPlain(ids[0], late);
    ExpectPlain(ids[1], free);
    ExpectPlain(ids[2], usual);
  }
}

TEST_F(SlowGrammarsTest, AMaskThatTakesTooLongFailsItsRequest) {
  Make();
  const Request free = Ask("", 2, 60);
  const RequestId late = Submit(Ask("slow mask", 1));
  const RequestId other = Submit(free);
  while (run_->Of(late).tokens.size() < 2) Step();
  Step();
  behaviour_.mask.Await(1);
  Later(MaskWorker::kMostTime + std::chrono::seconds(1));
  Step();
  EXPECT_EQ(run_->Of(late).finish, FinishReason::kError);
  EXPECT_EQ(run_->Of(late).error.code, Code::kUnsupported);
  EXPECT_NE(run_->Of(late).error.message.find("not known after 5 s"), std::string::npos);
  RunUntilEnd(other);
  ExpectPlain(other, free);
  behaviour_.mask.Open();
  EXPECT_EQ(run_->Finish(), "");
}

TEST_F(SlowGrammarsTest, ACancelledAnswerLeavesItsMaskBehind) {
  Make();
  const RequestId late = Submit(Ask("slow mask", 1));
  while (run_->Of(late).tokens.size() < 2) Step();
  Step();
  behaviour_.mask.Await(1);
  run_->core().Cancel(late);
  EXPECT_EQ(run_->Finish(), "");
  EXPECT_EQ(run_->Of(late).finish, FinishReason::kCancelled);
  const Request usual = Ask("usual", 2);
  const RequestId next = Submit(usual);
  EXPECT_EQ(run_->Finish(), "");
  ExpectPlain(next, usual);
}

TEST_F(SlowGrammarsTest, AnswersWithHeavyMasksAreTheSame) {
  for (const char* drafts : {"0", "3"}) {
    Make(drafts);
    behaviour_.masks = 0;
    Request heavy = Ask("heavy masks", 1);
    heavy.n = 3;
    const Request free = Ask("", 2, 40);
    const RequestId ids[] = {Submit(heavy), Submit(free)};
    EXPECT_EQ(run_->Finish(60), "");
    ExpectPlain(ids[0], heavy);
    ExpectPlain(ids[1], free);
    // The first is shared.
    if (drafts == std::string("0")) {
      EXPECT_EQ(behaviour_.masks, 1 + 3 * 11);
    }
  }
}

}  // namespace
}  // namespace latte::slow_grammars_test
