#include "src/serve/prefix_salt.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace latte::prefix_salt_test {
namespace {

TEST(PrefixSalt, WithoutAKeyIsTheClients) {
  EXPECT_EQ(PrefixSalt("", ""), "");
  EXPECT_EQ(PrefixSalt("", "tenant 7"), "tenant 7");
  EXPECT_EQ(PrefixSalt("", std::string(64, 'x')), std::string(64, 'x'));
}

// Keys, own salts, and what a client without the key could send instead: no two are equal.
TEST(PrefixSalt, SeparatesKeysAndSalts) {
  std::set<std::string> seen;
  size_t made = 0;
  const auto add = [&](std::string_view secret, std::string salt) {
    const std::string out = PrefixSalt(secret, std::move(salt));
    EXPECT_TRUE(seen.insert(out).second) << out;
    EXPECT_LE(out.size(), 71U);
    EXPECT_EQ(out.find("key-of"), std::string::npos) << "the key is told";
    ++made;
    return out;
  };
  for (const char* key : {"key-of-a", "key-of-b", "key-of-"}) {
    const std::string secret = SaltSecretOf(key);
    EXPECT_EQ(secret.find(key), std::string::npos);
    for (const std::string& salt : {std::string(), std::string("a"), std::string("tenant"),
                                    std::string(1000, 'x'), std::string(1 << 20, 'x')}) {
      const std::string out = add(secret, salt);
      EXPECT_EQ(out, PrefixSalt(SaltSecretOf(key), salt));  // also after a restart
      add("", out);                                         // a client that has learnt it
      add(secret, out);
    }
  }
  add("", std::string(65, 'x'));
  add("", PrefixSalt("", std::string(65, 'x')));
  EXPECT_EQ(seen.size(), made);
}

}  // namespace
}  // namespace latte::prefix_salt_test
