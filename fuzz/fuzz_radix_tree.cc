// The input selects operations of the prefix tree, which is compared with a list that is searched
// linearly, and of the cache manager, whose pages must keep the rows of every sequence.
#include "fuzz/fuzz_input.h"
#include "tests/support/cache_manager_driver.h"
#include "tests/support/radix_tree_driver.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  const std::span bytes(data, size);
  const std::string tree = testing_support::RadixTreeDriver::Run(bytes);
  fuzz::Require(tree.empty(), tree);
  const std::string manager = testing_support::CacheManagerDriver::Run(bytes);
  fuzz::Require(manager.empty(), manager);
  return 0;
}
