// The emulator's inside: one running block. Not for kernels and not for tests.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/emulator/emulator.h"
#include "tests/cuda/emulator/site.h"

namespace latte::emulator {

constexpr int kMaxThreads = 1024;
constexpr int kMaxMbarriers = 32;
constexpr uint32_t kNever = 0xffffffffu;  // a clock that nothing has seen: the access is under way

// Thrown in the lane that breaks a rule so badly that the block cannot continue.
struct Abandoned {};

// The last write of one 4-byte word of shared memory. Small, because every access reads it; where
// it was written is in BlockRun::write_sites_, its reads in BlockRun::reads_.
struct SharedCell {
  uint32_t write_clock = 0;  // 0: never written
  uint16_t writer = 0;
  bool async_proxy = false;  // written by TMA
};

// The clocks of all lanes as one lane has seen them, and those whose ordinary stores are fenced for
// the asynchronous proxy. No lane writes the bytes of TMA: each mbarrier has its clock, after the
// lanes' clocks, and only a wait on it shows it.
struct Clocks {
  std::vector<uint32_t> clock, fenced;
  Clocks() = default;
  explicit Clocks(int count)
      : clock(static_cast<size_t>(count)), fenced(static_cast<size_t>(count)) {}
  void Join(const Clocks& other);
};

// Lanes that leave a barrier have seen the same, so they share it. A lane's own entry in it is
// older than Lane::clock.
using Seen = std::shared_ptr<const Clocks>;

// Joins what lanes have seen until a barrier lets them go.
struct Gathering {
  Clocks clocks;
  Seen last;  // joined last: most lanes come with the same
  void Add(const Seen& seen);
};

struct AsyncCopy {
  SharedAddr to;
  const void* from;
  int bytes, valid_bytes;
  bool landed;
  Site site;
};

struct Lane {
  bool done = false;
  const char* waits = "";  // for the deadlock report
  Site site;
  uint32_t clock = 1;
  Seen seen;
  std::vector<AsyncCopy> open_group;
  std::vector<std::vector<AsyncCopy>> groups;
  std::map<uint32_t, uint32_t> times;  // that it came to the shared access of a line
};

// A meeting of the lanes of a warp or a warpgroup: the last to come does the work for all.
struct Meeting {
  const char* what = nullptr;
  Site site;
  int arrived = 0;
  void* args[128] = {};
};

// One ordinary access of a warp, gathered lane by lane.
struct WarpAccess {
  int bytes = 0;
  uint32_t lanes = 0;  // a bit each
  SharedAddr at[32] = {};
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
  Gathering gathering;
  std::vector<int> waiting;
};

struct Mbarrier {
  int expected = 0, pending = 0;
  int64_t bytes = 0;  // promised and not yet come; below 0 when they came first
  int phase = 0;
  size_t clock_at = 0;  // its place in Clocks
  uint32_t landed = 0;  // copies, its clock
  Gathering gathering;
  Clocks released;
  Seen before, after;  // of the lane that was let go last: most lanes come with the same
  std::vector<int> waiting;
};

struct TmaCopy {
  SharedAddr to;
  Tensor map;
  SharedAddr barrier;
  int at[3];
  Site site;
};

// One wgmma of a warpgroup: started, and done at the latest when its group is waited for.
struct WgmmaOp {
  float* d;  // lane 0's, which names the accumulator
  int n;     // columns
  bool add, values_from_registers, done;
  std::vector<uint32_t> a;             // [128][4], when from registers
  std::vector<SharedAddr> a_at, b_at;  // 16-byte chunks: [64 rows][2], [16 k][n/8] or [n][2]
  bool mn_major;
};

// The values of d while wgmmas on it are under way; the lanes' own registers hold NaN.
struct Accumulator {
  std::vector<float*> lanes;
  std::vector<float> value;  // [128][count]
  size_t count = 0;
  int under_way = 0;
};

struct Warpgroup {
  bool fenced = false;
  int registers = 0;  // by setmaxnreg
  std::vector<WgmmaOp> open_group;
  std::deque<std::vector<WgmmaOp>> groups;
  std::map<float*, Accumulator> accumulators;
};

class BlockRun {
 public:
  BlockRun(const LaunchInfo& info, GlobalMemory& memory, const Options& options, Report* report);

  void Run(Dim3 index, int number, const std::function<void()>& body);

  // ---- what the words are made of
  int Current() const { return place_.thread; }
  const Place& Where() const { return place_; }
  Counters& Count() { return report_->counters; }
  uint64_t Random();
  bool Chance(int one_in) { return Random() % static_cast<uint64_t>(one_in) == 0; }
  Clocks NewClocks() const { return Clocks(threads_ + kMaxMbarriers); }
  Landing When() const { return options_.landing; }
  int Capability() const { return options_.capability; }
  // Whether this asynchronous thing happens at once.
  bool Early() { return When() == Landing::kEarly || (When() == Landing::kRandom && Chance(2)); }
  void Requires(int capability, const char* word, Site site);

  // Lane `first + i` of the group of `size` lanes deposits args; `all` runs once, for all of them.
  template <class Args, class All>
  void Meet(int size, const char* what, Site site, Args& args, const All& all);

