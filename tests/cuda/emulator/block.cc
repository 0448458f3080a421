// The lanes of a block: whose turn it is, barriers, what each has seen.
#include "tests/cuda/emulator/block.h"

#include <algorithm>
#include <bit>

#include "tests/cuda/emulator/fibers.h"

namespace latte::emulator {
namespace {

constexpr size_t kMaxErrors = 12;

void MaxInto(std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
}

}  // namespace

constinit thread_local BlockRun* running_block = nullptr;

const Place& Here() { return Running().Where(); }

void Clocks::Join(const Clocks& other) {
  MaxInto(clock, other.clock);
  MaxInto(fenced, other.fenced);
}

void Gathering::Add(const Seen& seen) {
  if (seen == last) return;
  clocks.Join(*seen);
  last = seen;
}

BlockRun::BlockRun(const LaunchInfo& info, GlobalMemory& memory, const Options& options,
                   Report* report)
    : name_(info.name),
      threads_(info.threads),
      shared_bytes_(info.shared_bytes),
      memory_(memory),
      options_(options),
      random_(options.seed * 0x9e3779b97f4a7c15u + 1),
      report_(report),
      lanes_(Index(info.threads)),
      meetings_(Index(info.threads / 32 + (info.threads + 127) / 128)) {
  place_.threads = info.threads;
  place_.grid[0] = info.grid.x;
  place_.grid[1] = info.grid.y;
  place_.grid[2] = info.grid.z;
}

uint64_t BlockRun::Random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  return random_ ^= random_ << 17;
}

void BlockRun::RunLane() {
  bool abandoned = false;
  try {
    (*Running().body_)();
  } catch (const Abandoned&) {
    abandoned = true;  // goes home outside of the handler, which must end
  }
  BlockRun& block = Running();
  if (abandoned) return block.GoHome();
  block.LaneAt(block.Current()).done = true;
  --block.alive_;
  block.SwitchAway();
}

void BlockRun::StartLanes() {
  alive_ = threads_;
  ready_.assign(Index(threads_ / 32), ~0u);
  for (Meeting& m : meetings_) m.arrived = 0;
  accesses_.assign(Index(threads_ / 32), {});
  barriers_.assign(16, NamedBarrier{});
  const Seen nothing = std::make_shared<const Clocks>(NewClocks());
  for (Lane& lane : lanes_) {
    lane = Lane();
    lane.seen = nothing;
  }
}

void BlockRun::Run(Dim3 index, int number, const std::function<void()>& body) {
  running_block = this;
  place_.block[0] = index.x;
  place_.block[1] = index.y;
  place_.block[2] = index.z;
  number_ = number;
  body_ = &body;
  mbarriers.clear();
  tma.clear();
  warpgroups.assign(Index((threads_ + 127) / 128), Warpgroup{});
  StartLanes();
  StartShared();
  Fibers& fibers = Fibers::OfThread();
  fibers.Prepare(threads_, &BlockRun::RunLane);
  place_.thread = 0;
  place_.thread = Next();
  ready_[Index(Current() / 32)] &= ~(1u << Current() % 32);
  fibers.Run(Current());
  for (int i = 0; i < threads_; ++i)
    if (!LaneAt(i).done) fibers.Forget(i);
  CheckLeftovers();
  running_block = nullptr;
}

// The next lane to run: mostly one of the same warp, now and then another warp's.
int BlockRun::Next() {
  int warp = Current() / 32;
  const uint64_t dice = Random();
  const int warps = threads_ / 32;
  if (ready_[Index(warp)] == 0 || dice % 64 == 0) {
    warp = static_cast<int>((dice >> 8) % static_cast<uint64_t>(warps));
    for (int tries = 0; ready_[Index(warp)] == 0; warp = (warp + 1) % warps)
      if (++tries > warps) return -1;
  }
  const int turn = static_cast<int>(dice >> 40 & 31);
  const uint32_t turned = std::rotr(ready_[Index(warp)], turn);
  return 32 * warp + (std::countr_zero(turned) + turn) % 32;
}

// Lets another lane run, until somebody has woken this one and its turn comes.
void BlockRun::SwitchAway() {
  if (!tma.empty() && When() == Landing::kRandom && Chance(64)) DeliverOne();
  int next = Next();
  while (next < 0) {
    if (alive_ == 0) return GoHome();
    if (!DeliverOne()) {
      Deadlock();
      return GoHome();
    }
    next = Next();
  }
  ready_[Index(next / 32)] &= ~(1u << next % 32);
  const int self = Current();
  if (next == self) return;
  ++Count().fiber_switches;
  place_.thread = next;
  Fibers::OfThread().Switch(self, next);
}

