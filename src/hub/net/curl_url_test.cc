#include <gtest/gtest.h>

#include "src/hub/net/url.h"

namespace latte::curl_url_test {
namespace {

TEST(Url, OriginsCompareSchemeHostAndPort) {
  EXPECT_EQ(*OriginOf("https://huggingface.co/a?b"), *OriginOf("https://HuggingFace.co:443/x"));
  EXPECT_NE(*OriginOf("https://huggingface.co"), *OriginOf("http://huggingface.co"));
  EXPECT_NE(*OriginOf("http://h:1"), *OriginOf("http://h:2"));
  EXPECT_NE(*OriginOf("https://huggingface.co"), *OriginOf("https://huggingface.co.evil.org"));
}

TEST(Url, WhatIsNoWebAddressIsRefused) {
  for (const char* bad :
       {"", "ftp://h/x", "file:///etc/passwd", "https://user@h/", "https://u:p@h/", "https://",
        "https://h/a b", "https://h\\@evil/", "https://h/\r\nX: 1", "h/x"})
    EXPECT_FALSE(OriginOf(bad)) << bad;
}

TEST(Url, LocationsMayBeRelative) {
  const std::string base = "https://h/a/b?c";
  EXPECT_EQ(*ResolveLocation(base, "/x/y"), "https://h/x/y");
  EXPECT_EQ(*ResolveLocation(base, "y?z=1"), "https://h/a/y?z=1");
  EXPECT_EQ(*ResolveLocation(base, "//other/y"), "https://other/y");
  EXPECT_EQ(*ResolveLocation(base, "http://other:81/y#f"), "http://other:81/y");
  EXPECT_FALSE(ResolveLocation(base, "javascript:alert(1)"));
  EXPECT_FALSE(ResolveLocation(base, "https://h@other/"));
}

TEST(Url, EscapesWhatIsNoPlainCharacter) {
  EXPECT_EQ(UrlEscape("a/b c?#%.é", true), "a/b%20c%3F%23%25.%C3%A9");
  EXPECT_EQ(UrlEscape("refs/pr/1", false), "refs%2Fpr%2F1");
}

}  // namespace
}  // namespace latte::curl_url_test
