#include "src/comm/exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "src/base/check.h"

namespace latte {
namespace {

// AllReduceSum gathers up to this many bytes on each rank. At 10 GB/s they take 25 µs, which is
// what the second exchange of the other way costs between processes of one machine.
constexpr int64_t kMostGatheredBytes = 256 << 10;
constexpr int64_t kLineFloats = 16;  // parts of a sum begin on cache lines

// Shared by the groups of one world.
struct World {
  std::unique_ptr<Transport> transport;
  int next_group = 1;  // above the number of every group that this process is in
};

struct SplitMember {
  int color;
  int key;
  int next_group;
};

size_t Index(int64_t i) { return static_cast<size_t>(i); }

int64_t Sum(std::span<const int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Requires: as many counts as ranks, none negative, of `total` in all.
void CheckCounts(std::span<const int64_t> counts, int size, int64_t total) {
  LATTE_CHECK(std::ssize(counts) == size, "{} counts for {} ranks", counts.size(), size);
  for (const int64_t count : counts) LATTE_CHECK(count >= 0, "a count of {}", count);
  LATTE_CHECK(Sum(counts) == total, "counts of {} for {}", Sum(counts), total);
}

// Almost equal parts of n elements, on cache lines.
std::vector<int64_t> EqualParts(int64_t n, int parts) {
  const int64_t lines = (n + kLineFloats - 1) / kLineFloats;
  std::vector<int64_t> counts(Index(parts));
  for (int i = 0; i < parts; ++i) {
    const int64_t begin = std::min(n, lines * i / parts * kLineFloats);
    const int64_t end = std::min(n, lines * (i + 1) / parts * kLineFloats);
    counts[Index(i)] = end - begin;
  }
  return counts;
}

std::vector<int64_t> FloatBytes(std::span<const int64_t> counts) {
  std::vector<int64_t> bytes(counts.begin(), counts.end());
  for (int64_t& b : bytes) b *= static_cast<int64_t>(sizeof(float));
  return bytes;
}

// sum = ((x[0] + x[1]) + x[2]) + …. x: [rows, sum.size()].
void AddRows(const float* x, int rows, std::span<float> sum) {
  const int64_t n = std::ssize(sum);
  std::copy_n(x, n, sum.data());
  for (int row = 1; row < rows; ++row) {
    const float* add = x + row * n;
    for (int64_t i = 0; i < n; ++i) sum[Index(i)] += add[i];
  }
}

class ExchangeCommunicator final : public Communicator {
 public:
  ExchangeCommunicator(std::shared_ptr<World> world, std::vector<int> ranks, int group,
                       std::chrono::milliseconds deadline)
      : world_(std::move(world)), ranks_(std::move(ranks)), group_(group), deadline_(deadline) {
    const auto me = std::find(ranks_.begin(), ranks_.end(), world_->transport->rank());
    LATTE_CHECK(me != ranks_.end(), "rank {} is not in its group", world_->transport->rank());
    rank_ = static_cast<int>(me - ranks_.begin());
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  void SetDeadline(std::chrono::milliseconds deadline) override { deadline_ = deadline; }
  void Abandon(const RankLost& lost) override { world_->transport->Abandon(lost); }

  void Barrier() override {
    const std::byte here{1};
    std::vector<std::byte> there(ranks_.size());
    ForEachPeer(
        [&](int to) {
          Send(to, {&here, 1});
        },
        [&](int from) {
          Receive(from, {&there[Index(from)], 1});
        });
    Exchange("barrier");
  }

  void Broadcast(std::span<std::byte> data, int root) override {
    LATTE_CHECK(root >= 0 && root < size(), "root {} of {} ranks", root, size());
    ForEachPeer(
        [&](int to) {
          if (rank_ == root) Send(to, data);
        },
        [&](int from) {
          if (from == root) Receive(from, data);
        });
    Exchange("broadcast");
  }

  void AllGather(std::span<const std::byte> mine, std::span<const int64_t> byte_counts,
                 std::span<std::byte> all) override {
    CheckCounts(byte_counts, size(), std::ssize(all));
    LATTE_CHECK(std::ssize(mine) == byte_counts[Index(rank_)], "{} bytes", mine.size());
    const std::vector<int64_t> begins = Begins(byte_counts);
    CopyOwn(mine, all.data() + begins[Index(rank_)]);
    ForEachPeer([&](int to) { Send(to, mine); },
                [&](int from) {
                  Receive(from,
                          all.subspan(Index(begins[Index(from)]), Index(byte_counts[Index(from)])));
                });
    Exchange("all_gather");
  }

  void AllToAll(std::span<const std::byte> send, std::span<const int64_t> send_counts,
                std::span<std::byte> receive, std::span<const int64_t> receive_counts) override {
    ExchangeParts(send, send_counts, receive, receive_counts, "all_to_all");
  }

  void AllReduceSum(std::span<float> x) override {
    if (size() == 1 || x.empty()) return;
    const int64_t gathered = size() * static_cast<int64_t>(x.size_bytes());
    if (size() == 2 || gathered <= kMostGatheredBytes) {
      const std::span<float> all = Scratch(size() * std::ssize(x));
      AllGatherEqual(std::as_bytes(x), std::as_writable_bytes(all));
      AddRows(all.data(), size(), x);
      return;
    }
    const std::vector<int64_t> counts = EqualParts(std::ssize(x), size());
    const std::span<float> mine =
        x.subspan(Index(Begins(counts)[Index(rank_)]), Index(counts[Index(rank_)]));
    ReduceScatterSum(x, counts, mine);
    AllGather(std::as_bytes(mine), FloatBytes(counts), std::as_writable_bytes(x));
  }

  void ReduceScatterSum(std::span<const float> x, std::span<const int64_t> counts,
                        std::span<float> mine) override {
    CheckCounts(counts, size(), std::ssize(x));
    LATTE_CHECK(std::ssize(mine) == counts[Index(rank_)], "{} elements", mine.size());
    const std::vector<int64_t> in(ranks_.size(), static_cast<int64_t>(mine.size_bytes()));
    const std::span<float> rows = Scratch(size() * std::ssize(mine));
    ExchangeParts(std::as_bytes(x), FloatBytes(counts), std::as_writable_bytes(rows), in,
                  "reduce_scatter_sum");
    AddRows(rows.data(), size(), mine);
  }

  std::unique_ptr<Communicator> Split(int color, int key) override {
    LATTE_CHECK(color >= 0, "color {}", color);
    const SplitMember me{color, key, world_->next_group};
    std::vector<SplitMember> members(ranks_.size());
    AllGatherEqual(std::as_bytes(std::span(&me, 1)), std::as_writable_bytes(std::span(members)));
    std::vector<std::pair<int, int>> part;  // key, rank
    int group = 0;  // all parts get this number: a process is in one of them
    for (int r = 0; r < size(); ++r) {
      const SplitMember& member = members[Index(r)];
      group = std::max(group, member.next_group);
      if (member.color == color) part.push_back({member.key, r});
    }
    std::sort(part.begin(), part.end());
    std::vector<int> ranks;
    for (const auto& [_, r] : part) ranks.push_back(ranks_[Index(r)]);
    world_->next_group = group + 1;
    return std::make_unique<ExchangeCommunicator>(world_, std::move(ranks), group, deadline_);
  }

 private:
  static std::vector<int64_t> Begins(std::span<const int64_t> counts) {
    std::vector<int64_t> begins(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), int64_t{0});
    return begins;
  }

  static void CopyOwn(std::span<const std::byte> from, std::byte* to) {
    if (!from.empty() && from.data() != to) std::memcpy(to, from.data(), from.size());
  }

  // Fills out_ and in_. The next rank first, so that not all ranks send to rank 0 at once.
  template <class Out, class In>
  void ForEachPeer(const Out& send, const In& receive) {
    out_.clear();
    in_.clear();
    for (int step = 1; step < size(); ++step) {
      send((rank_ + step) % size());
      receive((rank_ - step + size()) % size());
    }
  }

  void Send(int to, std::span<const std::byte> bytes) {
    if (!bytes.empty()) out_.push_back({ranks_[Index(to)], bytes});
  }
  void Receive(int from, std::span<std::byte> bytes) {
    if (!bytes.empty()) in_.push_back({ranks_[Index(from)], bytes});
  }

  void ExchangeParts(std::span<const std::byte> send, std::span<const int64_t> send_counts,
                     std::span<std::byte> receive, std::span<const int64_t> receive_counts,
                     const char* what) {
    CheckCounts(send_counts, size(), std::ssize(send));
    CheckCounts(receive_counts, size(), std::ssize(receive));
    LATTE_CHECK(send_counts[Index(rank_)] == receive_counts[Index(rank_)], "{} and {} bytes",
                send_counts[Index(rank_)], receive_counts[Index(rank_)]);
    const std::vector<int64_t> out = Begins(send_counts);
    const std::vector<int64_t> in = Begins(receive_counts);
    const auto part = [](auto bytes, int64_t begin, int64_t count) {
      return bytes.subspan(Index(begin), Index(count));
    };
    CopyOwn(part(send, out[Index(rank_)], send_counts[Index(rank_)]),
            receive.data() + in[Index(rank_)]);
    ForEachPeer([&](int to) { Send(to, part(send, out[Index(to)], send_counts[Index(to)])); },
                [&](int from) {
                  Receive(from, part(receive, in[Index(from)], receive_counts[Index(from)]));
                });
    Exchange(what);
  }

  void Exchange(const char* what) {
    world_->transport->Exchange({.name = {group_, number_++},
                                 .out = out_,
                                 .in = in_,
                                 .deadline = deadline_,
                                 .what = what,
                                 .ranks = size()});
  }

  std::span<float> Scratch(int64_t floats) {
    if (std::ssize(scratch_) < floats) scratch_.resize(Index(floats));
    return std::span(scratch_).first(Index(floats));
  }

  std::shared_ptr<World> world_;
  std::vector<int> ranks_;  // of the world
  int group_;
  std::chrono::milliseconds deadline_;
  int rank_ = 0;
  uint32_t number_ = 0;          // of the next exchange
  std::vector<OutMessage> out_;  // of the exchange that is composed
  std::vector<InMessage> in_;
  std::vector<float> scratch_;
};

}  // namespace

std::unique_ptr<Communicator> MakeWorld(std::unique_ptr<Transport> transport,
                                        const CommOptions& options) {
  auto world = std::make_shared<World>();
  world->transport = std::move(transport);
  std::vector<int> ranks(Index(world->transport->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<ExchangeCommunicator>(std::move(world), std::move(ranks), 0,
                                                options.deadline);
}

}  // namespace latte
