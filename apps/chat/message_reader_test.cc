#include "apps/chat/message_reader.h"

#include <deque>
#include <vector>

#include <gtest/gtest.h>

namespace latte::message_reader_test {
namespace {

// Lines of a test; "^C" is an interrupt, and a line with a newline was pasted.
class Lines final : public LineSource {
 public:
  explicit Lines(std::deque<std::string> lines) : lines_(std::move(lines)) {}
  Result<LineEvent> Next(std::string_view prompt, std::string* line) override {
    prompts += prompt;
    if (lines_.empty()) return LineEvent::kEnd;
    *line = lines_.front();
    lines_.pop_front();
    if (*line == "^C") return LineEvent::kInterrupted;
    return line->find('\n') == std::string::npos ? LineEvent::kLine : LineEvent::kPaste;
  }
  void Remember(const std::string& message) override { remembered.push_back(message); }
  std::string prompts;
  std::vector<std::string> remembered;

 private:
  std::deque<std::string> lines_;
};

std::vector<std::string> Messages(std::deque<std::string> lines) {
  Lines source(std::move(lines));
  MessageReader reader(&source);
  std::vector<std::string> out;
  while (true) {
    const auto message = reader.Next();
    if (!message) {
      out.push_back("error: " + message.error().message);
      return out;
    }
    if (message->event == LineEvent::kEnd) return out;
    out.push_back(message->event == LineEvent::kInterrupted ? "^C" : message->text);
    if (message->quoted) out.back() += "|quoted";
  }
}

using Texts = std::vector<std::string>;

TEST(MessageReader, ALineIsAMessage) { EXPECT_EQ(Messages({"a", "", "b"}), (Texts{"a", "", "b"})); }

// What an editor offers again means the same when it is sent again.
TEST(MessageReader, AMessageIsRememberedWhole) {
  Lines source({"\"\"\"a", "b\"\"\"", "\"\"\"/reset\"\"\"", "\"\"\"", "/c", "\"\"\"", "/d",
                "\"\"\"e", "^C", "p\nq"});
  MessageReader reader(&source);
  while (reader.Next()->event != LineEvent::kEnd) continue;
  EXPECT_EQ(source.remembered,
            (Texts{"a\nb", "\"\"\"/reset\"\"\"", "\"\"\"/c\"\"\"", "/d", "p\nq"}));
}

TEST(MessageReader, QuotesHoldSeveralLines) {
  EXPECT_EQ(Messages({"\"\"\"a", "", "/b\"\"\"", "c"}), (Texts{"a\n\n/b|quoted", "c"}));
  EXPECT_EQ(Messages({"\"\"\"", "a", "b", "\"\"\""}), (Texts{"a\nb|quoted"}));
  EXPECT_EQ(Messages({"\"\"\"a\"\"\""}), (Texts{"a|quoted"}));
  EXPECT_EQ(Messages({"say \"\"\"a"}), (Texts{"say \"\"\"a"}));
}

TEST(MessageReader, APasteIsTextWhateverItBeginsWith) {
  EXPECT_EQ(Messages({"/etc/a\n/etc/b", "c"}), (Texts{"/etc/a\n/etc/b|quoted", "c"}));
  EXPECT_EQ(Messages({"\"\"\"Doc.\"\"\"\nimport os", "c"}),
            (Texts{"\"\"\"Doc.\"\"\"\nimport os|quoted", "c"}));
  EXPECT_EQ(Messages({"\"\"\"a", "b\nc", "d\"\"\""}), (Texts{"a\nb\nc\nd|quoted"}));
  EXPECT_EQ(Messages({"\"\"\"a", "b\nc\"\"\"", "d"}), (Texts{"a\nb\nc|quoted", "d"}));
}

TEST(MessageReader, ThePromptTellsThatQuotesAreOpen) {
  Lines source({"\"\"\"a", "b\"\"\""});
  MessageReader reader(&source);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(source.prompts, "> . ");
}

TEST(MessageReader, CtrlCGivesTheMessageUp) {
  EXPECT_EQ(Messages({"\"\"\"a", "^C", "b"}), (Texts{"^C|quoted", "b"}));
}

TEST(MessageReader, OpenQuotesAtTheEndAreAnError) {
  const Texts found = Messages({"\"\"\"a", "b"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("closing \"\"\""), std::string::npos);
}

}  // namespace
}  // namespace latte::message_reader_test
