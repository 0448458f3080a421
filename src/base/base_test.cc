#include <atomic>
#include <csignal>
#include <fstream>
#include <numeric>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "latte/status.h"

#include "src/base/file.h"
#include "src/base/files/map_guard.h"
#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/base/math.h"

namespace latte::base_test {
namespace {

std::string TempPath(const std::string& name) {
  return testing::TempDir() + "/base_test_" + std::to_string(getpid()) + "_" + name;
}

TEST(Status, EveryCodeHasItsHttpAndExitCode) {
  const struct {
    Code code;
    std::string_view name;
    int http, exit;
  } rows[] = {{Code::kOk, "ok", 200, 0},
              {Code::kInvalidArgument, "invalid_argument", 400, 2},
              {Code::kNotFound, "not_found", 404, 2},
              {Code::kUnsupported, "unsupported", 400, 2},
              {Code::kCorrupt, "corrupt", 422, 2},
              {Code::kExhausted, "exhausted", 429, 1},
              {Code::kCancelled, "cancelled", 499, 1},
              {Code::kUnavailable, "unavailable", 503, 1},
              {Code::kInternal, "internal", 500, 3}};
  for (const auto& row : rows) {
    EXPECT_EQ(CodeName(row.code), row.name);
    EXPECT_EQ(HttpStatus(row.code), row.http);
    EXPECT_EQ(ExitCode(row.code), row.exit);
  }
}

Result<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("odd");
  return x / 2;
}
Result<int> Quarter(int x) {
  LATTE_ASSIGN_OR_RETURN(const int half, Half(x));
  return Half(half);
}

TEST(Status, MacroPassesTheErrorOn) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(ToString(Quarter(6).error()), "invalid_argument: odd");
}

TEST(Math, OverflowIsSeen) {
  EXPECT_FALSE(CheckedMul(int64_t{1} << 62, 8));
  const int64_t wraps[] = {int64_t{1} << 32, int64_t{1} << 32};
  EXPECT_FALSE(CheckedProduct(wraps));
  EXPECT_EQ(*CheckedMul(3, 4), 12);
  EXPECT_EQ(CeilDiv(65, 64), 2);
  EXPECT_TRUE(IsPow2(64) && !IsPow2(0) && !IsPow2(48));
}

TEST(Status, LongMessagesLoseTheirMiddle) {
  const auto refused = [](const std::string& name) {
    return InvalidArgument("c.json: found '" + name + "'; leave it out").value();
  };
  EXPECT_EQ(refused("x").message, "c.json: found 'x'; leave it out");
  for (const char* unit : {"x", "é", "中", "😀"}) {
    std::string name;
    while (name.size() < 100'000) name += unit;
    const Error error = refused(name);
    EXPECT_LE(error.message.size(), 2000u);
    EXPECT_GE(error.message.size(), 1980u);
    EXPECT_TRUE(error.message.starts_with("c.json: found '" + name.substr(0, 1200)));
    EXPECT_TRUE(error.message.ends_with(unit + std::string("'; leave it out")));
    EXPECT_FALSE(Dump(JsonOut(error.message)).empty());
    EXPECT_EQ(Json::Parse(Dump(JsonOut(error.message)), "x")->AsString(), error.message);
    // A path that was put in front later.
    EXPECT_LE(ToString({error.code, name + error.message}).size(), 2000u);
  }
}

TEST(Json, GettersNameTheKeyAndTheTypes) {
  const auto doc =
      Json::Parse(R"({"a": {"b": "x", "n": null, "big": 1e300}, "l": [1, 2.5]})", "c.json");
  ASSERT_TRUE(doc);
  const Json a = *doc->Get("a");
  EXPECT_EQ(a.GetInt("b").error().message, "c.json: 'a.b': expected an integer, found string");
  EXPECT_EQ(a.GetInt("missing").error().message, "c.json: 'a': key 'missing' is missing");
  EXPECT_EQ(*a.GetIntOr("n", 7), 7);
  EXPECT_EQ(a.GetInt("big").error().code, Code::kCorrupt);
  EXPECT_EQ(*doc->Get("l")->At(1).AsDouble(), 2.5);
  EXPECT_EQ(doc->Get("l")->At(1).AsInt().error().message,
            "c.json: 'l.1': expected an integer, found 2.5");
}

// The message of a text that is refused.
std::string Refusal(std::string_view text) {
  const auto parsed = Json::Parse(text, "c.json");
  return parsed ? "" : parsed.error().message;
}

TEST(Json, WhateverFollowsANulIsSeen) {
  using namespace std::string_literals;
  for (const std::string& text :
       {"{}\0"s, "{}\0\0\0\0"s, "{}\0{\"a\": 1}"s, "{}  \0 "s, "[1]\n\0x"s})
    EXPECT_NE(Refusal(text).find("NUL byte at byte"), std::string::npos) << text;
  EXPECT_NE(Refusal("{} \0"s).find("at byte 4"), std::string::npos);
  for (const std::string& text : {"\0"s, "\0{}"s, "{\0}"s, "{\"a\0\": 1}"s, "[1,\0 2]"s})
    EXPECT_NE(Refusal(text).find("not valid JSON at byte"), std::string::npos) << text;
  EXPECT_EQ(Json::Parse("[\"a\\u0000b\"]", "c.json")->At(0).AsString(), "a\0b"s);
  EXPECT_FALSE(ParseToEdit("{}\0x"s, "c.json"));
}

TEST(Json, TextKeepsTheOrderOfTheDocument) {
  const std::string text =
      R"({"z":[1,-2.5,true,null,"\"é\n"],"a":{"c":{},"b":18446744073709551615}})";
  EXPECT_EQ(Json::Parse(text, "c.json")->Text(), text);
  EXPECT_EQ(Json::Parse(" { \"b\" : 1.0,\"a\":[ ] } ", "c.json")->Text(), R"({"b":1.0,"a":[]})");
}

