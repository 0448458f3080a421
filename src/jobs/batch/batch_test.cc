// A batch against an engine that a test scripts: answers out of order, requests that fail, a queue
// that is full, an engine that breaks.
#include "src/jobs/batch/batch.h"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/fake_engine.h"
#include "tests/support/scratch_dir.h"

namespace latte::batch_test {
namespace {

using testing_support::FakeEngine;
using testing_support::ScratchDir;

constexpr auto kStop = FinishReason::kStop;

const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

class BatchTest : public testing::Test {
 protected:
  // One completion per prompt, a text or a JSON list of texts; prompt i has the custom_id "i".
  Batch Open(const std::vector<std::string>& prompts) {
    std::ofstream input(input_);
    for (size_t i = 0; i < prompts.size(); ++i)
      input << fmt::format(
          R"({{"custom_id":"{}","method":"POST","url":"/v1/completions","body":{{"prompt":{}}}}})"
          "\n",
          i, prompts[i].starts_with('[') ? prompts[i] : fmt::format(R"("{}")", prompts[i]));
    input.close();
    return Batch::Open({input_, output_}).value();
  }

  // "custom_id text" or "custom_id message" of each result, in the order of the file.
  std::vector<std::string> Results() const {
    std::vector<std::string> out;
    std::ifstream file(output_);
    for (std::string line; std::getline(file, line);) {
      const Json json = Json::Parse(line, output_).value();
      const Json body = json.Get("response")->Get("body").value();
      const auto choices = body.Find("choices");
      std::string text = choices ? "" : body.Get("error")->GetString("message").value();
      for (size_t i = 0; choices && i < choices->size(); ++i) {
        if (i > 0) text += '|';
        text += choices->At(i).GetString("text").value();
      }
      out.push_back(fmt::format("{} {}", json.GetString("custom_id").value(), text));
    }
    return out;
  }

