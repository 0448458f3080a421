#include "src/serve/options.h"

#include <set>

#include <gtest/gtest.h>

#include "latte/options.h"

#include "src/base/fields/fields.h"

namespace latte::options_test {
namespace {

std::string ErrorOf(const ServeOptions& options) {
  const Status status = options.Validate();
  return status ? "none" : status.error().message;
}

TEST(ServeOptions, DefaultsAreValid) { EXPECT_EQ(ErrorOf({}), "none"); }

TEST(ServeOptions, AnAddressIsNeeded) {
  ServeOptions options;
  options.host = "";
  EXPECT_EQ(ErrorOf(options), "host: expected an address, or --uds PATH, found neither");
  options.uds = "/tmp/socket";
  EXPECT_EQ(ErrorOf(options), "none");
}

TEST(ServeOptions, CertificateAndKeyGoTogether) {
  ServeOptions options;
  options.ssl_keyfile = "key";
  EXPECT_TRUE(ErrorOf(options).starts_with("ssl_certfile: expected"));
  options.ssl_certfile = "certificate";
  EXPECT_EQ(ErrorOf(options), "none");
}

TEST(ServeOptions, EntriesOfListsAreNotEmpty) {
  for (auto list : {&ServeOptions::served_model_name, &ServeOptions::api_key,
                    &ServeOptions::allowed_host, &ServeOptions::cors_origin}) {
    ServeOptions options;
    options.*list = {"a", ""};
    EXPECT_NE(ErrorOf(options).find(": expected a text, found none"), std::string::npos);
    (options.*list).assign(2000, "a");
    EXPECT_NE(ErrorOf(options).find(": expected at most "), std::string::npos);
  }
}

TEST(ServeOptions, RangesAndChoices) {
  ServeOptions options;
  options.port = 65536;
  EXPECT_EQ(ErrorOf(options), "port: expected a number in [0, 65535], found 65536");
  options = {};
  options.head_timeout = 0;
  EXPECT_EQ(ErrorOf(options), "head_timeout: expected a number in (0, 86400], found 0");
  options = {};
  options.log_level = "loud";
  EXPECT_EQ(ErrorOf(options), "log_level: expected debug, info, warning or error, found 'loud'");
}

// A file of options may have them without tables.
TEST(ServeOptions, NamesAndVariablesDifferFromTheEngines) {
  std::set<std::string> seen;
  const auto add = [&](const Field& field, auto...) {
    EXPECT_TRUE(seen.insert(std::string(field.name)).second) << field.name;
    const std::string variable = Variable(field);
    EXPECT_TRUE(variable.empty() || seen.insert(variable).second) << variable;
  };
  EngineOptions::VisitFields(add);
  ServeOptions::VisitFields(add);
}

}  // namespace
}  // namespace latte::options_test
