// What goes wrong stays with the request it happened to: bad logits, cancellations at any moment,
// files that are not what they were.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "src/kernels/cpu/targets.h"
#include "tests/support/engine_run.h"
#include "tests/support/parameter_name.h"
#include "tests/support/plain_answer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/step/no_followers.h"
#include "tests/support/traffic.h"

namespace latte::engine_faults_test {
namespace {

namespace fs = std::filesystem;
using testing_support::AnswerPlainly;
using testing_support::EngineRun;
using testing_support::FakeModel;
using testing_support::FaultOfRareTokens;
using testing_support::kFakeVocab;
using testing_support::kFirstRareToken;
using testing_support::Outcome;
using testing_support::PlainAnswer;
using testing_support::ScratchDir;

constexpr int64_t kMaxTokens = 128;

class EngineFaultsTest : public testing::Test {
 protected:
  EngineFaultsTest() { model_.fault = FaultOfRareTokens; }

  static EngineOptions Options(int64_t pages = 64) {
    EngineOptions o;
    o.draft_tokens = "0";
    o.page_tokens = 16;
    o.max_tokens = kMaxTokens;
    o.max_sequences = 8;
    o.max_batch_tokens = 40;
    o.threads = 1;
    o.deterministic = "strict";
    const CacheSpec spec = CacheSpecFor(testing_support::FakeConfig(), AttentionMode::kAuto,
                                        CacheDType::Plain(DType::kBF16), o.page_tokens);
    o.cache_bytes = pages * spec.bytes_per_page();
    return o;
  }
  std::unique_ptr<EngineRun> Make(const EngineOptions& options,
                                  StepAnnouncer* followers = nullptr) const {
    auto run = EngineRun::Create(model_, options, {}, {}, followers);
    EXPECT_TRUE(run) << ToString(run.error());
    return std::move(*run);
  }

  static Request Ask(int64_t length, uint64_t seed, int64_t max_tokens = 12) {
    Request r;
    for (int64_t i = 0; i < length; ++i)
      r.tokens.push_back(static_cast<int32_t>(Mix64(seed * 1000 + static_cast<uint64_t>(i)) %
                                              static_cast<uint64_t>(kFirstRareToken)));
    r.sampling.seed = seed;
    r.stop.max_tokens = max_tokens;
    r.logprobs = 0;
    return r;
  }
  static RequestId Submit(EngineRun& run, const Request& request) {
    const auto id = run.core().Submit(request);
    EXPECT_TRUE(id) << ToString(id.error());
    return *id;
  }
  void ExpectPlain(EngineRun& run, RequestId id, const Request& request,
                   const std::string& what = "") const {
    for (int choice = 0; choice < request.n; ++choice) {
      const PlainAnswer plain = AnswerPlainly(request, choice, kMaxTokens, model_.fault);
      EXPECT_EQ(run.Of(id, choice).tokens, plain.tokens) << what << " answer " << choice;
      EXPECT_EQ(run.Of(id, choice).logprobs, plain.logprobs) << what << " answer " << choice;
      EXPECT_EQ(run.Of(id, choice).finish, plain.finish) << what << " answer " << choice;
    }
  }

  FakeModel model_;
};

TEST_F(EngineFaultsTest, BadLogitsEndOneRequestAndNoOther) {
  for (const int32_t fault : {0, 1, 2}) {
    const auto run = Make(Options());
    const Request good = Ask(40, 1);
    Request at_once = Ask(40, 2);
    at_once.tokens.back() = kFirstRareToken + fault;
    at_once.n = 3;
    Request later = Ask(40, 3);  // the bias makes it sample the token with the fault
    later.sampling.logit_bias = {{kFirstRareToken + fault, 100.0f}};
    later.stop.min_tokens = 3;
    const RequestId ids[] = {Submit(*run, at_once), Submit(*run, good), Submit(*run, later)};
    EXPECT_EQ(run->Finish(), "");
    for (int choice = 0; choice < 3; ++choice) {
      EXPECT_EQ(run->Of(ids[0], choice).finish, FinishReason::kError);
      EXPECT_EQ(run->Of(ids[0], choice).error.code, Code::kCorrupt);
      EXPECT_TRUE(run->Of(ids[0], choice).tokens.empty());
    }
    EXPECT_EQ(run->Of(ids[2]).finish, FinishReason::kError);
    EXPECT_EQ(run->Of(ids[2]).tokens, std::vector<int32_t>{kFirstRareToken + fault});
    ExpectPlain(*run, ids[1], good);
    EXPECT_EQ(run->core().Stats().requests_failed, 4);
    // The engine goes on.
    const RequestId again = Submit(*run, good);
    EXPECT_EQ(run->Finish(), "");
    ExpectPlain(*run, again, good);
  }
}

TEST_F(EngineFaultsTest, NothingLeftToDrawIsAnErrorOfTheRequest) {
  const auto run = Make(Options());
  Request r = Ask(5, 1);
  for (int32_t t = 0; t < kFakeVocab; ++t) r.stop.tokens.push_back(t);
  r.stop.min_tokens = 2;
  const RequestId id = Submit(*run, r);
  EXPECT_EQ(run->Finish(), "");
  EXPECT_EQ(run->Of(id).finish, FinishReason::kError);
  EXPECT_EQ(run->Of(id).error.code, Code::kInvalidArgument);
}

// A request to be cancelled among others, in a state that depends on the step.
struct Shape {
  const char* name;
  int64_t pages = 64;
  int64_t max_sequences = 8;
  int answers = 1;
  bool on_disk = false;
  bool last = false;  // submitted after the others
  int64_t prompt_logprobs = -1;

