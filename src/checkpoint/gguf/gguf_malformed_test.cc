// Files that break one rule each, made from a small good one.
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/gguf/gguf_header.h"
#include "tests/support/checkpoint/gguf_writer.h"

namespace latte::gguf_malformed_test {
namespace {

using namespace testing_support;  // NOLINT: the writer's functions

constexpr uint64_t kAllOnes = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kHighBit = uint64_t{1} << 63;

// 24 bytes of F32 at offset 0 and a block of Q4_0 at offset 32.
GgufImage Good() {
  GgufImage image;
  image.entries = {GgufTextEntry("general.architecture", "deepseek2"), GgufU32Entry("a.count", 7),
                   GgufArrayEntry("a.names", kGgufText, 2, GgufString("x") + GgufString(""))};
  image.tensors = {GgufTensorInfo("a", {3, 2}, 0, 0), GgufTensorInfo("b", {32}, 2, 32)};
  image.data = std::string(50, '\1');
  return image;
}

Result<GgufHeader> Parse(std::string_view file) {
  static const std::string path = "w.gguf";
  return ParseGgufHeader(std::as_bytes(std::span(file)), path);
}

struct BadFile {
  std::string what;
  std::string file;
  std::string words;  // part of the message
  Code code = Code::kCorrupt;
};

std::string WithEntry(std::string entry) {
  GgufImage image = Good();
  image.entries.push_back(std::move(entry));
  return image.Bytes();
}
// The entry ends the file.
std::string EndingWith(std::string entry) {
  GgufImage image = Good();
  image.entries.push_back(std::move(entry));
  image.tensors.clear();
  image.data.clear();
  return image.Bytes();
}
std::string WithTensor(std::string tensor) {
  GgufImage image = Good();
  image.tensors.push_back(std::move(tensor));
  return image.Bytes();
}
std::string WithVersion(uint32_t version) {
  GgufImage image = Good();
  image.version = version;
  return image.Bytes();
}
std::string WithCounts(std::optional<uint64_t> tensors, std::optional<uint64_t> entries) {
  GgufImage image = Good();
  image.tensor_count = tensors;
  image.entry_count = entries;
  return image.Bytes();
}
std::string WithMagic(const std::string& magic) {
  GgufImage image = Good();
  image.magic = magic;
  return image.Bytes();
}

std::vector<BadFile> BadStarts() {
  return {
      {"Empty", "", "found an empty file"},
      {"ThreeBytes", "GGU", "found 'GGU'"},
      {"MagicAlone", "GGUF", "the version of 4 bytes at byte 4, found only 0 more bytes"},
      {"NoCounts", "GGUF" + GgufNumber<uint32_t>(3), "the number of tensors of 8 bytes at byte 8"},
      {"OtherMagic", WithMagic("GGML"), "expected 'GGUF' at its start, found 'GGML'"},
      {"SmallLetters", WithMagic("gguf"), "not a GGUF file"},
      {"SwappedMagic", WithMagic("FUGG"), "not a GGUF file"},
      {"Zip", "PK\x03\x04zzzzzzzzzzzz", R"(found 'PK\x03\x04')"},
      {"LfsPointer", "version https://git-lfs.github.com/spec/v1", "Git LFS pointer"},
      {"Version0", WithVersion(0), "found version 0", Code::kUnsupported},
      {"Version1", WithVersion(1), "take a newer copy", Code::kUnsupported},
      {"Version4", WithVersion(4), "newer than this version", Code::kUnsupported},
      {"BigEndian", WithVersion(3u << 24), "little-endian copy", Code::kUnsupported},
      {"BigEndian2", WithVersion(2u << 24), "big-endian machines", Code::kUnsupported},
      {"TensorsAllOnes", WithCounts(kAllOnes, {}), "at most 1000000 tensors"},
      {"TensorsHighBit", WithCounts(kHighBit, {}), "found 9223372036854775808"},
      {"TensorsAboveLimit", WithCounts(1'000'001, {}), "found 1000001"},
      {"TensorsMoreThanFit", WithCounts(1'000'000, {}), "expected 1000000 tensors, found only"},
      {"OneTensorMore", WithCounts(3, {}), "tensor 3 of 3: expected"},
      {"EntriesAllOnes", WithCounts({}, kAllOnes), "at most 65536 entries"},
      {"EntriesHighBit", WithCounts({}, kHighBit), "at most 65536 entries"},
      {"EntriesAboveLimit", WithCounts({}, 65'537), "found 65537"},
      {"EntriesMoreThanFit", WithCounts({}, 65'536), "expected 65536 entries, found only"},
      {"OneEntryMore", WithCounts({}, 4), "tensor 1 of 2: expected a name"},
      {"OneEntryLess", WithCounts({}, 2), "tensor 'a.names': expected 1 to 4 dimensions"},
  };
}

std::vector<BadFile> BadEntries() {
  const std::string one = GgufNumber<uint64_t>(1);
  return {
      {"EmptyKey", WithEntry(GgufU32Entry("", 1)), "a key of 1 to 65535 bytes, found 0"},
      {"LongKey", WithEntry(GgufU32Entry(std::string(65'536, 'k'), 1)), "found 65536 bytes"},
      {"KeyAllOnes", EndingWith(GgufNumber(kAllOnes) + std::string(20, 'k')), "a key of 18446744"},
      {"KeyHighBit", EndingWith(GgufNumber(kHighBit) + std::string(20, 'k')), "a key of 92233720"},
      {"KeyPastEnd", EndingWith(GgufNumber<uint64_t>(21) + std::string(20, 'k')),
       "a key of 21 bytes"},
      {"KeyTwice", WithEntry(GgufU32Entry("a.count", 7)), "'a.count': expected each key once"},
      {"KeyTwiceOfOtherType", WithEntry(GgufTextEntry("a.count", "7")), "the key twice"},
      {"KeyWithNewline", WithEntry(GgufEntry("a\nb", 13, one)), R"(metadata key 'a\x0ab')"},
      {"Type13", WithEntry(GgufEntry("k", 13, one)), "a type of values from 0 to 12, found 13"},
      {"TypeAllOnes", WithEntry(GgufEntry("k", 0xffffffffu, one)), "found 4294967295"},
      {"NoType", EndingWith(GgufString("k2345678")), "a type of values of 4 bytes"},
      {"ElementType13", WithEntry(GgufArrayEntry("k", 13, 1, one)),
       "a type of elements from 0 to 12, found 13"},
      {"NestedArray", WithEntry(GgufArrayEntry("k", kGgufArray, 1, GgufNumber(kGgufU8) + one)),
       "found an array of arrays"},
      {"NoElementType", EndingWith(GgufEntry("k234567", kGgufArray, "")), "a type of elements of"},
      {"NoArrayLength", EndingWith(GgufEntry("k", kGgufArray, GgufNumber(kGgufU8))),
       "the length of an array of 8 bytes"},
      {"TextAllOnes", EndingWith(GgufEntry("k", kGgufText, GgufNumber(kAllOnes))),
       "a string of 1844"},
      {"TextHighBit", EndingWith(GgufEntry("k", kGgufText, GgufNumber(kHighBit))),
       "a string of 9223"},
      {"TextPastEnd", EndingWith(GgufEntry("k", kGgufText, one)),
       "'k': expected a string of 1 bytes"},
      {"TextsAllOnes", EndingWith(GgufArrayEntry("k", kGgufText, kAllOnes, GgufString("x"))),
       "18446744073709551615 values of type string"},
      {"TextsMoreThanFit", EndingWith(GgufArrayEntry("k", kGgufText, 2, GgufString("x"))),
       "2 values of type string"},
      {"SecondTextPastEnd",
       EndingWith(GgufArrayEntry("k", kGgufText, 2, GgufString("") + GgufNumber<uint64_t>(9))),
       "a string of 9 bytes"},
      {"SecondTextWithoutLength",
       EndingWith(GgufArrayEntry("k", kGgufText, 2, GgufString("12345678"))),
       "the length of a string of 8 bytes"},
      {"Bool2", WithEntry(GgufEntry("k", kGgufBool, "\2")), "true or false as 1 or 0, found 2"},
      {"Bools", WithEntry(GgufArrayEntry("k", kGgufBool, 3, "\1\1\xff")), "as 1 or 0, found 255"},
  };
}

// Values and arrays of every type of numbers that end too early or claim too much.
std::vector<BadFile> BadNumbers() {
  constexpr std::pair<uint32_t, int> kNumbers[] = {
      {kGgufU8, 1},  {kGgufI8, 1},  {kGgufU16, 2},  {kGgufI16, 2}, {kGgufU32, 4}, {kGgufI32, 4},
      {kGgufF32, 4}, {kGgufU64, 8}, {kGgufBool, 1}, {kGgufI64, 8}, {kGgufF64, 8}};
  std::vector<BadFile> out;
  for (const auto& [type, bytes] : kNumbers) {
    const std::string cut(static_cast<size_t>(bytes) - 1, '\1');
    out.push_back({fmt::format("CutValueOfType{}", type), EndingWith(GgufEntry("key", type, cut)),
                   "the file may be cut short"});
    out.push_back({fmt::format("CutArrayOfType{}", type),
                   EndingWith(GgufArrayEntry("key", type, 3, cut + std::string(2u * bytes, '\1'))),
                   "expected 3 values of type"});
    // The products of count and size wrap to 0 and to a small number.
    for (const uint64_t count : {kAllOnes, kHighBit, uint64_t{1} << 61, (uint64_t{1} << 61) + 1})
      out.push_back({fmt::format("Array{:x}OfType{}", count, type),
                     EndingWith(GgufArrayEntry("key", type, count, std::string(24, '\1'))),
                     fmt::format("expected {} values of type", count)});
  }
  return out;
}

std::vector<BadFile> BadAlignments() {
  constexpr std::string_view kKey = "general.alignment";
  constexpr const char* kWords = "expected a power of two up to 1048576 of type u32, found ";
  std::vector<BadFile> out;
  for (const uint32_t alignment : {0u, 3u, 33u, 48u, 1u << 21, 1u << 31, 0xffffffffu})
    out.push_back({fmt::format("Alignment{}", alignment), WithEntry(GgufU32Entry(kKey, alignment)),
                   fmt::format("{}{}", kWords, alignment)});
  out.push_back({"AlignmentU64", WithEntry(GgufEntry(kKey, kGgufU64, GgufNumber<uint64_t>(32))),
                 "found 32 of another type"});
  out.push_back({"AlignmentNegative", WithEntry(GgufEntry(kKey, kGgufI32, GgufNumber(-32))),
                 "found -32 of another type"});
  out.push_back({"AlignmentAllOnes", WithEntry(GgufEntry(kKey, kGgufU64, GgufNumber(kAllOnes))),
                 "expected an integer below 2^63"});
  out.push_back({"AlignmentText", WithEntry(GgufTextEntry(kKey, "32")), "a value of type string"});
  out.push_back({"AlignmentFloat", WithEntry(GgufF32Entry(kKey, 32)), "a value of type f32"});
  out.push_back({"AlignmentBool", WithEntry(GgufEntry(kKey, kGgufBool, "\1")), "of type bool"});
  out.push_back({"AlignmentArray",
                 WithEntry(GgufArrayEntry(kKey, kGgufU32, 1, GgufNumber<uint32_t>(32))),
                 "expected an integer, found an array of 1 values of type u32"});
  out.push_back({"AlignmentOfOffsets", WithEntry(GgufU32Entry(kKey, 64)),
                 "tensor 'b': expected an offset that is a multiple of 64, found 32"});
  return out;
}

std::vector<BadFile> BadTensors() {
  constexpr uint64_t k2To32 = uint64_t{1} << 32;
  const std::string long_name(128, 'n');
  std::vector<BadFile> out = {
      {"EmptyName", WithTensor(GgufTensorInfo("", {1}, 0, 64)),
       "a name of 1 to 127 bytes, found 0"},
      {"LongName", WithTensor(GgufTensorInfo(long_name, {1}, 0, 64)), "found 128 bytes"},
      {"NameAllOnes", WithTensor(GgufNumber(kAllOnes) + std::string(40, 'n')), "a name of 1844674"},
      {"NamePastEnd", WithTensor(GgufNumber<uint64_t>(5000) + std::string(40, 'n')),
       "a name of 5000 bytes"},
      {"NameTwice", WithTensor(GgufTensorInfo("a", {1}, 0, 64)), "'a': expected each tensor once"},
      {"NameWithEscape", WithTensor(GgufTensorInfo("\x1b[2J", {0}, 0, 64)), R"(tensor '\x1b[2J')"},
      {"NoDimensions", WithTensor(GgufTensorInfo("c", {}, 0, 64)), "1 to 4 dimensions, found 0"},
      {"FiveDimensions", WithTensor(GgufTensorInfo("c", {1, 1, 1, 1, 1}, 0, 64)), "found 5"},
      {"DimensionsAllOnes",
       WithTensor(GgufString("c") + GgufNumber(0xffffffffu) + std::string(20, '\1')),
       "1 to 4 dimensions, found 4294967295"},
      {"Dimension0", WithTensor(GgufTensorInfo("c", {0}, 0, 64)), "dimensions from 1 to"},
      {"OuterDimension0", WithTensor(GgufTensorInfo("c", {4, 0}, 0, 64)), "found 0"},
      {"DimensionNegative", WithTensor(GgufTensorInfo("c", {kAllOnes}, 0, 64)), "found 18446744"},
      {"DimensionHighBit", WithTensor(GgufTensorInfo("c", {kHighBit}, 0, 64)), "found 92233720"},
      {"ProductWrapsTo0", WithTensor(GgufTensorInfo("c", {k2To32, k2To32}, 0, 64)),
       "overflow of F32"},
      {"ProductWrapsToFew", WithTensor(GgufTensorInfo("c", {k2To32, k2To32 + 1}, 0, 64)),
       "a size below 2^63 bytes"},
      {"ThreeDimensionsWrap", WithTensor(GgufTensorInfo("c", {1 << 22, 1 << 21, 1 << 21}, 0, 64)),
       "overflow of F32 [2097152, 2097152, 4194304]"},
      {"BytesWrap", WithTensor(GgufTensorInfo("c", {uint64_t{1} << 61}, 0, 64)), "overflow of F32"},
      // 2^62 · 18 / 32 bytes fit in an int64, the number of values does not.
      {"ValuesWrap", WithTensor(GgufTensorInfo("c", {uint64_t{1} << 62, 2}, 2, 64)),
       "overflow of Q4_0"},
      {"OffsetOdd", WithTensor(GgufTensorInfo("c", {1}, 0, 65)), "multiple of 32, found 65"},
      {"OffsetNegative", WithTensor(GgufTensorInfo("c", {1}, 0, kAllOnes - 31)), "found 184467440"},
      {"OffsetHighBit", WithTensor(GgufTensorInfo("c", {1}, 0, kHighBit)), "found 922337203685477"},
      {"OffsetLargest", WithTensor(GgufTensorInfo("c", {1}, 0, kHighBit - 32)),
       "tensor 'c': expected 4 bytes within the 50 bytes of data"},
      {"OffsetPastEnd", WithTensor(GgufTensorInfo("c", {1}, 0, 64)), "may be cut short"},
      {"EndPastEnd", WithTensor(GgufTensorInfo("c", {13}, 0, 0)),
       "expected 52 bytes within the 50"},
      {"HugeEnd", WithTensor(GgufTensorInfo("c", {uint64_t{1} << 60}, 0, 0)),
       "within the 50 bytes"},
      {"SamePlace", WithTensor(GgufTensorInfo("c", {1}, 0, 0)), "tensors overlap"},
      {"PartOfB", WithTensor(GgufTensorInfo("c", {2}, 1, 32)), "which ends at byte"},
      {"WrapsAroundBoth", WithTensor(GgufTensorInfo("c", {12}, 0, 0)), "tensors overlap"},
  };
  GgufImage image = Good();
  image.data.clear();
  out.push_back({"NoData", image.Bytes(), "expected 24 bytes within the 0 bytes of data"});
  image.data = std::string(49, '\1');
  out.push_back({"OneByteMissing", image.Bytes(), "expected 18 bytes within the 49 bytes"});
  return out;
}

struct TypeCase {
  uint32_t number;
  const char* words;
};
constexpr TypeCase kBlockTypes[] = {
    {2, "32 Q4_0"},    {3, "32 Q4_1"},     {6, "32 Q5_0"},   {7, "32 Q5_1"},   {8, "32 Q8_0"},
    {10, "256 Q2_K"},  {11, "256 Q3_K"},   {12, "256 Q4_K"}, {13, "256 Q5_K"}, {14, "256 Q6_K"},
    {20, "32 IQ4_NL"}, {23, "256 IQ4_XS"}, {39, "32 MXFP4"},
};
constexpr TypeCase kRefusedTypes[] = {
    {4, "Q4_2: it is no longer in the format"},
    {5, "Q4_3: it is no longer"},
    {9, "Q8_1: files with weights do not use it"},
    {15, "Q8_K: files with weights"},
    {16, "IQ2_XXS: it is not built yet; take a copy of the model in Q2_K"},
    {17, "IQ2_XS: it is not built"},
    {18, "IQ3_XXS: it is not built"},
    {19, "IQ1_S: it is not built"},
    {21, "IQ3_S: it is not built"},
    {22, "IQ2_S: it is not built"},
    {24, "I8: files"},
    {25, "I16: files"},
    {26, "I32: files"},
    {27, "I64: files"},
    {28, "F64: files"},
    {29, "IQ1_M: it is not built"},
    {31, "Q4_0_4_4: it is no longer"},
    {32, "Q4_0_4_8: it is no longer"},
    {33, "Q4_0_8_8: it is no longer"},
    {34, "TQ1_0: it is not built"},
    {35, "TQ2_0: it is not built"},
    {36, "IQ4_NL_4_4: it is no longer"},
    {37, "IQ4_NL_4_8: it is no longer"},
    {38, "IQ4_NL_8_8: it is no longer"},
    {40, "NVFP4: its scales are in further tensors"},
    {41, "Q1_0: it is not built"},
    {42, "Q2_0: it is not built"},
    {97, "number 97: ik_llama.cpp alone has it"},
    {133, "Q6_0: ik_llama.cpp alone has it"},
    {139, "IQ4_K: ik_llama.cpp"},
    {158, "IQ1_KT: ik_llama.cpp"},
    {212, "Q4_K interleaved: ik_llama.cpp"},
    {344, "IQ4_KS interleaved: ik_llama.cpp"},
    {399, "number 399: ik_llama.cpp"},
};

std::vector<BadFile> BadTypes() {
  std::vector<BadFile> out;
  for (const TypeCase& type : kBlockTypes)
    for (const uint64_t columns : {1u, 16u, 33u, 1000u})
      out.push_back({fmt::format("RowsOf{}OfType{}", columns, type.number),
                     WithTensor(GgufTensorInfo("c", {columns, 32}, type.number, 64)),
                     fmt::format("rows of whole blocks of {} values, found rows of {} values",
                                 type.words, columns)});
  for (const TypeCase& type : kRefusedTypes)
    out.push_back({fmt::format("RefusedType{}", type.number),
                   WithTensor(GgufTensorInfo("c", {256}, type.number, 64)),
                   fmt::format("tensor 'c': expected a type that is read, found {}", type.words),
                   Code::kUnsupported});
  for (const uint32_t number : {43u, 77u, 96u, 400u, 0xffffffffu})
    out.push_back({fmt::format("UnknownType{}", number),
                   WithTensor(GgufTensorInfo("c", {256}, number, 64)),
                   fmt::format("the number of a known type, found {}", number)});
  return out;
}

void RefusesAll(const std::vector<BadFile>& files) {
  for (const BadFile& bad : files) {
    SCOPED_TRACE(bad.what);
    const auto parsed = Parse(bad.file);
    if (parsed) {
      ADD_FAILURE() << "accepted";
      continue;
    }
    const std::string& message = parsed.error().message;
    EXPECT_EQ(parsed.error().code, bad.code) << message;
    EXPECT_TRUE(message.starts_with("w.gguf: ")) << message;
    EXPECT_NE(message.find(bad.words), std::string::npos) << message;
    const bool says_what_to_do = message.find("download ") != std::string::npos ||
                                 message.find("; take ") != std::string::npos ||
                                 message.find("newer") != std::string::npos;
    EXPECT_TRUE(says_what_to_do) << message;
    EXPECT_EQ(message.find_first_of(std::string_view("\n\r\x1b\0", 4)), std::string::npos);
  }
}

TEST(GgufMalformed, StartsAreRefused) { RefusesAll(BadStarts()); }
TEST(GgufMalformed, EntriesAreRefused) { RefusesAll(BadEntries()); }
TEST(GgufMalformed, NumbersAndArraysAreRefused) { RefusesAll(BadNumbers()); }
TEST(GgufMalformed, AlignmentsAreRefused) { RefusesAll(BadAlignments()); }
TEST(GgufMalformed, TensorsAreRefused) { RefusesAll(BadTensors()); }
TEST(GgufMalformed, TypesAreRefused) { RefusesAll(BadTypes()); }

TEST(GgufMalformed, EveryCutIsRefused) {
  const std::string file = Good().Bytes();
  ASSERT_TRUE(Parse(file).has_value());
  for (size_t length = 0; length < file.size(); ++length) {
    // An exact copy on the heap, so that a sanitizer sees a read past its end.
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
    const auto parsed = Parse({cut.data(), cut.size()});
    ASSERT_FALSE(parsed.has_value()) << length;
    EXPECT_EQ(parsed.error().code, Code::kCorrupt);
    const bool says_why = parsed.error().message.find("cut short") != std::string::npos;
    EXPECT_TRUE(says_why || length < 4) << length;
  }
}

TEST(GgufMalformed, AFileWithAWrongByteIsRefusedOrItsTensorsLieInIt) {
  const std::string good = Good().Bytes();
  int refused = 0;
  for (size_t at = 0; at < good.size(); ++at)
    for (const unsigned flip : {0x01u, 0x20u, 0x80u, 0xffu}) {
      std::string file = good;
      file[at] = static_cast<char>(static_cast<unsigned char>(file[at]) ^ flip);
      const auto parsed = Parse(file);
      refused += parsed ? 0 : 1;
      if (!parsed) {
        EXPECT_TRUE(parsed.error().message.starts_with("w.gguf: "));
        continue;
      }
      for (const auto& [name, tensor] : parsed->tensors) {
        EXPECT_GE(tensor.begin, 24);
        EXPECT_LE(tensor.begin + tensor.bytes, static_cast<int64_t>(file.size()));
      }
    }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace latte::gguf_malformed_test
