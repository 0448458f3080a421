#include "src/layers/moe/exchange.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/kernels/machine.h"
#include "tests/support/comm/recorded.h"
#include "tests/support/comm/threads.h"

namespace latte::exchange_test {
namespace {

using testing_support::CollectiveRecord;
using testing_support::CollectiveTrace;
using testing_support::MakeRecorded;
using testing_support::RunRanks;

using Counts = std::vector<int64_t>;

MoeDims Dims(int64_t experts, int64_t chosen) {
  MoeDims out;
  out.experts = experts;
  out.chosen = chosen;
  return out;
}

// DeepSeek-V3
constexpr int64_t kD = 7168;
const MoeDims kV3 = Dims(256, 8);

TEST(TokenShares, DivideTheTokensOfAGroupAmongItsRanks) {
  const TokenShares shares(Counts{5, 0, 4}, 9);
  EXPECT_EQ(shares.ranks(), 9);
  EXPECT_EQ(shares.ranks_per_group(), 3);
  EXPECT_EQ(shares.total(), 9);
  EXPECT_EQ(shares.most(), 2);
  Counts counts;
  for (int64_t rank = 0; rank < 9; ++rank) counts.push_back(shares.Count(rank));
  EXPECT_EQ(counts, (Counts{1, 2, 2, 0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(shares.Begin(7), 6);
  EXPECT_EQ(shares.GroupBegin(7), 5);
  EXPECT_EQ(shares.GroupCount(7), 4);
  EXPECT_EQ(shares.BeginsInGroup(7), (Counts{0, 1, 2, 4}));
  EXPECT_EQ(shares.BeginsInGroup(0), (Counts{0, 1, 3, 5}));
}

TEST(CheaperExchange, ManyTokensGoOnlyToTheRanksThatTheyChose) {
  EXPECT_EQ(CheaperExchange(kV3, kD, 8, 8), ExpertExchange::kGather);
  EXPECT_EQ(CheaperExchange(kV3, kD, 64, 8), ExpertExchange::kAllToAll);
  // More ranks, fewer of them chosen
  EXPECT_EQ(CheaperExchange(kV3, kD, 16, 32), ExpertExchange::kAllToAll);
  // Of two ranks, both are chosen by nearly every token.
  EXPECT_EQ(CheaperExchange(kV3, kD, 1024, 2), ExpertExchange::kGather);
  EXPECT_EQ(CheaperExchange(kV3, kD, 8192, 2), ExpertExchange::kAllToAll);
  // A token that chooses all experts needs all ranks.
  EXPECT_EQ(CheaperExchange(Dims(4, 4), kD, 1 << 20, 4), ExpertExchange::kGather);
}

// Ranks with tokens that chose experts at random. Element d of token t of the rank that sends it is
// a function of all three.
class ExchangeTest : public testing::Test {
 protected:
  struct Rank {
    Communicator& world;
    const MoeLayer& moe;
    const TokenShares& shares;
    const RoutedTokens& own;
    StepContext& step;
  };

  static float Element(int64_t token, int64_t d) {
    return static_cast<float>(token) + static_cast<float>(d) / 1024;
  }
  // Different experts of the token with this number among all.
  static int32_t Expert(const MoeDims& dims, int64_t token, int64_t k) {
    const auto first = Mix64(static_cast<uint64_t>(token)) % static_cast<uint64_t>(dims.experts);
    const auto step = static_cast<uint64_t>(dims.experts / dims.chosen);
    return static_cast<int32_t>((first + static_cast<uint64_t>(k) * step +
                                 Mix64(static_cast<uint64_t>(token * 64 + k)) % step) %
                                static_cast<uint64_t>(dims.experts));
  }

  // Calls f(rank) on ranks with whole experts, a group each.
  void RunGroups(const MoeDims& dims, int64_t d, const Counts& tokens, const auto& f) {
    const auto ranks = static_cast<int>(tokens.size());
    traces_.assign(tokens.size(), {});
    RunRanks(ranks, {}, [&](Communicator& inner) {
      const auto world = MakeRecorded(inner, traces_[static_cast<size_t>(inner.rank())]);
      Workspace workspace;
      ThreadPool threads(1);
      const Machine machine = *Machine::Detect();
      StepContext step;
      step.workspace = &workspace;
      step.exec = {&threads, &machine};
      step.expert_ranks = world.get();
      step.group_tokens = tokens;
      MoeLayer moe;
      moe.dims = dims;
      moe.whole_experts = true;
      moe.ranks = ranks;
      const TokenShares shares(tokens, ranks);
      const int64_t count = shares.Count(world->rank());
      const Tensor x(DType::kF32, {count, d});
      const RoutedTokens own = WithRoom(moe, x, step);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t token = shares.Begin(world->rank()) + i;
        for (int64_t j = 0; j < d; ++j) x.view().Row<float>(i)[j] = Element(token, j);
        for (int64_t k = 0; k < dims.chosen; ++k) {
          const auto pair = static_cast<size_t>(i * dims.chosen + k);
          own.experts[pair] = Expert(dims, token, k);
          own.weights[pair] = Element(token, k) / 2;
        }
      }
      f(Rank{*world, moe, shares, own, step});
    });
  }

  std::vector<std::string> OpsOf(size_t rank) const {
    std::vector<std::string> out;
    for (const CollectiveRecord& record : traces_[rank]) out.push_back(record.op);
    return out;
  }

  // Bytes that all ranks receive, themselves included, in collective `at`.
  int64_t BytesOfAll(size_t at) const {
    int64_t out = 0;
    for (const CollectiveTrace& trace : traces_) out += trace[at].bytes;
    return out;
  }

  std::vector<CollectiveTrace> traces_;
};

// The tokens that `rank` should receive, by sender.
bool Chose(const MoeDims& dims, const RoutedTokens& tokens, int64_t i, const RankShare& rank) {
  for (int64_t k = 0; k < dims.chosen; ++k) {
    const int64_t e = tokens.experts[static_cast<size_t>(i * dims.chosen + k)];
    if (e >= rank.Rows().Begin(dims.experts) && e < rank.Rows().End(dims.experts)) return true;
  }
  return false;
}

TEST_F(ExchangeTest, TokensArriveWithTheirChoiceInTheOrderOfSenders) {
  const MoeDims dims = Dims(10, 3);
  for (const ExpertExchange exchange :
       {ExpertExchange::kGather, ExpertExchange::kPadded, ExpertExchange::kAllToAll}) {
    SCOPED_TRACE(Name(exchange));
    RunGroups(dims, 5, {4, 0, 9}, [&](const Rank& r) {
      const ReceivedTokens got = SendTokens(r.moe, r.own, r.shares, exchange, r.step);
      const RoutedTokens& tokens = got.tokens;
      int64_t row = 0;
      ASSERT_EQ(got.counts.size(), 3U);
      for (int64_t sender = 0; sender < 3; ++sender) {
        int64_t token = r.shares.Begin(sender);
        for (int64_t i = 0; i < got.counts[static_cast<size_t>(sender)]; ++i, ++row, ++token) {
          // Which of the sender's tokens it is, its first element says.
          const auto found = static_cast<int64_t>(tokens.x.Row<float>(row)[0]);
          ASSERT_GE(found, token);
          token = found;
          for (int64_t d = 0; d < 5; ++d) EXPECT_EQ(tokens.x.Row<float>(row)[d], Element(token, d));
          for (int64_t k = 0; k < 3; ++k) {
            EXPECT_EQ(tokens.experts[static_cast<size_t>(row * 3 + k)], Expert(dims, token, k));
            EXPECT_EQ(tokens.weights[static_cast<size_t>(row * 3 + k)], Element(token, k) / 2);
          }
          if (exchange == ExpertExchange::kAllToAll) {
            EXPECT_TRUE(Chose(dims, tokens, row, {r.world.rank(), 3}));
          }
        }
        EXPECT_LE(token, r.shares.Begin(sender + 1));
      }
      EXPECT_EQ(row, tokens.count());
      int64_t expected = 0;
      for (int64_t token = 0; token < r.shares.total(); ++token) {
        bool here = exchange != ExpertExchange::kAllToAll;
        const RankShare mine{r.world.rank(), 3};
        for (int64_t k = 0; k < 3; ++k) {
          const int64_t e = Expert(dims, token, k);
          here |= e >= mine.Rows().Begin(10) && e < mine.Rows().End(10);
        }
        expected += here ? 1 : 0;
      }
      EXPECT_EQ(row, expected);
    });
  }
}

TEST_F(ExchangeTest, KAutoChoosesByTheNumberOfTokens) {
  const MoeDims dims = Dims(64, 2);
  const auto send = [](const Rank& r) {
    SendTokens(r.moe, r.own, r.shares, ExpertExchange::kAuto, r.step);
  };
  using Ops = std::vector<std::string>;
  RunGroups(dims, 64, {3, 0, 1, 2}, send);
  for (size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(OpsOf(rank), (Ops{"all_gather"}));
  RunGroups(dims, 64, {3, 0, 5000, 2}, send);
  for (size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(OpsOf(rank), (Ops{"all_to_all", "all_to_all"}));
}

// DeepSeek-V3 on eight ranks, one of them idle and one with twice the tokens of the others.
TEST_F(ExchangeTest, BytesOfEachForm) {
  const Counts tokens = {4, 2, 2, 2, 2, 2, 2, 0};
  constexpr int64_t kRanks = 8, kTokens = 16;
  const int64_t record = (kD + 2 * kV3.chosen) * 4;
  const auto bytes = [&](ExpertExchange exchange) {
    RunGroups(kV3, kD, tokens,
              [&](const Rank& r) { SendTokens(r.moe, r.own, r.shares, exchange, r.step); });
    return BytesOfAll(traces_[0].size() - 1);
  };
  EXPECT_EQ(bytes(ExpertExchange::kGather), kRanks * kTokens * record);
  EXPECT_EQ(bytes(ExpertExchange::kPadded), kRanks * kRanks * 4 * record);
  int64_t pairs = 0;  // of a token and a rank that it chose
  for (int64_t token = 0; token < kTokens; ++token) {
    std::vector<bool> ranks(kRanks);
    for (int64_t k = 0; k < kV3.chosen; ++k)
      ranks[static_cast<size_t>(Expert(kV3, token, k) / (kV3.experts / kRanks))] = true;
    pairs += std::count(ranks.begin(), ranks.end(), true);
  }
  EXPECT_LT(pairs, kRanks * kTokens);
  EXPECT_EQ(bytes(ExpertExchange::kAllToAll), pairs * record);
}

}  // namespace
}  // namespace latte::exchange_test