  friend void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }
};

class CancelTest : public EngineFaultsTest, public testing::WithParamInterface<Shape> {};

TEST_P(CancelTest, AtEveryStep) {
  const Shape& shape = GetParam();
  const ScratchDir dir;
  EngineOptions options = Options(shape.pages);
  options.max_sequences = shape.max_sequences;
  if (shape.on_disk) options.cache_dir = dir.File("prefixes");
  Request target = Ask(60, 9, 40);
  target.n = shape.answers;
  target.prompt_logprobs = static_cast<int>(shape.prompt_logprobs);
  const std::vector<Request> others = {Ask(20, 1, 60), Ask(40, 2, 60), Ask(30, 3, 60)};
  if (shape.on_disk) {
    const auto first = Make(options);
    Submit(*first, target);
    EXPECT_EQ(first->Finish(), "");
    EXPECT_TRUE(first->core().SavePrefixes());
  }
  int64_t cancelled = 0;
  int64_t preemptions = 0;
  for (int steps = 0; steps < 60; ++steps) {
    const std::string what = fmt::format("{} at step {}", shape.name, steps);
    const auto run = Make(options);
    RequestId id = 0;
    std::vector<RequestId> ids;
    if (!shape.last) id = Submit(*run, target);
    for (const Request& r : others) ids.push_back(Submit(*run, r));
    if (shape.last) id = Submit(*run, target);
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(run->core().Step());
    run->core().Cancel(id);
    run->core().Cancel(id);
    EXPECT_EQ(run->Finish(), "") << what;
    for (size_t i = 0; i < others.size(); ++i) ExpectPlain(*run, ids[i], others[i], what);
    for (int choice = 0; choice < target.n; ++choice) {
      const Outcome& out = run->Of(id, choice);
      ASSERT_TRUE(out.finish) << what;
      if (out.finish == FinishReason::kCancelled)
        ++cancelled;
      else
        EXPECT_EQ(out.tokens, AnswerPlainly(target, choice, kMaxTokens).tokens) << what;
    }
    EXPECT_EQ(run->outcomes().size(), others.size() + static_cast<size_t>(target.n)) << what;
    preemptions += run->core().Stats().preemptions;
  }
  EXPECT_GT(cancelled, 5);
  EXPECT_EQ(preemptions > 0, shape.pages < 20);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CancelTest,
    testing::Values(
        Shape{.name = "running"}, Shape{.name = "forked", .answers = 4},
        Shape{.name = "loading", .on_disk = true},
        Shape{.name = "loading and forked", .answers = 2, .on_disk = true},
        Shape{.name = "waiting", .max_sequences = 2, .answers = 2, .last = true},
        Shape{.name = "preempted", .pages = 15},
        Shape{.name = "last and preempted", .pages = 15, .last = true},
        Shape{.name = "forked and preempted", .pages = 15, .answers = 3},
        Shape{.name = "logprobs and preempted", .pages = 15, .last = true, .prompt_logprobs = 1}),
    testing_support::ParameterName());

// Where groups of ranks compute together, a step without tokens may still have to take part in
// others.
TEST_F(EngineFaultsTest, StepsWithoutTokensEndInAllGroups) {
  testing_support::NoFollowers followers;
  const auto run = Make(Options(), &followers);
  int64_t finished = 0;
  followers.on_finish = [&] { ++finished; };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run->core().Step());
  EXPECT_EQ(model_.forwards(), 0);
  EXPECT_EQ(finished, 3);
  const Request r = Ask(20, 1);
  const RequestId id = Submit(*run, r);
  EXPECT_EQ(run->Finish(), "");
  ExpectPlain(*run, id, r);
}

