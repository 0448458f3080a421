#include "src/http/client/proxy.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace latte::proxy_test {
namespace {

ProxyVariables Both(const std::string& value, const std::string& no_proxy = "") {
  return {{"http_proxy", value}, {"https_proxy", value}, no_proxy};
}

// The origin of the proxy for `target`; empty: none; or what is wrong.
std::string Proxy(const std::string& target, const ProxyVariables& variables) {
  const auto proxy = ProxyFor(*ParseUrl(target), variables);
  if (!proxy) return proxy.error().message;
  return *proxy ? (*proxy)->url.Origin() : "";
}

TEST(Proxy, OfTheScheme) {
  const ProxyVariables variables = {
      {"http_proxy", "http://a:1"}, {"https_proxy", "http://b:2"}, ""};
  EXPECT_EQ(Proxy("http://h", variables), "http://a:1");
  EXPECT_EQ(Proxy("https://h", variables), "http://b:2");
  EXPECT_EQ(Proxy("unix:/h", variables), "");
  EXPECT_EQ(Proxy("https://h", {}), "");
}

TEST(Proxy, Forms) {
  EXPECT_EQ(Proxy("http://h", Both("p")), "http://p:1080") << "as libcurl";
  EXPECT_EQ(Proxy("http://h", Both("p:8080")), "http://p:8080");
  EXPECT_EQ(Proxy("http://h", Both("HTTP://p:8080/ignored?too")), "http://p:8080");
  EXPECT_EQ(Proxy("http://h", Both("https://p")), "https://p");
  EXPECT_EQ(Proxy("http://h", Both("[::1]")), "http://[::1]:1080");
  EXPECT_EQ(Proxy("http://h", Both("http://u:p@[2001:db8::1]:3128")), "http://[2001:db8::1]:3128");
}

TEST(Proxy, Authorization) {
  const auto of = [](const std::string& value) {
    return (*ProxyFor(*ParseUrl("http://h"), Both(value)))->authorization;
  };
  EXPECT_EQ(of("http://p:1"), "");
  EXPECT_EQ(of("http://Aladdin:open%20sesame@p:1"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  EXPECT_EQ(of("user@p:1"), "Basic dXNlcjo=");
  EXPECT_EQ(of("http://u:a@b%3a%zz@p:1"), "Basic dTphQGI6JXp6") << "u:a@b:%zz";
}

TEST(Proxy, RefusesOthersAndNeverTellsThePassword) {
  const auto refused = [](const std::string& value, const std::string& why) {
    const auto proxy = ProxyFor(*ParseUrl("https://h"), Both(value));
    ASSERT_FALSE(proxy) << value;
    EXPECT_EQ(proxy.error().code, Code::kInvalidArgument);
    EXPECT_EQ(proxy.error().message.find("https_proxy: "), 0u);
    EXPECT_NE(proxy.error().message.find(why), std::string::npos) << proxy.error().message;
    EXPECT_EQ(proxy.error().message.find("secret"), std::string::npos) << proxy.error().message;
  };
  refused("socks5h://u:secret@p:1", "socks5h://, which Latte does not speak");
  refused("socks4://p", "socks4://");
  refused("ftp://u:secret@p", "neither http:// nor https://");
  refused("http://u:secret/x@p:1", "cannot be read");
  refused("http://u:secret@p:99999", "cannot be read");
  refused("http://u:secret@", "cannot be read");
  refused("http://u:secret@p q", "cannot be read");
  refused("http://u:secret@p\r\nX: y", "cannot be read");
  refused("http://[::1", "cannot be read");
}

TEST(Proxy, NotForThisMachine) {
  for (const char* target : {"http://localhost:8000", "https://127.0.0.1", "https://127.1.2.3:1",
                             "http://[::1]:8000", "https://x.localhost"})
    EXPECT_EQ(Proxy(target, Both("p:1")), "") << target;
  for (const char* target : {"https://localhost.example", "http://128.0.0.1", "http://[::2]"})
    EXPECT_NE(Proxy(target, Both("p:1")), "") << target;
}

TEST(Proxy, NoProxy) {
  struct Case {
    const char* no_proxy;
    const char* target;
    bool direct;
  };
  const Case cases[] = {
      {"*", "https://h", true},
      {"a, *", "https://h", true},
      {"", "https://h", false},
      {",, ,", "https://h", false},
      {"example.com", "https://example.com", true},
      {"example.com", "https://www.EXAMPLE.com", true},
      {"example.com", "https://nonexample.com", false},
      {"example.com", "https://example.com.evil", false},
      {".example.com", "https://www.example.com", true},
      {".example.com", "https://example.com", true},
      {"Example.com.", "https://example.com", true},
      {"example.com", "https://example.com.", true},
      {"www.example.com", "https://example.com", false},
      {"a,b  c", "https://c", true},
      {"example.com:8080", "https://example.com", true},
      {"192.0.2.1", "https://192.0.2.1", true},
      {"192.0.2.1:80", "https://192.0.2.1", true},
      {"192.0.2.1", "https://192.0.2.10", false},
      {"2.1", "https://192.0.2.1", false},
      {"192.0.2.0/24", "https://192.0.2.77", true},
      {"192.0.2.0/24", "https://192.0.3.77", false},
      {"192.0.2.8/29", "https://192.0.2.15", true},
      {"192.0.2.8/29", "https://192.0.2.16", false},
      {"192.0.2.1/32", "https://192.0.2.1", true},
      {"192.0.2.1/32", "https://192.0.2.2", false},
      {"0.0.0.0/0", "https://192.0.2.1", true},
      {"192.0.2.0/33", "https://192.0.2.1", false},
      {"192.0.2.0/x", "https://192.0.2.0", false},
      {"192.0.2.0/24", "https://h", false},
      {"2001:db8::1", "https://[2001:DB8:0::1]", true},
      {"[2001:db8::1]:80", "https://[2001:db8::1]", true},
      {"2001:db8::/32", "https://[2001:db8:1::1]", true},
      {"2001:db8::/32", "https://[2001:db9::1]", false},
      {"0.0.0.0/0", "https://[2001:db8::1]", false},
  };
  for (const Case& c : cases)
    EXPECT_EQ(Proxy(c.target, Both("p:1", c.no_proxy)), c.direct ? "" : "http://p:1")
        << c.no_proxy << " " << c.target;
}

class Variables : public testing::Test {
 protected:
  Variables() { Clear(); }
  ~Variables() override { Clear(); }
  static void Clear() {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy",
                             "ALL_PROXY", "no_proxy", "NO_PROXY"})
      unsetenv(name);
  }
};

TEST_F(Variables, SmallLettersFirstAndHttpInThemOnly) {
  setenv("HTTP_PROXY", "no", 1);
  EXPECT_EQ(ReadProxyVariables().http.value, "");
  setenv("ALL_PROXY", "all", 1);
  setenv("NO_PROXY", "x", 1);
  EXPECT_EQ(ReadProxyVariables().http.value, "all");
  EXPECT_EQ(ReadProxyVariables().http.name, "ALL_PROXY");
  EXPECT_EQ(ReadProxyVariables().https.value, "all");
  EXPECT_EQ(ReadProxyVariables().no_proxy, "x");
  setenv("all_proxy", "small", 1);
  setenv("HTTPS_PROXY", "capitals", 1);
  setenv("no_proxy", "y", 1);
  EXPECT_EQ(ReadProxyVariables().http.value, "small");
  EXPECT_EQ(ReadProxyVariables().https.value, "capitals");
  EXPECT_EQ(ReadProxyVariables().no_proxy, "y");
  setenv("https_proxy", "", 1);
  EXPECT_EQ(ReadProxyVariables().https.value, "capitals") << "an empty one is none";
  setenv("https_proxy", "s", 1);
  setenv("http_proxy", "h", 1);
  EXPECT_EQ(ReadProxyVariables().https.name, "https_proxy");
  EXPECT_EQ(ReadProxyVariables().http.value, "h");
}

TEST(Proxy, RefusalsSayWhatToDo) {
  HttpProxy proxy = {*ParseUrl("http://p:3128"), "", "https_proxy"};
  const HttpUrl target = *ParseUrl("https://h");
  EXPECT_EQ(ProxyRefusal(proxy, 407, target),
            "the proxy http://p:3128 (https_proxy) answers 407: it asks for a user and a password: "
            "set https_proxy to http://USER:PASSWORD@HOST:PORT");
  EXPECT_EQ(ProxyRefusal(proxy, 502, target),
            "the proxy http://p:3128 (https_proxy) answers 502 instead of a connection to h:443; "
            "see https_proxy and no_proxy");
  proxy.authorization = "Basic c2VjcmV0";
  EXPECT_EQ(
      ProxyRefusal(proxy, 407, target),
      "the proxy http://p:3128 (https_proxy) answers 407: it does not accept the user and the "
      "password of https_proxy");
}

}  // namespace
}  // namespace latte::proxy_test
