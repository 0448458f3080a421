// The words of device.cuh for g++: calls of the emulator in tests/cuda/emulator, which checks them.
// Every word passes the place where it was written (Site), so that a report can name both lines of
// a race. device.cuh gives the meaning of the words. Compile with -ffp-contract=off: the exact
// words need it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/kernels/cuda/words/types.h"

#define LATTE_DEVICE inline
#define LATTE_UNROLL
#define LATTE_NO_UNROLL

namespace latte::emulator {

// A place in a source; as a default argument, the place of the call. (std::source_location needs
// clang 15.)
struct Site {
  const char* file = "";
  int line = 0;
  static constexpr Site current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

using cuda::SharedAddr;

// Where SharedBase() is.
inline constexpr SharedAddr kSharedBegin = 1024;

// All of the following act for the running lane.
struct Place {
  int thread, threads;
  int block[3], grid[3];
};
const Place& Here();

enum class ShuffleKind { kXor, kDown, kBroadcast };
uint32_t Shuffle(ShuffleKind kind, uint32_t v, int operand, Site site);
void SyncWarp(Site site);
void Barrier(int id, int threads, bool wait, Site site);  // threads 0: the whole block
void ReadShared(SharedAddr a, void* to, int bytes, Site site);
void WriteShared(SharedAddr a, const void* from, int bytes, Site site);
void ReadGlobal(const void* from, void* to, int bytes, int alignment, Site site);
void WriteGlobal(void* to, const void* from, int bytes, int alignment, Site site);
void CopyAsync(SharedAddr to, const void* from, int bytes, int valid_bytes, Site site);
void CopyAsyncCommit();
void CopyAsyncWait(int groups, Site site);
void LoadMatrix4(SharedAddr a, uint32_t* r, bool transposed, Site site);
void Mma16x8x16(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Site site);

void SetRegisters(int count, Site site);
void MbarrierInit(SharedAddr barrier, int arrivals, Site site);
void MbarrierArrive(SharedAddr barrier, int bytes, Site site);
void MbarrierWait(SharedAddr barrier, int parity, Site site);
void TmaLoad(SharedAddr to, const cuda::TensorMap& map, SharedAddr barrier, int x, int y, int z,
             Site site);
void FenceProxyAsync();
void WgmmaFence(Site site);
void WgmmaCommit(Site site);
void WgmmaWait(int groups, const float* d, Site site);
// d[64×n] (+)= a · b; `a` is a descriptor or, where null, the registers `a_regs`.
void Wgmma(float* d, int n, bool add, const uint64_t* a, const uint32_t* a_regs, uint64_t b,
           bool mn_major, Site site);

}  // namespace latte::emulator

namespace latte::cuda {

using emulator::Site;

// ---- where a lane is

inline int Thread() { return emulator::Here().thread; }
inline int Threads() { return emulator::Here().threads; }
inline int BlockX() { return emulator::Here().block[0]; }
inline int BlockY() { return emulator::Here().block[1]; }
inline int BlockZ() { return emulator::Here().block[2]; }
inline int GridX() { return emulator::Here().grid[0]; }
inline int GridY() { return emulator::Here().grid[1]; }
inline SharedAddr SharedBase() { return emulator::kSharedBegin; }

// ---- arithmetic

inline float Fma(float a, float b, float c) { return std::fmaf(a, b, c); }
inline float Add(float a, float b) { return a + b; }
inline float Sub(float a, float b) { return a - b; }
inline float Mul(float a, float b) { return a * b; }
inline float Div(float a, float b) { return a / b; }
inline float Sqrt(float a) { return std::sqrt(a); }
inline float Max(float a, float b) { return std::fmax(a, b); }
inline float Min(float a, float b) { return std::fmin(a, b); }
inline uint32_t FloatBits(float x) { return std::bit_cast<uint32_t>(x); }
inline float BitsFloat(uint32_t u) { return std::bit_cast<float>(u); }
inline float Exp2(float x) { return std::exp2(x); }
inline float Log2(float x) { return std::log2(x); }

inline uint32_t PackBf16(float low, float high) {
  const auto round = [](float x) {
    const uint32_t u = FloatBits(x);
    return x != x ? 0x7fffu : (u + 0x7fff + (u >> 16 & 1)) >> 16;
  };
  return round(low) | round(high) << 16;
}

// ---- order and visibility

inline void SyncThreads(Site site = Site::current()) { emulator::Barrier(0, 0, true, site); }
inline void SyncWarp(Site site = Site::current()) { emulator::SyncWarp(site); }

inline void BarrierSync(int id, int threads, Site site = Site::current()) {
  emulator::Barrier(id, threads, true, site);
}

inline void BarrierArrive(int id, int threads, Site site = Site::current()) {
  emulator::Barrier(id, threads, false, site);
}

// ---- between the lanes of a warp

inline float ShuffleXor(float v, int mask, Site site = Site::current()) {
  return BitsFloat(emulator::Shuffle(emulator::ShuffleKind::kXor, FloatBits(v), mask, site));
}

inline int32_t ShuffleXor(int32_t v, int mask, Site site = Site::current()) {
  return static_cast<int32_t>(
      emulator::Shuffle(emulator::ShuffleKind::kXor, static_cast<uint32_t>(v), mask, site));
}

inline float ShuffleDown(float v, int lanes, Site site = Site::current()) {
  return BitsFloat(emulator::Shuffle(emulator::ShuffleKind::kDown, FloatBits(v), lanes, site));
}

inline int32_t ShuffleDown(int32_t v, int lanes, Site site = Site::current()) {
  return static_cast<int32_t>(
      emulator::Shuffle(emulator::ShuffleKind::kDown, static_cast<uint32_t>(v), lanes, site));
}

inline float Broadcast(float v, int lane, Site site = Site::current()) {
  return BitsFloat(emulator::Shuffle(emulator::ShuffleKind::kBroadcast, FloatBits(v), lane, site));
}

inline int32_t Broadcast(int32_t v, int lane, Site site = Site::current()) {
  return static_cast<int32_t>(
      emulator::Shuffle(emulator::ShuffleKind::kBroadcast, static_cast<uint32_t>(v), lane, site));
}

// ---- memory

template <class T>
T LoadGlobal(const T* p, Site site = Site::current()) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16 &&
                std::has_single_bit(sizeof(T)));
  T v;
  emulator::ReadGlobal(p, &v, sizeof(T), alignof(T), site);
  return v;
}

