#include "src/serve/endpoints/access.h"

#include <fstream>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "src/api/error_body.h"
#include "src/serve/endpoints/routes.h"
#include "tests/support/scratch_dir.h"

namespace latte::access_test {
namespace {

HttpRequest Request(std::vector<std::pair<std::string, std::string>> fields) {
  HttpRequest out;
  for (auto& [name, value] : fields) out.fields.Add(std::move(name), std::move(value));
  return out;
}

bool SiteIsAllowed(const ServeOptions& options,
                   std::vector<std::pair<std::string, std::string>> fields) {
  return !Access::Create(options).value().CheckSite(Request(std::move(fields)));
}

TEST(Access, NamesOfThisMachine) {
  for (const char* host : {"localhost", "LocalHost", "127.0.0.1", "127.8.9.1", "::1", "[::1]"})
    EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host : {"", "localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1",
                           "0.0.0.0", "::2", "[::1", "127.0.0.1:80"})
    EXPECT_FALSE(IsLoopback(host)) << host;
}

// What one reader takes for this machine and another one for its sender's is no host.
TEST(Access, HostsWithoutPorts) {
  const std::vector<std::pair<std::string_view, std::string_view>> hosts = {
      {"localhost", "localhost"},
      {"localhost:8000", "localhost"},
      {"localhost:", "localhost"},
      {"[::1]", "[::1]"},
      {"[::1]:65535", "[::1]"},
      {"name.example:1", "name.example"},
      {"", ""},
      {":80", ""},
      {"[::1].evil", ""},
      {"[::1]evil:80", ""},
      {"[::1]@evil", ""},
      {"[::1", ""},
      {"[::1]:80:80", ""},
      {"[::1]:evil", ""},
      {"localhost:80.evil", ""},
      {"localhost:80@evil", ""},
      {"localhost:@evil", ""},
      {"localhost:-1", ""},
      {"localhost:+1", ""},
      {"localhost:0x50", ""},
      {"localhost: 80", ""},
      {"localhost:123456", ""},
      {"::1", ""},
  };
  for (const auto& [authority, host] : hosts) EXPECT_EQ(HostOf(authority), host) << authority;
}

TEST(Access, HostsThatOnlyLookLikeThisMachine) {
  for (const char* host : {"[::1].evil",          "[::1].evil:8000", "[::1]evil",
                           "127.0.0.1.evil",      "127.0.0.1.5",     "127.0.0.1.",
                           "127.1.evil",          "localhost.evil",  "localhost.",
                           "localhost:80@evil",   "user@localhost",  "user:80@localhost",
                           "localhost@evil",      "localhost:evil",  "localhost:8000.evil",
                           "localhost:8000:8000", "[localhost",      "127.0.0.256",
                           "127.0.0.1 evil",      "[[::1]]",         "[]"})
    EXPECT_FALSE(SiteIsAllowed({}, {{"Host", host}})) << host;
  for (const char* host : {"[box.lan].evil", "box.lan:80@evil", "box.lan.evil", "box.lan."})
    EXPECT_FALSE(SiteIsAllowed({.allowed_host = {"box.lan"}}, {{"Host", host}})) << host;
  EXPECT_TRUE(SiteIsAllowed({.allowed_host = {"box.lan"}}, {{"Host", "box.lan"}}));
}

// A name that was rebound to 127.0.0.1 is the attacker's own.
TEST(Access, HostOnLoopback) {
  for (const char* host : {"localhost:8000", "127.0.0.1", "[::1]:8000"})
    EXPECT_TRUE(SiteIsAllowed({}, {{"Host", host}})) << host;
  for (const char* host : {"evil.example", "evil.example:8000", "", "localhost.evil.example"})
    EXPECT_FALSE(SiteIsAllowed({}, {{"Host", host}})) << host;
  EXPECT_TRUE(SiteIsAllowed({.allowed_host = {"box.lan"}}, {{"Host", "BOX.lan:8000"}}));
  EXPECT_FALSE(SiteIsAllowed({.allowed_host = {"box.lan"}}, {{"Host", "lan:8000"}}));
}

TEST(Access, HostOfAnOpenServer) {
  EXPECT_TRUE(SiteIsAllowed({.host = "0.0.0.0"}, {{"Host", "any.example"}}));
  const ServeOptions named{.host = "0.0.0.0", .allowed_host = {"box.lan"}};
  EXPECT_TRUE(SiteIsAllowed(named, {{"Host", "box.lan"}}));
  EXPECT_FALSE(SiteIsAllowed(named, {{"Host", "any.example"}}));
}

TEST(Access, Origins) {
  const std::pair<std::string, std::string> host = {"Host", "localhost:8000"};
  EXPECT_TRUE(SiteIsAllowed({}, {host, {"Origin", "http://localhost:8000"}}));  // its own page
  for (const char* origin : {"http://localhost:3000", "https://evil.example", "null", "x"})
    EXPECT_FALSE(SiteIsAllowed({}, {host, {"Origin", origin}})) << origin;
  const ServeOptions one{.cors_origin = {"https://page.example"}};
  EXPECT_TRUE(SiteIsAllowed(one, {host, {"Origin", "https://page.example"}}));
  EXPECT_FALSE(SiteIsAllowed(one, {host, {"Origin", "https://page.example.evil"}}));

  const Access access = Access::Create(one).value();
  EXPECT_EQ(access.AllowedOrigin(Request({{"Origin", "https://page.example"}})),
            "https://page.example");
  EXPECT_EQ(access.AllowedOrigin(Request({{"Origin", "https://evil.example"}})), std::nullopt);
  EXPECT_EQ(access.AllowedOrigin(Request({})), std::nullopt);
  const Access all = Access::Create({.cors_origin = {"*"}}).value();
  EXPECT_EQ(all.AllowedOrigin(Request({{"Origin", "https://evil.example"}})), "*");
}

TEST(Access, AUnixSocketHasNoSites) {
  HttpRequest request = Request({{"Host", "any"}, {"Origin", "https://evil.example"}});
  request.is_unix = true;
  EXPECT_FALSE(Access::Create({}).value().CheckSite(request));
}

TEST(Access, Keys) {
  const Access access = Access::Create({.api_key = {"one", "two-2"}}).value();
  EXPECT_TRUE(access.has_keys());
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"Authorization", "Bearer one"},
                                                        {"authorization", "bearer  two-2 "},
                                                        {"X-Api-Key", "two-2"},
                                                        {"api-key", "one"},
                                                        {"API-KEY", "two-2"}})
    EXPECT_FALSE(access.CheckKey(Request({{name, value}}))) << value;
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"Authorization", "Bearer on"},
           {"Authorization", "Bearer onee"},
           {"Authorization", "Bearer oneone"},
           {"Authorization", "Bearer One"},
           {"Authorization", "Bearer"},
           {"Authorization", "Bearer \xff"},
           {"Authorization", "Basic one"},
           {"Authorization", "Bearer " + std::string(10'000, 'o')},
           {"X-Api-Key", ""},
           {"api-key", ""},
           {"api-key", "Bearer one"},
           {"api-key", "on"},
           {"apikey", "one"},
           {"Cookie", "one"}}) {
    const auto refusal = access.CheckKey(Request({{name, value}}));
    ASSERT_TRUE(refusal) << value;
    EXPECT_EQ(refusal->status, 401) << value;
  }
  EXPECT_FALSE(Access::Create({}).value().CheckKey(Request({})));
}

