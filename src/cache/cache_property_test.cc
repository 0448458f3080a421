// What holds for any sequence of operations.
#include "src/cache/page_pool.h"
#include "tests/support/cache_manager_driver.h"
#include "tests/support/property.h"
#include "tests/support/radix_tree_driver.h"

namespace latte::cache_property_test {
namespace {

using testing_support::ByteSource;
using testing_support::CheckProperty;

constexpr int kCases = 10'000;
constexpr int kBytes = 400;  // that choose operations: some hundred of these

TEST(CacheProperty, PrefixTreeIsAsAListOfPrefixes) {
  CheckProperty(kCases, kBytes, [](const std::vector<uint8_t>& bytes) {
    RC_ASSERT(testing_support::RadixTreeDriver::Run(bytes) == "");
  });
}

TEST(CacheProperty, PrefixTreeNeedsNoHashes) {
  CheckProperty(kCases, kBytes, [](const std::vector<uint8_t>& bytes) {
    RC_ASSERT(testing_support::RadixTreeDriver::Run(bytes, /*hash_mask=*/1) == "");
  });
}

TEST(CacheProperty, ManagerLosesNoPageAndKeepsEveryonesRows) {
  CheckProperty(kCases, kBytes, [](const std::vector<uint8_t>& bytes) {
    RC_ASSERT(testing_support::CacheManagerDriver::Run(bytes) == "");
  });
}

TEST(CacheProperty, PoolCountsReferences) {
  CheckProperty(kCases, kBytes, [](const std::vector<uint8_t>& bytes) {
    constexpr int32_t kPages = 4;
    PagePool pool(kPages);
    std::vector<int32_t> refs(kPages, 0);
    for (ByteSource choose(bytes); !choose.empty();) {
      const int32_t page = choose.Below(kPages);
      const int32_t what = choose.Below(3);
      int32_t& count = refs[static_cast<size_t>(page)];
      if (what == 0) {
        const auto got = pool.Allocate();
        RC_ASSERT(got.has_value() == (std::ranges::count(refs, 0) > 0));
        if (got) RC_ASSERT(std::exchange(refs[static_cast<size_t>(*got)], 1) == 0);
      } else if (count > 0 && what == 1) {
        pool.AddRef(page);
        ++count;
      } else if (count > 0) {
        pool.Release(page);
        --count;
      }
      for (int32_t i = 0; i < kPages; ++i) RC_ASSERT(pool.Refs(i) == refs[static_cast<size_t>(i)]);
      RC_ASSERT(pool.free_pages() == std::ranges::count(refs, 0));
    }
  });
}

}  // namespace
}  // namespace latte::cache_property_test
