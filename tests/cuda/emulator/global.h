// Global memory as the emulator sees it: the allocations that kernels may touch, and for every
// byte who wrote it, in which launch. One object lives as long as its device; its lookups are for
// one thread at a time.
//
// It reports
//   accesses outside of every allocation, writes to read-only ones, misaligned ones
//   reads of bytes that nothing has written since the allocation was added (poisoned)
//   two blocks of one launch that write the same bytes; a block that reads bytes that another block
//     of the launch writes, in either order
//   two lanes of one block, one writes and then the other reads or writes, with no order between
//     them. (A lane that reads and another that then writes are not compared.)
// The check is by byte where accesses are of one byte, by two where they are of two, else by word.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/kernels/cuda/words/emulated.h"

namespace latte::emulator {

enum class Content { kWritten, kPoisoned };

// One access of a lane.
struct GlobalAccess {
  const void* at;
  int bytes, alignment;
  int block, lane;
  uint32_t clock;                     // the lane's own
  const std::vector<uint32_t>* seen;  // the clocks of the block's other lanes that it has seen
  Site site;
};

// The rule that an access breaks. A fatal one must not be carried out.
struct GlobalBreach {
  std::string text;  // empty: nothing
  bool fatal = false;
};

class GlobalMemory {
 public:
  // Memory [data, data + bytes), which the caller owns and keeps. It overlaps no other allocation.
  void Add(const void* data, int64_t bytes, Content content = Content::kWritten,
           bool writable = true);
  void Remove(const void* data);

  // The host, or a copy between host and device, has written these bytes.
  void NoteWrite(const void* data, int64_t bytes);
  // From here on these bytes count as never written (memory that is reused).
  void NotePoison(const void* data, int64_t bytes);
  // A copy within the device: what was poisoned stays poisoned at its new place.
  void NoteCopy(const void* to, const void* from, int64_t bytes);
  // The first of these bytes that was never written, as an offset, or −1.
  int64_t FirstUnwritten(const void* data, int64_t bytes) const;
  // Whether the bytes lie in one allocation.
  bool Contains(const void* data, int64_t bytes) const { return Find(data, bytes) != nullptr; }

  // For the emulator. Launches are numbered, so that nothing has to be cleared between them.
  void BeginLaunch() { ++launch_; }
  GlobalBreach Read(const GlobalAccess& access);
  GlobalBreach Write(const GlobalAccess& access);

 private:
  // The history of 1, 2 or 4 bytes. Launch 0: never.
  struct Cell {
    uint32_t write_launch = 0, write_block = 0, write_clock = 0, write_line = 0;
    uint32_t read_launch = 0, read_block = 0;
    uint32_t write_lane = 0;
    bool written = false;
  };
  // Cells are made when they are first needed.
  struct Chunk {
    std::unique_ptr<Cell[]> cells;
    uint8_t granule = 4;   // bytes of a cell
    bool written = false;  // while there are no cells
  };
  struct Allocation {
    const uint8_t* data;
    int64_t bytes;
    bool writable, tracked;
    std::vector<Chunk> chunks;
  };

  Allocation* Find(const void* data, int64_t bytes) const;
  static Chunk& ChunkFor(Allocation& allocation, int64_t offset, int64_t bytes);
  static bool IsWritten(const Allocation& allocation, int64_t offset);
  static int64_t StretchEnd(const Allocation& allocation, int64_t offset);
  void SetWritten(const void* data, int64_t bytes, bool written);
  std::string Outside(const GlobalAccess& access, bool write) const;
  GlobalBreach CheckBounds(const GlobalAccess& access, bool write, Allocation** allocation) const;
  bool IsUnordered(const Cell& cell, const GlobalAccess& access) const;
  std::string ReadCell(Cell& cell, const GlobalAccess& access) const;
  std::string WriteCell(Cell& cell, const GlobalAccess& access) const;

  std::map<uintptr_t, std::unique_ptr<Allocation>> allocations_;
  mutable Allocation* last_ = nullptr;  // the one that was found last
  uint32_t launch_ = 1;
};

}  // namespace latte::emulator
