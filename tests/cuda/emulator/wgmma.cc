// wgmma and the registers of a warpgroup.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/cuda/emulator/block.h"
#include "tests/cuda/emulator/swizzle.h"
#include "tests/cuda/emulator/tensor_core.h"

namespace latte::emulator {
namespace {

// Bytes between tiles of 8 × 128 bytes, along the contiguous dimension and across it.
struct Descriptor {
  SharedAddr start, next, across;
};

Descriptor DecodeDescriptor(uint64_t d, Site site) {
  if (d >> 62 != 1) Running().Fatal("wgmma without the 128-byte swizzle, " + At(site));
  const auto field = [&](int bit) { return static_cast<SharedAddr>(d >> bit & 0x3fff) << 4; };
  return {field(0), field(16), field(32)};
}

// The 16-byte chunks of a K-major operand of `rows` rows × 16: chunk j of row i at [2·i + j].
std::vector<SharedAddr> ChunksKMajor(uint64_t descriptor, int rows, Site site) {
  const Descriptor d = DecodeDescriptor(descriptor, site);
  std::vector<SharedAddr> out;
  for (SharedAddr i = 0; i < static_cast<SharedAddr>(rows); ++i)
    for (SharedAddr j = 0; j < 2; ++j)
      out.push_back(Swizzled(d.start + i / 8 * d.across + i % 8 * 128 + 16 * j));
  return out;
}

// The chunks of an MN-major operand of 16 k × n: columns 8·j… of k at [n/8·k + j].
std::vector<SharedAddr> ChunksMnMajor(uint64_t descriptor, int n, Site site) {
  const Descriptor d = DecodeDescriptor(descriptor, site);
  std::vector<SharedAddr> out;
  for (SharedAddr k = 0; k < 16; ++k)
    for (SharedAddr j = 0; j < static_cast<SharedAddr>(n / 8); ++j)
      out.push_back(
          Swizzled(d.start + j / 8 * d.next + k / 8 * d.across + k % 8 * 128 + j % 8 * 16));
  return out;
}

int RowOf(int lane, int i) { return 16 * (lane / 32) + lane % 32 / 4 + 8 * (i / 2 % 2); }
int ColumnOf(int lane, int i) { return 8 * (i / 4) + 2 * (lane % 4) + i % 2; }

void ReadChunk(SharedAddr a, float* to, int stride) {
  uint16_t v[8];
  std::memcpy(v, Running().Shared(a, 16, 16, Site::current()), 16);
  for (int i = 0; i < 8; ++i) to[i * stride] = FromBf16(v[i]);
}

void ReadA(const WgmmaOp& op, float* a) {  // [64][16]
  for (size_t i = 0; i < op.a_at.size(); ++i) ReadChunk(op.a_at[i], a + 8 * i, 1);
  for (int lane = 0; lane < 128 && op.values_from_registers; ++lane)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 2; ++j)
        a[16 * RowOf(lane, 2 * i) + 2 * (lane % 4) + 8 * (i / 2) + j] =
            FromBf16(op.a[static_cast<size_t>(4 * lane + i)] >> 16 * j & 0xffff);
}

void ReadB(const WgmmaOp& op, float* b) {  // [16][n]
  for (size_t i = 0; i < op.b_at.size(); ++i) {
    const int at = static_cast<int>(i);
    if (op.mn_major)
      ReadChunk(op.b_at[i], b + 8 * at, 1);
    else
      ReadChunk(op.b_at[i], b + at % 2 * 8 * op.n + at / 2, op.n);
  }
}

// Does the arithmetic of one wgmma on its accumulator.
void Execute(WgmmaOp& op, Accumulator& acc) {
  static thread_local std::vector<float> a(64 * 16), b(16 * 256), d(64 * 256);
  ReadA(op, a.data());
  ReadB(op, b.data());
  const int count = static_cast<int>(acc.count);
  const auto place = [&](int lane, int i) {
    return static_cast<size_t>(RowOf(lane, i) * op.n + ColumnOf(lane, i));
  };
  for (int lane = 0; lane < 128; ++lane)
    for (int i = 0; i < count; ++i)
      d[place(lane, i)] = op.add ? acc.value[static_cast<size_t>(lane * count + i)] : 0;
  AddProducts(TensorCoreOf(90), a.data(), b.data(), d.data(), 64, op.n, 16);
  for (int lane = 0; lane < 128; ++lane)
    for (int i = 0; i < count; ++i)
      acc.value[static_cast<size_t>(lane * count + i)] = d[place(lane, i)];
  op.done = true;
}

// Calls f(lane that stands for the warp, chunk) for all that a wgmma of the warpgroup reads. Every
// warp reads its own rows of a and all of b.
template <class F>
void ForReads(const WgmmaOp& op, int first, const F& f) {
  for (int warp = 0; warp < 4; ++warp) {
    for (size_t i = 0; i < op.a_at.size(); ++i)
      if (static_cast<int>(i) / 32 == warp) f(first + 32 * warp, op.a_at[i]);
    for (const SharedAddr a : op.b_at) f(first + 32 * warp, a);
  }
}

Warpgroup& GroupOf(int lane) { return Running().warpgroups[static_cast<size_t>(lane / 128)]; }

struct WgmmaArgs {
  float* d;
  uint64_t a, b;
  const uint32_t* a_regs;
};

// What all lanes of a wgmma do alike.
struct WgmmaShape {
  int n;
  bool add, mn_major;
  Site site;
};

WgmmaOp MakeOp(WgmmaArgs** all, const WgmmaShape& shape) {
  const bool registers = all[0]->a_regs != nullptr;
  WgmmaOp op{all[0]->d, shape.n, shape.add, registers, false, {}, {}, {}, shape.mn_major};
  for (int lane = 0; lane < 128; ++lane) {
    if (all[lane]->a != all[0]->a || all[lane]->b != all[0]->b)
      Running().Fatal("lanes disagree on a wgmma descriptor, " + At(shape.site));
    if (registers) op.a.insert(op.a.end(), all[lane]->a_regs, all[lane]->a_regs + 4);
  }
  if (!registers) op.a_at = ChunksKMajor(all[0]->a, 64, shape.site);
  op.b_at = shape.mn_major ? ChunksMnMajor(all[0]->b, shape.n, shape.site)
                           : ChunksKMajor(all[0]->b, shape.n, shape.site);
  return op;
}

// The accumulator of a wgmma that starts. The lanes' registers hold NaN from the first on it.
Accumulator& BeginAccumulator(Warpgroup& group, WgmmaArgs** all, int n) {
  Accumulator& acc = group.accumulators[all[0]->d];
  if (acc.under_way++ > 0) return acc;
  acc.count = static_cast<size_t>(n / 2);
  acc.lanes.clear();
  acc.value.clear();
  for (int lane = 0; lane < 128; ++lane) {
    float* r = all[lane]->d;
    acc.lanes.push_back(r);
    acc.value.insert(acc.value.end(), r, r + acc.count);
    std::fill_n(r, acc.count, std::nanf(""));
  }
  return acc;
}

void StartWgmma(WgmmaArgs** all, int first, const WgmmaShape& shape) {
  BlockRun& block = Running();
  Warpgroup& group = GroupOf(first);
  if (!group.fenced) block.Error("wgmma without wgmma.fence before it, " + At(shape.site));
  WgmmaOp op = MakeOp(all, shape);
  ForReads(op, first, [&](int lane, SharedAddr at) {
    block.Shared(at, 16, 16, shape.site);
    block.BeginRead(at, 16, lane, shape.site);
  });
  Accumulator& acc = BeginAccumulator(group, all, shape.n);
  block.Count().shared_cycles += static_cast<int64_t>(op.a_at.size() + op.b_at.size()) / 8;
  block.Count().wgmma_macs += int64_t{64} * shape.n * 16;
  const bool first_in_line =
      group.groups.empty() && (group.open_group.empty() || group.open_group.back().done);
  if (first_in_line && block.Early()) Execute(op, acc);
  group.open_group.push_back(std::move(op));
}

void FinishOldestGroup(Warpgroup& group, int first) {
  BlockRun& block = Running();
  for (WgmmaOp& op : group.groups.front()) {
    Accumulator& acc = group.accumulators.at(op.d);
    if (!op.done) Execute(op, acc);
    ForReads(op, first, [&](int lane, SharedAddr at) { block.EndRead(at, 16, lane); });
    if (--acc.under_way > 0) continue;
    for (size_t lane = 0; lane < 128; ++lane)
      std::copy_n(acc.value.begin() + static_cast<std::ptrdiff_t>(lane * acc.count), acc.count,
                  acc.lanes[lane]);
  }
  group.groups.pop_front();
}

}  // namespace

