#include "src/jobs/batch/batch_output.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/jobs/batch/batch_line.h"
#include "tests/support/scratch_dir.h"

namespace latte::batch_output_test {
namespace {

bool Anything(const std::string& id) { return id != "unknown"; }

std::string Good(const std::string& id) { return BatchResult({1, id}, "{}") + "\n"; }
std::string Failed(std::optional<std::string> id) {
  return BatchFailure({2, std::move(id)}, {Code::kInvalidArgument, "why"}) + "\n";
}

class BatchOutputTest : public testing::Test {
 protected:
  Result<BatchOutput> Open(const std::string& text, bool overwrite = false) {
    std::ofstream(path_, std::ios::binary) << text;
    return BatchOutput::Open(path_, overwrite, Anything);
  }
  std::string Text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  testing_support::ScratchDir dir_;
  std::string path_ = dir_.File("out.jsonl");
};

TEST_F(BatchOutputTest, MakesTheFileAndAddsWholeLines) {
  BatchOutput out = BatchOutput::Open(path_, false, Anything).value();
  ASSERT_TRUE(out.Append(BatchResult({1, "a"}, "{}")));
  EXPECT_EQ(Text(), Good("a"));
}

TEST_F(BatchOutputTest, KeepsWhatSucceeded) {
  const std::string text =
      Good("a") + Failed("b") + Good("c") + Good("d") + Failed(std::nullopt) + Good("e");
  BatchOutput out = Open(text).value();
  EXPECT_EQ(out.finished(), (std::unordered_set<std::string>{"a", "c", "d", "e"}));
  ASSERT_TRUE(out.Append(BatchResult({1, "f"}, "{}")));
  EXPECT_EQ(Text(), Good("a") + Good("c") + Good("d") + Good("e") + Good("f"));
}

TEST_F(BatchOutputTest, CutsOffATornLineWhereverItWasTorn) {
  const std::string line = Good("b");
  for (size_t size = 1; size < line.size(); ++size) {
    const Result<BatchOutput> out = Open(Good("a") + line.substr(0, size));
    ASSERT_TRUE(out) << size << out.error().message;
    EXPECT_EQ(out->finished().size(), 1U);
    EXPECT_EQ(Text(), Good("a")) << size;
  }
}

TEST_F(BatchOutputTest, LeavesOtherFilesAloneWhateverTheFlags) {
  const std::string good = Good("a");
  for (const std::string& text :
       {std::string("poem\n"), std::string("poem"), std::string("{}\n"), std::string("\n"),
        good + "\n", good + "poem", "poem\n" + good,
        std::string(R"({"id":"x","custom_id":null,"response":{"status_code":200}})") + "\n"})
    for (const bool overwrite : {false, true}) {
      const Result<BatchOutput> out = Open(text, overwrite);
      ASSERT_FALSE(out) << text;
      EXPECT_EQ(ExitCode(out.error().code), 2) << text;
      EXPECT_NE(out.error().message.find(path_), std::string::npos) << out.error().message;
      EXPECT_EQ(out.error().message.find("--overwrite"), std::string::npos) << out.error().message;
      EXPECT_EQ(Text(), text);
    }
}

TEST_F(BatchOutputTest, LeavesResultsOfOtherInputsAlone) {
  for (const std::string& text : {Good("a") + Good("a"), Good("unknown"), Failed("unknown")}) {
    const Result<BatchOutput> out = Open(text);
    ASSERT_FALSE(out) << text;
    EXPECT_EQ(ExitCode(out.error().code), 2) << text;
    EXPECT_NE(out.error().message.find("--overwrite"), std::string::npos) << out.error().message;
    EXPECT_EQ(Text(), text);
  }
}

TEST_F(BatchOutputTest, OverwriteForgetsResultsOnceThereIsAnother) {
  const std::string text = Good("a") + Good("a") + Failed("unknown") + Good("b").substr(0, 20);
  {
    const BatchOutput out = Open(text, true).value();
    EXPECT_TRUE(out.finished().empty());
  }
  EXPECT_EQ(Text(), text);
  BatchOutput out = Open(text, true).value();
  ASSERT_TRUE(out.Append(BatchResult({1, "c"}, "{}")));
  ASSERT_TRUE(out.Append(BatchResult({1, "d"}, "{}")));
  EXPECT_EQ(Text(), Good("c") + Good("d"));
  ASSERT_TRUE(out.Close());
  BatchOutput none = Open(text, true).value();
  ASSERT_TRUE(none.Close());
  EXPECT_EQ(Text(), "");
}

TEST_F(BatchOutputTest, NeighboursAndLinksStay) {
  std::ofstream(path_ + ".tmp") << "mine";
  std::filesystem::create_symlink(path_, dir_.File("link"));
  std::ofstream(path_, std::ios::binary) << Good("a") + Failed("b");
  ASSERT_TRUE(BatchOutput::Open(dir_.File("link"), false, Anything));
  EXPECT_TRUE(std::filesystem::is_symlink(dir_.File("link")));
  EXPECT_EQ(Text(), Good("a"));
  EXPECT_EQ(std::filesystem::file_size(path_ + ".tmp"), 4U);
}

TEST_F(BatchOutputTest, OneProgramAtATime) {
  const BatchOutput out = Open(Good("a") + Failed("b")).value();
  const Result<BatchOutput> second = BatchOutput::Open(path_, true, Anything);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kUnavailable);
  EXPECT_EQ(Text(), Good("a"));
}

TEST_F(BatchOutputTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(BatchOutput::Open("", false, Anything).error().code, Code::kInvalidArgument);
  EXPECT_EQ(BatchOutput::Open(dir_.path(), false, Anything).error().code, Code::kInvalidArgument);
  EXPECT_EQ(BatchOutput::Open(dir_.File("no/where"), false, Anything).error().code,
            Code::kUnavailable);
}

TEST(BatchLine, EveryMemberIsChecked) {
  const auto message = [](const std::string& text) {
    const Result<BatchLine> line = ParseBatchLine(text, "in: line 1");
    EXPECT_FALSE(line) << text;
    return line ? "" : line.error().message;
  };
  const std::string url = R"("url":"/v1/completions")";
  const std::string id = R"("custom_id":"a")";
  const std::string post = R"("method":"POST")";
  const auto object = [](std::string_view a, std::string_view b, std::string_view c) {
    return fmt::format(R"({{{},{},{},"body":{{}}}})", a, b, c);
  };
  EXPECT_TRUE(ParseBatchLine(object(id, post, url), "in: line 1"));
  EXPECT_NE(message(object(R"("custom_id":7)", post, url)).find("custom_id"), std::string::npos);
  EXPECT_NE(message(object(R"("custom_id":"")", post, url)).find("custom_id"), std::string::npos);
  EXPECT_NE(message(object(id, R"("method":"GET")", url)).find("GET"), std::string::npos);
  EXPECT_NE(message(object(id, post, R"("url":"/v1")")).find("/v1/completions"), std::string::npos);
  EXPECT_NE(message(object(id, post, url + R"(,"more":1)")).find("more"), std::string::npos);
  EXPECT_NE(message(fmt::format("{{{},{},{}}}", id, post, url)).find("body"), std::string::npos);
  EXPECT_NE(message("[]").find("object"), std::string::npos);
  EXPECT_NE(message("{").find("in: line 1"), std::string::npos);
  EXPECT_EQ(FindCustomId(object(id, "\"x\":1", url)), "a");
  EXPECT_EQ(FindCustomId("{"), std::nullopt);
}

}  // namespace
}  // namespace latte::batch_output_test
