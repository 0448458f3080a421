#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/container/tensor_files.h"

namespace latte::safetensors_test {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

namespace fs = std::filesystem;

// A model folder that exists for the duration of one test.
class Folder : public testing::Test {
 protected:
  Folder() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(testing::TempDir()) / fmt::format("latte_{}_{}", getpid(), info->name());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  ~Folder() override { fs::remove_all(dir_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(dir_ / name, std::ios::binary) << content;
  }
  void WriteIndex(const std::string& weight_map) const {
    Write("model.safetensors.index.json", fmt::format(R"({{"weight_map":{}}})", weight_map));
  }
  Result<Checkpoint> Open() const { return Checkpoint::Open(dir_.string()); }
  // The error of Open, after checking its code.
  std::string OpenError(Code code) const {
    const auto opened = Open();
    if (opened) {
      ADD_FAILURE() << "opened";
      return "";
    }
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_FALSE(Contains(opened.error().message, "\n"));
    return opened.error().message;
  }

  fs::path dir_;
};

using CheckpointTest = Folder;

// A file whose tensors have one byte each; byte i has the value i.
std::string Shard(const std::vector<std::string>& names) {
  std::string header = "{";
  for (size_t i = 0; i < names.size(); ++i)
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", names[i], i, i + 1);
  header += "}";
  const uint64_t n = header.size();
  std::string out(sizeof n, '\0');
  std::memcpy(out.data(), &n, sizeof n);
  out += header;
  for (size_t i = 0; i < names.size(); ++i) out += static_cast<char>(i);
  return out;
}

TEST_F(CheckpointTest, ViewShowsTheBytesOfTheFile) {
  Write("model.safetensors", Shard({"a", "b"}));
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 2u);
  EXPECT_EQ(checkpoint->Find("c"), nullptr);
  const StoredTensor* b = checkpoint->Find("b");
  ASSERT_NE(b, nullptr);
  const TensorView view = checkpoint->View(*b);
  EXPECT_EQ(view.dtype, DType::kU8);
  EXPECT_EQ(view.rank, 1);
  EXPECT_EQ(view.shape[0], 1);
  EXPECT_EQ(*view.data, std::byte{1});
}

TEST_F(CheckpointTest, F37_TensorsMayLieUnaligned) {
  const std::string header = R"({"pad":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("w":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  const float value = 1.5f;
  file += header + "\x01" + std::string(reinterpret_cast<const char*>(&value), sizeof value);
  Write("model.safetensors", file);
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  float found = 0;
  std::memcpy(&found, checkpoint->View(*checkpoint->Find("w")).data, sizeof found);
  EXPECT_EQ(found, value);
}

TEST_F(CheckpointTest, ViewsOutliveTheCheckpointWhileItsFilesAreHeld) {
  Write("model.safetensors", Shard({"a", "b"}));
  std::vector<std::shared_ptr<const MappedFile>> files;
  TensorView view;
  {
    const auto checkpoint = Open();
    ASSERT_TRUE(checkpoint.has_value());
    files = checkpoint->files();
    view = checkpoint->View(*checkpoint->Find("b"));
  }
  EXPECT_EQ(*view.data, std::byte{1});
}

TEST_F(CheckpointTest, ShardsAreFoundByTheIndex) {
  Write("x.safetensors", Shard({"a", "b"}));
  Write("y.safetensors", Shard({"c"}));
  Write("unrelated.safetensors", "junk");
  Write("model.safetensors.index.json",
        R"({"metadata":{"total_size":99999},)"  // P06: total_size is wrong and ignored
        R"("weight_map":{"a":"x.safetensors","b":"x.safetensors","c":"y.safetensors"}})");
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 3u);
  EXPECT_EQ(checkpoint->files().size(), 2u);
  EXPECT_EQ(*checkpoint->View(*checkpoint->Find("c")).data, std::byte{0});
  EXPECT_EQ(*checkpoint->View(*checkpoint->Find("b")).data, std::byte{1});
}

TEST_F(CheckpointTest, P08_ShardNamedByManyTensorsIsOpenedOnce) {
  std::vector<std::string> names;
  std::string map = "{";
  for (int i = 0; i < 100'000; ++i) {
    names.push_back(fmt::format("t{}", i));
    map += fmt::format("{}\"t{}\":\"x.safetensors\"", i == 0 ? "" : ",", i);
  }
  Write("x.safetensors", Shard(names));
  WriteIndex(map + "}");
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->files().size(), 1u);
  EXPECT_EQ(checkpoint->tensors().size(), 100'000u);
}

TEST_F(CheckpointTest, P02_ShardNamesCannotLeaveTheFolder) {
  for (const char* name : {"../x.safetensors", "../../etc/passwd", "/etc/passwd", "a/b", "a\\\\b",
                           "..", ".", "", "a..b", "a\\u0000b"}) {
    WriteIndex(fmt::format(R"({{"w":"{}"}})", name));
    EXPECT_PRED2(Contains, OpenError(Code::kCorrupt),
                 "tensor 'w': expected the name of a file in this folder")
        << name;
  }
  WriteIndex(R"({"w":3})");
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "found another type");
}

