// The collectives of one group of ranks.
//
// A rank is one of the processes that run a model (in tests: one thread). Every rank of a group
// calls the same collectives of that group in the same order with the same counts. Ranks of several
// groups call the collectives of all their groups in one order. Counts may be zero, so a rank
// without tokens takes part like any other.
//
// Sums are added in f32 in the order of ranks, element by element: ((x0 + x1) + x2) + …. So every
// rank gets the same bytes, whatever the backend and the size of the message.
//
// Failure  A collective that cannot end throws RankLost: a rank has died, does not answer within
//          the deadline, or computes something else. Layers return void, so it is an exception
//          (docs/adr/0012-a-lost-rank-is-thrown.md). The group is unusable afterwards: every later
//          call of it, its parent and its parts throws the same.
// Threads  One thread at a time calls collectives; Abandon may be called by any thread.
// Memory   Buffers for sums and messages grow to the largest call and stay. May throw
//          std::bad_alloc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace latte {

class RankLost : public std::runtime_error {
 public:
  // rank: number in the world, not in a part of it; kUnknown if no rank can be named. why: one
  // line.
  RankLost(int rank, const std::string& why);
  static constexpr int kUnknown = -1;

  int rank() const { return rank_; }

 private:
  int rank_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  // This rank's place in the group and the number of ranks: 0 ≤ rank() < size().
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns when every rank has called it.
  virtual void Barrier() = 0;

  // Copies `data` of rank `root` to all ranks. data: the same number of bytes on every rank.
  virtual void Broadcast(std::span<std::byte> data, int root) = 0;

  // all = the bytes of rank 0, of rank 1, … in turn.
  // byte_counts: [size], the same on all ranks. mine: [byte_counts[rank]]; it may be its own part
  // of `all`, otherwise they are separate. all: [Σ byte_counts].
  virtual void AllGather(std::span<const std::byte> mine, std::span<const int64_t> byte_counts,
                         std::span<std::byte> all) = 0;

  // Sends part r of `send` to rank r and receives a part from each; parts are in the order of
  // ranks. send_counts, receive_counts: [size] bytes; what r expects of s is what s sends to r.
  // Buffers are separate.
  virtual void AllToAll(std::span<const std::byte> send, std::span<const int64_t> send_counts,
                        std::span<std::byte> receive, std::span<const int64_t> receive_counts) = 0;

  // x = the sum of x over ranks. x: the same length on all ranks.
  virtual void AllReduceSum(std::span<float> x) = 0;

  // mine = part `rank` of the sum of x over ranks. counts: [size] elements, the same on all ranks;
  // x: [Σ counts]; mine: [counts[rank]]; it may be its own part of x, otherwise they are separate.
  virtual void ReduceScatterSum(std::span<const float> x, std::span<const int64_t> counts,
                                std::span<float> mine) = 0;

  // A part of this group: the ranks that give the same color ≥ 0, ordered by (key, rank). Every
  // rank calls it and gets the part that it is in. The part may outlive this group and has its
  // deadline.
  virtual std::unique_ptr<Communicator> Split(int color, int key) = 0;

  // How long a collective of this group waits for the others; at first CommOptions::deadline. It
  // must be longer than ranks may be apart, in a step or while they load.
  virtual void SetDeadline(std::chrono::milliseconds deadline) = 0;

  // Ends the call of this process that waits in the world of this group, if any, and all later ones
  // with `lost`. The first reason stays. Thread-safe.
  virtual void Abandon(const RankLost& lost) = 0;

  // AllGather of equal parts: all [size · mine.size()].
  void AllGatherEqual(std::span<const std::byte> mine, std::span<std::byte> all);
};

struct CommOptions {
  std::chrono::milliseconds deadline = std::chrono::minutes(2);
};

}  // namespace latte
