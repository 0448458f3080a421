// mbarriers and TMA.
#include <bit>
#include <cstring>

#include "tests/cuda/emulator/block.h"
#include "tests/cuda/emulator/swizzle.h"

namespace latte::emulator {
namespace {

constexpr uint64_t kMapMagic = 0x6c617474652d746d;  // "latte-tm"

// The content of a TensorMap here.
struct MapContent {
  uint64_t magic;
  Tensor tensor;
};
static_assert(sizeof(MapContent) <= sizeof(cuda::TensorMap));

Tensor Decode(const cuda::TensorMap& map, Site site) {
  MapContent content{};
  std::memcpy(static_cast<void*>(&content), &map, sizeof(content));
  if (content.magic != kMapMagic)
    Running().Fatal("TMA with a map that cuTensorMapEncodeTiled did not make, " + At(site));
  const Tensor& t = content.tensor;
  if (t.box[0] * t.element_bytes != 128 || t.box[1] < 1 || t.box[1] > 256 || t.box[2] != 1)
    Running().Fatal("TMA box of a kind that the emulator does not know, " + At(site));
  return t;
}

// Where the 16-byte chunk of a box row is in global memory; nullptr: outside of the tensor, zero.
const uint8_t* ChunkAt(const TmaCopy& c, int row, int chunk) {
  const Tensor& t = c.map;
  const int per_chunk = 16 / t.element_bytes;
  const int64_t x = c.at[0] + per_chunk * chunk, y = c.at[1] + row, z = c.at[2];
  const bool inside =
      x >= 0 && x + per_chunk <= t.size[0] && y >= 0 && y < t.size[1] && z >= 0 && z < t.size[2];
  if (!inside) return nullptr;
  return static_cast<const uint8_t*>(t.data) + z * t.stride_bytes[1] + y * t.stride_bytes[0] +
         x * t.element_bytes;
}

template <class F>
void ForChunks(const TmaCopy& c, const F& f) {
  for (int row = 0; row < c.map.box[1]; ++row)
    for (int chunk = 0; chunk < 8; ++chunk)
      f(Swizzled(c.to + static_cast<SharedAddr>(128 * row + 16 * chunk)), ChunkAt(c, row, chunk));
}

}  // namespace

void EncodeTensorMap(const Tensor& tensor, cuda::TensorMap* map) {
  const MapContent content{kMapMagic, tensor};
  *map = {};
  std::memcpy(map, &content, sizeof(content));
}

Mbarrier& BlockRun::MbarrierAt(SharedAddr a, Site site) {
  const auto found = mbarriers.find(a);
  if (found == mbarriers.end()) Fatal("no mbarrier was initialised here, " + At(site));
  NoteRead(a, 8, Current(), site);
  return found->second;
}

void BlockRun::CompletePhase(Mbarrier& b) {
  if (b.pending > 0 || b.bytes != 0) return;
  ++b.phase;
  b.pending = b.expected;
  b.released.Join(b.gathering.clocks);
  b.before = nullptr;
  b.gathering = {NewClocks(), nullptr};
  for (const int lane : b.waiting) Wake(lane);
  b.waiting.clear();
}

void BlockRun::Arrive(SharedAddr a, int64_t bytes, Site site) {
  Mbarrier& b = MbarrierAt(a, site);
  Release(Current(), &b.gathering);
  b.bytes += bytes;
  if (--b.pending < 0) Error("more arrivals than the mbarrier expects, " + At(site));
  CompletePhase(b);
}

void BlockRun::LandTma(const TmaCopy& copy) {
  Mbarrier& b = mbarriers.at(copy.barrier);
  const uint32_t clock = ++b.landed;
  ForChunks(copy, [&](SharedAddr to, const uint8_t* from) {
    uint8_t* s = Shared(to, 16, 16, copy.site);
    if (from != nullptr)
      std::memcpy(s, from, 16);
    else
      std::memset(s, 0, 16);
    EndWrite(to, 16, static_cast<int>(b.clock_at), clock);
  });
  const int bytes = 128 * copy.map.box[1];
  b.gathering.clocks.clock[b.clock_at] = clock;
  b.bytes -= bytes;
  Count().async_bytes += bytes;
  Count().shared_cycles += bytes / 128;
  CompletePhase(b);
}

bool BlockRun::DeliverOne() {
  if (tma.empty()) return false;
  const size_t i = static_cast<size_t>(Random() % tma.size());
  const TmaCopy copy = tma[i];
  tma.erase(tma.begin() + static_cast<std::ptrdiff_t>(i));
  LandTma(copy);
  return true;
}

void MbarrierInit(SharedAddr barrier, int arrivals, Site site) {
  BlockRun& block = Running();
  block.Requires(90, "mbarrier.init", site);
  block.Shared(barrier, 8, 8, site);
  block.NoteWrite(barrier, 8, block.Current(), site);
  Mbarrier& b = block.mbarriers[barrier];
  if (block.mbarriers.size() > kMaxMbarriers) block.Fatal("the emulator knows 32 mbarriers");
  b.expected = b.pending = arrivals;
  b.released = block.NewClocks();
  b.clock_at = b.released.clock.size() - block.mbarriers.size();
  b.gathering = {block.NewClocks(), nullptr};
}

void MbarrierArrive(SharedAddr barrier, int bytes, Site site) {
  Running().Arrive(barrier, bytes, site);
}

void MbarrierWait(SharedAddr barrier, int parity, Site site) {
  BlockRun& block = Running();
  Mbarrier& b = block.MbarrierAt(barrier, site);
  while (b.phase % 2 == parity) {
    b.waiting.push_back(block.Current());
    block.Wait("an mbarrier", site);
  }
  Lane& lane = block.LaneAt(block.Current());
  if (lane.seen != b.before || b.before == nullptr) {
    Clocks joined = b.released;
    joined.Join(*lane.seen);
    b.before = lane.seen;
    b.after = std::make_shared<const Clocks>(std::move(joined));
  }
  lane.seen = b.after;
}

void TmaLoad(SharedAddr to, const cuda::TensorMap& map, SharedAddr barrier, int x, int y, int z,
             Site site) {
  BlockRun& block = Running();
  block.Requires(90, "TMA", site);
  block.MbarrierAt(barrier, site);
  const TmaCopy copy{to, Decode(map, site), barrier, {x, y, z}, site};
  block.Shared(to, 128 * copy.map.box[1], 128, site);
  ForChunks(copy, [&](SharedAddr at, const uint8_t* from) {
    if (from != nullptr) block.CheckGlobal(from, 16, 16, false, site);
    block.BeginWrite(at, 16, block.Current(), site, true);
  });
  if (block.Early())
    block.LandTma(copy);
  else
    block.tma.push_back(copy);
}

void FenceProxyAsync() { Running().FenceProxy(Running().Current()); }

}  // namespace latte::emulator
