#include "src/checkpoint/safetensors/safetensors_header.h"

#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace latte::safetensors_header_test {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A file: the length of `header`, `header` itself, and `data_bytes` bytes of data.
std::string File(std::string_view header, size_t data_bytes, std::optional<uint64_t> length = {}) {
  const uint64_t n = length.value_or(header.size());
  std::string out(sizeof n, '\0');
  std::memcpy(out.data(), &n, sizeof n);
  out += header;
  out.append(data_bytes, '\x01');
  return out;
}

Result<std::vector<NamedTensor>> Parse(std::string_view file) {
  return ParseSafetensorsHeader(std::as_bytes(std::span(file)), "w.safetensors");
}

std::string Entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

std::string Braces(const std::string& entries) { return fmt::format("{{{}}}", entries); }

// A file with a single tensor "w".
std::string One(std::string_view dtype, std::string_view shape, std::string_view offsets,
                size_t data_bytes) {
  return File(Braces(Entry("w", dtype, shape, offsets)), data_bytes);
}

std::string Two(std::string_view offsets_a, std::string_view offsets_b, size_t data_bytes) {
  return File(Braces(Entry("a", "U8", "[4]", offsets_a) + "," + Entry("b", "U8", "[4]", offsets_b)),
              data_bytes);
}

struct BadFile {
  const char* what;
  std::string file;
  std::string words;  // parts of the message
};

void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.what; }

class BadFileTest : public testing::TestWithParam<BadFile> {};

TEST_P(BadFileTest, IsCorruptAndSaysWhy) {
  const auto parsed = Parse(GetParam().file);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code, Code::kCorrupt);
  EXPECT_PRED2(Contains, parsed.error().message, "w.safetensors");
  EXPECT_PRED2(Contains, parsed.error().message, GetParam().words);
  EXPECT_EQ(parsed.error().message.find_first_of(std::string_view("\n\r\0", 3)), std::string::npos);
}

const BadFile kBadLengths[] = {
    {"F01_Empty", "", "too small: expected at least 8 bytes, found 0"},
    {"F02_SevenBytes", "\x02\x01\x01\x01\x01\x01\x01", "found 7"},
    {"F03_LengthAllOnes", File("{}", 0, UINT64_MAX), "length 18446744073709551615"},
    {"F04_LengthHighBit", File("{}", 0, uint64_t{1} << 63), "length 9223372036854775808"},
    {"F05_LengthPastEnd", File("{}", 0, 3), "header of 3 bytes, found only 2"},
    {"F06_LengthOverCap", File("{}", 0, 100'000'001), "at most 100000000 bytes"},
    {"F06_LengthAtCap", File("{}", 0, 100'000'000), "header of 100000000 bytes, found only 2"},
    {"F07_LengthZero", File("", 4), "an empty one"},
    {"F38_Zip", std::string("PK\x03\x04") + std::string(60, 'z'), "zip archive"},
    {"F38_Pickle", std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46") + std::string(60, 'z'),
     "Python pickle"},
    {"F38_Gguf", "GGUF" + std::string(60, 'z'), "GGUF"},
    {"F38_LfsPointer", "version https://git-lfs.github.com/spec/v1", "Git LFS pointer"},
};