TEST_F(CheckpointTest, P04_AllMissingShardsAreListed) {
  Write("there.safetensors", Shard({"a"}));
  fs::create_symlink("nowhere", dir_ / "dangling.safetensors");
  WriteIndex(R"({"a":"there.safetensors","b":"m1.safetensors","c":"m2.safetensors",)"
             R"("d":"dangling.safetensors"})");
  const std::string message = OpenError(Code::kNotFound);
  EXPECT_PRED2(Contains, message, "3 shards are missing");
  EXPECT_PRED2(Contains, message, "'m1.safetensors', 'm2.safetensors'");
  EXPECT_PRED2(Contains, message, "'dangling.safetensors'");
  EXPECT_FALSE(Contains(message, "there.safetensors"));
}

// The message is not cut in the middle: names that do not fit are counted.
TEST_F(CheckpointTest, P04_AsManyMissingShardsAreListedAsAMessageHolds) {
  for (const int count : {2, 30, 163, 5000}) {
    std::string map;
    for (int i = 1; i <= count; ++i)
      map += fmt::format(R"({}"t{}":"model-{:05}-of-{:05}.safetensors")", i == 1 ? "" : ",", i, i,
                         count);
    WriteIndex("{" + map + "}");
    const std::string message = OpenError(Code::kNotFound);
    EXPECT_PRED2(Contains, message, fmt::format("{} shards are missing", count));
    EXPECT_FALSE(Contains(message, "…")) << message;
    int listed = 0;
    while (Contains(message, fmt::format("model-{:05}-of", listed + 1))) ++listed;
    EXPECT_EQ(Contains(message, fmt::format(" and {} more", count - listed)), listed < count);
    EXPECT_GE(listed, std::min(count, 30)) << message;
  }
}

TEST_F(CheckpointTest, P05_TensorThatTheIndexPromisesMustBeInItsShard) {
  Write("x.safetensors", Shard({"a"}));
  Write("y.safetensors", Shard({"b"}));
  WriteIndex(R"({"a":"x.safetensors","gone":"x.safetensors"})");
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "x.safetensors: expected tensor 'gone'");
  WriteIndex(R"({"a":"y.safetensors","b":"x.safetensors"})");
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "expected tensor 'b'");
  WriteIndex(R"({"a":"x.safetensors","c":"x.safetensors","b":"y.safetensors"})");
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "expected tensor 'c'");
  Write("x.safetensors", Shard({"a", "c"}));  // read before y, where the index expects "a"
  WriteIndex(R"({"c":"x.safetensors","a":"y.safetensors"})");
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "y.safetensors: expected tensor 'a'");
}

TEST_F(CheckpointTest, F42_TensorInTwoShardsIsRefused) {
  Write("x.safetensors", Shard({"a", "b"}));
  Write("y.safetensors", Shard({"b"}));
  WriteIndex(R"({"a":"x.safetensors","b":"y.safetensors"})");
  const std::string message = OpenError(Code::kCorrupt);
  EXPECT_PRED2(Contains, message, "tensor 'b' stands in two shards");
  EXPECT_PRED2(Contains, message, "x.safetensors");
  EXPECT_PRED2(Contains, message, "y.safetensors");
}

TEST_F(CheckpointTest, F19_EveryShardIsCheckedWhollyEvenWhereNobodyReadsIt) {
  Write("x.safetensors", Shard({"a"}));
  Write("y.safetensors", Shard({"unused"}) + "PK");
  WriteIndex(R"({"a":"x.safetensors","unused":"y.safetensors"})");
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "y.safetensors: expected the file to end");
}

TEST_F(CheckpointTest, P07_HugeIndexIsRefusedUnread) {
  WriteIndex("{}");
  fs::resize_file(dir_ / "model.safetensors.index.json", 500u << 20);  // sparse
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "expected at most 67108864 bytes");
}

TEST_F(CheckpointTest, BadIndexesAreRefused) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "not valid JSON"},
      {"[]", "expected an object"},
      {"{}", "'weight_map' is missing"},
      {R"({"weight_map":{}})", "at least one tensor"},
      {R"({"weight_map":[1]})", "at least one tensor"},
      {R"({"weight_map":{"a":"x","a":"y"}})", "stands twice"},
      {R"({"weight_map":{"a\nb":"x","a\nb":"y"}})", "a\\x0ab"},
      {R"({"weight_map":{"a":"x"},"b":[[[[[[[[1]]]]]]]]})", "nested deeper than 8"},
  };
  for (const auto& [index, words] : kCases) {
    Write("model.safetensors.index.json", index);
    const std::string message = OpenError(Code::kCorrupt);
    EXPECT_PRED2(Contains, message, "model.safetensors.index.json");
    EXPECT_PRED2(Contains, message, words);
  }
}

