#include "src/cache/prefix_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "src/base/check.h"

namespace latte {
namespace {

constexpr uint32_t kVersion = 1;
constexpr uint64_t kStartBytes = 56;  // magic … model key: what has one size in every file
constexpr uint64_t kChecksumBytes = 8;

class Writer {
 public:
  template <class T>
  void Int(T value) {
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
  }
  void Bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void Text(std::string_view text) { Bytes(std::as_bytes(std::span(text))); }
  void Checksum(size_t from) {
    Int(uint64_t{XXH3_64bits(bytes_.data() + from, bytes_.size() - from)});
  }
  void Reserve(size_t bytes) { bytes_.reserve(bytes); }
  size_t size() const { return bytes_.size(); }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Takes parts off the front. Requires: the sizes were checked.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> Bytes(uint64_t count) {
    LATTE_CHECK(count <= bytes_.size(), "{} of {} bytes", count, bytes_.size());
    const auto part = bytes_.first(static_cast<size_t>(count));
    bytes_ = bytes_.subspan(static_cast<size_t>(count));
    return part;
  }
  template <class T>
  T Int() {
    uint64_t value = 0;
    const auto part = Bytes(sizeof(T));
    for (size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<uint64_t>(part[i]) << (8 * i);
    return static_cast<T>(value);
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Sizes {
  uint32_t layout = 0;   // bytes
  uint32_t salt = 0;     // bytes
  uint64_t tokens = 0;   // count
  uint64_t payload = 0;  // bytes
};

std::vector<std::byte> LayoutBytes(const CacheSpec& spec) {
  Writer out;
  out.Int(static_cast<uint32_t>(spec.page_tokens));
  out.Int(static_cast<uint32_t>(spec.layers));
  out.Int(static_cast<uint32_t>(spec.streams.size()));
  for (const CacheStream& stream : spec.streams) {
    const std::string_view name = Name(stream.id);
    out.Int(static_cast<uint32_t>(name.size()));
    out.Text(name);
    out.Int(stream.width);
    out.Int(static_cast<uint8_t>(stream.dtype));
    out.Int(static_cast<uint8_t>(stream.row_format.kind));
    out.Int(std::bit_cast<uint32_t>(stream.row_format.descale));
  }
  for (size_t i = 0; i < spec.streams.size(); ++i) {
    const std::vector<int64_t>& without = spec.streams[i].without;
    if (without.empty()) continue;
    out.Int(static_cast<uint32_t>(i));
    out.Int(static_cast<uint32_t>(without.size()));
    for (const int64_t layer : without) out.Int(static_cast<uint32_t>(layer));
  }
  return out.Take();
}

bool SameTokens(std::span<const std::byte> stored, std::span<const int32_t> tokens) {
  Reader in(stored);
  return stored.size() == tokens.size_bytes() &&
         std::ranges::all_of(tokens, [&](int32_t token) { return in.Int<int32_t>() == token; });
}

// Whether the parts of those sizes fill `bytes`. No sum overflows: each term is compared with what
// is left.
Status CheckSizes(const Sizes& sizes, uint64_t bytes) {
  uint64_t left = bytes - kStartBytes;
  const uint64_t parts[] = {
      sizes.layout,   sizes.salt,    sizes.tokens > left / 4 ? left + 1 : sizes.tokens * 4,
      kChecksumBytes, sizes.payload, kChecksumBytes};
  for (const uint64_t part : parts) {
    if (part > left) return Corrupt(fmt::format("the file ends early, after {} bytes", bytes));
    left -= part;
  }
  if (left > 0) return Corrupt(fmt::format("{} bytes behind the last part", left));
  return {};
}

// Errors: kCorrupt unless the file begins as one of ours and has the size that it says.
Result<Sizes> ReadSizes(std::span<const std::byte> file) {
  if (file.size() < kStartBytes)
    return Corrupt(fmt::format("the file ends early, after {} bytes", file.size()));
  Reader in(file);
  if (!std::ranges::equal(in.Bytes(kPrefixMagic.size()), std::as_bytes(std::span(kPrefixMagic))))
    return Corrupt(fmt::format("does not begin with '{}'", kPrefixMagic));
  const auto version = in.Int<uint32_t>();
  if (version != kVersion)
    return Corrupt(fmt::format("version {}, expected {}", version, kVersion));
  Sizes sizes;
  sizes.layout = in.Int<uint32_t>();
  sizes.salt = in.Int<uint32_t>();
  if (in.Int<uint32_t>() != 0) return Corrupt("bytes 20 to 23 are not 0");
  sizes.tokens = in.Int<uint64_t>();
  sizes.payload = in.Int<uint64_t>();
  LATTE_RETURN_IF_ERROR(CheckSizes(sizes, file.size()));
  return sizes;
}

Status CheckChecksum(std::span<const std::byte> bytes, std::span<const std::byte> stored,
                     std::string_view part) {
  const uint64_t expected = Reader(stored).Int<uint64_t>();
  const uint64_t found = XXH3_64bits(bytes.data(), bytes.size());
  if (found != expected)
    return Corrupt(
        fmt::format("checksum of the {} is {:016x}, expected {:016x}", part, found, expected));
  return {};
}

// Whether the start and the parts after it, which are complete, match the requested prefix.
Status CheckOwner(const PrefixFileOwner& owner, const PagePrefix& prefix, const Sizes& sizes,
                  std::span<const std::byte> header) {
  Reader in(header);
  in.Bytes(kStartBytes - owner.key.size());
  if (!std::ranges::equal(in.Bytes(owner.key.size()), owner.key))
    return Corrupt("the page is of another model");
  if (!std::ranges::equal(in.Bytes(sizes.layout), LayoutBytes(owner.spec)))
    return Corrupt("the page has another layout");
  if (!std::ranges::equal(in.Bytes(sizes.salt), std::as_bytes(std::span(prefix.salt))))
    return Corrupt("the page has another salt");
  if (!SameTokens(in.Bytes(sizes.tokens * 4), prefix.tokens))
    return Corrupt("the page is of other tokens");
  if (sizes.payload != static_cast<uint64_t>(owner.spec.bytes_per_page()))
    return Corrupt(fmt::format("the page has {} bytes, expected {}", sizes.payload,
                               owner.spec.bytes_per_page()));
  return {};
}

}  // namespace

std::vector<std::byte> EncodePrefixFile(const PrefixFileOwner& owner, const PagePrefix& prefix,
                                        std::span<const std::byte> bytes) {
  const std::vector<std::byte> layout = LayoutBytes(owner.spec);
  Writer out;
  out.Reserve(kStartBytes + layout.size() + prefix.salt.size() + prefix.tokens.size() * 4 +
              bytes.size() + 2 * kChecksumBytes);
  out.Text(kPrefixMagic);
  out.Int(kVersion);
  out.Int(static_cast<uint32_t>(layout.size()));
  out.Int(static_cast<uint32_t>(prefix.salt.size()));
  out.Int(uint32_t{0});
  out.Int(static_cast<uint64_t>(prefix.tokens.size()));
  out.Int(static_cast<uint64_t>(bytes.size()));
  out.Bytes(owner.key);
  LATTE_CHECK(out.size() == kStartBytes, "{}", out.size());
  out.Bytes(layout);
  out.Text(prefix.salt);
  for (const int32_t token : prefix.tokens) out.Int(token);
  out.Checksum(0);
  const size_t payload_at = out.size();
  out.Bytes(bytes);
  out.Checksum(payload_at);
  return out.Take();
}

Result<std::span<const std::byte>> DecodePrefixFile(const PrefixFileOwner& owner,
                                                    const PagePrefix& prefix,
                                                    std::span<const std::byte> file) {
  LATTE_ASSIGN_OR_RETURN(const Sizes sizes, ReadSizes(file));
  Reader in(file);
  const auto header = in.Bytes(kStartBytes + sizes.layout + sizes.salt + sizes.tokens * 4);
  LATTE_RETURN_IF_ERROR(CheckChecksum(header, in.Bytes(kChecksumBytes), "header"));
  LATTE_RETURN_IF_ERROR(CheckOwner(owner, prefix, sizes, header));
  const auto payload = in.Bytes(sizes.payload);
  LATTE_RETURN_IF_ERROR(CheckChecksum(payload, in.Bytes(kChecksumBytes), "page"));
  return payload;
}

PrefixFileNames::PrefixFileNames(const PrefixFileOwner& owner, std::string_view salt) {
  Writer out;
  out.Bytes(owner.key);
  out.Bytes(LayoutBytes(owner.spec));
  out.Text(salt);
  const std::vector<std::byte> bytes = out.Take();
  hash_ = XXH3_128bits(bytes.data(), bytes.size());
}

std::string PrefixFileNames::Next(std::span<const int32_t> tokens) {
  Writer out;
  out.Int(uint64_t{hash_.high64});
  out.Int(uint64_t{hash_.low64});
  for (const int32_t token : tokens) out.Int(token);
  const std::vector<std::byte> bytes = out.Take();
  hash_ = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", uint64_t{hash_.high64}, uint64_t{hash_.low64});
}

std::string PrefixFileName(const PrefixFileOwner& owner, const PagePrefix& prefix) {
  PrefixFileNames names(owner, prefix.salt);
  const auto page = static_cast<size_t>(owner.spec.page_tokens);
  std::string name;
  for (size_t at = 0; at + page <= prefix.tokens.size(); at += page)
    name = names.Next(std::span(prefix.tokens).subspan(at, page));
  return name;
}

}  // namespace latte
