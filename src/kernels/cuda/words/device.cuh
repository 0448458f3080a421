// The whole vocabulary that a kernel may use. One kernel source has two readings:
//
//   nvcc   sm80_ptx.cuh, sm90_ptx.cuh   each word is one PTX instruction (or a few)
//   g++    emulated.h                   each word is emulated, lane by lane (tests/cuda/emulator)
//
// A kernel body is `LATTE_DEVICE void Name(const NameParams& p)`. It names no CUDA built-in,
// dereferences no pointer to shared or global memory and declares no __shared__ array: the emulator
// cannot check what a kernel does not say in these words. Entry points are made from a list of all
// kernels with LATTE_KERNEL and LATTE_GRID_CONSTANT, which only nvcc's reading has.
//
// The words. "Warp" means that all 32 lanes of a warp say the word on the same line; "group" the
// same of the 128 lanes of a warpgroup. Sources: [PTX] "PTX ISA" 9.0, by instruction; [C] "CUDA C++
// Programming Guide" 13.0, by function.
//
// Where a lane is
//   Thread() Threads()             threadIdx.x, blockDim.x [C]; blocks have one dimension
//   BlockX() BlockY() BlockZ()     blockIdx [C]
//   GridX() GridY()                gridDim [C]
//   SharedBase()                   first byte of the block's dynamic shared memory, aligned to 1024
// Arithmetic; "exact" words give the same bits in both readings
//   Fma(a, b, c)                   a·b + c, rounded once; exact [C: fmaf]
//   Add(a, b) Sub(a, b) Mul(a, b)  rounded to nearest; exact. nvcc may contract a·b + c when it is
//                                  written with operators, but not these words [C: __fadd_rn …]
//   Div(a, b) Sqrt(a)              rounded to nearest; exact [C: __fdiv_rn, __fsqrt_rn]
//   Max(a, b) Min(a, b)            a NaN loses against a number [C: fmaxf, fminf]; exact
//   FloatBits(x) BitsFloat(u)      the bits of a float as an integer, and back; exact
//   Exp2(x) Log2(x)                within 2 ulp; subnormals count as zero [PTX: ex2.approx.ftz,
//                                  lg2.approx.ftz]. NOT exact: the emulator takes libm's
//   PackBf16(low, high)            two floats rounded to nearest-even bf16, `low` in bits 0…15; a
//                                  NaN becomes 0x7fff; exact [PTX: cvt.rn.bf16x2.f32]
// Order and visibility among the lanes of a block
//   SyncThreads()                  all lanes of the block [C: __syncthreads]
//   SyncWarp()                     warp [C: __syncwarp]
//   BarrierSync(id, n)             waits until n lanes have come to barrier id, 0…15; n % 32 == 0
//   BarrierArrive(id, n)           counts as come and does not wait [PTX: bar.sync, bar.arrive]
// Between the lanes of a warp; the values do not pass through memory and order nothing
//   ShuffleXor(v, mask)            warp: v of lane (own ^ mask); float or int [C: __shfl_xor_sync]
//   ShuffleDown(v, n)              warp: v of lane (own + n), past 31 the own [C: __shfl_down_sync]
//   Broadcast(v, lane)             warp: v of that lane [C: __shfl_sync]
// Memory. T is trivially copyable
//   LoadGlobal(p) StoreGlobal(p, v)  1, 2, 4, 8 or 16 bytes, p aligned to alignof(T)
//   LoadShared<T>(a) StoreShared(a, v)  4, 8 or 16 bytes, a aligned to sizeof(T) [PTX: ld.shared,
//                                  st.shared]; LoadSharedFloat(a) is LoadShared<float>(a)
//   CopyAsync16(to, from, valid)   starts a copy of 16 bytes from global to shared memory; with
//                                  valid = false the 16 bytes become zero and `from` is not read
//   CopyAsyncCommit()              closes the lane's group of copies
//   CopyAsyncWait<n>()             waits until at most n of the lane's newest groups are under way;
//                                  other lanes see the bytes past a barrier [PTX: cp.async]
// Matrices of 8×8 bf16 and the tensor core of a warp
//   LoadMatrix4(a, r)              warp: lane l passes the address of row l%8 of matrix l/8; of
//                                  matrix j it receives elements (l/4, 2(l%4)) and the next in r[j]
//   LoadMatrix4Transposed(a, r)    warp: it receives (2(l%4), l/4) and (2(l%4)+1, l/4)
//                                  [PTX: ldmatrix.m8n8.x4, .trans]
//   Mma16x8x16(d, a, b0, b1)       warp: d[16×8] += a[16×16] · b[16×8], bf16 with f32 sums. With
//                                  g = lane/4 and t = lane%4, a lane holds of
//                                    a  (g, 2t…2t+1) (g+8, 2t…) (g, 2t+8…) (g+8, 2t+8…)
//                                    b  (2t…2t+1, g) (2t+8…, g)       d  (g, 2t…) (g+8, 2t…)
//                                  [PTX: mma.sync.m16n8k16]
//
// Words of sm_90a only
//   GiveRegisters<n>() TakeRegisters<n>()  group: n registers a lane from here [PTX: setmaxnreg]
//   MbarrierInit(b, n)             8 bytes of shared memory that count n arrivals a phase
//   FenceMbarrierInit()            after the last MbarrierInit, before the SyncThreads that shows
//                                  the barriers to the others [PTX: fence.mbarrier_init]
//   MbarrierArrive(b)              one arrival
//   MbarrierArriveExpect(b, n)     one arrival, and the phase waits for n bytes by TMA
//   MbarrierWait(b, parity)        waits until the phase of this parity is over; the first phase
//                                  has parity 0, and of a new barrier parity 1 counts as over [PTX:
//                                  mbarrier.init, .arrive, .arrive.expect_tx, .try_wait]
//   TmaLoad(to, map, b, x, y, z)   one lane: starts the copy of the map's box at element (x, y, z);
//                                  its bytes count for b [PTX: cp.async.bulk.tensor.3d]
//   FenceProxyAsync()              the lane's stores, and stores that it has seen, become visible
//                                  to wgmma and TMA [PTX: fence.proxy.async.shared::cta]
//   MatrixDescriptor(a, next, across)  where wgmma finds a matrix: tiles of 8 × 128 bytes with the
//                                  128-byte swizzle, `next` bytes apart along the contiguous
//                                  dimension, `across` bytes along the other; a K-major operand of
//                                  one 128-byte line ignores `next` [PTX: wgmma matrix descriptor]
//   Launder(a)                     a, hidden from the optimiser: ptxas otherwise hoists 64-bit
//                                  descriptors out of loops and spills
//   WgmmaFence() WgmmaCommit()     group: before the first wgmma; closes the group of wgmmas
//   WgmmaWait<n>(d)                group: until at most n groups are under way; d is one that ended
//   Wgmma64x64<add>(d, a, b)       group: d[64×64] (+)= a[64×16] · b[64×16]ᵀ, both K-major
//   Wgmma64x256(d, a, b)           group: d[64×256] += a[64×16] · b[16×256]; a by descriptor
//                                  (K-major) or in registers (as Mma16x8x16's a, 16 rows a warp), b
//                                  MN-major. Lane t holds in d[i] row 16(t/32) + t%32/4 + 8(i/2%2),
//                                  column 8(i/4) + 2(t%4) + i%2 [PTX: wgmma.mma_async]
#pragma once

#include "src/kernels/cuda/words/types.h"

#ifdef __CUDACC__
#include "src/kernels/cuda/words/sm80_ptx.cuh"
#include "src/kernels/cuda/words/sm90_ptx.cuh"
#else
#include "src/kernels/cuda/words/emulated.h"
#endif
