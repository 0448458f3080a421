// The memory that this process may use, and large anonymous mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace latte {

// Bytes that can be allocated without swapping: the minimum of MemAvailable in /proc/meminfo and of
// the memory that the control groups of this process (control_group.h) and `ulimit -v` leave. None
// if none of them is known. `mapped_bytes`: the part of the memory to allocate that is already
// mapped, so that `ulimit -v` has counted it. `root` replaces "/" in tests.
std::optional<int64_t> AvailableMemory(int64_t mapped_bytes = 0, const std::string& root = "");

// Bytes of memory of this machine, or the limit of the control groups of this process.
std::optional<int64_t> TotalMemory(const std::string& root = "");

// "31.41 GB", "11.04 MB": for messages.
std::string MemoryText(int64_t bytes);

// Every page costs a page fault at its first use, microseconds in a virtual machine.
enum class PageSize {
  kUsual,  // for memory that fills slowly, where a 2 MiB fault would be a pause
  kHuge,   // 2 MiB if the system has them
};

// Address space that reads as zero until written, and uses memory only where it is touched.
class AnonymousMemory {
 public:
  // None if the system refuses or bytes is not positive.
  [[nodiscard]] static std::optional<AnonymousMemory> Reserve(int64_t bytes, PageSize pages);

  std::byte* data() const { return at_.get(); }  // aligned to a page
  // Gives up the memory, which Free then frees.
  [[nodiscard]] std::byte* Release() { return at_.release(); }
  static void Free(std::byte* at, int64_t bytes);
  int64_t bytes() const { return at_.get_deleter().bytes; }

 private:
  struct Unmap {
    int64_t bytes;
    void operator()(std::byte* at) const { Free(at, bytes); }
  };
  AnonymousMemory(std::byte* at, int64_t bytes) : at_(at, Unmap{bytes}) {}

  std::unique_ptr<std::byte, Unmap> at_;
};

}  // namespace latte
