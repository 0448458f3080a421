// Shared memory, its banks, and what is known of each of its words.
#include <algorithm>
#include <cstring>

#include "tests/cuda/emulator/block.h"

namespace latte::emulator {

void BlockRun::StartShared() {
  const size_t words = Index((shared_bytes_ + 3) / 4);
  shared_.assign(words * 4, uint8_t{0xff});  // NaN, as bf16 and as fp32
  cells_.assign(words, SharedCell{});
  write_sites_.resize(words);
  reads_.assign(words * Index(threads_ / 32), 0);
}

uint8_t* BlockRun::Shared(SharedAddr a, int bytes, int alignment, Site site) {
  const int64_t at = int64_t{a} - kSharedBegin;
  if (at < 0 || at + bytes > shared_bytes_)
    Fatal("shared memory overrun, " + At(site) + ": bytes from " + std::to_string(at) + " to " +
          std::to_string(at + bytes) + " of " + std::to_string(shared_bytes_));
  if (a % static_cast<SharedAddr>(alignment) != 0) Fatal("misaligned shared address, " + At(site));
  return shared_.data() + at;
}

// 128 bytes take a cycle: 32, 16 or 8 lanes together. A bank gives one word in a cycle.
void BlockRun::CountCycles(const SharedAddr* at, uint32_t lanes, int bytes) {
  const int together = 128 / bytes;
  for (int first = 0; first < 32; first += together) {
    SharedAddr words[32][32];  // different ones of each bank
    int count[32] = {}, cycles = 0;
    for (int lane = first; lane < first + together; ++lane)
      for (int j = 0; j < bytes / 4 && (lanes >> lane & 1) != 0; ++j) {
        const SharedAddr word = at[lane] / 4 + static_cast<SharedAddr>(j);
        SharedAddr* const bank = words[word % 32];
        int& n = count[word % 32];
        if (std::find(bank, bank + n, word) != bank + n) continue;
        bank[n++] = word;
        cycles = std::max(cycles, n);
      }
    Count().shared_cycles += cycles;
    Count().bank_conflicts += std::max(0, cycles - 1);
  }
}

void BlockRun::CountAccess(SharedAddr a, int bytes, Site site) {
  if (!options_.count_banks) return;
  const int lane = Current() % 32;
  const auto line = static_cast<uint32_t>(site.line);
  const uint64_t key = uint64_t{line} << 32 | LaneAt(Current()).times[line]++;
  std::map<uint64_t, WarpAccess>& warp = accesses_[Index(Current() / 32)];
  WarpAccess& access = warp[key];
  access.bytes = bytes;
  access.at[lane] = a;
  access.lanes |= 1u << lane;
  if (access.lanes != ~0u) return;
  CountCycles(access.at, access.lanes, bytes);
  warp.erase(key);
}

void BlockRun::ReportRead(size_t word, int lane, Site site) {
  const SharedCell& cell = cells_[word];
  const std::string written = At(write_sites_[word]);
  if (cell.write_clock == 0)
    Error("read of shared memory never written, " + At(site));
  else if (cell.write_clock == kNever)
    Error("read, " + At(site) + ", of what an asynchronous copy has yet to bring, " + written);
  else if (!HasSeen(lane, cell.writer, cell.write_clock))
    Error("race: read, " + At(site) + ", not ordered after the write, " + written);
  else
    Error("read by wgmma or TMA, " + At(site) + ", without fence.proxy.async after the store, " +
          written);
}

void BlockRun::NoteRead(SharedAddr a, int bytes, int lane, Site site, bool async_proxy) {
  const Clocks& seen = *LaneAt(lane).seen;
  const uint32_t now = Clock(lane) << 5 | static_cast<uint32_t>(lane % 32);
  uint32_t* read = &LastRead(WordOf(a), lane);
  for (size_t w = WordOf(a); w < WordEnd(a, bytes); ++w, ++read) {
    const SharedCell& cell = cells_[w];
    const bool own = cell.writer == lane && cell.write_clock != kNever;
    const uint32_t latest = own ? Clock(lane) : seen.clock[cell.writer];
    const bool fenced = cell.async_proxy || seen.fenced[cell.writer] >= cell.write_clock;
    // One comparison for three cases: 0 (never written) wraps around, kNever is above all clocks.
    if (cell.write_clock - 1 >= latest || (async_proxy && !fenced)) ReportRead(w, lane, site);
    if (*read != kNever) *read = now;
  }
}

void BlockRun::CheckReads(size_t word, int lane, Site site) {
  const SharedCell& cell = cells_[word];
  for (int first = 0; first < threads_; first += 32) {
    uint32_t& read = LastRead(word, first);
    if (read == 0) continue;
    const int reader = first + static_cast<int>(read & 31);
    if (read == kNever)
      Error("write, " + At(site) + ", of what a wgmma under way still reads");
    else if (!HasSeen(lane, Index(reader), read >> 5))
      Error("race: write, " + At(site) + ", not ordered after a read by warp " +
            std::to_string(first / 32) +
            (cell.write_clock == 0 ? "" : " of what was written, " + At(write_sites_[word])));
    read = 0;
  }
}

void BlockRun::CheckWrite(size_t word, int lane, Site site) {
  const SharedCell& cell = cells_[word];
  if (cell.write_clock == kNever)
    Error("write, " + At(site) + ", while an asynchronous copy is under way, " +
          At(write_sites_[word]));
  else if (cell.write_clock != 0 && !HasSeen(lane, cell.writer, cell.write_clock))
    Error("race: write, " + At(site) + ", not ordered after the write, " + At(write_sites_[word]));
  CheckReads(word, lane, site);
}

void BlockRun::NoteWrite(SharedAddr a, int bytes, int lane, Site site) {
  BeginWrite(a, bytes, lane, site, false);
  EndWrite(a, bytes, lane, Clock(lane));
}

void BlockRun::BeginWrite(SharedAddr a, int bytes, int lane, Site site, bool async_proxy) {
  for (size_t w = WordOf(a); w < WordEnd(a, bytes); ++w) {
    CheckWrite(w, lane, site);
    cells_[w] = {kNever, static_cast<uint16_t>(lane), async_proxy};
    write_sites_[w] = site;
  }
}

void BlockRun::EndWrite(SharedAddr a, int bytes, int lane, uint32_t clock) {
  for (size_t w = WordOf(a); w < WordEnd(a, bytes); ++w) {
    cells_[w].writer = static_cast<uint16_t>(lane);
    cells_[w].write_clock = clock;
  }
}

void BlockRun::BeginRead(SharedAddr a, int bytes, int lane, Site site) {
  NoteRead(a, bytes, lane, site, true);
  for (size_t w = WordOf(a); w < WordEnd(a, bytes); ++w) LastRead(w, lane) = kNever;
}

void BlockRun::EndRead(SharedAddr a, int bytes, int lane) {
  for (size_t w = WordOf(a); w < WordEnd(a, bytes); ++w)
    LastRead(w, lane) = Clock(lane) << 5 | static_cast<uint32_t>(lane % 32);
}

// ---- the words

void ReadShared(SharedAddr a, void* to, int bytes, Site site) {
  BlockRun& block = Running();
  std::memcpy(to, block.Shared(a, bytes, bytes, site), static_cast<size_t>(bytes));
  block.NoteRead(a, bytes, block.Current(), site);
  block.CountAccess(a, bytes, site);
}

void WriteShared(SharedAddr a, const void* from, int bytes, Site site) {
  BlockRun& block = Running();
  std::memcpy(block.Shared(a, bytes, bytes, site), from, static_cast<size_t>(bytes));
  block.NoteWrite(a, bytes, block.Current(), site);
  block.CountAccess(a, bytes, site);
}

}  // namespace latte::emulator