TEST_F(EngineFaultsTest, CancelledRequestsLeaveTheQueue) {
  EngineOptions options = Options();
  options.max_sequences = 1;
  options.max_queued_requests = 2;
  const auto run = Make(options);
  const RequestId busy = Submit(*run, Ask(20, 1, 50));
  ASSERT_TRUE(run->core().Step());  // it runs alone
  for (int round = 0; round < 5; ++round) {
    const RequestId waiting[] = {Submit(*run, Ask(20, 2)), Submit(*run, Ask(30, 3))};
    EXPECT_EQ(run->core().Submit(Ask(20, 4)).error().code, Code::kExhausted);
    for (const RequestId id : waiting) run->core().Cancel(id);
    ASSERT_TRUE(run->core().Step());
  }
  EXPECT_EQ(run->Finish(), "");
  EXPECT_EQ(run->Of(busy).tokens.size(), 50u);
}

TEST_F(EngineFaultsTest, PrefixesStayWithTheirSalt) {
  const auto run = Make(Options());
  const auto cached = [&](const std::string& salt, int64_t length) {
    Request r = Ask(length, 1, 1);
    r.cache_salt = salt;
    const RequestId id = Submit(*run, r);
    EXPECT_EQ(run->Finish(), "");
    return run->Of(id).cached_tokens;
  };
  EXPECT_EQ(cached("a", 40), 0);
  EXPECT_EQ(cached("", 60), 0);
  EXPECT_EQ(cached("b", 60), 0);
  EXPECT_EQ(cached("a", 60), 32);
  EXPECT_EQ(cached("", 80), 48);
}

// Below strict determinism, rows in the prefix cache may have been computed by another path than
// the prompt's, such as rows of generated tokens: a preempted sequence finds the same rows again.
TEST_F(EngineFaultsTest, PreemptedSequencesKeepWhatTheyFound) {
  const auto second_turn = [&](int64_t pages, bool first_turn, int64_t& preemptions) {
    EngineOptions options = Options(pages);
    options.deterministic = "on";
    // By these rates the second prompt is not absorbed, as the answer that it contains was.
    const auto made = EngineRun::Create(model_, options, {}, MlaRates::Typical({.isa = x86::kAmx}));
    EXPECT_TRUE(made);
    const auto& run = *made;
    const Request first = Ask(20, 1, 30);
    Request second = first;
    const RequestId id = Submit(*run, first);
    EXPECT_EQ(run->Finish(), "");
    const std::vector<int32_t>& answer = run->Of(id).tokens;
    second.tokens.insert(second.tokens.end(), answer.begin(), answer.end());
    if (!first_turn) second.cache_salt = "nothing is found";
    Submit(*run, Ask(20, 7, 50));
    const RequestId again = Submit(*run, second);
    EXPECT_EQ(run->Finish(), "");
    preemptions = run->core().Stats().preemptions;
    EXPECT_EQ(run->Of(again).cached_tokens, first_turn ? 48 : 0);
    return run->Of(again).tokens;
  };
  int64_t preemptions = 0;
  const std::vector<int32_t> expected = second_turn(64, true, preemptions);
  EXPECT_EQ(preemptions, 0);
  EXPECT_NE(second_turn(64, false, preemptions), expected);  // the rows found do make a difference
  EXPECT_EQ(second_turn(8, true, preemptions), expected);
  EXPECT_GT(preemptions, 0);
}

TEST_F(EngineFaultsTest, PromptLogprobsAreEmittedOnceThoughTheirPromptIsPreempted) {
  EngineOptions options = Options(10);
  options.max_sequences = 2;
  options.max_batch_tokens = 6;
  const auto run = Make(options);
  Submit(*run, Ask(14, 1, 60));  // takes the pages of the prompt that is computed with it
  Request prompt = Ask(120, 2, 4);
  prompt.prompt_logprobs = 0;
  const RequestId id = Submit(*run, prompt);
  EXPECT_EQ(run->Finish(), "");
  EXPECT_GT(run->core().Stats().preemptions, 0);
  ExpectPlain(*run, id, prompt);
  EXPECT_EQ(run->Of(id).prompt_logprobs, AnswerPlainly(prompt, 0, kMaxTokens).prompt_logprobs);
}

