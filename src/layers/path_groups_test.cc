#include "src/layers/path_groups.h"

#include <utility>

#include <gtest/gtest.h>

namespace latte::path_groups_test {
namespace {

constexpr MlaPath kA = MlaPath::kAbsorbed;
constexpr MlaPath kL = MlaPath::kLatent;
constexpr MlaPath kD = MlaPath::kDecompressed;

using Item = std::pair<MlaPath, int>;

TEST(PathGroups, SortingKeepsTheOrderWithinAPath) {
  std::vector<Item> items = {{kD, 0}, {kL, 1}, {kA, 2}, {kL, 3}, {kD, 4}, {kA, 5}};
  SortByPath(items, &Item::first);
  EXPECT_EQ(items, (std::vector<Item>{{kA, 2}, {kA, 5}, {kL, 1}, {kL, 3}, {kD, 0}, {kD, 4}}));
}

std::vector<std::pair<MlaPath, size_t>> GroupsOf(const std::vector<MlaPath>& paths) {
  std::vector<SequenceChunk> chunks;
  for (const MlaPath path : paths)
    chunks.push_back({.query_start = std::ssize(chunks), .count = 1, .path = path});
  std::vector<std::pair<MlaPath, size_t>> out;
  int64_t next = 0;
  ForEachPathGroup(chunks, [&](std::span<const SequenceChunk> group) {
    EXPECT_EQ(group.front().query_start, next);
    next += std::ssize(group);
    for (const SequenceChunk& s : group) EXPECT_EQ(s.path, group.front().path);
    out.emplace_back(group.front().path, group.size());
  });
  EXPECT_EQ(next, std::ssize(chunks));
  return out;
}

TEST(PathGroups, EverySequenceIsInOneGroupWithItsNeighboursOfThatPath) {
  using Groups = std::vector<std::pair<MlaPath, size_t>>;
  EXPECT_EQ(GroupsOf({}), Groups());
  EXPECT_EQ(GroupsOf({kL}), (Groups{{kL, 1}}));
  EXPECT_EQ(GroupsOf({kA, kA, kL, kD, kD, kD}), (Groups{{kA, 2}, {kL, 1}, {kD, 3}}));
  EXPECT_EQ(GroupsOf({kL, kA, kL}), (Groups{{kL, 1}, {kA, 1}, {kL, 1}}));  // not sorted
}

}  // namespace
}  // namespace latte::path_groups_test
