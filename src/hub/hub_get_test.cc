#include "src/hub/hub_get.h"

#include <deque>

#include <gtest/gtest.h>

#include "src/hub/fault.h"
#include "src/hub/progress_text.h"

namespace latte::hub_get_test {
namespace {

// Answers requests in turn, with a redirect to each address of `to` and then with 200.
class Redirects final : public Http {
 public:
  explicit Redirects(std::deque<std::string> to) : to_(std::move(to)) {}

  tl::expected<HttpHead, NetError> Get(const HubRequest& request, const HttpBody& body) override {
    requests.push_back(request);
    HttpHead head;
    head.status = to_.empty() ? 200 : 302;
    if (!to_.empty()) head.headers["location"] = to_.front();
    if (!to_.empty()) to_.pop_front();
    body.begin(head);
    return head;
  }

  std::vector<HubRequest> requests;

 private:
  std::deque<std::string> to_;
};

HubEnvironment Hub(const std::string& endpoint = "https://hub.example") {
  HubEnvironment out;
  out.endpoint = endpoint;
  out.token = "hf_x";
  out.token_from = "HF_TOKEN";
  return out;
}

const HttpBody kAnyBody = {[](const HttpHead&) { return true; },
                           [](std::span<const std::byte>) { return true; }};

// Which requests carried the token: "yn" for the first of two.
std::string Tokens(std::deque<std::string> to, const HubEnvironment& hub = Hub()) {
  Redirects http(std::move(to));
  const auto reply = HubGet(http, hub, hub.endpoint + "/a", {}, kAnyBody);
  if (!reply) return reply.error().message;
  std::string out;
  for (const HubRequest& request : http.requests) out += request.headers.empty() ? 'n' : 'y';
  return out;
}

TEST(HubGet, TheTokenStaysAtTheEndpoint) {
  EXPECT_EQ(Tokens({}), "y");
  EXPECT_EQ(Tokens({"/b"}), "yy") << "a model that was renamed";
  EXPECT_EQ(Tokens({"https://storage.example/b"}), "yn");
  EXPECT_EQ(Tokens({"https://hub.example.evil.org/b"}), "yn");
  EXPECT_EQ(Tokens({"https://hub.example:444/b"}), "yn") << "another port";
  EXPECT_EQ(Tokens({"https://storage.example/b", "https://hub.example/c"}), "ynn")
      << "back by another host's choice";
  EXPECT_EQ(Tokens({"https://HUB.example/b"}), "yy");
}

TEST(HubGet, RedirectsThatAreNotFollowed) {
  EXPECT_NE(Tokens({"http://storage.example/b"}).find("not secure"), std::string::npos);
  EXPECT_EQ(Tokens({"http://storage.example/b"}, Hub("http://mirror.example")), "yn");
  EXPECT_NE(Tokens({"file:///etc/passwd"}).find("no http"), std::string::npos);
  EXPECT_NE(Tokens({""}).find("without an address"), std::string::npos);
  EXPECT_NE(Tokens({"/1", "/2", "/3", "/4", "/5", "/6"}).find("more than five"), std::string::npos);
}

TEST(HubGet, Addresses) {
  EXPECT_EQ(ListingUrl(Hub(), "org/name", "refs/pr/1"),
            "https://hub.example/api/models/org/name/revision/refs%2Fpr%2F1?blobs=true");
  EXPECT_EQ(FileUrl(Hub(), "org/name", "abc", "d/a b.json"),
            "https://hub.example/org/name/resolve/abc/d/a%20b.json");
}

std::string Message(int status, const std::string& code, bool token, const std::string& file = "") {
  HttpHead head;
  head.status = status;
  if (!code.empty()) head.headers["x-error-code"] = code;
  HubEnvironment hub = Hub();
  if (!token) hub.token.clear();
  return FaultOfStatus(head, {"org/name", "v1", file, "hub.example", false}, hub).error.message;
}

TEST(Fault, SaysWhatToDoAboutAccess) {
  EXPECT_NE(Message(401, "GatedRepo", false, "w").find("set HF_TOKEN"), std::string::npos);
  EXPECT_NE(Message(403, "GatedRepo", true, "w")
                .find("accept the licence at "
                      "https://hub.example/org/name"),
            std::string::npos);
  EXPECT_NE(Message(401, "RepoNotFound", false).find("check the spelling"), std::string::npos);
  EXPECT_NE(Message(401, "", true).find("does not accept the token from HF_TOKEN"),
            std::string::npos);
  EXPECT_NE(Message(404, "RevisionNotFound", false).find("'v1'"), std::string::npos);
  EXPECT_NE(Message(404, "", false).find("no such model"), std::string::npos);
}

TEST(Fault, WhatMayPassIsTriedAgain) {
  const auto kind = [](int status, bool redirected = false) {
    HttpHead head;
    head.status = status;
    return FaultOfStatus(head, {"org/name", "v1", "w", "h", redirected}, Hub()).kind;
  };
  for (const int status : {408, 429, 500, 502, 503, 504})
    EXPECT_EQ(kind(status), Fault::Kind::kRetry) << status;
  for (const int status : {400, 401, 403, 404, 410, 416, 451})
    EXPECT_EQ(kind(status), Fault::Kind::kFatal) << status;
  EXPECT_EQ(kind(403, true), Fault::Kind::kRetry) << "an address of the storage expires";
}

TEST(Fault, TheHubTellsHowLongALimitLasts) {
  const auto wait = [](const std::string& limit, std::optional<double> after = std::nullopt) {
    return FaultOfStatus({429, {{"ratelimit", limit}}, after}, {}, Hub()).wait;
  };
  EXPECT_EQ(wait("\"resolvers\";r=0;t=55"), 55);
  EXPECT_EQ(wait("\"resolvers\";r=0;t=55", 7), 7);
  for (const char* bad : {"", "x", "\"api\";r=0;t=", "\"api\";t=-5"})
    EXPECT_FALSE(wait(bad)) << bad;
}

TEST(Fault, WaitsAreBounded) {
  const RetryPolicy policy{.retries = 3, .base = 0.5, .longest_wait = 60};
  Fault fault{Fault::Kind::kRetry, {Code::kUnavailable, "busy"}, std::nullopt};
  EXPECT_EQ(*NextTry(fault, policy, 1), 0.5);
  EXPECT_EQ(*NextTry(fault, policy, 3), 2);
  EXPECT_FALSE(NextTry(fault, policy, 4));
  EXPECT_EQ(Backoff(policy, 1000), 30);
  fault.wait = 20;
  EXPECT_EQ(*NextTry(fault, policy, 1), 20);
  fault.wait = 61;
  EXPECT_NE(NextTry(fault, policy, 1).error().message.find("61 seconds"), std::string::npos);
  fault.kind = Fault::Kind::kFatal;
  EXPECT_FALSE(NextTry(fault, policy, 1));
}

TEST(Progress, RateTimeLeftAndWidth) {
  TransferRate rate;
  EXPECT_EQ(rate.Get(), 0);
  for (int second = 0; second <= 20; ++second) rate.Add(second, second < 10 ? 0 : second * 1000000);
  EXPECT_NEAR(rate.Get(), 1e6 * 20 / 11, 1e5);
  EXPECT_EQ(ProgressText(13'200'000'000, 31'410'000'000, 85.2e6, 100),
            " 42%  13.20 GB of 31.41 GB  85.20 MB/s  3:33 left");
  EXPECT_EQ(ProgressText(999'999, 1'000'000, 0, 100), " 99%  1000.00 kB of 1.00 MB");
  EXPECT_EQ(ProgressText(5, 5, 1, 100), "100%  5 B of 5 B");
  EXPECT_EQ(ProgressText(420, 1000, 25.12, 100, "tokens"),
            " 42%  420 of 1000 tokens  25.1 tokens/s  0:23 left");
  EXPECT_EQ(ProgressText(420, 1000, 25.12, 45, "tokens"), " 42%  420 of 1000 tokens  0:23 left");
  EXPECT_EQ(ProgressText(420, 1000, 25.12, 20, "tokens"), " 42%  0:23 left");
  EXPECT_EQ(ProgressText(420, 1000, 25.12, 14, "tokens"), " 42%");
  EXPECT_EQ(ProgressText(420, 1000, 25.12, 3, "tokens"), " 42");
  for (int i = 0; i < 1000; ++i) rate.Add(20 + i * 1e-3, 20'000'000 + i * 10'000);
  EXPECT_NEAR(rate.Get(), 1.9e6, 1e5);
  EXPECT_EQ(DurationText(3723.9), "1:02:03");
}

}  // namespace
}  // namespace latte::hub_get_test