// Anthropic's clients send both where both are set, Azure's clients api-key.
TEST(Access, OneOfSeveralKeysSuffices) {
  const Access access = Access::Create({.api_key = {"one"}}).value();
  EXPECT_FALSE(access.CheckKey(Request({{"X-Api-Key", "one"}, {"Authorization", "Bearer x"}})));
  EXPECT_FALSE(access.CheckKey(Request({{"X-Api-Key", "x"}, {"Authorization", "Bearer one"}})));
  EXPECT_FALSE(access.CheckKey(Request({{"Api-Key", "one"}, {"Authorization", "Bearer x"}})));
  EXPECT_FALSE(access.CheckKey(Request({{"Api-Key", "x"}, {"X-Api-Key", "one"}})));
  EXPECT_TRUE(access.CheckKey(Request({{"X-Api-Key", "x"}, {"Authorization", "Bearer y"}})));
  EXPECT_TRUE(access.CheckKey(Request({{"X-Api-Key", "x"}, {"Api-Key", "y"}})));
  EXPECT_NE(access.CheckKey(Request({}))->message.find("Api-Key: KEY"), std::string::npos);
}

TEST(Access, KeysThatNobodyCanSend) {
  for (const char* key : {"a b", "\xc3\xa9", "a\n"})
    EXPECT_FALSE(Access::Create({.api_key = {key}})) << key;
}

TEST(Access, AFileOfKeysIsBounded) {
  const testing_support::ScratchDir dir;
  const std::string path = dir.File("keys");
  const std::string key = "one\n";
  for (const size_t bytes : {size_t{1} << 20, (size_t{1} << 20) + 1}) {
    std::ofstream(path) << key << std::string(bytes - key.size(), '\n');
    EXPECT_EQ(Access::Create({.api_key_file = path}).has_value(), bytes == size_t{1} << 20);
  }
}

