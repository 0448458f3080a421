// A prefix file: unchanged, and with corrected checksums, so that the fuzzer also reaches the code
// behind the checks.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <xxhash.h>

#include "fuzz/fuzz_input.h"
#include "src/cache/prefix_file.h"

namespace latte::fuzz {
namespace {

PrefixFileOwner Owner() {
  return {{std::byte{7}},
          {{{StreamId::kLatent, 4, DType::kBF16}, {StreamId::kIndexer, 3, DType::kU8}}, 1, 2}};
}
PagePrefix Prefix() { return {"salt", {1, 2, 3, 4}}; }

uint64_t IntAt(const std::vector<std::byte>& file, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= std::to_integer<uint64_t>(file[at + i]) << (8 * i);
  return value;
}

void PutChecksum(std::vector<std::byte>& file, size_t from, size_t to) {
  const uint64_t sum = XXH3_64bits(file.data() + from, to - from);
  for (size_t i = 0; i < 8; ++i) file[to + i] = static_cast<std::byte>(sum >> (8 * i));
}

// The file with correct checksums, if its sizes say that it has room for them.
std::vector<std::byte> Repaired(std::vector<std::byte> file) {
  constexpr size_t kStart = 56;
  if (file.size() < kStart + 16) return file;
  const uint64_t left = file.size() - kStart - 16;
  const uint64_t tokens = std::min<uint64_t>(IntAt(file, 24, 8), left);
  const uint64_t parts = IntAt(file, 12, 4) + IntAt(file, 16, 4) + 4 * tokens;
  if (parts > left) return file;
  const size_t header = kStart + static_cast<size_t>(parts);
  PutChecksum(file, 0, header);
  PutChecksum(file, header + 8, file.size() - 8);
  return file;
}

void CheckDecode(const std::vector<std::byte>& file) {
  const auto bytes = DecodePrefixFile(Owner(), Prefix(), file);
  if (!bytes) return Require(bytes.error().code == Code::kCorrupt, "refusals are kCorrupt");
  Require(EncodePrefixFile(Owner(), Prefix(), *bytes) == file, "what is accepted is ours");
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  fuzz::CheckDecode(file);
  fuzz::CheckDecode(fuzz::Repaired(std::move(file)));
  return 0;
}
