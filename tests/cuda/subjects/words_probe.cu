// Says every word that runs on sm_80, so that tools/check_sass.py compiles each of them.
#include "src/kernels/cuda/words/device.cuh"

namespace latte::cuda {

struct WordsProbeParams {
  const float* floats;
  const uint8_t* bytes;
  const uint16_t* halves;
  const Words4* words;
  float* out;
  int32_t number;
};

LATTE_DEVICE float Arithmetic(float v) {
  const float x = Fma(v, Div(v, Sqrt(v)), Mul(v, Add(v, Sub(v, 1.0f))));
  return Max(Exp2(x), Min(Log2(v), BitsFloat(FloatBits(x) ^ PackBf16(x, v))));
}

LATTE_DEVICE float Shuffles(float v, int32_t n) {
  const float a = ShuffleXor(v, 1) + ShuffleDown(v, 2) + Broadcast(v, 3);
  return a + static_cast<float>(ShuffleXor(n, 1) + ShuffleDown(n, 2) + Broadcast(n, 3));
}

LATTE_DEVICE float ThroughShared(const WordsProbeParams& p) {
  const SharedAddr s = SharedBase() + 16 * static_cast<SharedAddr>(Thread());
  StoreShared(s, LoadGlobal(p.words + Thread()));
  SyncThreads();
  StoreShared(s + 4, LoadShared<Floats2>(s).y);
  SyncWarp();
  StoreShared(s + 8, LoadShared<Floats2>(s));
  BarrierArrive(1, 128);
  BarrierSync(2, 128);
  return LoadShared<Floats4>(s).z + LoadSharedFloat(s);
}

extern "C" LATTE_KERNEL(128) words_probe(const LATTE_GRID_CONSTANT WordsProbeParams p) {
  const int place = BlockX() + GridX() * (BlockY() + GridY() * BlockZ());
  const int i = Thread() + Threads() * place;
  float v = Arithmetic(LoadGlobal(p.floats + i)) + ThroughShared(p) +
            Shuffles(LoadGlobal(p.floats), p.number);
  v += static_cast<float>(LoadGlobal(p.bytes + i) + LoadGlobal(p.halves + i));
  StoreGlobal(p.out + i, v);
}

}  // namespace latte::cuda