void BlockRun::GoHome() { Fibers::OfThread().GoHome(Current()); }

void BlockRun::Wait(const char* what, Site site) {
  LaneAt(Current()).waits = what;
  LaneAt(Current()).site = site;
  SwitchAway();
}

void BlockRun::Wake(int lane) { ready_[Index(lane / 32)] |= 1u << lane % 32; }

void BlockRun::Deadlock() {
  std::map<std::string, int> places;
  for (const Lane& lane : lanes_)
    if (!lane.done) ++places[std::string(lane.waits) + " at " + At(lane.site)];
  std::string text = "deadlock:";
  for (const auto& [place, lanes] : places)
    text += " " + std::to_string(lanes) + " lanes wait in " + place + ";";
  text += " " + std::to_string(threads_ - alive_) + " have left";
  Error(text);
}

void BlockRun::Error(const std::string& text) {
  if (report_->errors.size() >= kMaxErrors || !said_.insert(text).second) return;
  report_->errors.push_back("kernel " + name_ + ", block " + std::to_string(number_) + ": " + text);
}

void BlockRun::Fatal(const std::string& text) {
  Error(text);
  throw Abandoned{};
}

void BlockRun::Requires(int capability, const char* word, Site site) {
  if (options_.capability < capability)
    Fatal(std::string(word) + ", " + At(site) + ", needs a card of capability " +
          std::to_string(capability) + ", the emulated one has " +
          std::to_string(options_.capability));
}

void BlockRun::CheckLeftovers() {
  for (const auto& warp : accesses_)  // of which some lanes kept away
    for (const auto& [key, access] : warp) CountCycles(access.at, access.lanes, access.bytes);
  if (alive_ > 0) return;  // broken off
  if (!tma.empty()) Error("TMA still under way when the block ends, " + At(tma[0].site));
  for (const Lane& lane : lanes_) {
    for (const std::vector<AsyncCopy>& group : lane.groups)
      if (!group.empty()) Error("cp.async never waited for, " + At(group.front().site));
    if (!lane.open_group.empty())
      Error("cp.async never committed, " + At(lane.open_group.front().site));
  }
  for (size_t id = 0; id < barriers_.size(); ++id)
    if (barriers_[id].arrived > 0)
      Error("barrier " + std::to_string(id) + " is left with arrivals that no lane met");
  int registers = 0;
  for (const Warpgroup& g : warpgroups) {
    registers += g.registers * 128;
    if (!g.groups.empty() || !g.open_group.empty()) Error("wgmma never waited for");
  }
  if (registers > 65536) Error("setmaxnreg takes more registers than there are");
}

// ---- order

void BlockRun::Release(int lane, Gathering* to) {
  to->Add(LaneAt(lane).seen);
  to->clocks.clock[Index(lane)] = LaneAt(lane).clock++;
}

void BlockRun::FenceProxy(int lane) {
  Clocks clocks = *LaneAt(lane).seen;
  clocks.fenced = clocks.clock;
  clocks.fenced[Index(lane)] = Clock(lane);
  LaneAt(lane).seen = std::make_shared<const Clocks>(std::move(clocks));
}

void BlockRun::SyncLanes(int first, int count) {
  Gathering all{NewClocks(), nullptr};
  for (int i = first; i < first + count; ++i) Release(i, &all);
  const Seen seen = std::make_shared<const Clocks>(std::move(all.clocks));
  for (int i = first; i < first + count; ++i) LaneAt(i).seen = seen;
}

void BlockRun::Barrier(int id, int threads, bool wait, Site site) {
  if (threads == 0) threads = threads_;
  if (id < 0 || id > 15 || threads % 32 != 0 || threads > threads_)
    Fatal("no such barrier, " + At(site));
  NamedBarrier& b = barriers_[Index(id)];
  if (b.arrived == 0) {
    b.expected = threads;
    b.gathering = {NewClocks(), nullptr};
  }
  if (b.expected != threads) Fatal("lanes disagree on a barrier's count, " + At(site));
  const int self = Current();
  Release(self, &b.gathering);
  if (wait) b.waiting.push_back(self);
  if (++b.arrived < b.expected) {
    if (wait) Wait("a barrier", site);
    return;
  }
  ++Count().barriers;
  const Seen seen = std::make_shared<const Clocks>(std::move(b.gathering.clocks));
  for (const int lane : b.waiting) {
    LaneAt(lane).seen = seen;
    Wake(lane);
  }
  b.arrived = 0;
  b.waiting.clear();
  if (wait) Wait("a barrier", site);
}

}  // namespace latte::emulator
