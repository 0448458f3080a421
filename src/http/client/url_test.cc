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

TEST(WebUrl, OriginsCompareSchemeHostAndPort) {
  const auto same = [](const char* a, const char* b) {
    return ParseWebUrl(a)->SameOrigin(*ParseWebUrl(b));
  };
  EXPECT_TRUE(same("https://huggingface.co/a?b", "https://HuggingFace.co:443/x"));
  EXPECT_TRUE(same("https://huggingface.co#x", "https://huggingface.co"));
  EXPECT_FALSE(same("https://huggingface.co", "http://huggingface.co"));
  EXPECT_FALSE(same("https://huggingface.co", "https://huggingface.co."));
  EXPECT_FALSE(same("http://h:1", "http://h:2"));
  EXPECT_FALSE(same("https://huggingface.co", "https://huggingface.co.evil.org"));
}

TEST(WebUrl, Parts) {
  const HttpUrl url = *ParseWebUrl("https://[2001:db8::1]:8443/a/?b=c?d#e");
  EXPECT_EQ(url.host, "2001:db8::1");
  EXPECT_EQ(url.path, "/a/");
  EXPECT_EQ(url.query, "b=c?d");
  EXPECT_EQ(url.Text(), "https://[2001:db8::1]:8443/a/?b=c?d");
  EXPECT_EQ(ParseWebUrl("https://h?x")->query, "x");
  EXPECT_EQ(ParseWebUrl("https://h?x")->HostAndPort(), "h:443");
}

TEST(WebUrl, WhatIsNoWebAddressIsRefused) {
  for (const char* bad : {"",
                          "ftp://h/x",
                          "file:///etc/passwd",
                          "https://user@h/",
                          "https://u:p@h/",
                          "https://",
                          "https://h/a b",
                          "https://h\\@evil/",
                          "https://h/\r\nX: 1",
                          "h/x",
                          "unix:/run/x",
                          "https://h:/",
                          "https://h:0/",
                          "https://h:65536/",
                          "https://h:+1/",
                          "https://[::1/",
                          "https://[1.2.3.4]/",
                          "https://[::1]x/",
                          "https://[:::]/",
                          "https://h%2eevil/",
                          "https://h\t/",
                          "https://h/\x7f",
                          "https://h/\xc3\xa9",
                          "https:h/",
                          "https:///h"})
    EXPECT_FALSE(ParseWebUrl(bad)) << bad;
  EXPECT_EQ(ParseWebUrl("https://u:secret@h/").error().message.find("secret"), std::string::npos);
}

TEST(WebUrl, LocationsMayBeRelative) {
  const HttpUrl base = *ParseWebUrl("https://h/a/b?c");
  const auto to = [&](const char* location) {
    const Result<HttpUrl> url = ResolveLocation(base, location);
    return url ? url->Text() : "refused";
  };
  EXPECT_EQ(to("/x/y"), "https://h/x/y");
  EXPECT_EQ(to("y?z=1"), "https://h/a/y?z=1");
  EXPECT_EQ(to("?z=1"), "https://h/a/b?z=1");
  EXPECT_EQ(to("#f"), "https://h/a/b?c");
  EXPECT_EQ(to("../../y/./z/.."), "https://h/y/");
  EXPECT_EQ(to("//other/y"), "https://other/y");
  EXPECT_EQ(to("http://other:81/y#f"), "http://other:81/y");
  EXPECT_EQ(to("/\xc3\xa9?\xc3"), "https://h/%C3%A9?%C3") << "as some servers send it";
  for (const char* bad : {"javascript:alert(1)", "https://h@other/", "//u:p@other/", "/a b",
                          "/\r\nX: y", "\\\\evil/x", "/x#\\@evil", "http:x", "https://\xc3\xa9/"})
    EXPECT_EQ(to(bad), "refused") << bad;
  EXPECT_EQ(ResolveLocation(*ParseWebUrl("http://h"), "y")->Text(), "http://h/y");
}

TEST(WebUrl, EscapesWhatIsNoPlainCharacter) {
  EXPECT_EQ(UrlEscape("a/b c?#%.\xc3\xa9", true), "a/b%20c%3F%23%25.%C3%A9");
  EXPECT_EQ(UrlEscape("refs/pr/1", false), "refs%2Fpr%2F1");
}

}  // namespace
}  // namespace latte::url_test
