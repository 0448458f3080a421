#include "src/comm/local_ranks.h"

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "src/comm/mpi/mpirun.h"
#include "tests/support/comm/threads.h"

namespace latte::local_ranks_test {
namespace {

using testing_support::RunRanks;

using Ids = std::vector<int>;

// `count` processors, the first half on node 0.
std::vector<Processor> TwoNodes(int count) {
  std::vector<Processor> out;
  for (int id = 0; id < count; ++id)
    out.push_back({.id = id, .node = id < count / 2 ? 0 : 1, .core = id});
  return out;
}

RankPlace Place(char machine, char host, uint64_t processors) {
  RankPlace out;
  out.machine[0] = machine;
  out.host[0] = host;
  out.processors[0] = processors;
  return out;
}

TEST(LocalRanks, ARankHasANodeWhereThereAreAsMany) {
  const std::vector<RankPlace> all(2, Place('m', 'h', 0xff));
  const ProcessorPart part = DivideProcessors(all, 1, TwoNodes(8), std::nullopt);
  EXPECT_EQ(part.processors, (Ids{4, 5, 6, 7}));
  EXPECT_EQ(part.threads, 4);
}

TEST(LocalRanks, SeveralOfANodeAreBoundToItAndDivideItsThreads) {
  const std::vector<RankPlace> all(4, Place('m', 'h', 0xff));
  const ProcessorPart part = DivideProcessors(all, 2, TwoNodes(8), std::nullopt);
  EXPECT_EQ(part.processors, (Ids{4, 5, 6, 7}));
  EXPECT_EQ(part.threads, 2);
}

TEST(LocalRanks, OfTheOnlyNodeAreNotBound) {
  const std::vector<RankPlace> all(2, Place('m', 'h', 0x0f));
  std::vector<Processor> own = TwoNodes(4);
  for (Processor& p : own) p.node = 0;
  const ProcessorPart part = DivideProcessors(all, 1, own, std::nullopt);
  EXPECT_TRUE(part.processors.empty());
  EXPECT_EQ(part.threads, 2);
}

TEST(LocalRanks, ThoseOfOtherMachinesDoNotCount) {
  const RankPlace here = Place('m', 'h', 0xff);
  const RankPlace there = Place('n', 'h', 0xff);
  const std::vector<RankPlace> all{there, here, there, here};
  EXPECT_EQ(DivideProcessors(all, 1, TwoNodes(8), std::nullopt).processors, (Ids{0, 1, 2, 3}));
  EXPECT_EQ(DivideProcessors(all, 2, TwoNodes(8), std::nullopt).processors, (Ids{4, 5, 6, 7}));
}

TEST(LocalRanks, ThoseThatTheLauncherHasBoundStayThere) {
  const std::vector<RankPlace> all{Place('m', 'h', 0x0f), Place('m', 'h', 0xf0)};
  const ProcessorPart part = DivideProcessors(all, 0, TwoNodes(4), std::nullopt);
  EXPECT_TRUE(part.processors.empty());
  EXPECT_EQ(part.threads, 4);
}

TEST(LocalRanks, MoreRanksThanProcessorsAreNotBound) {
  const std::vector<RankPlace> all(4, Place('m', 'h', 3));
  const ProcessorPart part = DivideProcessors(all, 3, TwoNodes(2), std::nullopt);
  EXPECT_TRUE(part.processors.empty());
  EXPECT_EQ(part.threads, 1);
}

TEST(LocalRanks, OfOneContainerDivideItsProcessorTime) {
  const std::vector<RankPlace> one(2, Place('m', 'h', 0xff));
  EXPECT_EQ(DivideProcessors(one, 0, TwoNodes(8), 4.0).threads, 2);
  const std::vector<RankPlace> two{Place('m', 'h', 0xff), Place('m', 'i', 0xff)};
  EXPECT_EQ(DivideProcessors(two, 0, TwoNodes(8), 4.0).threads, 4);
}

TEST(LocalRanks, TakePartsOfThisMachine) {
  const size_t usable = UsableProcessors().size();
  std::atomic<int> threads = 0;
  RunRanks(2, {}, [&](Communicator& world) {
    threads += TakePartOfProcessors(world);
    EXPECT_LE(UsableProcessors().size(), usable);
  });
  EXPECT_GE(threads.load(), 2);
  EXPECT_LE(threads.load(), std::max<int>(2, static_cast<int>(usable)));
}

TEST(Mpirun, Words) {
  EXPECT_EQ(MpirunWords(4, false),
            (std::vector<std::string>{"mpirun", "--oversubscribe", "--bind-to", "none", "--mca",
                                      "mpi_yield_when_idle", "1", "-n", "4"}));
  EXPECT_EQ(MpirunWords(2, true)[1], "--allow-run-as-root");
}

}  // namespace
}  // namespace latte::local_ranks_test
