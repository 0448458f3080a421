#include "src/checkpoint/gguf/gguf.h"

#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/checkpoint/gguf_writer.h"
#include "tests/support/scratch_dir.h"

namespace latte::gguf_test {
namespace {

using namespace testing_support;  // NOLINT: the writer's functions

std::string SplitEntries(uint16_t index, uint16_t count, int32_t tensors) {
  return GgufEntry("split.no", kGgufU16, GgufNumber(index)) +
         GgufEntry("split.count", kGgufU16, GgufNumber(count)) +
         GgufEntry("split.tensors.count", kGgufI32, GgufNumber(tensors));
}

class GgufFilesTest : public testing::Test {
 protected:
  void Write(const std::string& name, const GgufImage& image) const {
    std::ofstream(dir_.File(name), std::ios::binary) << image.Bytes();
  }
  // A part with a tensor of one F32 if `tensor` is not empty.
  void WritePart(const std::string& name, const std::string& tensor, const std::string& split,
                 uint64_t split_entries = 3) const {
    GgufImage image;
    image.entries = {split, GgufTextEntry("general.name", name)};
    image.entry_count = split_entries + 1;
    if (!tensor.empty()) {
      image.tensors = {GgufTensorInfo(tensor, {1}, 0, 0)};
      image.data = GgufNumber(1.5f);
    }
    Write(name, image);
  }
  // Three parts, the first without tensors.
  void WriteSet() const {
    WritePart("m-00001-of-00003.gguf", "", SplitEntries(0, 3, 2));
    WritePart("m-00002-of-00003.gguf", "x", SplitEntries(1, 3, 2));
    WritePart("m-00003-of-00003.gguf", "y", SplitEntries(2, 3, 2));
  }
  Result<GgufFiles> Open(const std::string& name) const { return GgufFiles::Open(dir_.File(name)); }
  std::string OpenError(const std::string& name, Code code = Code::kCorrupt) const {
    const auto opened = Open(name);
    if (opened) {
      ADD_FAILURE() << name << " opened";
      return "";
    }
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_TRUE(opened.error().message.starts_with(dir_.path()));
    return opened.error().message;
  }

