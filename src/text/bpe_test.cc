#include "src/text/bpe.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "src/base/limits/cpu_time.h"

namespace latte::bpe_test {
namespace {

std::array<int32_t, 256> Bytes() {
  std::array<int32_t, 256> out;
  for (size_t byte = 0; byte < 256; ++byte) out[byte] = static_cast<int32_t>(byte);
  return out;
}

std::vector<int32_t> Encode(const Bpe& bpe, std::string_view piece) {
  BpeScratch scratch;
  std::vector<int32_t> out;
  bpe.Encode(piece, &scratch, &out);
  return out;
}

// The definition: join the pair of lowest rank, leftmost first, until no pair has a rank.
std::vector<int32_t> EncodeByDefinition(const std::vector<BpeMerge>& merges,
                                        std::string_view piece) {
  std::vector<int32_t> symbols;
  for (const char c : piece) symbols.push_back(static_cast<uint8_t>(c));
  while (true) {
    size_t best_rank = merges.size(), best_place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      for (size_t rank = 0; rank < best_rank; ++rank)
        if (merges[rank].left == symbols[i] && merges[rank].right == symbols[i + 1]) {
          best_rank = rank;
          best_place = i;
        }
    if (best_rank == merges.size()) return symbols;
    symbols[best_place] = merges[best_rank].result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_place) + 1);
  }
}

TEST(Bpe, LowestRankGoesFirstAndTheLeftmostOfEquals) {
  // The merges are b c, then a b: "abc" must not become ab c.
  const Bpe bpe(Bytes(), {{'b', 'c', 256}, {'a', 'b', 257}, {'a', 'a', 258}});
  EXPECT_EQ(Encode(bpe, "abc"), (std::vector<int32_t>{'a', 256}));
  EXPECT_EQ(Encode(bpe, "abab"), (std::vector<int32_t>{257, 257}));
  EXPECT_EQ(Encode(bpe, "aaa"), (std::vector<int32_t>{258, 'a'}));
  EXPECT_EQ(Encode(bpe, ""), std::vector<int32_t>());
  EXPECT_EQ(Encode(bpe, "\xFF"), std::vector<int32_t>{0xFF});
}

TEST(Bpe, ShortAndLongPiecesAgreeWithTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    // Merges over three letters in random order, each joining two symbols that exist.
    std::vector<BpeMerge> merges;
    for (int32_t result = 256; result < 256 + 40; ++result) {
      const auto symbol = [&] {
        const int32_t pick = static_cast<int32_t>(random() % (3 + merges.size()));
        return pick < 3 ? 'a' + pick : 256 + pick - 3;
      };
      merges.push_back({symbol(), symbol(), result});
    }
    // If a pair occurs twice, its last rank counts. The definition above does not handle that, so
    // repeated pairs are removed.
    const auto same = [](const BpeMerge& a, const BpeMerge& b) {
      return a.left == b.left && a.right == b.right;
    };
    for (size_t i = 0; i < merges.size(); ++i)
      for (size_t k = i + 1; k < merges.size();)
        same(merges[i], merges[k]) ? void(merges.erase(merges.begin() + static_cast<long>(k)))
                                   : void(++k);
    const Bpe bpe(Bytes(), merges);
    for (const size_t length : {1, 2, 3, 7, 20, 47, 48, 49, 50, 130, 400}) {
      std::string piece;
      for (size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random() % 3);
      ASSERT_EQ(Encode(bpe, piece), EncodeByDefinition(merges, piece)) << piece;
    }
  }
}

TEST(Bpe, ThePairThatStandsTwiceTakesTheLaterRank) {
  const Bpe bpe(Bytes(), {{'a', 'b', 256}, {'b', 'c', 257}, {'a', 'b', 256}});
  EXPECT_EQ(Encode(bpe, "abc"), (std::vector<int32_t>{'a', 257}));
}

TEST(Bpe, WholePiecesGoBeforeMerges) {
  const Bpe bpe(Bytes(), {{'a', 'b', 256}}, {{"abc", 300}});
  EXPECT_EQ(Encode(bpe, "abc"), std::vector<int32_t>{300});
  EXPECT_EQ(Encode(bpe, "abcd"), (std::vector<int32_t>{256, 'c', 'd'}));
}

TEST(Bpe, MergesThatFeedThemselvesEnd) {
  // a + a gives a again. No valid file says this; each merge still shortens the piece.
  const Bpe bpe(Bytes(), {{'a', 'a', 'a'}});
  EXPECT_EQ(Encode(bpe, std::string(40, 'a')), std::vector<int32_t>{'a'});
  EXPECT_EQ(Encode(bpe, std::string(5000, 'a')), std::vector<int32_t>{'a'});
}

TEST(Bpe, OneLongPieceTakesAboutLinearTime) {
  std::vector<BpeMerge> merges = {{'Z', 'Z', 256}};
  for (int32_t id = 256; id < 270; ++id) merges.push_back({id, id, id + 1});
  const Bpe bpe(Bytes(), merges);
  const double begin = ThreadCpuSeconds();
  const std::vector<int32_t> ids = Encode(bpe, std::string(4 << 20, 'Z'));
  const double taken = ThreadCpuSeconds() - begin;
  EXPECT_EQ(ids, std::vector<int32_t>(128, 270));
  // A quadratic algorithm would take hours. The bound leaves room for sanitizers.
  EXPECT_LT(taken, 60);
}

}  // namespace
}  // namespace latte::bpe_test