  ScratchDir dir_;
  std::string input_ = dir_.File("in.jsonl");
  std::string output_ = dir_.File("out.jsonl");
  FakeEngine engine_;
};

using Lines = std::vector<std::string>;

TEST_F(BatchTest, ResultsComeInTheOrderInWhichAnswersEnd) {
  Batch batch = Open({"a", "b", "c"});
  engine_.on_step = [&]() -> Status {
    if (engine_.requests().size() < 3 || !engine_.steps.empty()) return {};
    engine_.steps = {{engine_.Event(1, "A"), engine_.Event(3, "C1")},
                     {},
                     {engine_.Event(3, "C2", kStop), engine_.Event(1, "-")},
                     {engine_.Event(2, "B", FinishReason::kLength)},
                     {engine_.Event(1, "A2", kStop)}};
    return {};
  };
  ASSERT_TRUE(batch.Run(&engine_, Tiny(), {}));
  EXPECT_EQ(Results(), (Lines{"2 C1C2", "1 B", "0 A-A2"}));
  EXPECT_EQ(batch.progress().failed, 0);
  EXPECT_TRUE(batch.finished());
}

// Another thread may drive an engine: its first event can come while Submit still runs.
TEST_F(BatchTest, AnEventMayComeBeforeItsIdIsKnown) {
  class Hasty final : public Engine {
   public:
    explicit Hasty(FakeEngine* fake) : fake_(fake) {}
    Result<RequestId> Submit(Request request) override {
      const Result<RequestId> id = fake_->Submit(std::move(request));
      fake_->steps.push_back({fake_->Event(*id, "now", kStop)});
      LATTE_RETURN_IF_ERROR(fake_->Step());
      return id;
    }
    void Cancel(RequestId id) override { fake_->Cancel(id); }
    void SetEventSink(EventSink sink) override { fake_->SetEventSink(std::move(sink)); }
    Status Step() override { return fake_->Step(); }
    bool WaitForWork(std::chrono::steady_clock::time_point) override { return false; }
    void Wake() override {}
    Status SavePrefixes() override { return {}; }
    EngineStats Stats() const override { return fake_->Stats(); }
    const EngineOptions& options() const override { return fake_->options(); }

   private:
    FakeEngine* fake_;
  };
  Batch batch = Open({"a", "b"});
  Hasty hasty(&engine_);
  ASSERT_TRUE(batch.Run(&hasty, Tiny(), {}));
  EXPECT_EQ(Results(), (Lines{"0 now", "1 now"}));
}

TEST_F(BatchTest, ARequestThatFailsIsAResultAndTheOthersContinue) {
  Batch batch = Open({"a", "b", "c"});
  engine_.on_submit = [&](const Request& request) -> Status {
    if (request.user_data == 1) return InvalidArgument("too long");
    return {};
  };
  engine_.on_step = [&]() -> Status {
    TokenEvent failed = engine_.Event(1, "", FinishReason::kError);
    failed.error = {Code::kCorrupt, "bad logits"};
    engine_.steps = {{failed, engine_.Event(2, "C", kStop)}};
    return {};
  };
  ASSERT_TRUE(batch.Run(&engine_, Tiny(), {}));
  EXPECT_EQ(Results(), (Lines{"1 too long", "0 bad logits", "2 C"}));
  EXPECT_EQ(batch.progress().done, 3);
  EXPECT_EQ(batch.progress().failed, 2);
}

TEST_F(BatchTest, AFullQueueIsTriedAgainAfterTheNextStep) {
  Batch batch = Open({"a", "b"});
  bool full = false;
  int refused = 0;
  engine_.on_submit = [&](const Request&) -> Status {
    if (full) {
      ++refused;
      return Exhausted("full");
    }
    full = true;
    return {};
  };
  engine_.on_step = [&]() -> Status {
    full = false;
    engine_.steps = {{engine_.Event(engine_.requests().size(), "x", kStop)}};
    return {};
  };
  ASSERT_TRUE(batch.Run(&engine_, Tiny(), {}));
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(Results(), (Lines{"0 x", "1 x"}));
}

TEST_F(BatchTest, PromptsOfAListAreOneResult) {
  Batch batch = Open({R"(["a","b"])", "c"});
  engine_.on_step = [&]() -> Status {
    if (engine_.requests().size() < 3 || !engine_.steps.empty()) return {};
    engine_.steps = {{engine_.Event(2, "B"), engine_.Event(3, "C", kStop)},
                     {engine_.Event(1, "A", kStop), engine_.Event(2, "-", kStop)}};
    return {};
  };
  ASSERT_TRUE(batch.Run(&engine_, Tiny(), {}));
  EXPECT_EQ(Results(), (Lines{"1 C", "0 A|B-"}));
  EXPECT_TRUE(engine_.cancelled().empty());
}

TEST_F(BatchTest, APromptThatFailsEndsItsList) {
  Batch batch = Open({R"(["a","b"])", "c"});
  engine_.on_step = [&]() -> Status {
    if (engine_.requests().size() < 3 || !engine_.steps.empty()) return {};
    TokenEvent bad = engine_.Event(2, "", FinishReason::kError);
    bad.error = {Code::kInternal, "not a number"};
    engine_.steps = {
        {bad, engine_.Event(1, "A")},
        {engine_.Event(1, "", FinishReason::kCancelled), engine_.Event(3, "C", kStop)}};
    return {};
  };
  ASSERT_TRUE(batch.Run(&engine_, Tiny(), {}));
  EXPECT_EQ(Results(), (Lines{"0 not a number", "1 C"}));
  ASSERT_FALSE(engine_.cancelled().empty());
  EXPECT_EQ(engine_.cancelled().front(), 1U);
  EXPECT_EQ(batch.progress().failed, 1);
}

TEST_F(BatchTest, APromptThatIsRefusedEndsItsList) {
  Batch batch = Open({R"(["a","b","d"])", "c"});
  engine_.on_submit = [](const Request& request) -> Status {
    if (request.prompt != "b") return {};
    return InvalidArgument("prompt: not this one");
  };
  engine_.on_step = [&]() -> Status {
    if (!engine_.steps.empty()) return {};
    engine_.steps = {{engine_.Event(1, "A", kStop), engine_.Event(2, "C", kStop)}};
    return {};
  };
  ASSERT_TRUE(batch.Run(&engine_, Tiny(), {}));
  EXPECT_EQ(Results(), (Lines{"0 prompt: not this one", "1 C"}));
  EXPECT_EQ(engine_.cancelled(), std::vector<RequestId>{1});
}

TEST_F(BatchTest, AnEngineThatBreaksEndsTheRunAndKeepsWhatIsDone) {
  engine_.on_step = [&]() -> Status {
    if (engine_.Stats().steps == 2) return Exhausted("memory ran out");
    engine_.steps = {{engine_.Event(1, "A", kStop)}};
    return {};
  };
  {
    Batch batch = Open({"a", "b"});
    const Status status = batch.Run(&engine_, Tiny(), {});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "memory ran out");
    EXPECT_FALSE(batch.finished());
  }
  // The same command continues: the first answer is there, the second is asked for.
  Batch again = Batch::Open({input_, output_}).value();
  EXPECT_EQ(again.progress().resumed, 1);
  FakeEngine next;
  next.on_step = [&]() -> Status {
    next.steps = {{next.Event(1, "B", kStop)}};
    return {};
  };
  ASSERT_TRUE(again.Run(&next, Tiny(), {}));
  EXPECT_EQ(Results(), (Lines{"0 A", "1 B"}));
}

}  // namespace
}  // namespace latte::batch_test
