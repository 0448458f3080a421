// The words of device.cuh as PTX, for sm_80 and later. device.cuh gives their meaning.
#pragma once

#include "src/kernels/cuda/words/types.h"

#define LATTE_KERNEL(threads) __global__ void __launch_bounds__(threads, 1)
#define LATTE_GRID_CONSTANT __grid_constant__
#define LATTE_DEVICE __device__ __forceinline__
#define LATTE_UNROLL _Pragma("unroll")
#define LATTE_NO_UNROLL _Pragma("unroll 1")

namespace latte::cuda {

// ---- where a lane is

LATTE_DEVICE int Thread() { return static_cast<int>(threadIdx.x); }
LATTE_DEVICE int Threads() { return static_cast<int>(blockDim.x); }
LATTE_DEVICE int BlockX() { return static_cast<int>(blockIdx.x); }
LATTE_DEVICE int BlockY() { return static_cast<int>(blockIdx.y); }
LATTE_DEVICE int BlockZ() { return static_cast<int>(blockIdx.z); }
LATTE_DEVICE int GridX() { return static_cast<int>(gridDim.x); }
LATTE_DEVICE int GridY() { return static_cast<int>(gridDim.y); }

LATTE_DEVICE SharedAddr SharedBase() {
  extern __shared__ __align__(1024) unsigned char s_dynamic[];
  return static_cast<SharedAddr>(__cvta_generic_to_shared(s_dynamic));
}

// ---- arithmetic

LATTE_DEVICE float Fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
LATTE_DEVICE float Add(float a, float b) { return __fadd_rn(a, b); }
LATTE_DEVICE float Sub(float a, float b) { return __fsub_rn(a, b); }
LATTE_DEVICE float Mul(float a, float b) { return __fmul_rn(a, b); }
LATTE_DEVICE float Div(float a, float b) { return __fdiv_rn(a, b); }
LATTE_DEVICE float Sqrt(float a) { return __fsqrt_rn(a); }
LATTE_DEVICE float Max(float a, float b) { return fmaxf(a, b); }
LATTE_DEVICE float Min(float a, float b) { return fminf(a, b); }
LATTE_DEVICE uint32_t FloatBits(float x) { return __float_as_uint(x); }
LATTE_DEVICE float BitsFloat(uint32_t u) { return __uint_as_float(u); }

LATTE_DEVICE float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

LATTE_DEVICE float Log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

LATTE_DEVICE uint32_t PackBf16(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// ---- order and visibility

LATTE_DEVICE void SyncThreads() { __syncthreads(); }
LATTE_DEVICE void SyncWarp() { __syncwarp(); }

LATTE_DEVICE void BarrierSync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

LATTE_DEVICE void BarrierArrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- between the lanes of a warp

constexpr uint32_t kWholeWarp = 0xffffffffu;

LATTE_DEVICE float ShuffleXor(float v, int mask) { return __shfl_xor_sync(kWholeWarp, v, mask); }
LATTE_DEVICE int32_t ShuffleXor(int32_t v, int mask) {
  return __shfl_xor_sync(kWholeWarp, v, mask);
}

LATTE_DEVICE float ShuffleDown(float v, int lanes) {
  return __shfl_down_sync(kWholeWarp, v, static_cast<unsigned>(lanes));
}
LATTE_DEVICE int32_t ShuffleDown(int32_t v, int lanes) {
  return __shfl_down_sync(kWholeWarp, v, static_cast<unsigned>(lanes));
}

LATTE_DEVICE float Broadcast(float v, int lane) { return __shfl_sync(kWholeWarp, v, lane); }
LATTE_DEVICE int32_t Broadcast(int32_t v, int lane) { return __shfl_sync(kWholeWarp, v, lane); }

// ---- memory

template <class T>
LATTE_DEVICE T LoadGlobal(const T* p) {
  return *p;
}

template <class T>
struct Same {
  using Type = T;
};

template <class T>
LATTE_DEVICE void StoreGlobal(T* p, const typename Same<T>::Type& v) {
  *p = v;
}

template <class T>
LATTE_DEVICE T LoadShared(SharedAddr a) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  uint32_t w[sizeof(T) / 4];
  if constexpr (sizeof(T) == 4)
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(w[0]) : "r"(a) : "memory");
  else if constexpr (sizeof(T) == 8)
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "r"(a) : "memory");
  else
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(a)
                 : "memory");
  T v;
  memcpy(&v, w, sizeof(T));
  return v;
}

LATTE_DEVICE float LoadSharedFloat(SharedAddr a) { return LoadShared<float>(a); }

template <class T>
LATTE_DEVICE void StoreShared(SharedAddr a, const T& v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  uint32_t w[sizeof(T) / 4];
  memcpy(w, &v, sizeof(T));
  if constexpr (sizeof(T) == 4)
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(a), "r"(w[0]) : "memory");
  else if constexpr (sizeof(T) == 8)
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(a), "r"(w[0]), "r"(w[1]) : "memory");
  else
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(a), "r"(w[0]), "r"(w[1]),
                 "r"(w[2]), "r"(w[3])
                 : "memory");
}

LATTE_DEVICE void CopyAsync16(SharedAddr to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
}

LATTE_DEVICE void CopyAsyncCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kGroups>
LATTE_DEVICE void CopyAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

// ---- matrices and the tensor core of a warp

LATTE_DEVICE void LoadMatrix4(SharedAddr a, uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(a)
               : "memory");
}

LATTE_DEVICE void LoadMatrix4Transposed(SharedAddr a, uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(a)
               : "memory");
}

LATTE_DEVICE void Mma16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace latte::cuda