TEST_F(CheckpointTest, P01_ShardsWithoutIndexAreScanned) {
  Write("model-00001-of-000003.safetensors", Shard({"a"}));  // DeepSeek-V3 spells 5 and 6 digits
  Write("model-00002-of-000003.safetensors", Shard({"b"}));
  Write("model-best.safetensors", "junk");
  Write("model-1-of-x.safetensors", "junk");
  EXPECT_PRED2(Contains, OpenError(Code::kNotFound),
               "1 shard is missing: 'model-00003-of-000003.safetensors'");
  Write("model-00003-of-000003.safetensors", Shard({"c"}));
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 3u);
  Write("model-00001-of-000002.safetensors", Shard({"d"}));
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "both -of-000002 and -of-000003");
}

TEST_F(CheckpointTest, P01_ShardNamesWithHugeNumbersAreHarmless) {
  Write("model-1-of-9223372036854775807.safetensors", Shard({"a"}));
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "expected at most");
  fs::remove(dir_ / "model-1-of-9223372036854775807.safetensors");
  Write("model-1-of-99999999999999999999.safetensors", Shard({"a"}));
  EXPECT_PRED2(Contains, OpenError(Code::kNotFound), "found neither");
  Write("model-1-of-5000.safetensors", Shard({"a"}));
  const std::string message = OpenError(Code::kNotFound);
  EXPECT_PRED2(Contains, message, "4999 shards are missing");
  EXPECT_PRED2(Contains, message, " more; download the checkpoint again");
}

TEST_F(CheckpointTest, P09_FolderThatIsNone) {
  EXPECT_PRED2(Contains, OpenError(Code::kNotFound), "expected model.safetensors or");
  Write("f", "x");
  auto opened = Checkpoint::Open((dir_ / "f").string());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Code::kInvalidArgument);
  EXPECT_PRED2(Contains, opened.error().message, "expected a model folder, found a file");
  opened = Checkpoint::Open((dir_ / "none").string());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Code::kNotFound);
  opened = Checkpoint::Open((dir_ / "\xff\xfe").string());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Code::kNotFound);
}

TEST_F(CheckpointTest, P03_LinksToRegularFilesAreFollowed) {
  fs::create_directories(dir_ / "blobs");
  Write("blobs/0123abcd", Shard({"a"}));
  fs::create_symlink("blobs/0123abcd", dir_ / "model.safetensors");
  EXPECT_TRUE(Open().has_value());
}

TEST_F(CheckpointTest, F34_WhatIsNoRegularFileIsRefusedWithoutHanging) {
  const fs::path path = dir_ / "model.safetensors";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "a device, pipe or socket");
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "a directory");
  fs::remove(path);
  fs::create_symlink("/dev/zero", path);
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "a device, pipe or socket");
  fs::remove(path);
  fs::create_symlink("nowhere", path);
  EXPECT_PRED2(Contains, OpenError(Code::kNotFound), "'model.safetensors'");
}

TEST_F(CheckpointTest, F34_UnreadableFileIsUnavailable) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  Write("model.safetensors", Shard({"a"}));
  fs::permissions(dir_ / "model.safetensors", fs::perms::none);
  EXPECT_PRED2(Contains, OpenError(Code::kUnavailable), "Permission denied");
}

TEST_F(CheckpointTest, EmptyFileIsRefused) {
  Write("model.safetensors", "");
  EXPECT_PRED2(Contains, OpenError(Code::kCorrupt), "too small");
}

TEST_F(CheckpointTest, OneFileIsPreferredToAnIndex) {
  Write("model.safetensors", Shard({"a"}));
  WriteIndex(R"({"a":"gone.safetensors"})");
  EXPECT_TRUE(Open().has_value());
}

TEST(ToDType, KnowsWhatLatteComputesWithAndNamesItOtherwise) {
  EXPECT_EQ(ToDType("BF16").value(), DType::kBF16);
  EXPECT_EQ(ToDType("F32").value(), DType::kF32);
  EXPECT_EQ(ToDType("F16").value(), DType::kF16);
  EXPECT_EQ(ToDType("F8_E4M3").value(), DType::kF8E4M3);
  EXPECT_EQ(ToDType("F8_E4M3FNUZ").value(), DType::kF8E4M3Fnuz);
  EXPECT_EQ(ToDType("I8").value(), DType::kI8);
  EXPECT_EQ(ToDType("U8").value(), DType::kU8);
  EXPECT_EQ(ToDType("I32").value(), DType::kI32);
  EXPECT_EQ(ToDType("I64").value(), DType::kI64);
  EXPECT_EQ(ToDType("BOOL").value(), DType::kBool);
  for (const char* name : {"F64", "U16", "F4", "", "bf16"}) {
    const auto dtype = ToDType(name);
    ASSERT_FALSE(dtype.has_value()) << name;
    EXPECT_EQ(dtype.error().code, Code::kUnsupported);
    EXPECT_PRED2(Contains, dtype.error().message, "BF16, F8_E4M3");
  }
}

}  // namespace
}  // namespace latte::safetensors_test
