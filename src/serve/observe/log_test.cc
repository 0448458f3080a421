#include "src/serve/observe/log.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/serve/observe/log_text.h"

namespace latte::log_test {
namespace {

std::string Escaped(std::string_view text, size_t most_bytes = 1000) {
  std::string out;
  AppendEscaped(text, most_bytes, &out);
  return out;
}

// A pipe whose end is read only when a test says so.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(fds_, O_CLOEXEC), 0); }
  ~Pipe() {
    CloseReader();
    CloseWriter();
  }
  int writer() const { return fds_[1]; }
  void CloseReader() {
    if (fds_[0] >= 0) close(std::exchange(fds_[0], -1));
  }
  void CloseWriter() {
    if (fds_[1] >= 0) close(std::exchange(fds_[1], -1));
  }
  std::string ReadAll() { return ReadUntil("\v"); }  // which no line has
  // Until `word` has come, or the end.
  std::string ReadUntil(std::string_view word) {
    std::string out;
    char buffer[4096];
    ssize_t size = 0;
    while (out.find(word) == std::string::npos && (size = read(fds_[0], buffer, sizeof buffer)) > 0)
      out.append(buffer, static_cast<size_t>(size));
    return out;
  }

 private:
  int fds_[2] = {-1, -1};
};

// What `write` logs, as one text.
template <class Write>
std::string Logged(LogOptions options, const Write& write) {
  Pipe pipe;
  options.fd = pipe.writer();
  {
    Result<Log> log = Log::Create(options);
    EXPECT_TRUE(log);
    write(*log);
  }
  pipe.CloseWriter();
  return pipe.ReadAll();
}

int64_t CountOf(std::string_view what, std::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += what.size()) ++count;
  return count;
}

