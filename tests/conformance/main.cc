// Runs the conformance tests and then checks that every kernel that this machine supports has run;
// this check needs a full run. All tests run on small stacks, because kernels must keep their
// buffers elsewhere.
#include <gtest/gtest.h>

#include "tests/conformance/support/run_kernels.h"
#include "tests/support/small_stack.h"

namespace latte {
namespace {

class EveryRowRan : public ::testing::Environment {
 public:
  void TearDown() override {
    if (::testing::GTEST_FLAG(filter) != "*") return;
    for (const KernelInfo& kernel : AllKernels()) {
      if (!TestsRun(kernel.isa)) continue;
      EXPECT_GT(KernelRuns()[std::string(kernel.name)], 0) << kernel.name << " was never run";
    }
  }
};

}  // namespace
}  // namespace latte

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new latte::EveryRowRan);
  int result = 1;
  latte::testing_support::OnSmallStack([&result] { result = RUN_ALL_TESTS(); });
  return result;
}
