#include "tests/support/comm/recorded.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace latte::testing_support {
namespace {

constexpr const char* kAllToAll = "all_to_all";

class RecordedCommunicator final : public Communicator {
 public:
  RecordedCommunicator(Communicator& inner, std::unique_ptr<Communicator> owned,
                       CollectiveTrace& trace, std::string group, std::string color)
      : inner_(inner),
        owned_(std::move(owned)),
        trace_(trace),
        group_(std::move(group)),
        color_(std::move(color)) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void SetDeadline(std::chrono::milliseconds deadline) override { inner_.SetDeadline(deadline); }
  void Abandon(const RankLost& lost) override { inner_.Abandon(lost); }

  void Barrier() override {
    Record("barrier", 0);
    inner_.Barrier();
  }
  void Broadcast(std::span<std::byte> data, int root) override {
    Record("broadcast", data.size());
    inner_.Broadcast(data, root);
  }
  void AllGather(std::span<const std::byte> mine, std::span<const int64_t> byte_counts,
                 std::span<std::byte> all) override {
    Record("all_gather", all.size());
    inner_.AllGather(mine, byte_counts, all);
  }
  void AllToAll(std::span<const std::byte> send, std::span<const int64_t> send_counts,
                std::span<std::byte> receive, std::span<const int64_t> receive_counts) override {
    Record(kAllToAll, send.size());
    inner_.AllToAll(send, send_counts, receive, receive_counts);
  }
  void AllReduceSum(std::span<float> x) override {
    Record("all_reduce_sum", x.size_bytes());
    inner_.AllReduceSum(x);
  }
  void ReduceScatterSum(std::span<const float> x, std::span<const int64_t> counts,
                        std::span<float> mine) override {
    Record("reduce_scatter_sum", x.size_bytes());
    inner_.ReduceScatterSum(x, counts, mine);
  }
  std::unique_ptr<Communicator> Split(int color, int key) override {
    Record("split", 0);
    std::unique_ptr<Communicator> part = inner_.Split(color, key);
    Communicator& inner = *part;
    return std::make_unique<RecordedCommunicator>(
        inner, std::move(part), trace_, fmt::format("{}.{}", group_, splits_++),
        color_.empty() ? std::to_string(color) : fmt::format("{}.{}", color_, color));
  }

 private:
  void Record(const char* op, size_t bytes) {
    trace_.push_back({op, group_, color_, static_cast<int64_t>(bytes)});
  }

  Communicator& inner_;
  std::unique_ptr<Communicator> owned_;  // inner_, if it is a part; otherwise empty
  CollectiveTrace& trace_;
  std::string group_;
  std::string color_;
  int splits_ = 0;
};

bool Agree(const CollectiveRecord& a, const CollectiveRecord& b) {
  if (a.op != b.op || a.group != b.group) return false;
  return a.color != b.color || a.op == kAllToAll || a.bytes == b.bytes;
}

std::string Text(const CollectiveTrace& trace, size_t at) {
  if (at >= trace.size()) return "nothing";
  const CollectiveRecord& record = trace[at];
  return fmt::format("{} of {} bytes on {}", record.op, record.bytes, record.group);
}

}  // namespace

std::unique_ptr<Communicator> MakeRecorded(Communicator& inner, CollectiveTrace& trace) {
  return std::make_unique<RecordedCommunicator>(inner, nullptr, trace, "world", "");
}

std::string TraceDifference(const CollectiveTrace& a, const CollectiveTrace& b) {
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), Agree);
  if (at == a.end() && other == b.end()) return {};
  const auto index = static_cast<size_t>(at - a.begin());
  return fmt::format("call {}: {}, and on the other rank {}", index, Text(a, index),
                     Text(b, index));
}

}  // namespace latte::testing_support
