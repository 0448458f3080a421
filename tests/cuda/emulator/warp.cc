// The words of a warp: shuffles, ldmatrix, mma.
#include <algorithm>
#include <cstring>

#include "tests/cuda/emulator/block.h"
#include "tests/cuda/emulator/tensor_core.h"

namespace latte::emulator {
namespace {

struct ShuffleArgs {
  ShuffleKind kind;
  uint32_t in, out;
  int operand;
};

int SourceLane(const ShuffleArgs& args, int lane) {
  switch (args.kind) {
    case ShuffleKind::kXor:
      return lane ^ args.operand;
    case ShuffleKind::kDown:
      return lane + args.operand > 31 ? lane : lane + args.operand;
    case ShuffleKind::kBroadcast:
      return args.operand;
  }
  return lane;
}

struct LoadMatrixArgs {
  SharedAddr a;
  uint32_t* r;
  bool transposed;
  Site site;
};

// Matrix `matrix` of the four: lane 8·matrix + i names its row i.
void LoadOneMatrix(LoadMatrixArgs** all, int first, int matrix) {
  BlockRun& block = Running();
  uint16_t m[8][8];
  SharedAddr rows[32];
  for (int row = 0; row < 8; ++row) {
    const LoadMatrixArgs& args = *all[8 * matrix + row];
    std::memcpy(m[row], block.Shared(args.a, 16, 16, args.site), 16);
    block.NoteRead(args.a, 16, first + 8 * matrix + row, args.site);
    rows[row] = args.a;
  }
  block.CountCycles(rows, 0xff, 16);
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    const uint32_t low = all[lane]->transposed ? m[2 * t][g] : m[g][2 * t];
    const uint32_t high = all[lane]->transposed ? m[2 * t + 1][g] : m[g][2 * t + 1];
    all[lane]->r[matrix] = low | high << 16;
  }
}

struct MmaArgs {
  float* d;
  const uint32_t* a;
  uint32_t b[2];
};

void MmaAll(MmaArgs** all, int capability) {
  float a[16 * 16], b[16 * 8], d[16 * 8];
  for (int lane = 0; lane < 32; ++lane) {
    const MmaArgs& x = *all[lane];
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i) {
      d[8 * (g + 8 * (i / 2)) + 2 * t + i % 2] = x.d[i];
      for (int j = 0; j < 2; ++j)
        a[16 * (g + 8 * (i % 2)) + 2 * t + 8 * (i / 2) + j] = FromBf16(x.a[i] >> 16 * j & 0xffff);
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        b[8 * (2 * t + 8 * i + j) + g] = FromBf16(x.b[i] >> 16 * j & 0xffff);
  }
  AddProducts(TensorCoreOf(capability), a, b, d, 16, 8, 16);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      all[lane]->d[i] = d[8 * (lane / 4 + 8 * (i / 2)) + 2 * (lane % 4) + i % 2];
}

}  // namespace

uint32_t Shuffle(ShuffleKind kind, uint32_t v, int operand, Site site) {
  if (operand < 0 || operand > 31) Running().Fatal("a shuffle past the warp, " + At(site));
  ShuffleArgs args{kind, v, 0, operand};
  Running().Meet(32, "a shuffle", site, args, [](ShuffleArgs** all, int) {
    for (int i = 0; i < 32; ++i) all[i]->out = all[SourceLane(*all[i], i)]->in;
  });
  return args.out;
}

void SyncWarp(Site site) {
  int none = 0;
  Running().Meet(32, "__syncwarp", site, none,
                 [](int**, int first) { Running().SyncLanes(first, 32); });
}

void Barrier(int id, int threads, bool wait, Site site) {
  Running().Barrier(id, threads, wait, site);
}

void LoadMatrix4(SharedAddr a, uint32_t* r, bool transposed, Site site) {
  LoadMatrixArgs args{a, r, transposed, site};
  Running().Meet(32, "ldmatrix", site, args, [](LoadMatrixArgs** all, int first) {
    ++Running().Count().ldmatrix;
    for (int matrix = 0; matrix < 4; ++matrix) LoadOneMatrix(all, first, matrix);
  });
}

void Mma16x8x16(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Site site) {
  MmaArgs args{d, a, {b0, b1}};
  Running().Meet(32, "mma", site, args, [](MmaArgs** all, int) {
    ++Running().Count().mma;
    MmaAll(all, Running().Capability());
  });
}

}  // namespace latte::emulator
