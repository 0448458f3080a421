#include "src/serve/observe/request_views.h"

#include <string>

#include <gtest/gtest.h>

#include "src/base/json.h"

namespace latte::request_views_test {
namespace {

using Time = RequestViews::Time;

constexpr Time At(double seconds) {
  return Time(std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(seconds)));
}

Json Parse(const RequestViews& views, double seconds) {
  Result<Json> json = Json::Parse(views.Json(At(seconds)), "view");
  EXPECT_TRUE(json);
  return *json;
}

Json Only(const RequestViews& views, double seconds, const char* list = "requests") {
  const Json all = *Parse(views, seconds).Get(list);
  EXPECT_EQ(all.size(), 1U);
  return all.At(0);
}

TokenEvent Token(uint64_t prompt, int choice, int64_t generated) {
  TokenEvent event;
  event.user_data = prompt;
  event.choice = choice;
  event.token = 7;
  event.text = "secret";
  event.prompt_tokens = 100;
  event.cached_tokens = 64;
  event.generated_tokens = generated;
  return event;
}

TEST(RequestViews, FollowsARequest) {
  RequestViews views;
  views.Began("r1", "/v1/chat/completions", "127.0.0.1:4", At(10));
  Json view = Only(views, 10.5);
  EXPECT_EQ(*view.GetString("id"), "r1");
  EXPECT_EQ(*view.GetString("endpoint"), "/v1/chat/completions");
  EXPECT_EQ(*view.GetString("client"), "127.0.0.1:4");
  EXPECT_EQ(*view.GetString("state"), "parsing");
  EXPECT_EQ(*view.GetDouble("age_seconds"), 0.5);

  views.Parsed("r1", {.model = "tiny", .prompts = 2, .n = 3, .stream = true, .priority = -5});
  view = Only(views, 11);
  EXPECT_EQ(*view.GetString("state"), "waiting");
  EXPECT_EQ(*view.GetString("model"), "tiny");
  EXPECT_EQ(*view.GetInt("prompts"), 2);
  EXPECT_EQ(*view.GetInt("n"), 3);
  EXPECT_EQ(*view.GetBoolOr("stream", false), true);
  EXPECT_EQ(*view.GetInt("priority"), -5);
  EXPECT_FALSE(view.Find("ttft_seconds"));

  views.Event("r1", Token(1, 0, 1), At(12));
  view = Only(views, 13);
  EXPECT_EQ(*view.GetString("state"), "running");
  EXPECT_EQ(*view.GetDouble("ttft_seconds"), 2);
  EXPECT_EQ(*view.GetInt("generated_tokens"), 1);

  views.Ended("r1", "stop", At(14.25));
  EXPECT_EQ(views.size(), 0U);
  EXPECT_EQ(*Parse(views, 15).GetInt("running"), 0);
  view = Only(views, 99, "finished");
  EXPECT_EQ(*view.GetString("state"), "finished");
  EXPECT_EQ(*view.GetString("result"), "stop");
  EXPECT_EQ(*view.GetDouble("duration_seconds"), 4.25);
  EXPECT_EQ(*view.GetDouble("ttft_seconds"), 2);
}

TEST(RequestViews, CountsEveryPromptOnce) {
  RequestViews views;
  views.Began("r", "/v1/completions", "unix", At(0));
  views.Parsed("r", {.prompts = 2, .n = 2});
  for (const uint64_t prompt : {1, 2})
    for (const int choice : {0, 1})
      for (const int64_t generated : {1, 2})
        views.Event("r", Token(prompt, choice, generated), At(1));
  TokenEvent end = Token(1, 0, 1);  // reports only an end after the first token
  end.token.reset();
  views.Event("r", end, At(1));
  TokenEvent empty = Token(3, 0, 0);  // an answer without tokens
  empty.token.reset();
  views.Event("r", empty, At(1));
  const Json view = Only(views, 2);
  EXPECT_EQ(*view.GetInt("generated_tokens"), 8);
  EXPECT_EQ(*view.GetInt("prompt_tokens"), 300);
  EXPECT_EQ(*view.GetInt("cached_tokens"), 192);
}

TEST(RequestViews, NeverShowsText) {
  RequestViews views;
  views.Began("r", "/v1/completions", "unix", At(0));
  views.Event("r", Token(1, 0, 1), At(1));
  EXPECT_EQ(views.Json(At(2)).find("secret"), std::string::npos);
  views.Ended("r", "stop", At(2));
  EXPECT_EQ(views.Json(At(2)).find("secret"), std::string::npos);
}

TEST(RequestViews, KeepsTheLastFinishedOnes) {
  RequestViews views;
  for (int i = 0; i < 40; ++i) {
    views.Began(std::to_string(i), "/v1/completions", "unix", At(i));
    views.Ended(std::to_string(i), "stop", At(i + 1));
  }
  const Json finished = *Parse(views, 50).Get("finished");
  ASSERT_EQ(finished.size(), RequestViews::kMostFinished);
  EXPECT_EQ(*finished.At(0).GetString("id"), "39");
  EXPECT_EQ(*finished.At(31).GetString("id"), "8");
}

TEST(RequestViews, ShowsTheOldestOfVeryMany) {
  RequestViews views;
  for (int i = 0; i < 1500; ++i) views.Began(std::to_string(i), "/v1/completions", "unix", At(i));
  views.Ended("0", "cancelled", At(2000));
  const Json json = Parse(views, 2000);
  EXPECT_EQ(*json.GetInt("running"), 1499);
  EXPECT_EQ(json.Get("requests")->size(), RequestViews::kMostShown);
  EXPECT_EQ(*json.Get("requests")->At(0).GetString("id"), "1");
}

TEST(RequestViews, IgnoresUnknownIds) {
  RequestViews views;
  views.Parsed("x", {});
  views.Event("x", Token(1, 0, 1), At(1));
  views.Ended("x", "stop", At(1));
  EXPECT_EQ(Parse(views, 1).Get("finished")->size(), 0U);
  views.Began("x", "/v1/completions", "one", At(0));
  views.Began("x", "/v1/completions", "two", At(0));
  EXPECT_EQ(*Only(views, 1).GetString("client"), "one");
}

// Ids and addresses are ASCII; a model's name may be any bytes.
TEST(RequestViews, IsJsonWhateverNamesHold) {
  RequestViews views;
  views.Began("r", "/v1/completions", "unix", At(0));
  views.Parsed("r", {.model = "a\"\n\xff"});
  EXPECT_EQ(*Only(views, 1).GetString("model"), "a\"\n\uFFFD");
}

}  // namespace
}  // namespace latte::request_views_test
