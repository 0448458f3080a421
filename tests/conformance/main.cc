// Runs the conformance tests and then asks whether every row that this machine has was run at all:
// a row that no test reaches is a failure. Only a full run asks.
#include <gtest/gtest.h>

#include "tests/conformance/rows.h"

namespace latte {
namespace {

class EveryRowRan : public ::testing::Environment {
 public:
  void TearDown() override {
    if (::testing::GTEST_FLAG(filter) != "*") return;
    for (const KernelInfo& row : AllKernels()) {
      if (!TestMachine().Has(row.isa)) continue;
      EXPECT_GT(RowRuns()[std::string(row.name)], 0) << row.name << " was never run";
    }
  }
};

}  // namespace
}  // namespace latte

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new latte::EveryRowRan);
  return RUN_ALL_TESTS();
}
