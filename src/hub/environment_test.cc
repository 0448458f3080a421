#include "src/hub/environment.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace latte::environment_test {
namespace {

class Environment : public testing::Test {
 protected:
  Environment() {
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT",
                             "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE",
                             "HUGGINGFACE_HUB_CACHE", "HF_HUB_DISABLE_IMPLICIT_TOKEN"})
      unsetenv(name);
    setenv("HF_HOME", home_.path().c_str(), 1);
  }
  ~Environment() override { unsetenv("HF_HOME"); }

  static std::string Token() {
    const auto hub = ReadHubEnvironment();
    return hub ? hub->token : hub.error().message;
  }

  testing_support::ScratchDir home_;
};

TEST_F(Environment, TokensInTheOrderOfHuggingfaceHub) {
  EXPECT_EQ(Token(), "");
  std::ofstream(home_.File("token")) << "hf_file\n";
  EXPECT_EQ(Token(), "hf_file");
  std::ofstream(home_.File("other")) << "hf_other";
  setenv("HF_TOKEN_PATH", "$HF_HOME/other", 1);
  EXPECT_EQ(Token(), "hf_other");
  setenv("HUGGING_FACE_HUB_TOKEN", "hf_old", 1);
  EXPECT_EQ(Token(), "hf_old");
  setenv("HF_TOKEN", " hf_new\n", 1);
  EXPECT_EQ(Token(), "hf_new");
  setenv("HF_TOKEN", "a\nb", 1);
  EXPECT_NE(Token().find("HF_TOKEN: expected a token"), std::string::npos);
  setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
  EXPECT_EQ(Token(), "");
}

TEST_F(Environment, EndpointCacheAndOffline) {
  EXPECT_EQ(ReadHubEnvironment()->endpoint, "https://huggingface.co");
  EXPECT_EQ(ReadHubEnvironment()->cache, home_.File("hub"));
  EXPECT_FALSE(ReadHubEnvironment()->offline);
  setenv("HF_HUB_OFFLINE", "yes", 1);
  setenv("HF_ENDPOINT", "https://mirror.example/hf//", 1);
  EXPECT_EQ(ReadHubEnvironment()->endpoint, "https://mirror.example/hf");
  EXPECT_TRUE(ReadHubEnvironment()->offline);
  for (const char* bad :
       {"mirror.example", "ftp://h", "https://u:p@h", "https://h?x", "https://h#x"}) {
    setenv("HF_ENDPOINT", bad, 1);
    EXPECT_FALSE(ReadHubEnvironment()) << bad;
  }
}

}  // namespace
}  // namespace latte::environment_test