template <class T>
void StoreGlobal(T* p, const std::type_identity_t<T>& v, Site site = Site::current()) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16 &&
                std::has_single_bit(sizeof(T)));
  emulator::WriteGlobal(p, &v, sizeof(T), alignof(T), site);
}

template <class T>
T LoadShared(SharedAddr a, Site site = Site::current()) {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  T v;
  emulator::ReadShared(a, &v, sizeof(T), site);
  return v;
}

inline float LoadSharedFloat(SharedAddr a, Site site = Site::current()) {
  return LoadShared<float>(a, site);
}

template <class T>
void StoreShared(SharedAddr a, const T& v, Site site = Site::current()) {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  emulator::WriteShared(a, &v, sizeof(T), site);
}

inline void CopyAsync16(SharedAddr to, const void* from, bool valid, Site site = Site::current()) {
  emulator::CopyAsync(to, from, 16, valid ? 16 : 0, site);
}

inline void CopyAsyncCommit() { emulator::CopyAsyncCommit(); }

template <int kGroups>
void CopyAsyncWait(Site site = Site::current()) {
  emulator::CopyAsyncWait(kGroups, site);
}

// ---- matrices and the tensor core of a warp

inline void LoadMatrix4(SharedAddr a, uint32_t (&r)[4], Site site = Site::current()) {
  emulator::LoadMatrix4(a, r, false, site);
}

inline void LoadMatrix4Transposed(SharedAddr a, uint32_t (&r)[4], Site site = Site::current()) {
  emulator::LoadMatrix4(a, r, true, site);
}

inline void Mma16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                       Site site = Site::current()) {
  emulator::Mma16x8x16(d, a, b0, b1, site);
}

// ---- sm_90a

template <int kCount>
void GiveRegisters(Site site = Site::current()) {
  emulator::SetRegisters(kCount, site);
}

template <int kCount>
void TakeRegisters(Site site = Site::current()) {
  emulator::SetRegisters(kCount, site);
}

inline void MbarrierInit(SharedAddr barrier, int arrivals, Site site = Site::current()) {
  emulator::MbarrierInit(barrier, arrivals, site);
}

inline void FenceMbarrierInit() {}

inline void MbarrierArrive(SharedAddr barrier, Site site = Site::current()) {
  emulator::MbarrierArrive(barrier, 0, site);
}

inline void MbarrierArriveExpect(SharedAddr barrier, int bytes, Site site = Site::current()) {
  emulator::MbarrierArrive(barrier, bytes, site);
}

inline void MbarrierWait(SharedAddr barrier, int parity, Site site = Site::current()) {
  emulator::MbarrierWait(barrier, parity, site);
}

inline void TmaLoad(SharedAddr to, const TensorMap* map, SharedAddr barrier, int x, int y, int z,
                    Site site = Site::current()) {
  emulator::TmaLoad(to, *map, barrier, x, y, z, site);
}

inline void FenceProxyAsync() { emulator::FenceProxyAsync(); }

// Bits as the hardware has them, so that the emulator reads what the hardware would.
inline uint64_t MatrixDescriptor(SharedAddr a, int next, int across) {
  return uint64_t{a >> 4 & 0x3fff} | static_cast<uint64_t>(next >> 4) << 16 |
         static_cast<uint64_t>(across >> 4) << 32 | uint64_t{1} << 62;
}

inline SharedAddr Launder(SharedAddr a) { return a; }

inline void WgmmaFence(Site site = Site::current()) { emulator::WgmmaFence(site); }
inline void WgmmaCommit(Site site = Site::current()) { emulator::WgmmaCommit(site); }

template <int kGroups, int kCount>
void WgmmaWait(float (&d)[kCount], Site site = Site::current()) {
  emulator::WgmmaWait(kGroups, d, site);
}

template <bool kAdd>
void Wgmma64x64(float (&d)[32], uint64_t a, uint64_t b, Site site = Site::current()) {
  emulator::Wgmma(d, 64, kAdd, &a, nullptr, b, false, site);
}

inline void Wgmma64x256(float (&d)[128], const uint32_t (&a)[4], uint64_t b,
                        Site site = Site::current()) {
  emulator::Wgmma(d, 256, true, nullptr, a, b, true, site);
}

inline void Wgmma64x256(float (&d)[128], uint64_t a, uint64_t b, Site site = Site::current()) {
  emulator::Wgmma(d, 256, true, &a, nullptr, b, true, site);
}

}  // namespace latte::cuda
