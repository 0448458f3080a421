#include "src/cache/prefix_file.h"

#include <cstdint>
#include <limits>
#include <set>

#include <gtest/gtest.h>

namespace latte::prefix_file_test {
namespace {

CacheSpec Spec() {
  return {{{StreamId::kLatent, 20, DType::kBF16},
           {StreamId::kIndexer, 3, DType::kU8, {CacheFormat::kI8}}},
          2,
          2};
}
PrefixFileOwner Owner() { return {{std::byte{7}, std::byte{9}}, Spec()}; }
PagePrefix Prefix() { return {"tenant", {1, 2, 3, -4}}; }

std::vector<std::byte> Payload() {
  std::vector<std::byte> bytes(static_cast<size_t>(Spec().bytes_per_page()));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 5);
  return bytes;
}
std::vector<std::byte> File() { return EncodePrefixFile(Owner(), Prefix(), Payload()); }

// What decoding refuses it with.
std::string Refusal(std::span<const std::byte> file, const PrefixFileOwner& owner = Owner(),
                    const PagePrefix& prefix = Prefix()) {
  const auto bytes = DecodePrefixFile(owner, prefix, file);
  if (bytes) return "accepted";
  EXPECT_EQ(bytes.error().code, Code::kCorrupt);
  return bytes.error().message;
}

TEST(PrefixFile, BytesComeBack) {
  const std::vector<std::byte> file = File();
  const auto bytes = DecodePrefixFile(Owner(), Prefix(), file);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(std::vector(bytes->begin(), bytes->end()), Payload());
}

TEST(PrefixFile, FormatIsAsDocumented) {
  const std::vector<std::byte> file = File();
  const auto at = [&](size_t i) { return std::to_integer<int>(file[i]); };
  EXPECT_EQ(at(0), 'L');
  EXPECT_EQ(at(8), 1);                  // version
  EXPECT_EQ(at(12), 12 + 2 * 18 + 13);  // layout: three numbers, two streams, their names
  EXPECT_EQ(at(16), 6);                 // salt
  EXPECT_EQ(at(24), 4);                 // tokens
  EXPECT_EQ(at(32) + 256 * at(33), Spec().bytes_per_page());
  EXPECT_EQ(at(40), 7);  // model key
  EXPECT_EQ(file.size(), 56u + 61 + 6 + 16 + 8 + Payload().size() + 8);
}

TEST(PrefixFile, CutAnywhereIsRefused) {
  const std::vector<std::byte> file = File();
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(Refusal(std::span(file).first(size)).find("ends early"), std::string::npos) << size;
}

TEST(PrefixFile, BytesBehindTheEndAreRefused) {
  std::vector<std::byte> file = File();
  file.push_back(std::byte{0});
  EXPECT_NE(Refusal(file).find("1 bytes behind"), std::string::npos);
}

TEST(PrefixFile, AnyChangedBitIsRefused) {
  const std::vector<std::byte> file = File();
  for (size_t at = 0; at < file.size() * 8; ++at) {
    std::vector<std::byte> changed = file;
    changed[at / 8] ^= static_cast<std::byte>(1 << (at % 8));
    EXPECT_NE(Refusal(changed), "accepted") << "bit " << at;
  }
}

TEST(PrefixFile, EachPartIsNamedInItsRefusal) {
  const auto changed = [](size_t at) {
    std::vector<std::byte> file = File();
    file[at] ^= std::byte{1};
    return Refusal(file);
  };
  EXPECT_NE(changed(0).find("begin"), std::string::npos);
  EXPECT_NE(changed(8).find("version 0, expected 1"), std::string::npos);
  EXPECT_NE(changed(40).find("header"), std::string::npos);
  EXPECT_NE(changed(File().size() - 20).find("checksum of the page"), std::string::npos);
}

TEST(PrefixFile, SizesThatNoMemoryHasAreRefused) {
  for (const size_t at : {12u, 16u, 24u, 32u}) {
    std::vector<std::byte> file = File();
    for (size_t i = 0; i < (at < 24 ? 4u : 8u); ++i) file[at + i] = std::byte{0xff};
    EXPECT_NE(Refusal(file).find("ends early"), std::string::npos) << at;
  }
  // Four times the tokens wraps around to their true size.
  std::vector<std::byte> file = File();
  file[31] = std::byte{0x40};
  EXPECT_NE(Refusal(file).find("ends early"), std::string::npos);
}

TEST(PrefixFile, WholeFileOfAnotherIsRefused) {
  PrefixFileOwner other = Owner();
  other.key[15] = std::byte{1};
  EXPECT_NE(Refusal(File(), other).find("another model"), std::string::npos);
  EXPECT_NE(Refusal(File(), Owner(), {"tenanT", {1, 2, 3, -4}}).find("another salt"),
            std::string::npos);
  EXPECT_NE(Refusal(File(), Owner(), {"tenant", {1, 2, 3, 4}}).find("other tokens"),
            std::string::npos);
  EXPECT_NE(Refusal(File(), Owner(), {"tenant", {1, 2}}).find("other tokens"), std::string::npos);
}

// Everything that changes what the bytes mean.
std::vector<PrefixFileOwner> OtherLayouts() {
  std::vector<PrefixFileOwner> others(10, Owner());
  others[0].spec.page_tokens = 4;
  others[1].spec.layers = 3;
  others[2].spec.streams.pop_back();
  others[3].spec.streams[0].id = StreamId::kKey;
  others[4].spec.streams[0].width = 21;
  others[5].spec.streams[0].dtype = DType::kF16;
  others[6].spec.streams[1].row_format.kind = CacheFormat::kQ6;
  others[7].spec.streams[1].row_format.descale = 0.5f;
  others[8].spec.streams[1].without = {0};
  others[9].spec.streams[0].without = {0};
  return others;
}

TEST(PrefixFile, OtherLayoutsAreRefused) {
  for (const PrefixFileOwner& other : OtherLayouts())
    EXPECT_NE(Refusal(File(), other).find("another layout"), std::string::npos);
}

TEST(PrefixFile, PageOfAnotherSizeIsRefused) {
  const std::vector<std::byte> bytes(5);
  EXPECT_NE(Refusal(EncodePrefixFile(Owner(), Prefix(), bytes)).find("5 bytes, expected"),
            std::string::npos);
}

TEST(PrefixFile, NameDependsOnAllThatThePageDoes) {
  std::set<std::string> names{PrefixFileName(Owner(), Prefix())};
  for (const PrefixFileOwner& other : OtherLayouts()) names.insert(PrefixFileName(other, Prefix()));
  PrefixFileOwner key = Owner();
  key.key[0] = std::byte{8};
  names.insert(PrefixFileName(key, Prefix()));
  names.insert(PrefixFileName(Owner(), {"tenanT", {1, 2, 3, -4}}));
  names.insert(PrefixFileName(Owner(), {"tenant", {1, 2, 3, 4}}));
  names.insert(PrefixFileName(Owner(), {"tenant", {1, 3, 3, -4}}));
  names.insert(PrefixFileName(Owner(), {"tenant", {1, 2}}));
  EXPECT_EQ(names.size(), 16u);
  EXPECT_EQ(names.begin()->size(), 32u);
}

TEST(PrefixFile, NamesOfAPromptComeOneByOne) {
  PrefixFileNames names(Owner(), "tenant");
  const std::vector<int32_t> first{1, 2}, second{3, -4};
  EXPECT_EQ(names.Next(first), PrefixFileName(Owner(), {"tenant", {1, 2}}));
  EXPECT_EQ(names.Next(second), PrefixFileName(Owner(), Prefix()));
}

}  // namespace
}  // namespace latte::prefix_file_test