  void Wait(const char* what, Site site);  // until Wake(this lane)
  void Wake(int lane);
  void Barrier(int id, int threads, bool wait, Site site);
  void SyncLanes(int first, int count);   // everything each has done is seen by all
  void Release(int lane, Gathering* to);  // all that acquire `to` see what the lane has done
  void FenceProxy(int lane);
  // Whether the lane has seen the access of another at that clock.
  bool HasSeen(int lane, size_t other, uint32_t clock) {
    return Index(lane) == other || LaneAt(lane).seen->clock[other] >= clock;
  }

  // Checks and notes an access of shared memory by `lane`.
  void NoteRead(SharedAddr a, int bytes, int lane, Site site, bool async_proxy = false);
  void NoteWrite(SharedAddr a, int bytes, int lane, Site site);
  // An asynchronous write or read: checked when it starts, noted as the lane's when it has ended.
  void BeginWrite(SharedAddr a, int bytes, int lane, Site site, bool async_proxy);
  void EndWrite(SharedAddr a, int bytes, int lane, uint32_t clock);
  void BeginRead(SharedAddr a, int bytes, int lane, Site site);
  void EndRead(SharedAddr a, int bytes, int lane);
  uint8_t* Shared(SharedAddr a, int bytes, int alignment, Site site);
  // Counts cycles and conflicts of an ordinary access by the running lane, once its warp is
  // complete.
  void CountAccess(SharedAddr a, int bytes, Site site);
  void CountCycles(const SharedAddr* at, uint32_t lanes, int bytes);
  void CheckGlobal(const void* p, int bytes, int alignment, bool write, Site site);

  Lane& LaneAt(int lane) { return lanes_[Index(lane)]; }
  uint32_t Clock(int lane) { return LaneAt(lane).clock; }
  void Error(const std::string& text);
  [[noreturn]] void Fatal(const std::string& text);

  // ---- sm_90 (tma.cc, wgmma.cc)
  Mbarrier& MbarrierAt(SharedAddr a, Site site);
  void Arrive(SharedAddr a, int64_t bytes, Site site);
  void CompletePhase(Mbarrier& b);
  void LandTma(const TmaCopy& copy);
  bool DeliverOne();  // of the TMA copies under way; false when there is none
  std::map<SharedAddr, Mbarrier> mbarriers;
  std::vector<TmaCopy> tma;
  std::vector<Warpgroup> warpgroups;

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }
  static size_t WordOf(SharedAddr a) { return (a - kSharedBegin) / 4; }
  static size_t WordEnd(SharedAddr a, int bytes) {
    return WordOf(a + static_cast<SharedAddr>(bytes) + 3);
  }
  static void RunLane();
  void StartLanes();
  void StartShared();
  void CheckLeftovers();
  int Next();
  void SwitchAway();
  void GoHome();
  void Deadlock();
  void ReportRead(size_t word, int lane, Site site);
  void CheckReads(size_t word, int lane, Site site);
  void CheckWrite(size_t word, int lane, Site site);
  uint32_t& LastRead(size_t word, int lane) {
    return reads_[Index(lane / 32) * cells_.size() + word];
  }

  const std::string name_;
  const int threads_, shared_bytes_;
  GlobalMemory& memory_;
  const Options options_;
  uint64_t random_;
  Report* report_;
  std::set<std::string> said_;

  Place place_ = {};
  int number_ = 0;  // of the block
  const std::function<void()>* body_ = nullptr;
  int alive_ = 0;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> ready_;    // a bit per lane, a word per warp
  std::vector<Meeting> meetings_;  // a warp each, then a warpgroup each
  std::vector<NamedBarrier> barriers_;
  std::vector<std::map<uint64_t, WarpAccess>> accesses_;  // per warp: line and time → access
  std::vector<uint8_t> shared_;
  std::vector<SharedCell> cells_;
  std::vector<Site> write_sites_;
  std::vector<uint32_t>
      reads_;  // per warp and word, the last: clock << 5 | lane; kNever: under way
};

// The block that runs on this thread.
extern constinit thread_local BlockRun* running_block;
inline BlockRun& Running() { return *running_block; }

template <class Args, class All>
void BlockRun::Meet(int size, const char* what, Site site, Args& args, const All& all) {
  const int self = Current();
  const int group = size == 32 ? self / 32 : threads_ / 32 + self / 128;
  Meeting& m = meetings_[Index(group)];
  if (m.arrived == 0) {
    m.what = what;
    m.site = site;
  } else if (m.what != what || m.site.line != site.line) {
    Fatal("lanes of one warp diverge: " + std::string(m.what) + " at " + At(m.site) + ", " + what +
          " at " + At(site));
  }
  m.args[self % size] = &args;
  if (++m.arrived < size) return Wait(what, site);
  m.arrived = 0;
  const int first = self / size * size;
  all(reinterpret_cast<Args**>(m.args), first);
  for (int i = first; i < first + size; ++i)
    if (i != self) Wake(i);
}

}  // namespace latte::emulator
