#include "tests/cuda/emulator/global.h"

#include <algorithm>

#include "tests/cuda/emulator/site.h"

namespace latte::emulator {
namespace {

constexpr int64_t kChunkBytes = 4096;
constexpr uint32_t kSeveral = 0xffffffffu;  // blocks have read it

uintptr_t Number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// The largest of 4, 2, 1 that divides both.
uint8_t GranuleOf(int64_t offset, int64_t bytes) {
  const int64_t both = offset | bytes;
  return both % 4 == 0 ? 4 : both % 2 == 0 ? 2 : 1;
}

std::string Name(uint32_t block) {
  return block == kSeveral ? "other blocks" : "block " + std::to_string(block);
}

}  // namespace

void GlobalMemory::Add(const void* data, int64_t bytes, Content content, bool writable) {
  auto allocation = std::make_unique<Allocation>();
  allocation->data = static_cast<const uint8_t*>(data);
  allocation->bytes = bytes;
  allocation->writable = writable;
  allocation->tracked = writable || content == Content::kPoisoned;
  if (allocation->tracked) {
    allocation->chunks.resize(static_cast<size_t>((bytes + kChunkBytes - 1) / kChunkBytes));
    for (Chunk& chunk : allocation->chunks) chunk.written = content == Content::kWritten;
  }
  allocations_[Number(data)] = std::move(allocation);
  last_ = nullptr;
}

void GlobalMemory::Remove(const void* data) {
  allocations_.erase(Number(data));
  last_ = nullptr;
}

GlobalMemory::Allocation* GlobalMemory::Find(const void* data, int64_t bytes) const {
  const auto* at = static_cast<const uint8_t*>(data);
  const auto inside = [&](const Allocation& a) {
    return at >= a.data && bytes <= a.bytes && at - a.data <= a.bytes - bytes;
  };
  if (last_ != nullptr && inside(*last_)) return last_;
  auto next = allocations_.upper_bound(Number(data));
  if (next == allocations_.begin()) return nullptr;
  Allocation* found = std::prev(next)->second.get();
  if (!inside(*found)) return nullptr;
  return last_ = found;
}

// The chunk of an offset, with cells small enough for an access of `bytes` there.
GlobalMemory::Chunk& GlobalMemory::ChunkFor(Allocation& allocation, int64_t offset, int64_t bytes) {
  Chunk& chunk = allocation.chunks[static_cast<size_t>(offset / kChunkBytes)];
  const uint8_t needed = GranuleOf(offset, bytes);
  if (chunk.cells != nullptr && chunk.granule <= needed) return chunk;
  const size_t count = static_cast<size_t>(kChunkBytes / needed);
  auto cells = std::make_unique<Cell[]>(count);
  for (size_t i = 0; i < count; ++i) {
    if (chunk.cells != nullptr)
      cells[i] = chunk.cells[i * needed / chunk.granule];
    else
      cells[i].written = chunk.written;
  }
  chunk.cells = std::move(cells);
  chunk.granule = needed;
  return chunk;
}

bool GlobalMemory::IsWritten(const Allocation& allocation, int64_t offset) {
  if (!allocation.tracked) return true;
  const Chunk& chunk = allocation.chunks[static_cast<size_t>(offset / kChunkBytes)];
  if (chunk.cells == nullptr) return chunk.written;
  return chunk.cells[static_cast<size_t>(offset % kChunkBytes / chunk.granule)].written;
}

// The first offset after this one whose state may differ.
int64_t GlobalMemory::StretchEnd(const Allocation& allocation, int64_t offset) {
  if (!allocation.tracked) return allocation.bytes;
  const Chunk& chunk = allocation.chunks[static_cast<size_t>(offset / kChunkBytes)];
  const int64_t step = chunk.cells == nullptr ? kChunkBytes : chunk.granule;
  return offset / step * step + step;
}

void GlobalMemory::SetWritten(const void* data, int64_t bytes, bool written) {
  Allocation* allocation = Find(data, bytes);
  if (allocation == nullptr || !allocation->tracked) return;
  const int64_t begin = static_cast<const uint8_t*>(data) - allocation->data;
  for (int64_t at = begin; at < begin + bytes;) {
    const int64_t chunk_begin = at / kChunkBytes * kChunkBytes;
    const int64_t end = std::min(begin + bytes, chunk_begin + kChunkBytes);
    const int64_t chunk_end = std::min(chunk_begin + kChunkBytes, allocation->bytes);
    if (at == chunk_begin && end == chunk_end) {
      Chunk& whole = allocation->chunks[static_cast<size_t>(at / kChunkBytes)];
      whole = Chunk{};
      whole.written = written;
    } else {
      Chunk& chunk = ChunkFor(*allocation, at, end - at);
      for (int64_t i = at; i < end; i += chunk.granule) {
        Cell& cell = chunk.cells[static_cast<size_t>(i % kChunkBytes / chunk.granule)];
        cell = Cell{};
        cell.written = written;
      }
    }
    at = end;
  }
}

void GlobalMemory::NoteWrite(const void* data, int64_t bytes) { SetWritten(data, bytes, true); }

void GlobalMemory::NotePoison(const void* data, int64_t bytes) { SetWritten(data, bytes, false); }

void GlobalMemory::NoteCopy(const void* to, const void* from, int64_t bytes) {
  const auto* source = static_cast<const uint8_t*>(from);
  const auto* target = static_cast<const uint8_t*>(to);
  const Allocation* allocation = Find(from, bytes);
  if (allocation == nullptr) return NoteWrite(to, bytes);
  const int64_t begin = source - allocation->data;
  for (int64_t at = 0; at < bytes;) {
    const bool written = IsWritten(*allocation, begin + at);
    const int64_t end = std::min(bytes, StretchEnd(*allocation, begin + at) - begin);
    SetWritten(target + at, end - at, written);
    at = end;
  }
}

int64_t GlobalMemory::FirstUnwritten(const void* data, int64_t bytes) const {
  const Allocation* allocation = Find(data, bytes);
  if (allocation == nullptr) return 0;
  const int64_t begin = static_cast<const uint8_t*>(data) - allocation->data;
  for (int64_t at = 0; at < bytes; at = StretchEnd(*allocation, begin + at) - begin)
    if (!IsWritten(*allocation, begin + at)) return at;
  return -1;
}

// Says where an access lies that is in no allocation.
std::string GlobalMemory::Outside(const GlobalAccess& access, bool write) const {
  std::string text = std::string("global ") + (write ? "write" : "read") + " of " +
                     std::to_string(access.bytes) + " bytes, " + At(access.site);
  const auto next = allocations_.upper_bound(Number(access.at));
  if (next == allocations_.begin()) return text + ", before every allocation";
  const Allocation& before = *std::prev(next)->second;
  return text + ", outside of every allocation: at byte " +
         std::to_string(static_cast<const uint8_t*>(access.at) - before.data) + " of one of " +
         std::to_string(before.bytes);
}

GlobalBreach GlobalMemory::CheckBounds(const GlobalAccess& access, bool write,
                                       Allocation** allocation) const {
  if (Number(access.at) % static_cast<uintptr_t>(access.alignment) != 0)
    return {"misaligned global address, " + At(access.site), true};
  *allocation = Find(access.at, access.bytes);
  if (*allocation == nullptr) return {Outside(access, write), true};
  if (write && !(*allocation)->writable)
    return {"write to a read-only allocation, " + At(access.site), true};
  return {};
}

// Whether another lane of the block wrote the cell, and the lane has not seen that.
bool GlobalMemory::IsUnordered(const Cell& cell, const GlobalAccess& access) const {
  return cell.write_launch == launch_ && cell.write_lane != static_cast<uint32_t>(access.lane) &&
         (*access.seen)[cell.write_lane] < cell.write_clock;
}

std::string GlobalMemory::ReadCell(Cell& cell, const GlobalAccess& access) const {
  const auto block = static_cast<uint32_t>(access.block);
  std::string breach;
  if (!cell.written) {
    breach = "read of global memory never written, " + At(access.site);
  } else if (cell.write_launch == launch_ && cell.write_block != block) {
    breach = "read, " + At(access.site) + ", of global memory that " + Name(cell.write_block) +
             " of the same launch has written, line " + std::to_string(cell.write_line);
  } else if (IsUnordered(cell, access)) {
    breach = "race: read of global memory, " + At(access.site) +
             ", not ordered after the write of lane " + std::to_string(cell.write_lane) +
             ", line " + std::to_string(cell.write_line);
  }
  const bool others = cell.read_launch == launch_ && cell.read_block != block;
  cell.read_launch = launch_;
  cell.read_block = others ? kSeveral : block;
  return breach;
}

std::string GlobalMemory::WriteCell(Cell& cell, const GlobalAccess& access) const {
  const auto block = static_cast<uint32_t>(access.block);
  std::string breach;
  if (cell.write_launch == launch_ && cell.write_block != block) {
    breach = "write, " + At(access.site) + ", of global memory that " + Name(cell.write_block) +
             " of the same launch has written, line " + std::to_string(cell.write_line);
  } else if (cell.read_launch == launch_ && cell.read_block != block) {
    breach = "write, " + At(access.site) + ", of global memory that " + Name(cell.read_block) +
             " of the same launch read";
  } else if (IsUnordered(cell, access)) {
    breach = "race: write of global memory, " + At(access.site) +
             ", not ordered after the write of lane " + std::to_string(cell.write_lane) +
             ", line " + std::to_string(cell.write_line);
  }
  cell.written = true;
  cell.write_launch = launch_;
  cell.write_block = block;
  cell.write_lane = static_cast<uint32_t>(access.lane);
  cell.write_clock = access.clock;
  cell.write_line = static_cast<uint32_t>(access.site.line);
  return breach;
}

GlobalBreach GlobalMemory::Read(const GlobalAccess& access) {
  Allocation* allocation = nullptr;
  GlobalBreach breach = CheckBounds(access, false, &allocation);
  if (breach.fatal || !allocation->tracked) return breach;
  const int64_t begin = static_cast<const uint8_t*>(access.at) - allocation->data;
  for (int64_t at = begin; at < begin + access.bytes;) {
    Chunk& chunk = ChunkFor(*allocation, at, access.bytes);
    Cell& cell = chunk.cells[static_cast<size_t>(at % kChunkBytes / chunk.granule)];
    std::string text = ReadCell(cell, access);
    if (breach.text.empty()) breach.text = std::move(text);
    at += chunk.granule;
  }
  return breach;
}

GlobalBreach GlobalMemory::Write(const GlobalAccess& access) {
  Allocation* allocation = nullptr;
  GlobalBreach breach = CheckBounds(access, true, &allocation);
  if (breach.fatal) return breach;
  const int64_t begin = static_cast<const uint8_t*>(access.at) - allocation->data;
  for (int64_t at = begin; at < begin + access.bytes;) {
    Chunk& chunk = ChunkFor(*allocation, at, access.bytes);
    Cell& cell = chunk.cells[static_cast<size_t>(at % kChunkBytes / chunk.granule)];
    std::string text = WriteCell(cell, access);
    if (breach.text.empty()) breach.text = std::move(text);
    at += chunk.granule;
  }
  return breach;
}

}  // namespace latte::emulator