  ScratchDir dir_;
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

GgufImage Small(uint32_t version) {
  GgufImage image;
  image.version = version;
  image.entries = {
      GgufEntry("u8", kGgufU8, "\xff"),
      GgufEntry("i8", kGgufI8, "\xff"),
      GgufEntry("u16", kGgufU16, "\xff\xff"),
      GgufEntry("i16", kGgufI16, "\xfe\xff"),
      GgufU32Entry("u32", 0xffffffffu),
      GgufEntry("i32", kGgufI32, GgufNumber(-3)),
      GgufEntry("u64", kGgufU64, GgufNumber(uint64_t{1} << 40)),
      GgufEntry("i64", kGgufI64, GgufNumber(-(int64_t{1} << 40))),
      GgufEntry("u64_large", kGgufU64, GgufNumber(uint64_t{1} << 63)),
      GgufF32Entry("f32", 0.25f),
      GgufEntry("f64", kGgufF64, GgufNumber(0.1)),
      GgufF32Entry("nan", std::numeric_limits<float>::quiet_NaN()),
      GgufEntry("infinity", kGgufF64, GgufNumber(std::numeric_limits<double>::infinity())),
      GgufEntry("yes", kGgufBool, "\1"),
      GgufTextEntry("text", std::string_view("a\0b", 3)),
      GgufTextEntry("empty", ""),
      GgufArrayEntry("ints", kGgufI16, 2, GgufNumber<int16_t>(-1) + GgufNumber<int16_t>(7)),
      GgufArrayEntry("none", kGgufU64, 0, ""),
      GgufArrayEntry("bools", kGgufBool, 3, std::string_view("\1\0\1", 3)),
      GgufArrayEntry("texts", kGgufText, 3, GgufString("x") + GgufString("") + GgufString("zz")),
      GgufArrayEntry("floats", kGgufF32, 1, GgufNumber(1.0f)),
  };
  image.tensors = {GgufTensorInfo("late", {32, 2}, 8, 64), GgufTensorInfo("early", {2, 3}, 0, 0)};
  image.data = std::string(64, '\1') + std::string(68, '\2');
  return image;
}

TEST_F(GgufFilesTest, TensorsAreBytesOfTheFileInEitherVersion) {
  for (const uint32_t version : {2u, 3u}) {
    Write("a.gguf", Small(version));
    const auto opened = Open("a.gguf");
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    EXPECT_EQ(opened->tensors().size(), 2u);
    EXPECT_EQ(opened->files().size(), 1u);
    EXPECT_EQ(opened->Find("other"), nullptr);
    const StoredTensor* late = opened->Find("late");
    ASSERT_NE(late, nullptr);
    EXPECT_EQ(late->dtype_name, "Q8_0");
    EXPECT_EQ(late->shape, (std::vector<int64_t>{2, 32}));
    const auto bytes = opened->Bytes(*late);
    EXPECT_EQ(bytes.size(), 68u);
    for (const std::byte byte : bytes) EXPECT_EQ(byte, std::byte{2});
    const StoredTensor* early = opened->Find("early");
    ASSERT_NE(early, nullptr);
    EXPECT_EQ(early->dtype_name, "F32");
    EXPECT_EQ(early->bytes, 24);
    EXPECT_EQ(opened->Bytes(*early).front(), std::byte{1});
  }
}

TEST_F(GgufFilesTest, DataMayBeAtAnyAlignmentAndEndAnywhere) {
  for (const uint32_t alignment : {1u, 8u, 4096u, 1u << 20}) {
    GgufImage image;
    image.alignment = alignment;
    image.entries = {GgufU32Entry("general.alignment", alignment)};
    image.tensors = {GgufTensorInfo("a", {1}, 0, 0), GgufTensorInfo("b", {1}, 1, 2 * alignment)};
    image.data = std::string(2 * alignment + 2, '\3') + "trailing";
    if (alignment < 4) image.tensors = {GgufTensorInfo("b", {1}, 1, 2 * alignment)};
    Write("a.gguf", image);
    const auto opened = Open("a.gguf");
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    EXPECT_EQ(opened->Bytes(*opened->Find("b"))[1], std::byte{3});
  }
}

TEST_F(GgufFilesTest, AbsentKeysAreNoErrors) {
  Write("a.gguf", Small(3));
  const auto opened = Open("a.gguf");
  ASSERT_TRUE(opened.has_value());
  const GgufMetadata& in = opened->metadata();
  EXPECT_EQ(in.Find("absent"), nullptr);
  EXPECT_EQ(in.Int("absent").value(), std::nullopt);
  EXPECT_EQ(in.Number("absent").value(), std::nullopt);
  EXPECT_EQ(in.Bool("absent").value(), std::nullopt);
  EXPECT_EQ(in.String("absent").value(), std::nullopt);
  EXPECT_EQ(in.Ints("absent").value(), std::nullopt);
  EXPECT_EQ(in.Bools("absent").value(), std::nullopt);
  EXPECT_EQ(in.Strings("absent").value(), std::nullopt);
}

TEST_F(GgufFilesTest, ValuesAreReadInEveryType) {
  Write("a.gguf", Small(3));
  const auto opened = Open("a.gguf");
  ASSERT_TRUE(opened.has_value());
  const GgufMetadata& in = opened->metadata();
  EXPECT_EQ(in.entries().size(), 21u);
  EXPECT_EQ(in.Int("u8").value(), 255);
  EXPECT_EQ(in.Int("i8").value(), -1);
  EXPECT_EQ(in.Int("u16").value(), 65535);
  EXPECT_EQ(in.Int("i16").value(), -2);
  EXPECT_EQ(in.Int("u32").value(), 0xffffffff);
  EXPECT_EQ(in.Int("i32").value(), -3);
  EXPECT_EQ(in.Int("u64").value(), int64_t{1} << 40);
  EXPECT_EQ(in.Int("i64").value(), -(int64_t{1} << 40));
  EXPECT_EQ(in.Number("f32").value(), 0.25);
  EXPECT_EQ(in.Number("f64").value(), 0.1);
  EXPECT_EQ(in.Bool("yes").value(), true);
  EXPECT_EQ(in.String("text").value(), std::string_view("a\0b", 3));
  EXPECT_EQ(in.String("empty").value(), "");
  EXPECT_EQ(in.Ints("ints").value(), (std::vector<int64_t>{-1, 7}));
  EXPECT_EQ(in.Ints("none").value(), std::vector<int64_t>());
  EXPECT_EQ(in.Bools("bools").value(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(in.Strings("texts").value(), (std::vector<std::string_view>{"x", "", "zz"}));
}

template <class T>
std::string MessageOf(const Result<T>& result) {
  if (result) return "no error";
  EXPECT_EQ(result.error().code, Code::kCorrupt);
  return result.error().message;
}

TEST_F(GgufFilesTest, ValuesOfAnotherTypeAreErrors) {
  Write("a.gguf", Small(3));
  const auto opened = Open("a.gguf");
  ASSERT_TRUE(opened.has_value());
  const GgufMetadata& in = opened->metadata();
  const auto message = [&](std::string_view key, std::string_view rest) {
    return fmt::format("{}: metadata key '{}': expected {}; take another copy of the model",
                       dir_.File("a.gguf"), key, rest);
  };
  EXPECT_EQ(MessageOf(in.Int("f32")), message("f32", "an integer, found a value of type f32"));
  EXPECT_EQ(MessageOf(in.Int("yes")), message("yes", "an integer, found a value of type bool"));
  EXPECT_EQ(MessageOf(in.Int("ints")),
            message("ints", "an integer, found an array of 2 values of type i16"));
  EXPECT_EQ(MessageOf(in.Int("u64_large")),
            message("u64_large", "an integer below 2^63, found 9223372036854775808"));
  EXPECT_EQ(MessageOf(in.Number("u32")),
            message("u32", "a floating-point number, found a value of type u32"));
  EXPECT_EQ(MessageOf(in.Number("nan")), message("nan", "a finite number, found nan"));
  EXPECT_EQ(MessageOf(in.Number("infinity")), message("infinity", "a finite number, found inf"));
  EXPECT_EQ(MessageOf(in.Number("floats")),
            message("floats", "a floating-point number, found an array of 1 values of type f32"));
  EXPECT_EQ(MessageOf(in.Bool("u8")), message("u8", "true or false, found a value of type u8"));
  EXPECT_EQ(MessageOf(in.String("texts")),
            message("texts", "a string, found an array of 3 values of type string"));
  EXPECT_EQ(MessageOf(in.Ints("u32")),
            message("u32", "an array of integers, found a value of type u32"));
  EXPECT_EQ(MessageOf(in.Ints("floats")),
            message("floats", "an array of integers, found an array of 1 values of type f32"));
  EXPECT_EQ(MessageOf(in.Bools("yes")),
            message("yes", "an array of true and false, found a value of type bool"));
  EXPECT_EQ(MessageOf(in.Strings("text")),
            message("text", "an array of strings, found a value of type string"));
}

TEST_F(GgufFilesTest, AnyPartOpensTheSet) {
  WriteSet();
  for (int i = 1; i <= 3; ++i) {
    const auto opened = Open(fmt::format("m-{:05}-of-00003.gguf", i));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    EXPECT_EQ(opened->files().size(), 3u);
    EXPECT_EQ(opened->tensors().size(), 2u);
    EXPECT_EQ(opened->Find("x")->file_index, 1);
    EXPECT_EQ(opened->Find("y")->file_index, 2);
    EXPECT_EQ(opened->metadata().String("general.name").value(), "m-00001-of-00003.gguf");
  }
}

TEST_F(GgufFilesTest, AFileOfOnePartIsWhole) {
  for (const uint16_t count : {0, 1}) {
    WritePart("any.gguf", "x", SplitEntries(0, count, 1));
    EXPECT_TRUE(Open("any.gguf").has_value());
  }
  WritePart("m-00001-of-00001.gguf", "x", "", 0);
  EXPECT_TRUE(Open("m-00001-of-00001.gguf").has_value());
}

TEST_F(GgufFilesTest, MissingPartsAreListed) {
  WriteSet();
  std::filesystem::remove(dir_.File("m-00001-of-00003.gguf"));
  EXPECT_PRED2(Contains, OpenError("m-00003-of-00003.gguf", Code::kNotFound),
               "expected 3 parts in its folder, found 2; missing: 'm-00001-of-00003.gguf'");
  WritePart("n-00002-of-00020.gguf", "x", SplitEntries(1, 20, 2));
  EXPECT_PRED2(Contains, OpenError("n-00002-of-00020.gguf", Code::kNotFound),
               "'n-00009-of-00020.gguf' and 11 more; download");
}

TEST_F(GgufFilesTest, APartHasItsName) {
  WriteSet();
  std::filesystem::copy(dir_.File("m-00002-of-00003.gguf"), dir_.File("part2.gguf"));
  EXPECT_PRED2(Contains, OpenError("part2.gguf"), "expected the name NAME-00002-of-00003.gguf");
  std::filesystem::copy(dir_.File("m-00002-of-00003.gguf"), dir_.File("m-00002-of-00004.gguf"));
  EXPECT_PRED2(Contains, OpenError("m-00002-of-00004.gguf"), "part 2 of 3, found another");
  WritePart("w-00001-of-00002.gguf", "x", "", 0);
  EXPECT_PRED2(Contains, OpenError("w-00001-of-00002.gguf"), "found no 'split.count'");
}

TEST_F(GgufFilesTest, PartsThatAreLinksToOneAnotherAreRefused) {
  WriteSet();
  std::filesystem::remove(dir_.File("m-00002-of-00003.gguf"));
  std::filesystem::create_symlink("m-00003-of-00003.gguf", dir_.File("m-00002-of-00003.gguf"));
  EXPECT_PRED2(Contains, OpenError("m-00001-of-00003.gguf"),
               "m-00002-of-00003.gguf: expected part 2 of 3, with 2 tensors in all, found part 3");
  EXPECT_PRED2(Contains, OpenError("m-00002-of-00003.gguf"), "expected the name");
  std::filesystem::remove(dir_.File("m-00003-of-00003.gguf"));
  std::filesystem::create_symlink("m-00002-of-00003.gguf", dir_.File("m-00003-of-00003.gguf"));
  EXPECT_PRED2(Contains, OpenError("m-00001-of-00003.gguf", Code::kNotFound), "missing");
}

TEST_F(GgufFilesTest, PartsOfTwoSetsAreRefused) {
  WriteSet();
  WritePart("m-00003-of-00003.gguf", "y", SplitEntries(2, 3, 5));
  EXPECT_PRED2(Contains, OpenError("m-00001-of-00003.gguf"), "found part 3 of 3, with 5;");
  WritePart("m-00003-of-00003.gguf", "y", SplitEntries(2, 4, 2));
  EXPECT_PRED2(Contains, OpenError("m-00001-of-00003.gguf"), "found part 3 of 4");
  WritePart("m-00003-of-00003.gguf", "y", "", 0);
  EXPECT_PRED2(Contains, OpenError("m-00001-of-00003.gguf"), "found part 1 of 1");
}

TEST_F(GgufFilesTest, ASetHasEachTensorOnceAndAllOfThem) {
  WriteSet();
  WritePart("m-00003-of-00003.gguf", "x", SplitEntries(2, 3, 2));
  EXPECT_PRED2(Contains, OpenError("m-00001-of-00003.gguf"),
               "tensor 'x' stands in two parts, here and in " + dir_.File("m-00002-of-00003.gguf"));
  WritePart("m-00003-of-00003.gguf", "", SplitEntries(2, 3, 2));
  EXPECT_PRED2(Contains, OpenError("m-00001-of-00003.gguf"),
               "expected 2 tensors in all parts, as 'split.tensors.count' says, found 1");
  for (int i = 0; i < 3; ++i)
    WritePart(fmt::format("m-{:05}-of-00003.gguf", i + 1), fmt::format("t{}", i),
              SplitEntries(static_cast<uint16_t>(i), 3, 1));
  EXPECT_PRED2(Contains, OpenError("m-00001-of-00003.gguf"), "found 2 in 2 parts");
}

TEST_F(GgufFilesTest, KeysOfPartsAreChecked) {
  const std::string count = GgufEntry("split.count", kGgufU16, GgufNumber<uint16_t>(2));
  const std::string name = "m-00001-of-00002.gguf";
  WritePart(name, "x", count, 1);
  EXPECT_PRED2(Contains, OpenError(name), "metadata key 'split.no' is missing");
  WritePart(name, "x", count + GgufU32Entry("split.no", 0), 2);
  EXPECT_PRED2(Contains, OpenError(name), "metadata key 'split.tensors.count' is missing");
  WritePart(name, "x", SplitEntries(2, 2, 1));
  EXPECT_PRED2(Contains, OpenError(name), "'split.no': expected 0 to 1, found 2");
  WritePart(name, "x", SplitEntries(0, 2, -1));
  EXPECT_PRED2(Contains, OpenError(name), "'split.tensors.count': expected 0 to 1000000, found -1");
  WritePart(name, "x", GgufU32Entry("split.count", 70'000), 1);
  EXPECT_PRED2(Contains, OpenError(name), "'split.count': expected 0 to 65535, found 70000");
  WritePart(name, "x", GgufEntry("split.count", kGgufI32, GgufNumber(-2)), 1);
  EXPECT_PRED2(Contains, OpenError(name), "found -2");
  WritePart(name, "x", GgufTextEntry("split.count", "2"), 1);
  EXPECT_PRED2(Contains, OpenError(name), "expected an integer, found a value of type string");
}

TEST_F(GgufFilesTest, OnlyRegularFilesAreOpened) {
  EXPECT_PRED2(Contains, OpenError("absent.gguf", Code::kNotFound), "cannot be read");
  std::filesystem::create_directory(dir_.File("folder.gguf"));
  EXPECT_PRED2(Contains, OpenError("folder.gguf"), "expected a regular file, found a directory");
}

TEST(GgufPart, NamesOfParts) {
  const auto part = ParseGgufPart("x/my-model-00002-of-00013.gguf");
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->prefix, "x/my-model");
  EXPECT_EQ(part->number, 2);
  EXPECT_EQ(part->count, 13);
  EXPECT_EQ(part->Path(13), "x/my-model-00013-of-00013.gguf");
  for (const char* name :
       {"m.gguf", ".gguf", "00001-of-00002.gguf", "m-00003-of-00002.gguf", "m-00000-of-00002.gguf",
        "m-0001-of-0002.gguf", "m-00001-of-00002.safetensors", "m-0000x-of-00002.gguf",
        "m-+0001-of-00002.gguf", "m-00001_of_00002.gguf"})
    EXPECT_FALSE(ParseGgufPart(name).has_value()) << name;
}

}  // namespace
}  // namespace latte::gguf_test
