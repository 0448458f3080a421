// A temporary folder of a test, removed with its content. The name is unique, because tests of one
// binary run in parallel.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "src/base/check.h"

namespace latte::testing_support {

class ScratchDir {
 public:
  ScratchDir() : path_(testing::TempDir() + "latte_XXXXXX") {
    LATTE_CHECK(mkdtemp(path_.data()) != nullptr, "{}", path_);
  }
  ~ScratchDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace latte::testing_support
