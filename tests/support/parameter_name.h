// Names of parametrised tests, for the last argument of INSTANTIATE_TEST_SUITE_P. They hold no
// address and no index, so a test has the same name in every run.
#pragma once

#include <cctype>
#include <string>

#include <gtest/gtest.h>

namespace latte::testing_support {

// What gtest prints for the parameter, in letters, digits and '_': "models/tiny, fp8" is
// models_tiny_fp8.
struct ParameterName {
  template <class T>
  std::string operator()(const testing::TestParamInfo<T>& info) const {
    std::string out;
    for (const char c : testing::PrintToString(info.param)) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
      if (plain || (!out.empty() && out.back() != '_')) out += plain ? c : '_';
    }
    if (out.ends_with('_')) out.pop_back();
    return out;
  }
};

// The last part of a path: "tests/goldens/v2_lite" is v2_lite.
inline std::string LastPartOfPath(const testing::TestParamInfo<const char*>& info) {
  const std::string path = info.param;
  return path.substr(path.rfind('/') + 1);
}

}  // namespace latte::testing_support
