#include "src/serve/observe/stats_line.h"

#include <string>

#include <gtest/gtest.h>

namespace latte::stats_line_test {
namespace {

StatsSnapshot At(int seconds) {
  StatsSnapshot out;
  out.time = std::chrono::steady_clock::time_point(std::chrono::seconds(seconds));
  return out;
}

StatsSnapshot Busy(int seconds) {
  StatsSnapshot out = At(seconds);
  out.engine = {.waiting = 2,
                .running = 5,
                .pages_total = 1000,
                .pages_used = 123,
                .prompt_tokens = 2000,
                .cached_tokens = 500,
                .computed_tokens = 1850,
                .generated_tokens = 350};
  out.connections = 7;
  return out;
}

std::string Text(const StatsFigures& figures) {
  std::string out;
  for (const LogField& field : StatsFields(figures)) {
    out += std::string(field.key) + "=";
    field.value.Append(/*json=*/false, &out);
    out += ' ';
  }
  return out;
}

TEST(StatsLine, ComparesTwoSnapshots) {
  EXPECT_EQ(Text(CompareStats(At(0), Busy(10))),
            "running=5 waiting=2 cache_percent=12.3 prompt_tokens_per_s=150 "
            "generated_tokens_per_s=35 prefix_hit_percent=25 connections=7 ");
}

TEST(StatsLine, CountsOnlyWhatIsNew) {
  StatsSnapshot later = Busy(20);
  later.engine.generated_tokens += 33;
  later.engine.computed_tokens += 33;
  EXPECT_EQ(Text(CompareStats(Busy(10), later)),
            "running=5 waiting=2 cache_percent=12.3 prompt_tokens_per_s=0 "
            "generated_tokens_per_s=3.3 connections=7 ");
}

TEST(StatsLine, IsFiniteWithoutPagesAndTime) {
  EXPECT_EQ(Text(CompareStats(At(0), At(0))),
            "running=0 waiting=0 cache_percent=0 prompt_tokens_per_s=0 generated_tokens_per_s=0 "
            "connections=0 ");
  // The last token of an answer is generated and not computed.
  StatsSnapshot end = At(10);
  end.engine.generated_tokens = 1;
  EXPECT_EQ(CompareStats(At(0), end).prompt_tokens_per_second, 0);
}

TEST(StatsLine, AnIdleServerSaysItOnce) {
  StatsLine line(At(0));
  EXPECT_FALSE(line.Next(At(10)));
  EXPECT_TRUE(line.Next(Busy(20)));
  EXPECT_TRUE(line.Next(Busy(30)));  // still running, although nothing was computed
  StatsSnapshot done = Busy(40);
  done.engine.running = done.engine.waiting = 0;
  EXPECT_TRUE(line.Next(done));
  done.time += std::chrono::seconds(10);
  EXPECT_FALSE(line.Next(done));
  done.time += std::chrono::seconds(10);
  done.connections = 9;
  EXPECT_FALSE(line.Next(done));
  done.time += std::chrono::seconds(10);
  done.engine.generated_tokens += 1;  // between two lines
  EXPECT_TRUE(line.Next(done));
}

}  // namespace
}  // namespace latte::stats_line_test