const BadFile kBadJson[] = {
    {"F08_NotUtf8", File("{\"\xff\":1}", 0), "not valid JSON"},
    {"F09_TruncatedJson", File("{\"w\":{", 0), "not valid JSON"},
    {"F09_NotJson", File("{hello}", 0), "not valid JSON"},
    {"F10_Array", File("[]", 0), "begins with '{'"},
    {"F11_LeadingSpace", File(" {}", 0), "begins with '{'"},
    {"F12_DuplicateName",
     File(Braces(Entry("w", "U8", "[1]", "[0,1]") + "," + Entry("w", "U8", "[1]", "[0,1]")), 1),
     "key 'w' stands twice"},
    {"F12_DuplicateKey", File(R"({"w":{"dtype":"U8","dtype":"I8"}})", 0), "stands twice"},
    {"F13_Depth", File("{\"w\":" + std::string(100'000, '['), 0), "nested deeper than 4 levels"},
    {"EntryIsNumber", File(R"({"w":3})", 0), "tensor 'w': expected an object"},
    {"MetadataNotObject", File(R"({"__metadata__":[]})", 0), "__metadata__"},
    {"MetadataNotString", File(R"({"__metadata__":{"a":1}})", 0), "only strings"},
    {"NoDtype", File(R"({"w":{"shape":[1],"data_offsets":[0,1]}})", 1), "'dtype' is missing"},
    {"NoShape", File(R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1), "'shape' is missing"},
    {"NoOffsets", File(R"({"w":{"dtype":"U8","shape":[1]}})", 1), "'data_offsets' is missing"},
    {"DtypeNumber", File(R"({"w":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", 1),
     "'w.dtype': expected a string"},
    {"F30_NewlineInName", File(Braces(Entry("a\\nb", "U8", "[2]", "[0,1]")), 1), "a\\x0ab"},
    {"F30_NulInName", File(Braces(Entry("a\\u0000b", "U8", "[2]", "[0,1]")), 1), "a\\x00b"},
    {"F30_NewlineInDuplicate", File(R"({"a\nb":{},"a\nb":{}})", 0), "a\\x0ab"},
};

const BadFile kBadTensors[] = {
    {"F14_EndBeforeBegin", One("U8", "[0]", "[2,1]", 2), "0 ≤ begin ≤ end, found [2, 1]"},
    {"F14_NegativeBegin", One("U8", "[4]", "[-1,3]", 4), "0 ≤ begin ≤ end, found [-1, 3]"},
    {"F15_BeginPastEnd", One("U8", "[1]", "[9,10]", 4), "4 bytes of the data section"},
    {"F16_EndPastEndByOne", One("U8", "[5]", "[0,5]", 4), "cut short"},
    {"F17_Overlap", Two("[0,4]", "[3,7]", 7), "tensors overlap"},
    {"F17_SameBytes", Two("[0,4]", "[0,4]", 4), "tensors overlap"},
    {"F18_Hole", Two("[0,4]", "[5,9]", 9), "a hole lies between them"},
    {"F18_HoleAtStart", One("U8", "[4]", "[1,5]", 5), "a hole"},
    {"F19_Trailing", One("U8", "[4]", "[0,4]", 5), "1 trailing bytes"},
    {"F19_DataWithoutTensors", File("{}", 1), "1 trailing bytes"},
    {"F20_TooFewBytes", One("F32", "[2,3]", "[0,23]", 23),
     "tensor 'w': expected 24 bytes for F32 [2, 3], found data_offsets of 23 bytes"},
    {"F20_TooManyBytes", One("F32", "[2,3]", "[0,25]", 25), "found data_offsets of 25 bytes"},
    {"F21_ProductWraps", One("U8", "[4294967296,4294967296]", "[0,0]", 0), "overflow"},
    {"F21_BitsWrap", One("F32", "[2305843009213693952]", "[0,0]", 0), "overflow"},
    {"F22_Negative", One("U8", "[-1]", "[0,1]", 1), "at least 0, found -1"},
    {"F22_TwoNegatives", One("U8", "[-1,-1]", "[0,1]", 1), "at least 0, found -1"},
    {"F22_Fraction", One("U8", "[1.5]", "[0,1]", 1), "expected an integer, found 1.5"},
    {"F22_String", One("U8", "[\"1\"]", "[0,1]", 1), "expected an integer"},
    {"F22_Huge", One("U8", "[1e30]", "[0,1]", 1), "expected an integer"},
    {"F22_AboveInt64", One("U8", "[18446744073709551615]", "[0,1]", 1), "below 2^63"},
    {"ShapeNotList", One("U8", "4", "[0,4]", 4), "list of integers"},
    {"OffsetsNotPair", One("U8", "[4]", "[0,4,4]", 4), "[begin, end]"},
    {"OffsetsFraction", One("U8", "[4]", "[0,4.0]", 4), "expected an integer"},
    {"F25_UnknownDtype", One("F7", "[1]", "[0,1]", 1), "tensor 'w': expected a dtype of"},
    {"F25_DtypeCase", One("bf16", "[1]", "[0,2]", 2), "found 'bf16'"},
    {"SubByteNotWhole", One("F4", "[3]", "[0,2]", 2), "whole number of bytes, found 12 bits"},
};

std::string CaseName(const testing::TestParamInfo<BadFile>& test) { return test.param.what; }

INSTANTIATE_TEST_SUITE_P(Length, BadFileTest, testing::ValuesIn(kBadLengths), CaseName);
INSTANTIATE_TEST_SUITE_P(Json, BadFileTest, testing::ValuesIn(kBadJson), CaseName);
INSTANTIATE_TEST_SUITE_P(Tensor, BadFileTest, testing::ValuesIn(kBadTensors), CaseName);

TEST(SafetensorsHeader, TensorsComeInTheOrderOfTheirData) {
  // Writers pad with spaces.
  const std::string header =
      fmt::format(R"({{{},{},"__metadata__":{{"format":"pt"}}}}  )",
                  Entry("b", "BF16", "[1,2]", "[0,4]"), Entry("a", "F32", "[1]", "[4,8]"));
  const auto tensors = Parse(File(header, 8));
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].first, "b");
  EXPECT_EQ((*tensors)[0].second.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ((*tensors)[0].second.begin, static_cast<int64_t>(8 + header.size()));
  EXPECT_EQ((*tensors)[0].second.bytes, 4);
  EXPECT_EQ((*tensors)[1].first, "a");
  EXPECT_EQ((*tensors)[1].second.begin, static_cast<int64_t>(12 + header.size()));
}

TEST(SafetensorsHeader, ScalarsAndEmptyTensorsAreValid) {
  const std::string header =
      Braces(Entry("s", "F32", "[]", "[0,4]") + "," + Entry("z0", "F32", "[0,7]", "[0,0]") + "," +
             Entry("z1", "I64", "[3,0]", "[4,4]"));
  const auto tensors = Parse(File(header, 4));
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  EXPECT_EQ(tensors->size(), 3u);
}

TEST(SafetensorsHeader, FileWithoutTensorsIsValid) {
  const auto tensors = Parse(File("{}", 0));
  ASSERT_TRUE(tensors.has_value());
  EXPECT_TRUE(tensors->empty());
}

TEST(SafetensorsHeader, KnowsEveryDtypeOfTheFormatAndItsSize) {
  const std::pair<const char*, int> kBitsOf[] = {
      {"BOOL", 8},        {"U8", 8},          {"I8", 8},   {"U16", 16},    {"I16", 16},
      {"U32", 32},        {"I32", 32},        {"U64", 64}, {"I64", 64},    {"F16", 16},
      {"BF16", 16},       {"F32", 32},        {"F64", 64}, {"C64", 64},    {"F8_E4M3", 8},
      {"F8_E5M2", 8},     {"F8_E8M0", 8},     {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
      {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
  };
  for (const auto& [dtype, bits] : kBitsOf) {
    const auto bytes = static_cast<size_t>(bits);  // of eight elements
    EXPECT_TRUE(Parse(One(dtype, "[8]", fmt::format("[0,{}]", bytes), bytes)).has_value()) << dtype;
    EXPECT_FALSE(Parse(One(dtype, "[8]", fmt::format("[0,{}]", bytes + 1), bytes + 1)).has_value())
        << dtype;
  }
}

TEST(SafetensorsHeader, F30_LongNamesAreCutInMessages) {
  const auto parsed =
      Parse(File(Braces(Entry(std::string(1 << 20, 'n'), "U8", "[2]", "[0,1]")), 1));
  ASSERT_FALSE(parsed.has_value());
  EXPECT_LT(parsed.error().message.size(), 1000u);
  EXPECT_PRED2(Contains, parsed.error().message, "(1048576 bytes)");
}

TEST(SafetensorsHeader, F31_TooManyTensorsAreRefused) {
  std::string header = "{";
  for (int i = 0; i < 300'000; ++i)
    header += fmt::format("{}\"{}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                          i == 0 ? "" : ",", i);
  const auto parsed = Parse(File(header + "}", 0));
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code, Code::kCorrupt);
  EXPECT_PRED2(Contains, parsed.error().message, "more than 2000000 elements");
}

// After any change of a single byte, the parser returns an error or tensors inside the file.
TEST(SafetensorsHeader, EveryOneByteChangeIsRefusedOrHarmless) {
  const std::string good = Two("[0,4]", "[4,8]", 8);
  ASSERT_TRUE(Parse(good).has_value());
  for (size_t at = 0; at < good.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::string changed = good;
      changed[at] = static_cast<char>(value);
      const auto tensors = Parse(changed);
      if (!tensors) continue;
      for (const auto& [name, tensor] : *tensors) {
        EXPECT_GE(tensor.begin, 8);
        EXPECT_LE(tensor.begin + tensor.bytes, static_cast<int64_t>(changed.size())) << name;
      }
    }
}

TEST(SafetensorsHeader, F32_EveryTruncationIsRefused) {
  const std::string good = Two("[0,4]", "[4,8]", 8);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(Parse(good.substr(0, size)).has_value()) << size;
}

}  // namespace
}  // namespace latte::safetensors_header_test
