#include "src/http/client/url.h"

#include <gtest/gtest.h>

namespace latte::url_test {
namespace {

TEST(Url, Parts) {
  const Result<HttpUrl> url = ParseUrl("HTTP://Example.org:8000/prefix/v1/");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->scheme, HttpUrl::Scheme::kHttp);
  EXPECT_EQ(url->host, "Example.org");
  EXPECT_EQ(url->port, 8000);
  EXPECT_EQ(url->path, "/prefix/v1");
  EXPECT_EQ(url->Authority(), "Example.org:8000");
  EXPECT_EQ(url->Origin(), "http://Example.org:8000");
}

TEST(Url, UsualPorts) {
  EXPECT_EQ(ParseUrl("http://a")->port, 80);
  EXPECT_EQ(ParseUrl("https://a")->port, 443);
  EXPECT_EQ(ParseUrl("https://a:443")->Authority(), "a");
  EXPECT_EQ(ParseUrl("https://a:80")->Authority(), "a:80");
  EXPECT_EQ(ParseUrl("http://a/")->path, "");
}

TEST(Url, Version6) {
  const Result<HttpUrl> url = ParseUrl("https://[::1]:8443/v1");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->Authority(), "[::1]:8443");
  EXPECT_EQ(ParseUrl("http://[fe80::1]")->Origin(), "http://[fe80::1]");
}

TEST(Url, UnixSocket) {
  const Result<HttpUrl> url = ParseUrl("unix:/run/a b.sock");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->scheme, HttpUrl::Scheme::kUnix);
  EXPECT_EQ(url->socket, "/run/a b.sock");
  EXPECT_EQ(url->Authority(), "localhost");
  EXPECT_EQ(url->Origin(), "unix:/run/a b.sock");
  EXPECT_EQ(ApiPath(*url, "/v1/models"), "/v1/models");
}

TEST(Url, WithAndWithoutVersion) {
  for (const char* base : {"http://a", "http://a/", "http://a/v1", "http://a/v1/"})
    EXPECT_EQ(ApiPath(*ParseUrl(base), "/v1/chat/completions"), "/v1/chat/completions") << base;
  EXPECT_EQ(ApiPath(*ParseUrl("http://a/x/v1"), "/v1/models"), "/x/v1/models");
  EXPECT_EQ(ApiPath(*ParseUrl("http://a/x"), "/version"), "/x/version");
}

TEST(Url, Refused) {
  struct Case {
    std::string text;
    const char* why;
  };
  const Case cases[] = {
      {"", "none of these"},
      {"localhost:8000", "none of these"},
      {"ftp://a", "none of these"},
      {"http:/a", "none of these"},
      {"http://", "host is missing"},
      {"http://:80", "host is missing"},
      {"http://me:secret@a", "user name"},
      {"http://a:0", "port"},
      {"http://a:", "port"},
      {"http://a:65536", "port"},
      {"http://a:-1", "port"},
      {"http://a:8o", "port"},
      {"http://a b", "character"},
      {"http://a\r\nX: y", "character"},
      {"http://::1", "brackets"},
      {"http://[::1", "']'"},
      {"http://[host]:80", "IPv6"},
      {"http://[::1]80", "port"},
      {"http://a/x?key=1", "'?'"},
      {"http://a#x", "'?'"},
      {"http://a/x y", "%XX"},
      {"http://a/\xc3\xa9", "%XX"},
      {"unix:", "missing"},
      {"unix:" + std::string(108, 'x'), "107"},
      {std::string("unix:a\0b", 8), "0 byte"},
      {"http://" + std::string(5000, 'a'), "4096"},
  };
  for (const Case& c : cases) {
    const Result<HttpUrl> url = ParseUrl(c.text);
    ASSERT_FALSE(url) << c.text;
    EXPECT_EQ(url.error().code, Code::kInvalidArgument);
    EXPECT_NE(url.error().message.find(c.why), std::string::npos) << url.error().message;
  }
}

}  // namespace
}  // namespace latte::url_test