// Files of a cache folder that an engine filled.
class DiskFaultsTest : public EngineFaultsTest {
 protected:
  DiskFaultsTest() : options_(Options()), requests_({Ask(100, 1), Ask(60, 2), Ask(120, 3, 4)}) {
    options_.cache_dir = dir_.File("prefixes");
    ExpectAnswers();
  }
  // All requests by a new engine, which then saves what it has. Returns its counters. Something may
  // happen after so many of its steps.
  EngineStats ExpectAnswers(
      int steps = 0, const std::function<void()>& then = [] {}) {
    const auto run = Make(options_);
    std::vector<RequestId> ids;
    for (const Request& r : requests_) ids.push_back(Submit(*run, r));
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(run->core().Step());
    then();
    EXPECT_EQ(run->Finish(), "");
    for (size_t i = 0; i < ids.size(); ++i) ExpectPlain(*run, ids[i], requests_[i]);
    saved_ = run->core().SavePrefixes();
    return run->core().Stats();
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(options_.cache_dir))
      if (entry.is_regular_file()) out.push_back(entry.path());
    std::ranges::sort(out);
    return out;
  }

  const ScratchDir dir_;
  EngineOptions options_;
  std::vector<Request> requests_;
  Status saved_;
};

TEST_F(DiskFaultsTest, CorruptFilesAreComputedAgain) {
  ASSERT_EQ(Files().size(), 16u);
  EXPECT_EQ(ExpectAnswers().disk_tokens, 6 * 16 + 3 * 16 + 7 * 16);
  for (const size_t every : {1u, 2u, 3u, 5u}) {
    const std::vector<fs::path> files = Files();
    ASSERT_EQ(files.size(), 16u);  // what was refused was saved anew
    for (size_t i = 0; i < files.size(); i += every) {
      std::fstream file(files[i], std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-static_cast<int>(1 + i % 64), std::ios::end);
      file.put('\x5a');
      if (i % 2 == 1) fs::resize_file(files[i], i * 7);
    }
    EXPECT_LT(ExpectAnswers().disk_tokens, 16 * 16);
    EXPECT_TRUE(saved_);
  }
}

TEST_F(DiskFaultsTest, FolderThatVanishesIsAMiss) {
  const auto vanish = [&] { fs::remove_all(options_.cache_dir); };
  EXPECT_EQ(ExpectAnswers(0, vanish).disk_tokens, 0);
  EXPECT_FALSE(saved_);  // there is no folder
  ExpectAnswers();       // made again
  EXPECT_TRUE(saved_);
  EXPECT_EQ(Files().size(), 16u);
  ExpectAnswers(1, vanish);  // some files may have been read before
}

TEST_F(DiskFaultsTest, FilesSwappedAmongPrefixesAreRefused) {
  const std::vector<fs::path> files = Files();
  for (size_t i = 0; i + 1 < files.size(); i += 2) {
    fs::rename(files[i], dir_.File("held"));
    fs::rename(files[i + 1], files[i]);
    fs::rename(dir_.File("held"), files[i + 1]);
  }
  EXPECT_EQ(ExpectAnswers().disk_tokens, 0);
}

// Evicted pages may still wait to be written, as many as the store takes.
TEST_F(DiskFaultsTest, SavingLosesNothingThatIsInMemory) {
  requests_.clear();
  for (uint64_t i = 0; i < 200; ++i) requests_.push_back(Ask(100, 100 + i, 1));
  options_.max_batch_tokens = 1000;
  options_.cache_bytes *= 4;
  const auto run = Make(options_);
  for (const Request& r : requests_) Submit(*run, r);
  EXPECT_EQ(run->Finish(), "");
  const int64_t kept = run->core().Stats().pages_cached / 6;  // of a prompt
  EXPECT_TRUE(run->core().SavePrefixes());
  ASSERT_GT(kept, 5);
  requests_.erase(requests_.begin(), requests_.end() - kept);
  EXPECT_EQ(ExpectAnswers().disk_tokens, kept * 96);
}

// A failed save is reported once; later saves succeed.
TEST_F(DiskFaultsTest, SavingSucceedsAgainAfterAFailure) {
  const auto run = Make(options_);
  const auto save = [&](uint64_t seed) {
    Submit(*run, Ask(50, seed));
    EXPECT_EQ(run->Finish(), "");
    return run->core().SavePrefixes();
  };
  const std::string folder = Files().front().parent_path();
  fs::rename(folder, dir_.File("away"));
  EXPECT_FALSE(save(50));
  fs::rename(dir_.File("away"), folder);
  EXPECT_TRUE(save(51));
}

}  // namespace
}  // namespace latte::engine_faults_test