TEST(Json, NumbersOfPythonAreNamedWithTheirPlace) {
  const std::pair<const char*, const char*> rows[] = {
      {"{\"a\": 1,\n \"jitter\": NaN}", "NaN at byte 21, line 2, key 'jitter'"},
      {"{\"a\": Infinity}", "Infinity at byte 7, line 1, key 'a'"},
      {"{\"a\": {\"b\": [1, -Infinity]}}", "-Infinity at byte 18, line 1, key 'b'"},
      {"[NaN]", "NaN at byte 2, line 1: JSON has no such number"},
      {"NaN", "NaN at byte 1"}};
  for (const auto& [text, words] : rows)
    EXPECT_NE(Refusal(text).find(words), std::string::npos) << Refusal(text);
  EXPECT_EQ(Refusal("[\"NaN\", \"-Infinity\"]"), "");
  EXPECT_NE(Refusal("[nan]").find("not valid JSON at byte"), std::string::npos);
}

TEST(Json, LimitsHoldWhileParsing) {
  const std::string deep(100000, '[');
  EXPECT_NE(Json::Parse(deep, "x").error().message.find("deeper than 64"), std::string::npos);
  EXPECT_NE(Json::Parse(R"({"a":1,"a":2})", "x").error().message.find("'a' stands twice"),
            std::string::npos);
  EXPECT_NE(Json::Parse("[1e999]", "x").error().message.find("out of range"), std::string::npos);
  EXPECT_FALSE(Json::Parse("[1,2,3,4]", "x", {.max_depth = 4, .max_elements = 3}));
  for (const char* bad : {"", "{", "[1,]", "{\"a\"}", "nul", "[1] x", "\xff"})
    EXPECT_EQ(Json::Parse(bad, "x").error().code, Code::kCorrupt) << bad;
}

TEST(File, ReadsMapsAndRefuses) {
  const std::string path = TempPath("file");
  const std::string text = "some bytes";
  ASSERT_TRUE(WriteFile(path, std::as_bytes(std::span(text))));
  EXPECT_EQ(*ReadFile(path, 100), text);
  EXPECT_EQ(ReadFile(path, 3).error().code, Code::kCorrupt);
  EXPECT_EQ(ReadFile(path + ".none", 3).error().code, Code::kNotFound);
  EXPECT_EQ(ReadFile("/dev/null", 3).error().code, Code::kCorrupt);
  EXPECT_NE(ReadFile(testing::TempDir(), 3).error().message.find("directory"), std::string::npos);
  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped);
  EXPECT_EQ((*mapped)->bytes().size(), text.size());
  ASSERT_TRUE(WriteFile(path, {}));
  EXPECT_EQ((*MappedFile::Open(path))->bytes().size(), 0u);
  unlink(path.c_str());
}

// Maps a file of two pages, lets it be truncated as another program would, and reads the second.
void ReadWhatWasTruncated(const std::string& path) {
  const std::string text(8192, 'x');
  if (!WriteFile(path, std::as_bytes(std::span(text)))) _exit(7);
  const auto mapped = MappedFile::Open(path);
  if (!mapped || truncate(path.c_str(), 100) != 0) _exit(7);
  const volatile std::byte* lost = (*mapped)->bytes().data() + 5000;
  _exit(*lost == std::byte{'x'} ? 8 : 9);
}

TEST(MapGuardDeathTest, F33_AFileTruncatedWhileMappedEndsWithItsName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = TempPath("truncated");
  EXPECT_EXIT(
      {
        InstallMapGuard();
        ReadWhatWasTruncated(path);
      },
      testing::ExitedWithCode(1), "latte: unavailable: .*truncated: expected the 8192 bytes");
  unlink(path.c_str());
}

TEST(MapGuardDeathTest, OtherBusErrorsKeepTheirDefaultAction) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = TempPath("not_ours");
  const auto lose_a_page_that_nobody_guards = [&path] {
    InstallMapGuard();
    ForgetMap(GuardMap(nullptr, SIZE_MAX, "must not be written"));
    const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 4096) != 0) _exit(7);
    void* map = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED || ftruncate(fd, 0) != 0) _exit(7);
    _exit(*static_cast<const volatile char*>(map));
  };
  EXPECT_EXIT(lose_a_page_that_nobody_guards(), testing::KilledBySignal(SIGBUS), "^$");
  unlink(path.c_str());
}

TEST(MapGuard, PlacesAreUsedAgainAndAFullTableIsNoError) {
  const std::byte bytes[8] = {};
  std::vector<int> places;
  for (int place = GuardMap(bytes, 8, ""); place >= 0; place = GuardMap(bytes, 8, ""))
    places.push_back(place);
  EXPECT_GE(places.size(), 512u);
  EXPECT_EQ(GuardMap(bytes, 8, ""), -1);
  ForgetMap(places.back());
  EXPECT_EQ(GuardMap(bytes, 8, ""), places.back());
  for (const int place : places) ForgetMap(place);
  ForgetMap(-1);
}

}  // namespace
}  // namespace latte::base_test
