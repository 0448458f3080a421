#include "tests/support/comm/threads.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/comm/exchange.h"

namespace latte::testing_support {
namespace {

// The messages between the threads, and which of them have ended.
class Hub {
 public:
  explicit Hub(int size) : size_(size), queues_(Index(size) * Index(size)), ended_(Index(size)) {}

  int size() const { return size_; }

  void Exchange(int rank, const ExchangeCall& call) {
    std::unique_lock lock(mutex_);
    for (const OutMessage& out : call.out) {
      Queue(rank, out.to).push_back({call.name, {out.bytes.begin(), out.bytes.end()}});
    }
    changed_.notify_all();
    const auto all_here = [&] { return lost_ || Ended(rank, call) || Missing(rank, call).empty(); };
    if (!changed_.wait_for(lock, call.deadline, all_here)) {
      Lose(SilentRanks(Missing(rank, call), call));
    }
    if (const std::optional<int> gone = Ended(rank, call)) {
      Lose({*gone, fmt::format("rank {} has ended, and {} of {} ranks waits for it", *gone,
                               call.what, call.ranks)});
    }
    ThrowIfLost();
    for (const InMessage& in : call.in) Take(rank, in, call);
  }

  void Abandon(const RankLost& lost) {
    const std::lock_guard lock(mutex_);
    Lose(lost);
  }

  // The rank ends, by an exception or without.
  void End(int rank, const std::exception_ptr& error, const std::string& why) {
    const std::lock_guard lock(mutex_);
    ended_[Index(rank)] = true;
    if (error) {
      if (!first_error_) first_error_ = error;
      Lose({rank, fmt::format("rank {} has ended: {}", rank, why)});
    }
    changed_.notify_all();
  }

  std::exception_ptr first_error() const { return first_error_; }

 private:
  struct Message {
    MessageName name;
    std::vector<std::byte> bytes;
  };
  using Messages = std::deque<Message>;

  static size_t Index(int i) { return static_cast<size_t>(i); }
  Messages& Queue(int from, int to) { return queues_[Index(from) * Index(size_) + Index(to)]; }

  Messages::iterator Find(int from, int to, const MessageName& name) {
    Messages& queue = Queue(from, to);
    return std::find_if(queue.begin(), queue.end(), [&](const Message& m) {
      return m.name.group == name.group && m.name.number == name.number;
    });
  }

  bool Here(int from, int to, const ExchangeCall& call) {
    return Find(from, to, call.name) != Queue(from, to).end();
  }

  std::vector<int> Missing(int rank, const ExchangeCall& call) {
    std::vector<int> missing;
    for (const InMessage& in : call.in) {
      if (!Here(in.from, rank, call)) missing.push_back(in.from);
    }
    return missing;
  }

  // A rank that has ended without the message that this one waits for.
  std::optional<int> Ended(int rank, const ExchangeCall& call) {
    for (const int from : Missing(rank, call)) {
      if (ended_[Index(from)]) return from;
    }
    return {};
  }

  void Take(int rank, const InMessage& in, const ExchangeCall& call) {
    const auto message = Find(in.from, rank, call.name);
    LATTE_CHECK(message != Queue(in.from, rank).end());
    if (message->bytes.size() != in.bytes.size()) {
      Lose(WrongLength(in.from, std::ssize(in.bytes), std::ssize(message->bytes), call));
      ThrowIfLost();
    }
    std::copy(message->bytes.begin(), message->bytes.end(), in.bytes.begin());
    Queue(in.from, rank).erase(message);
  }

  void Lose(const RankLost& lost) {
    if (!lost_) lost_ = lost;
    changed_.notify_all();
  }
  void ThrowIfLost() const {
    if (lost_) throw *lost_;
  }

  int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Messages> queues_;  // [from, to]
  std::vector<bool> ended_;
  std::optional<RankLost> lost_;
  std::exception_ptr first_error_;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(Hub& hub, int rank) : hub_(hub), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return hub_.size(); }
  void Exchange(const ExchangeCall& call) override { hub_.Exchange(rank_, call); }
  void Abandon(const RankLost& lost) override { hub_.Abandon(lost); }

 private:
  Hub& hub_;
  int rank_;
};

void RunRank(Hub& hub, int rank, const CommOptions& options,
             const std::function<void(Communicator& world)>& body) {
  std::exception_ptr error;
  std::string why;
  try {
    const auto world = MakeWorld(std::make_unique<ThreadTransport>(hub, rank), options);
    body(*world);
  } catch (const std::exception& thrown) {
    error = std::current_exception();
    why = thrown.what();
  } catch (...) {
    error = std::current_exception();
    why = "an exception of unknown type";
  }
  hub.End(rank, error, why);
}

}  // namespace

void RunRanks(int size, const CommOptions& options,
              const std::function<void(Communicator& world)>& body) {
  LATTE_CHECK(size >= 1, "{} ranks", size);
  Hub hub(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { RunRank(hub, rank, options, body); });
  }
  for (std::thread& thread : threads) thread.join();
  if (hub.first_error()) std::rethrow_exception(hub.first_error());
}

}  // namespace latte::testing_support
