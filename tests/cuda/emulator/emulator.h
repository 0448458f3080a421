// Runs a kernel written in the words of src/kernels/cuda/words on the host, one fiber per lane, and
// reports every broken rule. It shows numbers, indices and synchronisation; it says nothing about
// time.
//
// Rules (each breach is an error with the source lines of both parties):
//   order       which lane, warp and block is next is random (Options::seed)
//   late        an asynchronous copy lands when its wait returns and no sooner (Options::landing)
//   races       two accesses of one shared word, one of them a write, need a happens-before path:
//               __syncthreads, bar.sync, __syncwarp, mbarrier arrive → wait. Shuffles and matrix
//               instructions order nothing. Vector clocks, after FastTrack (Flanagan, Freund 2009)
//   proxies     wgmma and TMA see ordinary stores only past a fence.proxy.async on that path
//   poison      shared memory starts as NaN; a read of a word that nothing has written is an error
//   global      the rules of global.h
//   convergence all 32 lanes of a warp come to the same warp-wide instruction, on the same line
//   deadlock    is reported with the place where each lane waits
//   left-overs  of a block that ends: copies nobody waited for, half-filled barriers
//   capability  words that the emulated card does not have
//   banks       the 32 banks of shared memory are counted: Counters::bank_conflicts
// docs/kernels/emulator.md says what it cannot show.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/kernels/cuda/words/types.h"
#include "tests/cuda/emulator/global.h"

namespace latte::emulator {

struct Dim3 {
  int x = 1, y = 1, z = 1;
};

// When an asynchronous copy lands between its issue and its wait: all three are legal.
enum class Landing { kLate, kEarly, kRandom };

struct Options {
  uint64_t seed = 1;
  Landing landing = Landing::kLate;
  int capability = 90;      // of the emulated card: 80, 89 or 90
  bool count_banks = true;  // takes a third of the time of kernels that use shared memory

  // These options, changed by the variables LATTE_EMULATOR_SEED (a number), LATTE_EMULATOR_LANDING
  // (late, early, random) and LATTE_EMULATOR_CAPABILITY. Another value ends the program.
  static Options FromEnvironment();
};

struct LaunchInfo {
  std::string name;  // of the kernel, for messages
  Dim3 grid;
  int threads = 32;      // a multiple of 32, at most 1024
  int shared_bytes = 0;  // dynamic shared memory
};

// Counts of executed instructions, of warps and warpgroups unless said otherwise.
struct Counters {
  int64_t mma = 0;             // m16n8k16
  int64_t wgmma_macs = 0;      // multiply-adds of all wgmma
  int64_t ldmatrix = 0;        // x4
  int64_t shared_cycles = 0;   // of the 128-byte port to shared memory, as the banks allow
  int64_t bank_conflicts = 0;  // cycles among them that another layout would have saved
  int64_t barriers = 0;        // block-wide and named, times they completed
  int64_t async_bytes = 0;     // global → shared, by cp.async and TMA
  int64_t global_loads = 0;    // lanes
  int64_t global_stores = 0;   // lanes
  int64_t fiber_switches = 0;
};

struct Report {
  std::vector<std::string> errors;  // the first few, each pair of lines once
  Counters counters;
  double seconds = 0;
};

// Runs `body` as info.threads lanes for each block of the grid, one block after the other. Several
// threads may call it, each with its own memory object. A launch that no card would accept
// (threads, shared memory, grid) is reported and not run.
Report Launch(const LaunchInfo& info, GlobalMemory& memory, const Options& options,
              const std::function<void()>& body);

// A tensor whose boxes TMA copies with the 128-byte swizzle; dimension 0 is contiguous.
struct Tensor {
  const void* data = nullptr;
  int element_bytes = 2;
  int64_t size[3] = {1, 1, 1};   // elements
  int64_t stride_bytes[2] = {};  // of dimensions 1 and 2, multiples of 16
  int box[3] = {1, 1, 1};        // elements; box[0] is 128 bytes, box[1] at most 256, box[2] is 1
};

// What cuTensorMapEncodeTiled does on a machine with a driver.
void EncodeTensorMap(const Tensor& tensor, cuda::TensorMap* map);

}  // namespace latte::emulator
