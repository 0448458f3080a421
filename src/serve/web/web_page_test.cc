#include "src/serve/web/web_page.h"

#include <string>

#include <gtest/gtest.h>

#include "src/base/file.h"

namespace latte::page_test {
namespace {

HttpRequest Get(std::string path) { return {.method = "GET", .path = std::move(path)}; }

HttpResponse Response(const std::string& path) {
  return WebResponse(*FindWebFile(path), Get(path));
}

// Libraries are files of Debian's packages.
bool IsLibrary(const WebFile& file) { return file.name.starts_with("libraries/"); }

TEST(Page, HasTheBytesOfItsFiles) {
  ASSERT_GE(WebFiles().size(), 3U);
  for (const WebFile& file : WebFiles()) {
    if (IsLibrary(file)) continue;
    const std::string path = LATTE_SOURCE_DIR "/src/serve/web/files/" + std::string(file.name);
    EXPECT_EQ(file.body, ReadFile(path, 1 << 20).value()) << file.name;
  }
}

TEST(Page, SaysWhichLibrariesItHas) {
  const WebFile* list = FindWebFile("/page/libraries/libraries.js");
  ASSERT_NE(list, nullptr);
  for (const char* name : {"marked", "prism", "katex"}) {
    const WebFile* library = FindWebFile("/page/libraries/" + std::string(name) + ".js");
    ASSERT_NE(library, nullptr) << name;
    const bool is_missing = list->body.find(std::string(name) + ": null") != std::string_view::npos;
    EXPECT_EQ(library->body.empty(), is_missing) << name;
  }
  EXPECT_EQ(Response("/page/libraries/licences.txt").content_type, "text/plain; charset=utf-8");
  for (const char* word : {"Markdown", "code", "math"})
    EXPECT_NE(WebLibraries().find(word), std::string_view::npos) << word;
}

TEST(Page, Paths) {
  ASSERT_NE(FindWebFile("/"), nullptr);
  EXPECT_EQ(FindWebFile("/")->name, "index.html");
  ASSERT_NE(FindWebFile("/page/style.css"), nullptr);
  for (const char* path : {"", "/page", "/page/", "/page/index.html", "/page/no.js", "//",
                           "/style.css", "/page/../style.css"})
    EXPECT_EQ(FindWebFile(path), nullptr) << path;
}

TEST(Page, ContentTypes) {
  EXPECT_EQ(Response("/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(Response("/page/style.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(Response("/page/text/text.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(Response("/page/main.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(Response("/page/icon.svg").content_type, "image/svg+xml; charset=utf-8");
}

TEST(Page, NothingIsLoadedFromElsewhere) {
  for (const WebFile& file : WebFiles()) {
    const HttpResponse response = WebResponse(file, Get("/"));
    const std::string_view policy = response.fields.Find("Content-Security-Policy");
    EXPECT_TRUE(policy.starts_with("default-src 'none'; ")) << file.name;
    for (const char* part : {"script-src 'self'", "style-src 'self'", "connect-src 'self'",
                             "frame-ancestors 'none'", "require-trusted-types-for 'script'"})
      EXPECT_NE(policy.find(part), std::string_view::npos) << part;
    EXPECT_EQ(policy.find("unsafe"), std::string_view::npos);
    EXPECT_EQ(response.fields.Find("Referrer-Policy"), "no-referrer");
    if (IsLibrary(file)) continue;  // their words are not in use: the policy above forbids it
    for (const char* word : {"https://", "http://", "innerHTML", "style=\"", " onclick="}) {
      const size_t at = file.body.find(word);
      const bool is_namespace =  // of SVG and MathML
          at != std::string_view::npos && file.body.substr(at).starts_with("http://www.w3.org/");
      EXPECT_TRUE(is_namespace || at == std::string_view::npos) << file.name << ": " << word;
    }
  }
}

TEST(Page, WhatThePageAsksForItself) {
  const auto by_web_page = [](std::string method, std::string path, bool marked) {
    HttpRequest request{.method = std::move(method), .path = std::move(path)};
    if (marked) request.fields.Add("X-Latte-Page", "1");
    return IsByWebPage(request);
  };
  EXPECT_TRUE(by_web_page("GET", "/", false));
  EXPECT_TRUE(by_web_page("GET", "/page/main.js", false));
  EXPECT_TRUE(by_web_page("GET", "/metrics", true));
  EXPECT_TRUE(by_web_page("GET", "/props", true));
  EXPECT_FALSE(by_web_page("GET", "/metrics", false));
  EXPECT_FALSE(by_web_page("GET", "/v1/models", true));
  EXPECT_FALSE(by_web_page("POST", "/v1/chat/completions", true));
}

TEST(Page, AFileThatTheClientHasIsNotSentAgain) {
  const WebFile& file = *FindWebFile("/");
  const HttpResponse first = WebResponse(file, Get("/"));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.fields.Find("Cache-Control"), "no-cache");
  const std::string tag(first.fields.Find("ETag"));
  EXPECT_EQ(tag.size(), 18U);
  for (const std::string& tags : {tag, "W/" + tag, "\"other\", " + tag, std::string("*")}) {
    HttpRequest request = Get("/");
    request.fields.Add("If-None-Match", tags);
    const HttpResponse again = WebResponse(file, request);
    EXPECT_EQ(again.status, 304) << tags;
    EXPECT_EQ(again.body, "");
    EXPECT_EQ(again.content_type, "");
    EXPECT_EQ(again.fields.Find("ETag"), tag);
  }
  HttpRequest other = Get("/");
  other.fields.Add("If-None-Match", FindWebFile("/page/style.css")->etag.data());
  EXPECT_EQ(WebResponse(file, other).status, 200);
}

}  // namespace
}  // namespace latte::page_test
