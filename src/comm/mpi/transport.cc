#include "src/comm/mpi/transport.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "src/comm/mpi/api.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostMessageBytes = size_t{1} << 30;  // MPI counts in int; a longer message is cut
constexpr uint32_t kNumbers = 4096;                    // exchanges of a group until its tags repeat
// A rank that waits polls, and yields its processor between polls. After the first time it sleeps
// between them, too: ranks that are so far apart compute long steps or none.
constexpr std::chrono::milliseconds kPolling(2);
constexpr std::chrono::microseconds kSleep(100);

std::string Describe(const latte_mpi_api& mpi, int error) {
  char text[256];
  mpi.describe(error, text, sizeof text);
  return text;
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(const latte_mpi_api& mpi, int rank, int size, int max_tag)
      : mpi_(mpi), rank_(rank), size_(size), max_tag_(max_tag) {}

  ~MpiTransport() override {
    if (!is_lost_) mpi_.finish();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void Exchange(const ExchangeCall& call) override {
    ThrowIfLost();
    const int tag = Tag(call.name);
    try {
      for (const InMessage& in : call.in) StartReceives(in, tag);
      for (const OutMessage& out : call.out) StartSends(out, tag);
      Wait(call);
    } catch (...) {
      for (Pending& pending : pending_) {
        if (!pending.done) mpi_.cancel(&pending.request);
      }
      pending_.clear();
      throw;
    }
  }

  void Abandon(const RankLost& lost) override {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_ = lost;
    is_lost_ = true;
  }

 private:
  struct Pending {
    int peer = 0;
    bool receives = false;
    bool done = false;
    int64_t bytes = 0;
    latte_mpi_request request = {};
  };

  // Numbers of exchanges repeat, long after the messages of the first have arrived.
  int Tag(const MessageName& name) const {
    const int64_t tag = int64_t{name.group} * kNumbers + name.number % kNumbers;
    return static_cast<int>(tag % (int64_t{max_tag_} + 1));
  }

  // Calls start(part, request) for each part of `bytes` that one message of MPI can have.
  template <class Bytes, class StartPart>
  void Start(int peer, Bytes bytes, bool receives, const StartPart& start) {
    while (!bytes.empty()) {
      const Bytes part = bytes.first(std::min(bytes.size(), kMostMessageBytes));
      pending_.push_back({.peer = peer, .receives = receives, .bytes = std::ssize(part)});
      if (const int error = start(part, &pending_.back().request); error != 0) {
        pending_.pop_back();
        Lose(peer, error);
      }
      bytes = bytes.subspan(part.size());
    }
  }

  void StartReceives(const InMessage& in, int tag) {
    Start(in.from, in.bytes, true, [&](std::span<std::byte> part, latte_mpi_request* request) {
      return mpi_.receive(part.data(), static_cast<int>(part.size()), in.from, tag, request);
    });
  }
  void StartSends(const OutMessage& out, int tag) {
    Start(out.to, out.bytes, false,
          [&](std::span<const std::byte> part, latte_mpi_request* request) {
            return mpi_.send(part.data(), static_cast<int>(part.size()), out.to, tag, request);
          });
  }

  void Wait(const ExchangeCall& call) {
    const Clock::time_point begin = Clock::now();
    for (;;) {
      if (AllDone(call)) break;
      ThrowIfLost();
      const Clock::duration waited = Clock::now() - begin;
      if (waited > call.deadline) Lose(SilentRanks(SilentPeers(), call));
      if (waited < kPolling) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kSleep);
      }
    }
    pending_.clear();
  }

  bool AllDone(const ExchangeCall& call) {
    bool all = true;
    for (Pending& pending : pending_) {
      if (!pending.done) pending.done = Test(pending, call);
      all = all && pending.done;
    }
    return all;
  }

  bool Test(Pending& pending, const ExchangeCall& call) {
    int done = 0;
    int bytes = 0;
    if (const int error = mpi_.test(&pending.request, &done, &bytes); error != 0) {
      Lose(pending.peer, error);
    }
    if (done && pending.receives && bytes != pending.bytes) {
      Lose(WrongLength(pending.peer, pending.bytes, bytes, call));
    }
    return done != 0;
  }

  // Those that have sent nothing, or else those that take nothing.
  std::vector<int> SilentPeers() const {
    std::vector<int> peers;
    for (const bool receives : {true, false}) {
      for (const Pending& pending : pending_) {
        if (!pending.done && pending.receives == receives) peers.push_back(pending.peer);
      }
      if (!peers.empty()) break;
    }
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

  [[noreturn]] void Lose(int peer, int error) {
    Lose({peer, fmt::format("messages between rank {} and rank {} fail: {}", rank_, peer,
                            Describe(mpi_, error))});
  }
  [[noreturn]] void Lose(const RankLost& lost) {
    Abandon(lost);
    throw RankLost(lost);
  }
  void ThrowIfLost() {
    if (!is_lost_) return;
    const std::lock_guard lock(mutex_);
    throw RankLost(*lost_);
  }

  const latte_mpi_api& mpi_;
  const int rank_;
  const int size_;
  const int max_tag_;
  std::vector<Pending> pending_;  // of the exchange that runs
  std::atomic<bool> is_lost_ = false;
  std::mutex mutex_;
  std::optional<RankLost> lost_;  // written once, before is_lost_
};

}  // namespace

Result<std::unique_ptr<Transport>> StartMpi(const latte_mpi_api& mpi) {
  int rank = 0;
  int size = 0;
  int max_tag = 0;
  if (const int error = mpi.start(&rank, &size, &max_tag); error != 0) {
    return Fail(Code::kUnavailable, fmt::format("MPI does not start: {}", Describe(mpi, error)));
  }
  return std::make_unique<MpiTransport>(mpi, rank, size, max_tag);
}

}  // namespace latte