HttpRequest To(const char* method, const char* path) {
  HttpRequest out;
  out.method = method;
  out.path = path;
  return out;
}

TEST(Routes, MethodsAndPaths) {
  struct Case {
    const char* method;
    const char* path;
    int status;  // 200: it has a route
  };
  for (const auto& [method, path, status] : std::vector<Case>{
           {"GET", "/health", 200},
           {"HEAD", "/health", 200},
           {"GET", "/health/", 200},
           {"POST", "/health", 405},
           {"TRACE", "/health", 405},
           {"GET", "/v1/chat/completions", 405},
           {"POST", "/v1/chat/completions", 200},
           {"POST", "/v1/completions/", 200},
           {"DELETE", "/v1/models/tiny", 405},
           {"GET", "/v1/models/tiny", 200},
           {"GET", "", 404},
           {"GET", "//health", 404},
           {"GET", "/%2e%2e/etc/passwd", 404},
           {"GET", "/health%00", 404},
           {"POST", "/v1/messages", 200},
           {"POST", "/v1/messages/count_tokens", 200},
           {"GET", "/v1/messages", 405},
           {"POST", "/v1/messages/batches", 404},
           {"POST", "/v1/embeddings", 404},
           {"POST", "/v1/responses", 200},
           {"GET", "/v1/chat/completions/chatcmpl-1", 404},
           {"GET", "/", 200},
           {"HEAD", "/page/style.css", 200},
           {"GET", "/page", 404},
           {"GET", "/page/nothing.js", 404},
           {"POST", "/", 405},
       }) {
    const RouteResult found = FindRoute(To(method, path));
    EXPECT_EQ(found.match ? 200 : found.error.status, status) << method << " " << path;
  }
  for (const char* path : {"/health", "/", "/page/main.js"})
    EXPECT_EQ(FindRoute(To("POST", path)).error.allow, "GET, HEAD") << path;
  EXPECT_NE(FindRoute(To("POST", "/v1/embeddings")).error.message.find("embeddings"),
            std::string::npos);
}

// A base URL without /v1.
TEST(Routes, PathsOfTheApiWithoutV1) {
  for (const auto& [method, path, route] : {
           std::tuple("POST", "/chat/completions", Route::kChat),
           std::tuple("POST", "/chat/completions/", Route::kChat),
           std::tuple("POST", "/completions", Route::kCompletions),
           std::tuple("POST", "/responses", Route::kResponses),
           std::tuple("POST", "/messages", Route::kMessages),
           std::tuple("POST", "/messages/count_tokens", Route::kCountTokens),
           std::tuple("GET", "/models", Route::kModels),
           std::tuple("GET", "/models/org/name", Route::kModel),
           std::tuple("POST", "/tokenize", Route::kTokenize),
       }) {
    const RouteResult found = FindRoute(To(method, path));
    ASSERT_TRUE(found.match) << path << ": " << found.error.message;
    EXPECT_EQ(found.match->route, route) << path;
    EXPECT_FALSE(found.match->is_public) << path;
  }
  EXPECT_EQ(FindRoute(To("GET", "/models/org/name")).match->rest, "org/name");
  EXPECT_EQ(FindRoute(To("GET", "/chat/completions")).error.status, 405);
  for (const char* path : {"/v1/health", "/v1/metrics", "/v1/props", "/v1/"})
    EXPECT_EQ(FindRoute(To("GET", path)).error.status, 404) << path;
}