void SetRegisters(int count, Site site) {
  Running().Requires(90, "setmaxnreg", site);
  if (count < 24 || count > 256 || count % 8 != 0) Running().Fatal("bad setmaxnreg, " + At(site));
  int none = 0;
  Running().Meet(128, "setmaxnreg", site, none,
                 [&](int**, int first) { GroupOf(first).registers = count; });
}

void WgmmaFence(Site site) {
  Running().Requires(90, "wgmma.fence", site);
  int none = 0;
  Running().Meet(128, "wgmma.fence", site, none,
                 [](int**, int first) { GroupOf(first).fenced = true; });
}

void WgmmaCommit(Site site) {
  int none = 0;
  Running().Meet(128, "wgmma.commit_group", site, none, [](int**, int first) {
    Warpgroup& g = GroupOf(first);
    g.groups.push_back(std::move(g.open_group));
    g.open_group.clear();
  });
}

void Wgmma(float* d, int n, bool add, const uint64_t* a, const uint32_t* a_regs, uint64_t b,
           bool mn_major, Site site) {
  Running().Requires(90, "wgmma", site);
  WgmmaArgs args{d, a != nullptr ? *a : 0, b, a_regs};
  Running().Meet(128, "wgmma", site, args, [&](WgmmaArgs** all, int first) {
    StartWgmma(all, first, {n, add, mn_major, site});
  });
}

void WgmmaWait(int groups, const float* d, Site site) {
  Running().Meet(128, "wgmma.wait_group", site, d, [&](const float*** all, int first) {
    Warpgroup& group = GroupOf(first);
    while (static_cast<int>(group.groups.size()) > groups) FinishOldestGroup(group, first);
    group.fenced = false;
    const auto found = group.accumulators.find(const_cast<float*>(*all[0]));
    if (found != group.accumulators.end() && found->second.under_way > 0)
      Running().Error("the wait does not cover the accumulator that it returns, " + At(site));
  });
}

}  // namespace latte::emulator
