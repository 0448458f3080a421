#include "src/engine/step/page_bytes.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "src/cache/cache_manager.h"

namespace latte::page_bytes_test {
namespace {

using Tokens = std::vector<int32_t>;
using Pages = std::vector<int32_t>;

// Layers 1 and 2 of 4 have no index keys.
CacheSpec KeysInSomeLayers() {
  CacheStream keys{StreamId::kIndexer, 3, DType::kF32};
  keys.without = {1, 2};
  return {{{StreamId::kLatent, 20, DType::kBF16}, keys}, 4, 16};
}

TEST(PageBytes, PagesHoldTheRowsThatExist) {
  auto cache = LatentCache::Create(KeysInSomeLayers(), 3);
  ASSERT_TRUE(cache);
  std::vector<std::byte> bytes(static_cast<size_t>(cache->spec().bytes_per_page()));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 5);
  const Machine machine = *Machine::Detect();
  ThreadPool threads(1);
  const Exec exec{.threads = &threads, .machine = &machine};
  Workspace workspace;
  LoadPage(*cache, 1, bytes, workspace, exec);
  CopyPage(*cache, 1, 2, exec);
  EXPECT_EQ(SavePage(*cache, 2, workspace, exec), bytes);
  // The last part of the page are the 16 rows of layer 3.
  const TensorView last = cache->View(StreamId::kIndexer, 3);
  EXPECT_EQ(std::memcmp(last.data + 2 * 16 * 12, bytes.data() + bytes.size() - 16 * 12, 16 * 12),
            0);
}

// A page id stands for the page in all streams: what operations move must be in each of them.
class TwoStreams : public testing::Test {
 protected:
  static constexpr int64_t kPages = 4;

  static LatentCache NewCache() {
    const CacheSpec spec{
        {{StreamId::kLatent, 20, DType::kBF16}, {StreamId::kIndexer, 3, DType::kF32}}, 2, 2};
    return std::move(*LatentCache::Create(spec, kPages));
  }
  void Write(int32_t page, uint8_t value) {
    Load(page, std::vector<std::byte>(static_cast<size_t>(cache_.spec().bytes_per_page()),
                                      std::byte{value}));
  }
  void Load(int32_t page, std::span<const std::byte> bytes) {
    LoadPage(cache_, page, bytes, workspace_, exec_);
  }
  // The value that all bytes of all streams and layers have, or −1.
  int Read(int32_t page) const {
    for (const StreamId stream : {StreamId::kLatent, StreamId::kIndexer})
      for (int64_t layer = 0; layer < 2; ++layer) {
        const TensorView view = cache_.View(stream, layer);
        const int64_t bytes = view.shape[1] * view.shape[2] * SizeOf(view.dtype);
        const std::byte* at = view.data + page * bytes;
        if (!std::all_of(at, at + bytes, [&](std::byte b) { return b == *FirstByte(page); }))
          return -1;
      }
    return static_cast<int>(*FirstByte(page));
  }
  void CarryOut(CacheManager& manager) {
    for (const PageOp& op : manager.TakeOps()) {
      if (op.kind == PageOp::Kind::kCopy) CopyPage(cache_, op.from, op.to, exec_);
      if (op.kind == PageOp::Kind::kSave)
        saved_[op.prefix.tokens] = SavePage(cache_, op.from, workspace_, exec_);
    }
  }
  const std::byte* FirstByte(int32_t page) const {
    const TensorView view = cache_.View(StreamId::kLatent, 0);
    return view.data + page * view.shape[1] * view.shape[2] * SizeOf(view.dtype);
  }

  Machine machine_ = *Machine::Detect();
  ThreadPool threads_{2};
  Exec exec_{.threads = &threads_, .machine = &machine_};
  Workspace workspace_;
  LatentCache cache_ = NewCache();
  std::map<Tokens, std::vector<std::byte>> saved_;
};

TEST_F(TwoStreams, CopyOnWriteKeepsBothUsersRows) {
  CacheManager manager({.pages = kPages, .page_tokens = 2});
  Pages one;
  ASSERT_TRUE(manager.Reserve(one, 3));
  Write(one[0], 1);
  Write(one[1], 2);
  manager.Share(one);
  Pages two = one;
  ASSERT_TRUE(manager.MakeWritable(two, 3));
  CarryOut(manager);
  EXPECT_EQ(Read(two[1]), 2);
  Write(two[1], 3);
  EXPECT_EQ(Read(one[1]), 2);
  EXPECT_EQ(Read(one[0]), 1);
}

TEST_F(TwoStreams, EvictedPagesComeBack) {
  CacheManager manager({.pages = kPages, .page_tokens = 2, .save_evicted = true});
  Pages kept;
  ASSERT_TRUE(manager.Reserve(kept, 4));
  manager.Insert("", Tokens{1, 2, 3, 4}, kept);
  Pages released = kept;
  manager.Release(released);
  Write(kept[0], 11);
  Write(kept[1], 12);
  Pages others;
  ASSERT_TRUE(manager.Reserve(others, 2 * kPages));
  CarryOut(manager);  // before the others are written
  for (const int32_t page : others) Write(page, 99);
  Load(others[2], saved_.at({1, 2}));
  Load(others[3], saved_.at({1, 2, 3, 4}));
  EXPECT_EQ(Read(others[0]), 99);
  EXPECT_EQ(Read(others[2]), 11);
  EXPECT_EQ(Read(others[3]), 12);
}

}  // namespace
}  // namespace latte::page_bytes_test
