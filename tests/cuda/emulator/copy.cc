// Accesses of global memory, and cp.async.
#include <algorithm>
#include <cstring>

#include "tests/cuda/emulator/block.h"

namespace latte::emulator {
namespace {

void Land(AsyncCopy& c) {
  uint8_t* to = Running().Shared(c.to, c.bytes, c.bytes, c.site);
  if (c.valid_bytes > 0) std::memcpy(to, c.from, static_cast<size_t>(c.valid_bytes));
  std::memset(to + c.valid_bytes, 0, static_cast<size_t>(c.bytes - c.valid_bytes));
  c.landed = true;
}

}  // namespace

void BlockRun::CheckGlobal(const void* p, int bytes, int alignment, bool write, Site site) {
  const int lane = Current();
  const GlobalAccess access{
      p, bytes, alignment, number_, lane, Clock(lane), &LaneAt(lane).seen->clock, site};
  const GlobalBreach breach = write ? memory_.Write(access) : memory_.Read(access);
  if (breach.fatal) Fatal(breach.text);
  if (!breach.text.empty()) Error(breach.text);
}

void ReadGlobal(const void* from, void* to, int bytes, int alignment, Site site) {
  Running().CheckGlobal(from, bytes, alignment, false, site);
  ++Running().Count().global_loads;
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

void WriteGlobal(void* to, const void* from, int bytes, int alignment, Site site) {
  Running().CheckGlobal(to, bytes, alignment, true, site);
  ++Running().Count().global_stores;
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

void CopyAsync(SharedAddr to, const void* from, int bytes, int valid_bytes, Site site) {
  BlockRun& block = Running();
  block.Shared(to, bytes, bytes, site);
  if (valid_bytes > 0) block.CheckGlobal(from, valid_bytes, bytes, false, site);
  block.BeginWrite(to, bytes, block.Current(), site, false);
  block.CountAccess(to, bytes, site);
  block.Count().async_bytes += valid_bytes;
  AsyncCopy copy{to, from, bytes, valid_bytes, false, site};
  if (block.Early()) Land(copy);
  block.LaneAt(block.Current()).open_group.push_back(copy);
}

void CopyAsyncCommit() {
  Lane& lane = Running().LaneAt(Running().Current());
  lane.groups.push_back(std::move(lane.open_group));
  lane.open_group.clear();
}

void CopyAsyncWait(int groups, Site) {
  BlockRun& block = Running();
  const int self = block.Current();
  Lane& lane = block.LaneAt(self);
  while (static_cast<int>(lane.groups.size()) > groups) {
    for (AsyncCopy& c : lane.groups.front()) {
      if (!c.landed) Land(c);
      block.EndWrite(c.to, c.bytes, self, block.Clock(self));
    }
    lane.groups.erase(lane.groups.begin());
  }
}

}  // namespace latte::emulator
