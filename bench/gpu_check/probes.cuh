// Small kernels that use the words of src/kernels/cuda/words on known numbers. On a GPU they must
// write the bits that they write in the emulator.
#pragma once

#include "bench/gpu_check/probes.h"
#include "src/kernels/cuda/common/math.cuh"
#include "src/kernels/cuda/common/sin_cos.cuh"
#include "src/kernels/cuda/words/device.cuh"

namespace latte::cuda {

// Lane i writes word `slot` of its row.
LATTE_DEVICE void Put(const ProbeParams& p, int slot, uint32_t value) {
  StoreGlobal(p.out + Thread() * kProbeWords + slot, value);
}
LATTE_DEVICE void Put(const ProbeParams& p, int slot, float value) {
  Put(p, slot, FloatBits(value));
}

LATTE_DEVICE void ProbeArithmetic(const ProbeParams& p) {
  const float a = LoadGlobal(p.in + Thread()), b = LoadGlobal(p.in + (Thread() + 37) % kProbeLanes);
  Put(p, 0, Fma(a, b, 1.0f));
  Put(p, 1, Add(a, b));
  Put(p, 2, Sub(a, b));
  Put(p, 3, Mul(a, b));
  Put(p, 4, Div(a, b));
  Put(p, 5, Sqrt(Mul(a, a)));
  Put(p, 6, Max(a, b));
  Put(p, 7, Min(a, b));
  Put(p, 8, PackBf16(a, b));
  Put(p, 9, Exp(a));
  Put(p, 10, Log(Add(Mul(b, b), 0.5f)));
  double sine, cosine;
  SinCos(static_cast<double>(Mul(a, 1000.0f)), &sine, &cosine);
  Put(p, 11, static_cast<float>(sine));
  Put(p, 12, static_cast<float>(cosine));
}

LATTE_DEVICE void ProbeShuffles(const ProbeParams& p) {
  const float a = LoadGlobal(p.in + Thread());
  Put(p, 0, ShuffleXor(a, 5));
  Put(p, 1, ShuffleDown(a, 3));
  Put(p, 2, Broadcast(a, 7));
  Put(p, 3, static_cast<uint32_t>(ShuffleXor(Thread(), 16)));
  Put(p, 4, static_cast<uint32_t>(ShuffleDown(Thread(), 31)));
  Put(p, 5, static_cast<uint32_t>(Broadcast(Thread(), 31)));
}

// Through shared memory: stores, copies by cp.async, and barriers.
LATTE_DEVICE void ProbeShared(const ProbeParams& p) {
  const SharedAddr own = SharedBase() + 16 * static_cast<SharedAddr>(Thread());
  const SharedAddr other =
      SharedBase() + 16 * static_cast<SharedAddr>((Thread() + 41) % kProbeLanes);
  const float a = LoadGlobal(p.in + Thread());
  StoreShared(own, Floats4{a, Add(a, 1.0f), Add(a, 2.0f), Add(a, 3.0f)});
  SyncThreads();
  const Floats4 four = LoadShared<Floats4>(other);
  Put(p, 0, four.x);
  Put(p, 1, four.w);
  Put(p, 2, LoadShared<Floats2>(other + 8).x);
  SyncThreads();
  // Lanes from 32 on copy nothing: their bytes become zero.
  CopyAsync16(own, p.in + Thread() % 32 * 4, Thread() < 32);
  CopyAsyncCommit();
  CopyAsyncWait<0>();
  SyncThreads();
  Put(p, 3, LoadShared<float>(other + 4));
  BarrierSync(1, kProbeLanes);
  StoreShared(own, static_cast<int32_t>(Thread()));
  SyncWarp();
  Put(p, 4,
      static_cast<uint32_t>(
          LoadShared<int32_t>(SharedBase() + 16 * static_cast<SharedAddr>(Thread() ^ 1))));
}

// The tensor core of a warp: both ways to load its operands, and the order of its sums.
LATTE_DEVICE void ProbeMatrix(const ProbeParams& p) {
  const int lane = Thread() % 32, warp = Thread() / 32;
  const SharedAddr base = SharedBase() + 512 * static_cast<SharedAddr>(warp);
  const float a = LoadGlobal(p.in + Thread());
  // 8 bf16 for each lane: four matrices of 8 × 8.
  StoreShared(base + 16 * static_cast<SharedAddr>(lane),
              Words4{{PackBf16(a, Mul(a, -0.7f)), PackBf16(Mul(a, 3.1f), Mul(a, 0.01f)),
                      PackBf16(Mul(a, 100.0f), Mul(a, -9.0f)), PackBf16(Mul(a, 1.9f), a)}});
  SyncThreads();
  uint32_t rows[4], columns[4];
  LoadMatrix4(base + 16 * static_cast<SharedAddr>(lane), rows);
  LoadMatrix4Transposed(base + 16 * static_cast<SharedAddr>(lane), columns);
  float sums[4] = {a, -a, Mul(a, 0.5f), 1.0f};
  Mma16x8x16(sums, rows, columns[0], columns[1]);
  Mma16x8x16(sums, columns, rows[2], rows[3]);
  LATTE_UNROLL
  for (int i = 0; i < 4; ++i) {
    Put(p, i, rows[i]);
    Put(p, 4 + i, columns[i]);
    Put(p, 8 + i, sums[i]);
  }
}

}  // namespace latte::cuda
