#include <cstring>

#include <gtest/gtest.h>

#include "src/cache/latent_cache.h"
#include "src/cache/page_pool.h"

namespace latte::cache_test {
namespace {

TEST(PagePool, PageReturnsWhenItsLastReferenceGoes) {
  PagePool pool(2);
  const int32_t a = *pool.Allocate();
  const int32_t b = *pool.Allocate();
  EXPECT_NE(a, b);
  EXPECT_EQ(pool.Allocate().error().code, Code::kExhausted);
  pool.AddRef(a);
  pool.Release(a);
  EXPECT_EQ(pool.free_pages(), 0);
  pool.Release(a);
  EXPECT_EQ(pool.free_pages(), 1);
  EXPECT_EQ(*pool.Allocate(), a);
}

TEST(LatentCache, OnePageIdIndexesEveryStreamAndLayer) {
  const CacheSpec spec{
      {{StreamId::kLatent, 20, DType::kBF16}, {StreamId::kIndexer, 3, DType::kF32}}, 2, 16};
  EXPECT_EQ(spec.bytes_per_token(), (20 * 2 + 3 * 4) * 2);
  auto cache = LatentCache::Create(spec, 5);
  ASSERT_TRUE(cache);
  for (const StreamId stream : {StreamId::kLatent, StreamId::kIndexer}) {
    const TensorView first = cache->View(stream, 0);
    const TensorView second = cache->View(stream, 1);
    EXPECT_EQ(first.shape[0], 5);
    EXPECT_EQ(first.shape[1], 16);
    EXPECT_EQ(second.data - first.data, first.elements() * SizeOf(first.dtype));
    second.data[second.elements() * SizeOf(second.dtype) - 1] =
        std::byte{1};  // the last byte is ours
  }
}

TEST(LatentCache, StreamsAreFoundByNameWhateverTheirOrder) {
  const CacheStream key{StreamId::kKey, 6, DType::kF32};
  const CacheStream value{StreamId::kValue, 4, DType::kF32};
  for (const auto& streams : {std::vector{key, value}, std::vector{value, key}}) {
    auto cache = LatentCache::Create({streams, 1, 16}, 2);
    ASSERT_TRUE(cache);
    EXPECT_EQ(cache->spec().Stream(StreamId::kKey).width, 6);
    EXPECT_EQ(cache->View(StreamId::kKey, 0).shape[2], 6);
    EXPECT_EQ(cache->View(StreamId::kValue, 0).shape[2], 4);
  }
}

TEST(LatentCacheDeathTest, AStreamThatIsMissingOrThereTwiceIsNamed) {
  const CacheStream key{StreamId::kKey, 6, DType::kF32};
  const CacheStream value{StreamId::kValue, 4, DType::kF32};
  auto cache = LatentCache::Create({{key, value}, 1, 16}, 2);
  ASSERT_TRUE(cache);
  const char* const missing = "cache stream 'latent': the cache has only: key, value";
  EXPECT_DEATH(cache->View(StreamId::kLatent, 0), missing);
  EXPECT_DEATH(static_cast<void>(cache->spec().Stream(StreamId::kLatent)), missing);
  EXPECT_DEATH(static_cast<void>(LatentCache::Create({{key, key}, 1, 16}, 2)), "'key' twice");
}

// Layers 1 and 2 of 4 have no index keys.
CacheSpec KeysInSomeLayers() {
  CacheStream keys{StreamId::kIndexer, 3, DType::kF32};
  keys.without = {1, 2};
  return {{{StreamId::kLatent, 20, DType::kBF16}, keys}, 4, 16};
}

TEST(LatentCache, LayersWithoutRowsTakeNoMemory) {
  const CacheSpec spec = KeysInSomeLayers();
  EXPECT_EQ(spec.bytes_per_token(), 20 * 2 * 4 + 3 * 4 * 2);
  auto cache = LatentCache::Create(spec, 5);
  ASSERT_TRUE(cache);
  const TensorView first = cache->View(StreamId::kIndexer, 0);
  const TensorView last = cache->View(StreamId::kIndexer, 3);
  EXPECT_EQ(last.data - first.data, first.elements() * SizeOf(first.dtype));
  last.data[last.elements() * SizeOf(last.dtype) - 1] = std::byte{1};  // the last byte is ours
}

TEST(LatentCacheDeathTest, ALayerWithoutRowsHasNoView) {
  auto cache = LatentCache::Create(KeysInSomeLayers(), 2);
  ASSERT_TRUE(cache);
  EXPECT_DEATH(cache->View(StreamId::kIndexer, 2), "'indexer': layer 2 has no rows");
}

TEST(LatentCache, ImpossibleSizeIsAnErrorNotACrash) {
  const CacheSpec spec{{{StreamId::kLatent, int64_t{1} << 40, DType::kBF16}}, 1 << 20, 64};
  EXPECT_EQ(LatentCache::Create(spec, int64_t{1} << 30).error().code, Code::kExhausted);
}

}  // namespace
}  // namespace latte::cache_test
