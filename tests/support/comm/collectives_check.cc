#include "tests/support/comm/collectives_check.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace latte::testing_support {
namespace {

using Counts = std::vector<int64_t>;

size_t Index(int64_t i) { return static_cast<size_t>(i); }

int64_t Sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Numbers whose sum in f32 depends on the order of addition.
float Value(int rank, int64_t i) {
  const auto x = static_cast<float>((i * 37 + rank * 101) % 211 - 100);
  return x * (rank % 3 == 0 ? 1e4f : rank % 3 == 1 ? 1e-3f : 0.7f);
}

std::vector<float> Values(int rank, int64_t n) {
  std::vector<float> x(Index(n));
  for (int64_t i = 0; i < n; ++i) x[Index(i)] = Value(rank, i);
  return x;
}

std::vector<float> SumInOrder(int ranks, int64_t n) {
  std::vector<float> sum = Values(0, n);
  for (int rank = 1; rank < ranks; ++rank) {
    for (int64_t i = 0; i < n; ++i) sum[Index(i)] += Value(rank, i);
  }
  return sum;
}

bool SameBytes(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::byte Byte(int from, int to, int64_t i) {
  return static_cast<std::byte>(from * 53 + to * 17 + i * 3 + 1);
}

std::vector<std::byte> Bytes(int from, int to, int64_t n) {
  std::vector<std::byte> bytes(Index(n));
  for (int64_t i = 0; i < n; ++i) bytes[Index(i)] = Byte(from, to, i);
  return bytes;
}

void Append(std::vector<std::byte>& all, const std::vector<std::byte>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Equal counts, unequal ones, zero on every second rank, on all but the last, on all.
std::vector<Counts> ManyCounts(int size, int64_t n) {
  std::vector<Counts> many(5, Counts(Index(size)));
  for (int r = 0; r < size; ++r) {
    many[0][Index(r)] = n;
    many[1][Index(r)] = n * r + 3;
    many[2][Index(r)] = r % 2 == 0 ? n : 0;
    many[3][Index(r)] = r == size - 1 ? n : 0;
  }
  return many;
}

void CheckAllGather(Communicator& group, const Counts& counts) {
  const int me = group.rank();
  std::vector<std::byte> expected;
  for (int r = 0; r < group.size(); ++r) Append(expected, Bytes(r, 0, counts[Index(r)]));
  std::vector<std::byte> all(expected.size());
  group.AllGather(Bytes(me, 0, counts[Index(me)]), counts, all);
  EXPECT_EQ(all, expected);

  std::vector<std::byte> in_place(expected.size());
  const int64_t begin = std::accumulate(counts.begin(), counts.begin() + me, int64_t{0});
  const std::span mine = std::span(in_place).subspan(Index(begin), Index(counts[Index(me)]));
  std::copy_n(expected.begin() + begin, mine.size(), mine.begin());
  group.AllGather(mine, counts, in_place);
  EXPECT_EQ(in_place, expected);
}

// From r to s: n · ((r + 2s) mod 3) bytes.
void CheckAllToAll(Communicator& group, int64_t n) {
  const int me = group.rank();
  Counts out(Index(group.size()));
  Counts in(Index(group.size()));
  std::vector<std::byte> send;
  std::vector<std::byte> expected;
  for (int r = 0; r < group.size(); ++r) {
    out[Index(r)] = n * ((me + 2 * r) % 3);
    in[Index(r)] = n * ((r + 2 * me) % 3);
    Append(send, Bytes(me, r, out[Index(r)]));
    Append(expected, Bytes(r, me, in[Index(r)]));
  }
  std::vector<std::byte> receive(expected.size());
  group.AllToAll(send, out, receive, in);
  EXPECT_EQ(receive, expected);
}

void CheckReduceScatter(Communicator& group, const Counts& counts) {
  const int me = group.rank();
  const int64_t begin = std::accumulate(counts.begin(), counts.begin() + me, int64_t{0});
  const std::vector<float> sum = SumInOrder(group.size(), Sum(counts));
  const std::span expected = std::span(sum).subspan(Index(begin), Index(counts[Index(me)]));
  std::vector<float> x = Values(me, Sum(counts));
  std::vector<float> mine(expected.size());
  group.ReduceScatterSum(x, counts, mine);
  EXPECT_TRUE(SameBytes(mine, expected)) << Sum(counts);
  const std::span in_place = std::span(x).subspan(Index(begin), expected.size());
  group.ReduceScatterSum(x, counts, in_place);
  EXPECT_TRUE(SameBytes(in_place, expected)) << Sum(counts);
}

void CheckAllReduce(Communicator& group, int64_t n) {
  std::vector<float> x = Values(group.rank(), n);
  group.AllReduceSum(x);
  EXPECT_TRUE(SameBytes(x, SumInOrder(group.size(), n))) << n;
}

void CheckBroadcast(Communicator& group, int root) {
  for (const int64_t n : {0, 1, 1000}) {
    std::vector<std::byte> data = Bytes(group.rank(), 0, n);
    group.Broadcast(data, root);
    EXPECT_EQ(data, Bytes(root, 0, n));
  }
}

void CheckGroup(Communicator& group) {
  group.Barrier();
  for (int root = 0; root < group.size(); ++root) CheckBroadcast(group, root);
  for (const int64_t n : {1, 5, 4096}) {
    for (const Counts& counts : ManyCounts(group.size(), n)) {
      CheckAllGather(group, counts);
      CheckReduceScatter(group, counts);
    }
    CheckAllToAll(group, n);
  }
  // The last two are longer than what AllReduceSum gathers.
  for (const int64_t n : {0, 1, 3, 17, 1000, 100'003, 200'000}) CheckAllReduce(group, n);
  group.Barrier();
}

// Which rank of the world is rank 0, 1, … of the group.
std::vector<int> Members(Communicator& group, int world_rank) {
  std::vector<int> members(Index(group.size()));
  group.AllGatherEqual(std::as_bytes(std::span(&world_rank, 1)),
                       std::as_writable_bytes(std::span(members)));
  return members;
}

void CheckSplit(Communicator& world) {
  const int me = world.rank();
  // Even and odd ranks, each in reverse order.
  const std::unique_ptr<Communicator> part = world.Split(me % 2, -me);
  const std::vector<int> members = Members(*part, me);
  ASSERT_EQ(part->size(), (world.size() + (me % 2 == 0 ? 1 : 0)) / 2);
  EXPECT_EQ(members[Index(part->rank())], me);
  for (int i = 0; i < part->size(); ++i) {
    EXPECT_EQ(members[Index(i)] % 2, me % 2);
    if (i > 0) {
      EXPECT_LT(members[Index(i)], members[Index(i - 1)]);
    }
  }
  CheckGroup(*part);
  // A part of the part, and another split of the world, used in turn.
  const std::unique_ptr<Communicator> half = part->Split(part->rank() / 2, 0);
  const std::unique_ptr<Communicator> neighbours = world.Split(me / 2, 0);
  for (int turn = 0; turn < 3; ++turn) {
    CheckAllReduce(*half, 33);
    CheckAllReduce(world, 33);
    CheckAllReduce(*neighbours, 33);
    CheckAllReduce(*part, 33);
  }
}

}  // namespace

void CheckCollectives(Communicator& world) {
  CheckGroup(world);
  CheckSplit(world);
  world.Barrier();
}

}  // namespace latte::testing_support