TEST(LogText, EscapesWhatChangesLinesOrTerminals) {
  EXPECT_EQ(Escaped("plain äöü 你好 🙂"), "plain äöü 你好 🙂");
  EXPECT_EQ(Escaped("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(Escaped(std::string_view("\0\x1b[31m\x7f", 7)), "\\u0000\\u001b[31m\\u007f");
  EXPECT_EQ(Escaped("\xc2\x9b"), "\\u009b");  // CSI in one character
  EXPECT_EQ(Escaped("\xe2\x80\xae"
                    "abc"),
            "\\u202eabc");                                   // right-to-left override
  EXPECT_EQ(Escaped("\xe2\x80\xa8"), "\\u2028");             // line separator
  EXPECT_EQ(Escaped("\xf3\xa0\x81\x81"), "\\udb40\\udc41");  // an invisible tag
  EXPECT_EQ(Escaped("\"\\"), "\\\"\\\\");
  EXPECT_EQ(Escaped("\xff"
                    "a\xc3"),
            "\uFFFDa\uFFFD");
}

TEST(LogText, CutsBetweenCharacters) {
  EXPECT_EQ(Escaped("abcdef", 6), "abcdef");
  EXPECT_EQ(Escaped("abcdef", 5), "abcde…");
  EXPECT_EQ(Escaped("aää", 4), "aä…");
  EXPECT_EQ(Escaped("a\x01", 6), "a…");
}

TEST(Log, WritesTextWithFields) {
  const std::string text = Logged({}, [](Log& log) {
    log.Info("request", {{"id", "abc"},
                         {"path", "/v1/models?x=1"},
                         {"status", 200},
                         {"seconds", 0.25},
                         {"stream", true},
                         {"client", std::string()}});
  });
  const std::string time = "2026-11-27T09:30:00.123Z";
  std::string shape = text.substr(0, time.size());
  for (char& c : shape)
    if (c >= '0' && c <= '9') c = '0';
  EXPECT_EQ(shape, "0000-00-00T00:00:00.000Z") << text;
  EXPECT_EQ(text.substr(time.size()),
            " info request id=abc path=\"/v1/models?x=1\" status=200 seconds=0.25 stream=true "
            "client=\"\"\n");
}

TEST(Log, NumbersAreEasyToRead) {
  const std::string text = Logged({}, [](Log& log) {
    log.Info("n", {{"a", 1.1401e-05},
                   {"b", 100.0},
                   {"c", 0.0},
                   {"d", -2.5},
                   {"e", 1e300},
                   {"f", 12345.6789}});
  });
  EXPECT_NE(text.find("a=0.000011 b=100 c=0 d=-2.5 e=1e+300 f=12345.6789\n"), std::string::npos)
      << text;
}

TEST(Log, ClientsCannotForgeLinesOrFields) {
  const std::string attack = "/x\n2026-01-01T00:00:00.000Z error forged\tid=1\" status=500 \x1b[2J";
  const std::string text = Logged({}, [&](Log& log) { log.Info("request", {{"path", attack}}); });
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(
      text.find(R"(path="/x\n2026-01-01T00:00:00.000Z error forged\tid=1\" status=500 \u001b[2J")"),
      std::string::npos)
      << text;
}

TEST(Log, WritesJsonLines) {
  const std::string attack = "a\"},\n{\"level\":\"error\xff\x01";
  const std::string text = Logged({.format = "json"}, [&](Log& log) {
    log.Warning("refused", {{"path", attack},
                            {"status", 404},
                            {"seconds", std::numeric_limits<double>::infinity()},
                            {"stream", false}});
  });
  ASSERT_EQ(text.find('\n'), text.size() - 1) << text;
  const Result<Json> line = Json::Parse(text, "line");
  ASSERT_TRUE(line) << text;
  EXPECT_EQ(*line->GetString("level"), "warning");
  EXPECT_EQ(*line->GetString("message"), "refused");
  EXPECT_EQ(*line->GetString("path"), "a\"},\n{\"level\":\"error\uFFFD\x01");
  EXPECT_EQ(*line->GetInt("status"), 404);
  EXPECT_FALSE(line->Find("seconds"));  // null
  EXPECT_EQ(line->GetString("time")->size(), std::string("2026-11-27T09:30:00.123Z").size());
}

TEST(Log, CutsLongValuesAndLines) {
  const std::string huge(1 << 20, '\x01');
  const std::string keys = "abcdefghijklmnopqrst";
  std::vector<LogField> fields;
  for (size_t i = 0; i < keys.size(); ++i)
    fields.push_back({std::string_view(keys).substr(i, 1), huge});
  for (const char* format : {"text", "json"}) {
    const std::string text = Logged(
        {.format = format}, [&](Log& log) { log.Write(LogLevel::kInfo, "request", fields); });
    EXPECT_LE(text.size(), 4096U);
    EXPECT_NE(text.find("truncated"), std::string::npos);
    if (std::string_view(format) != "json") continue;
    EXPECT_TRUE(Json::Parse(text, "line")) << text;
  }
}

TEST(Log, CutsOneLongValue) {
  const std::string text = Logged({}, [](Log& log) {
    log.Info("request", {{"path", std::string(600, 'x')}, {"n", 1}});
  });
  EXPECT_NE(text.find(" path=" + std::string(500, 'x') + "… n=1\n"), std::string::npos) << text;
}

TEST(Log, LeavesOutLowerLevels) {
  const std::string text = Logged({.level = "warning"}, [](Log& log) {
    log.Debug("one");
    log.Info("two");
    log.Warning("three");
    log.Error("four");
  });
  EXPECT_EQ(text.find("one"), std::string::npos);
  EXPECT_EQ(text.find("two"), std::string::npos);
  EXPECT_NE(text.find("warning three"), std::string::npos);
  EXPECT_NE(text.find("error four"), std::string::npos);
}

TEST(Log, RefusesUnknownSettings) {
  EXPECT_EQ(Log::Create({.level = "loud"}).error().message,
            "log_level: expected debug, info, warning or error, found 'loud'");
  EXPECT_EQ(Log::Create({.format = "xml"}).error().message,
            "log_format: expected text or json, found 'xml'");
}

// No process reads standard error: the caller goes on, lines are lost and counted.
TEST(Log, DropsLinesInsteadOfWaiting) {
  constexpr int kLines = 3000;  // some 300 KiB; a pipe takes 64
  Pipe pipe;
  int64_t dropped = 0;
  {
    Result<Log> log = Log::Create({.fd = pipe.writer(), .queue_lines = 16});
    ASSERT_TRUE(log);
    for (int i = 0; i < kLines; ++i) log->Info("request", {{"path", std::string(80, 'x')}});
    dropped = log->dropped();
    EXPECT_GT(dropped, 0);
    EXPECT_LT(dropped, kLines);
    // Ending does not wait for a reader either.
  }
  pipe.CloseWriter();
  const std::string text = pipe.ReadAll();
  EXPECT_EQ(text.back(), '\n');
  EXPECT_LE(CountOf(" info request ", text), kLines - dropped);
}

// Thousands of lines wait for a reader that never comes: ending gives all of them together half a
// second.
TEST(Log, EndsSoonWithManyUnreadLines) {
  for (const char* format : {"text", "json"})
    for (const int lines : {1000, 2000, 4000}) {
      Pipe pipe;
      std::chrono::steady_clock::time_point began;
      {
        Result<Log> log = Log::Create({.format = format, .fd = pipe.writer()});
        ASSERT_TRUE(log);
        for (int i = 0; i < lines; ++i) log->Info("request", {{"path", std::string(200, 'x')}});
        began = std::chrono::steady_clock::now();
      }
      // A wait for each line would take a minute.
      EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10)) << lines;
    }
}

// The reader stops and goes on: where lines are missing, one says how many.
TEST(Log, SaysWhereLinesAreMissing) {
  for (const char* format : {"text", "json"}) {
    constexpr int kLines = 3000;
    Pipe pipe;
    Result<Log> log = Log::Create({.format = format, .fd = pipe.writer(), .queue_lines = 16});
    ASSERT_TRUE(log);
    for (int i = 0; i < kLines; ++i) log->Info("request", {{"path", std::string(80, 'x')}});
    log->Info("last");
    const std::string text = pipe.ReadUntil("last");
    const int64_t dropped = log->dropped();
    EXPECT_GT(dropped, 0);
    EXPECT_EQ(CountOf("request", text), kLines - dropped);
    const std::string lines = std::string_view(format) == "json" ? "\"lines\":" : " lines=";
    int64_t noted = 0;
    for (size_t at = 0; (at = text.find(lines, at)) != std::string::npos; at += lines.size())
      noted += std::atoll(text.c_str() + at + lines.size());
    EXPECT_EQ(noted, dropped);
  }
}

TEST(Log, CountsLinesThatCannotBeWritten) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  {
    Result<Log> log = Log::Create({.fd = full});
    ASSERT_TRUE(log);
    log->Info("request");
    while (log->dropped() == 0) std::this_thread::yield();
    EXPECT_EQ(log->dropped(), 1);
  }
  close(full);
}

TEST(Log, OutlivesItsReader) {
  Pipe pipe;
  pipe.CloseReader();
  Result<Log> log = Log::Create({.fd = pipe.writer()});
  ASSERT_TRUE(log);
  log->Info("request");
  while (log->dropped() == 0) std::this_thread::yield();
  log->Info("request");
}

TEST(Log, TakesLinesOfManyThreads) {
  const std::string text = Logged({}, [](Log& log) {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&log] {
        for (int i = 0; i < 50; ++i) log.Info("line", {{"i", i}});
      });
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 200);
}

}  // namespace
}  // namespace latte::log_test
