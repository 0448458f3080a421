// Nothing that a request takes outlives it: ids, entries of lists, bytes, connections, descriptors.
// The server's gauges are at zero after every status and after every way in which a client leaves.
#include <chrono>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/serve/server_process.h"

namespace latte::records_test {
namespace {

using testing_support::Gate;
using testing_support::RawClient;
using testing_support::RawResponse;
using testing_support::ServerProcess;
using testing_support::SleepUntil;
using testing_support::Talking;
using testing_support::TalkingEngine;

constexpr std::string_view kHost = "Host: localhost\r\n";
constexpr std::string_view kKey = "Authorization: Bearer key\r\n";
constexpr std::string_view kJson = "Content-Type: application/json\r\n";
constexpr std::string_view kId = "X-Request-Id: billing-42\r\n";

ServeOptions WithKey() {
  ServeOptions options;
  options.api_key = {"key"};
  options.cors_origin = {"https://page.example"};
  options.access_log = false;
  options.log_level = "error";
  return options;
}

std::string Head(std::string_view line, const std::vector<std::string_view>& fields) {
  std::string out = fmt::format("{} HTTP/1.1\r\n", line);
  for (const std::string_view field : fields) out += field;
  return out + "\r\n";
}

std::string Post(std::string_view path, std::string_view body) {
  const std::string length = fmt::format("Content-Length: {}\r\n", body.size());
  return Head(fmt::format("POST {}", path), {kHost, kKey, kJson, kId, length}) + std::string(body);
}

std::string Completion(int max_tokens, bool stream) {
  return Post(
      "/v1/completions",
      fmt::format(R"({{"prompt": "Once", "max_tokens": {}, "stream": {}}})", max_tokens, stream));
}

RawResponse Answer(const ServerProcess& server, const std::string& bytes) {
  RawClient client = server.Connect();
  client.Send(bytes);
  return client.Receive(bytes.starts_with("HEAD "));
}

// The gauges of what requests take, as a request for them sees it: that one has an id and a
// connection.
std::map<std::string, double> Gauges(const ServerProcess& server) {
  const RawResponse metrics = Answer(server, Head("GET /metrics", {kHost, kKey}));
  std::istringstream lines(metrics.body);
  std::map<std::string, double> out;
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.rfind(' ');
    for (const char* name : {"latte:request_records{", "latte:body_bytes ", "latte:unsent_bytes ",
                             "latte:connections ", "process_open_fds "})
      if (line.starts_with(name)) out[line.substr(0, space)] = std::stod(line.substr(space));
  }
  EXPECT_EQ(out.size(), 10U) << metrics.status << metrics.body;
  out["latte:connections"] -= 1;
  out["latte:request_records{list=\"request_ids\"}"] -= 1;
  return out;
}

// The gauges when all has ended are zero, and as many descriptors as after the first request.
class Baseline {
 public:
  explicit Baseline(const ServerProcess& server) : server_(server) {
    Answer(server, Head("GET /health", {kHost}));
    SleepUntil([&] {
      before_ = Gauges(server_);
      return before_.at("latte:connections") == 0;
    });
    for (const auto& [name, value] : before_) {
      EXPECT_TRUE(value == 0 || name == "process_open_fds") << name << " " << value;
    }
  }
  // Waits, as the server notices an end a moment later.
  void ExpectNothingLeft(const std::string& after) const {
    std::map<std::string, double> now;
    for (int i = 0; i < 1000 && (now = Gauges(server_)) != before_; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(now, before_) << after;
  }
  double Left(const std::string& list) const {
    return Gauges(server_).at(fmt::format("latte:request_records{{list=\"{}\"}}", list));
  }

 private:
  const ServerProcess& server_;
  std::map<std::string, double> before_;
};

struct Case {
  int status;
  std::string bytes;
};

// Heads that are refused, requests that HTTP itself refuses, and answers of all kinds.
std::vector<Case> Cases() {
  const std::string_view evil = "Host: evil.example\r\n";
  const std::string_view wrong = "Authorization: Bearer other\r\n";
  const std::string_view origin = "Origin: https://page.example\r\n";
  const std::string_view foreign = "Origin: https://evil.example\r\n";
  const std::string_view text = "Content-Type: text/plain\r\n";
  const std::string chat = "/v1/chat/completions";
  return {
      {200, Head("GET /health", {kHost, kId})},
      {200, Head("HEAD /health", {kHost, kId})},
      {200, Head("GET /requests", {kHost, kKey, kId})},
      {200, Completion(3, false)},
      {200, Completion(3, true)},
      {200, Post("/tokenize", R"({"prompt": "Once"})")},
      {204, Head("OPTIONS /v1/models", {kHost, origin, kId})},
      {304, Head("GET /", {kHost, kId, "If-None-Match: *\r\n"})},
      {400, Post("/v1/completions", "{")},
      {400, Post("/v1/completions", R"({"prompt": 1})")},
      {400, Post("/detokenize", "[]")},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, Head("GET /health", {kHost, "Content-Length: x\r\n"})},
      {401, Head("GET /v1/models", {kHost, kId})},
      {401, Head("GET /v1/models", {kHost, wrong, kId})},
      {401, Head("POST /v1/completions", {kHost, kJson, kId, "Content-Length: 9\r\n"})},
      {403, Head("GET /health", {evil, kKey, kId})},
      {403, Head("GET /health", {kHost, kKey, kId, foreign})},
      {404, Head("GET /favicon.ico", {kHost, kKey, kId})},
      {404, Head("GET /v1/models/no", {kHost, kKey, kId})},
      {404, Post("/v1/completions", R"({"prompt": "a", "model": "no"})")},
      {405, Head("DELETE /health", {kHost, kKey, kId})},
      {405, Head("GET /tokenize", {kHost, kKey, kId})},
      {413, Head("POST " + chat, {kHost, kKey, kJson, kId, "Content-Length: 99999999\r\n"})},
      {414, "GET /" + std::string(100'000, 'x')},
      {415, Head("POST " + chat, {kHost, kKey, text, kId, "Content-Length: 2\r\n"}) + "{}"},
      {415, Head("POST /tokenize", {kHost, kKey, kId})},
      {431, "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x')},
      {501, Head("POST " + chat, {kHost, kKey, kJson, "Transfer-Encoding: gzip\r\n"})},
      {505, "GET / HTTP/2.0\r\n\r\n"},
  };
}

TEST(Records, NothingIsLeftAfterAnyStatus) {
  ServerProcess server(WithKey(), Talking);
  server.WaitUntilReady();
  const Baseline baseline(server);
  for (const Case& one : Cases()) {
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(Answer(server, one.bytes).status, one.status) << one.bytes.substr(0, 200);
    baseline.ExpectNothingLeft(one.bytes.substr(0, 200));
  }
  // The id of a client that has a key is not taken.
  const RawResponse last = Answer(server, Completion(1, false));
  EXPECT_NE(last.head.find("X-Request-Id: billing-42\r\n"), std::string::npos) << last.head;
}

// A refused client cannot have another one's id renamed, not even while it waits.
TEST(Records, ARefusedHeadTakesNoId) {
  ServerProcess server(WithKey(), Talking);
  server.WaitUntilReady();
  RawClient refused = server.Connect();
  for (int i = 0; i < 100; ++i) {
    refused.Send(Head("GET /v1/models", {kHost, kId}));
    const RawResponse response = refused.Receive();
    EXPECT_EQ(response.status, 401);
    EXPECT_NE(response.head.find("X-Request-Id: billing-42\r\n"), std::string::npos);
  }
  for (int i = 0; i < 2; ++i)
    EXPECT_NE(Answer(server, Completion(1, false)).head.find("X-Request-Id: billing-42\r\n"),
              std::string::npos);
}

TEST(Records, NothingIsLeftWhileLoadingAndShuttingDown) {
  const Gate loaded;
  const Gate drained;
  ServerProcess server(WithKey(), [&]() -> Result<std::unique_ptr<Engine>> {
    loaded.Wait();
    auto engine = std::make_unique<TalkingEngine>();
    engine->on_step = [&drained] {
      drained.Wait();
      return Status();
    };
    return engine;
  });
  const Baseline baseline(server);
  for (const std::string& bytes : {Completion(1, false), Head("GET /ready", {kHost, kId})})
    EXPECT_EQ(Answer(server, bytes).status, 503);
  baseline.ExpectNothingLeft("503 while loading");
  loaded.Open();
  server.WaitUntilReady();
  RawClient running = server.Connect();
  running.Send(Post("/v1/completions", R"({"prompt": "a", "max_tokens": 1})"));
  SleepUntil([&] { return baseline.Left("prompts") == 1; });
  server.Signal();
  SleepUntil([&] { return Answer(server, Head("GET /ready", {kHost})).status == 503; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Answer(server, Completion(1, false)).status, 503);
  SleepUntil([&] { return baseline.Left("request_ids") == 1; });
  EXPECT_EQ(baseline.Left("generations"), 1);
  drained.Open();
  EXPECT_EQ(running.Receive().status, 200);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST(Records, NothingIsLeftOfSlowClients) {
  ServeOptions options = WithKey();
  options.head_timeout = options.body_timeout = 0.2;
  ServerProcess server(options, Talking);
  server.WaitUntilReady();
  RawClient head = server.Connect();
  head.Send("GET /health HTTP/1.1\r\nHost:");
  EXPECT_EQ(head.Receive().status, 408);
  RawClient body = server.Connect();
  const std::string whole = Post("/v1/completions", "{}");
  body.Send(whole.substr(0, whole.size() - 1));
  EXPECT_EQ(body.Receive().status, 408);
  head.Close();
  body.Close();
  SleepUntil([&] {
    const auto now = Gauges(server);
    return now.at("latte:body_bytes") == 0 && now.at("latte:connections") == 0 &&
           now.at("latte:unsent_bytes") == 0;
  });
}

enum class Leaving { kClose, kReset, kHalfClose };

// A client leaves; of a half-closed one, the answer is awaited first.
void Leave(RawClient* client, Leaving how) {
  if (how == Leaving::kReset) return client->Reset();
  if (how == Leaving::kHalfClose) {
    client->ShutdownWrite();
    client->ReceiveAll();
  }
  client->Close();
}

class RecordsOfClients : public testing::TestWithParam<Leaving> {};

std::string LeavingName(const testing::TestParamInfo<Leaving>& info) {
  switch (info.param) {
    case Leaving::kClose:
      return "Close";
    case Leaving::kReset:
      return "Reset";
    case Leaving::kHalfClose:
      break;
  }
  return "HalfClose";
}
INSTANTIATE_TEST_SUITE_P(Ways, RecordsOfClients,
                         testing::Values(Leaving::kClose, Leaving::kReset, Leaving::kHalfClose),
                         LeavingName);

// In the head, in the body, between two requests, before an answer is read.
TEST_P(RecordsOfClients, ThatLeaveAroundARequest) {
  ServerProcess server(WithKey(), [] {
    auto engine = std::make_unique<TalkingEngine>();
    engine->text = [](int64_t) { return std::string(8 << 20, 'x'); };
    return engine;
  });
  server.WaitUntilReady();
  const Baseline baseline(server);
  const std::string request = Post("/v1/completions", std::string(100'000, ' ') + "{}");
  for (const size_t sent : {size_t{1}, size_t{30}, size_t{300}, request.size() - 1}) {
    RawClient client = server.Connect();
    client.Send(request.substr(0, sent));
    Leave(&client, GetParam());
    baseline.ExpectNothingLeft(fmt::format("{} bytes", sent));
  }
  RawClient kept = server.Connect();
  kept.Send(Head("GET /health", {kHost, kId}));
  EXPECT_EQ(kept.Receive().status, 200);
  Leave(&kept, GetParam());
  baseline.ExpectNothingLeft("keep-alive");
  RawClient unread = server.Connect();
  unread.Send(Completion(1, false));
  SleepUntil([&] { return Gauges(server).at("latte:unsent_bytes") > 0; });
  Leave(&unread, GetParam());
  baseline.ExpectNothingLeft("an answer that is not read");
}

// Requests without a seed wait in the worker for a file.
const ApiModel& SlowToParse(const Gate& parsed) {
  static ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  model.new_seed = [&parsed] {
    parsed.Wait();
    return uint64_t{1};
  };
  return model;
}

// Waiting to be parsed, behind one that is being parsed.
TEST_P(RecordsOfClients, ThatLeaveBeforeTheyAreParsed) {
  const Gate parsed;
  ServeOptions options = WithKey();
  options.workers = 1;
  options.max_parsing = 2;
  ServerProcess server(options, Talking, {}, SlowToParse(parsed));
  server.WaitUntilReady();
  const Baseline baseline(server);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(server.Connect());
    clients.back().Send(Completion(1, i == 1));
    SleepUntil([&] { return baseline.Left("generations") == i + 1; });
    SleepUntil([&] { return baseline.Left("parsing") == i; });
  }
  EXPECT_GT(Gauges(server).at("latte:body_bytes"), 0);
  EXPECT_EQ(Answer(server, Post("/v1/completions", R"({"prompt": "a"})")).status, 429);
  EXPECT_EQ(Answer(server, Post("/tokenize", R"({"prompt": "a"})")).status, 200)
      << "texts that are only tokenised wait for a thread of their own";
  EXPECT_EQ(baseline.Left("generations"), 3);
  if (GetParam() == Leaving::kHalfClose) parsed.Open();  // they wait for their answers
  for (RawClient& client : clients) Leave(&client, GetParam());
  SleepUntil([&] { return baseline.Left("generations") == 0; });
  for (const char* list : {"request_ids", "views", "figures", "prompts"})
    EXPECT_EQ(baseline.Left(list), 0) << list;
  parsed.Open();
  baseline.ExpectNothingLeft("parsing");
}

// In the engine: before the first token, and between two, with and without a stream.
TEST_P(RecordsOfClients, ThatLeaveWhileTextIsGenerated) {
  for (const int steps : {0, 2}) {
    const Gate next;
    ServerProcess server(WithKey(), [&] {
      auto engine = std::make_unique<TalkingEngine>();
      engine->on_step = [left = steps, &next]() mutable {
        if (left-- == 0) next.Wait();
        return Status();
      };
      return engine;
    });
    server.WaitUntilReady();
    const Baseline baseline(server);
    RawClient stream = server.Connect();
    stream.Send(Completion(4, true));
    std::string text;
    if (steps > 0) {
      ASSERT_TRUE(stream.TakeUntil("\"text\":\" a\"", &text));
    }
    RawClient plain = server.Connect();
    plain.Send(Completion(4, false));
    SleepUntil([&] { return baseline.Left("prompts") == 2; });
    if (GetParam() == Leaving::kHalfClose) next.Open();
    Leave(&stream, GetParam());
    Leave(&plain, GetParam());
    baseline.ExpectNothingLeft("generating");
    next.Open();
  }
}

}  // namespace
}  // namespace latte::records_test
