// How much memory there is for this process, and large pieces of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace latte {

// Bytes that can still be taken without swapping: what the system calls available (/proc/meminfo),
// what the control groups of this process leave (control_group.h), or what `ulimit -v` leaves of
// its address space, whichever is least. None when there is none of them. `root` replaces "/" in
// tests.
std::optional<int64_t> AvailableMemory(const std::string& root = "");

// Bytes of memory that this machine has, or that the control groups of this process allow.
std::optional<int64_t> TotalMemory(const std::string& root = "");

// "31.41 GB", "11.04 MB": for messages.
std::string MemoryText(int64_t bytes);

// Every page costs a fault when it is first touched, which takes microseconds in a virtual machine.
enum class PageSize {
  kUsual,  // for what fills slowly, where a fault of 2 MiB would be felt
  kHuge,   // 2 MiB where the system has them
};

// Address space that is zero until written and takes memory only where it is touched.
class AnonymousMemory {
 public:
  // None when the system refuses, or bytes is not positive.
  [[nodiscard]] static std::optional<AnonymousMemory> Reserve(int64_t bytes, PageSize pages);

  std::byte* data() const { return at_.get(); }  // aligned to a page
  int64_t bytes() const { return at_.get_deleter().bytes; }

 private:
  struct Unmap {
    int64_t bytes;
    void operator()(std::byte* at) const;
  };
  AnonymousMemory(std::byte* at, int64_t bytes) : at_(at, Unmap{bytes}) {}

  std::unique_ptr<std::byte, Unmap> at_;
};

}  // namespace latte