// The path is meant, but for the base URL before it.
TEST(Routes, NearPathsNameTheRightOne) {
  for (const auto& [path, meant] : {
           std::pair("//v1/chat/completions", "/v1/chat/completions"),
           std::pair("/v1//chat/completions", "/v1/chat/completions"),
           std::pair("/v1/chat/completions//", "/v1/chat/completions"),
           std::pair("///v1///completions", "/v1/completions"),
           std::pair("/v1/v1/chat/completions", "/v1/chat/completions"),
           std::pair("/v1/v1/v1/models/org/name", "/v1/models/org/name"),
           std::pair("/v1/v1/messages", "/v1/messages"),
           std::pair("/v1/messages/v1/messages", "/v1/messages"),
           std::pair("/v1/chat/completions/chat/completions", "/v1/chat/completions"),
           std::pair("/v1/chat/completions/v1/models", "/v1/models"),
           std::pair("/api/v1/responses", "/v1/responses"),
           std::pair("/openai/deployments/m/chat/completions", "/v1/chat/completions"),
           std::pair("/v1/engines/m/completions", "/v1/completions"),
           std::pair("/v1/health", "/health"),
           std::pair("/v1/chat/completion", "/v1/chat/completions"),
           std::pair("/completion", "/v1/completions"),
       }) {
    const RouteError error = FindRoute(To("POST", path)).error;
    EXPECT_EQ(error.status, 404) << path;
    EXPECT_NE(error.message.find(std::string("did you mean ") + meant + "?"), std::string::npos)
        << path << ": " << error.message;
  }
  EXPECT_EQ(FindRoute(To("POST", "/embeddings")).error.message,
            "/embeddings: embeddings are not available: Latte generates text");
  EXPECT_NE(FindRoute(To("GET", "/responses/resp_1")).error.message.find("stores no responses"),
            std::string::npos);
  EXPECT_NE(FindRoute(To("POST", "/api/chat")).error.message.find("/v1/chat/completions"),
            std::string::npos);
  EXPECT_NE(FindRoute(To("GET", "/nothing")).error.message.find("docs/serving.md"),
            std::string::npos);
}

TEST(Routes, LongPathsGetNoHint) {
  const std::string slashes(1 << 13, '/');
  EXPECT_EQ(FindRoute(To("GET", (slashes + "v1/models").c_str())).error.status, 404);
  EXPECT_EQ(FindRoute(To("GET", ("/" + std::string(1 << 13, 'a')).c_str())).error.status, 404);
}

TEST(Routes, FormOfErrors) {
  for (const char* path :
       {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/x", "/messages",
        "/messages/count_tokens", "/v1/v1/messages", "//v1/messages", "/anthropic/v1/messages"})
    EXPECT_EQ(ErrorFormOf(path), ErrorForm::kAnthropic) << path;
  for (const char* path : {"/v1/chat/completions", "/v1/models", "/", "//v1/models"})
    EXPECT_EQ(ErrorFormOf(path), ErrorForm::kOpenAi) << path;
}

TEST(Routes, NamesOfModels) {
  const auto name = [](const char* path) { return FindRoute(To("GET", path)).match->rest; };
  EXPECT_EQ(name("/v1/models/deepseek-ai/DeepSeek-V3"), "deepseek-ai/DeepSeek-V3");
  EXPECT_EQ(name("/v1/models/deepseek-ai%2FDeepSeek-V3"), "deepseek-ai/DeepSeek-V3");
  EXPECT_EQ(name("/v1/models/a%zz%"), "a%zz%");
}

// Keys guard everything but what says whether the server lives.
TEST(Routes, WhatNeedsNoKey) {
  for (const char* path : {"/", "/page/main.js", "/health", "/ready"})
    EXPECT_TRUE(FindRoute(To("GET", path)).match->is_public) << path;
  for (const char* path :
       {"/version", "/metrics", "/v1/models", "/v1/models/x", "/props", "/requests"})
    EXPECT_FALSE(FindRoute(To("GET", path)).match->is_public) << path;
  for (const char* path : {"/tokenize", "/detokenize", "/apply-template", "/v1/completions"})
    EXPECT_FALSE(FindRoute(To("POST", path)).match->is_public) << path;
}

// Each key has its own secret for salts, in whatever field it comes; without the flag, none.
TEST(Access, SaltsOfKeys) {
  ServeOptions options;
  options.api_key = {"one", "two"};
  const auto secret = [&](std::string field, std::string value) {
    return Access::Create(options).value().SaltSecret(
        Request({{std::move(field), std::move(value)}}));
  };
  EXPECT_EQ(secret("X-Api-Key", "one"), "");
  options.salt_by_key = true;
  const std::string one = secret("X-Api-Key", "one");
  EXPECT_EQ(one.size(), 32U);
  EXPECT_EQ(secret("Api-Key", "one"), one);
  EXPECT_EQ(secret("Authorization", "Bearer one"), one);
  EXPECT_NE(secret("X-Api-Key", "two"), one);
  // Several keys of one request: the first of the list counts, in whatever order they come.
  const Access access = Access::Create(options).value();
  EXPECT_EQ(access.SaltSecret(Request({{"X-Api-Key", "two"}, {"Api-Key", "one"}})), one);
  EXPECT_EQ(access.SaltSecret(Request({{"X-Api-Key", "one"}, {"Api-Key", "other"}})), one);
  options.api_key.clear();
  EXPECT_EQ(Access::Create(options).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace latte::access_test
