// Metadata of every architecture with one bad value each: the refusal names the key and says what
// was expected and what to do.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/config/gguf/gguf_config.h"
#include "src/checkpoint/gguf/gguf_header.h"
#include "tests/support/checkpoint/gguf_model.h"

namespace latte::gguf_config_malformed_test {
namespace {

using namespace testing_support;  // NOLINT: the writer's functions

struct BadValue {
  const char* what;
  uint32_t type;  // kGgufArray: of one u32
  std::string bytes;
};

std::string Array() {
  return GgufNumber<uint32_t>(kGgufU32) + GgufNumber<uint64_t>(1) + GgufNumber<uint32_t>(7);
}

const std::vector<BadValue>& BadInts() {
  static const std::vector<BadValue> kAll = {
      {"text", kGgufText, GgufString("12")},
      {"empty text", kGgufText, GgufString("")},
      {"array", kGgufArray, Array()},
      {"bool", kGgufBool, "\1"},
      {"f32", kGgufF32, GgufNumber(64.0f)},
      {"f64", kGgufF64, GgufNumber(64.0)},
      {"-1", kGgufI32, GgufNumber<int32_t>(-1)},
      {"-128", kGgufI8, GgufNumber<int8_t>(-128)},
      {"least", kGgufI64, GgufNumber(std::numeric_limits<int64_t>::min())},
      {"2^40 + 1", kGgufU64, GgufNumber((uint64_t{1} << 40) + 1)},
      {"2^63", kGgufU64, GgufNumber(uint64_t{1} << 63)},
      {"largest", kGgufI64, GgufNumber(std::numeric_limits<int64_t>::max())},
  };
  return kAll;
}

const std::vector<BadValue>& BadNumbers() {
  static const std::vector<BadValue> kAll = {
      {"text", kGgufText, GgufString("1.5")},
      {"array", kGgufArray, Array()},
      {"bool", kGgufBool, "\1"},
      {"u32", kGgufU32, GgufNumber<uint32_t>(1)},
      {"NaN", kGgufF32, GgufNumber(std::nanf(""))},
      {"infinity", kGgufF32, GgufNumber(std::numeric_limits<float>::infinity())},
      {"-infinity of f64", kGgufF64, GgufNumber(-std::numeric_limits<double>::infinity())},
      {"-1", kGgufF32, GgufNumber(-1.0f)},
      {"1e38", kGgufF32, GgufNumber(1e38f)},
      {"1e300", kGgufF64, GgufNumber(1e300)},
      {"-1e300", kGgufF64, GgufNumber(-1e300)},
  };
  return kAll;
}

const std::vector<BadValue>& BadBools() {
  static const std::vector<BadValue> kAll = {{"u8", kGgufU8, "\1"},
                                             {"u32", kGgufU32, GgufNumber<uint32_t>(1)},
                                             {"text", kGgufText, GgufString("true")},
                                             {"array", kGgufArray, Array()}};
  return kAll;
}

const std::vector<BadValue>& BadTexts() {
  static const std::vector<BadValue> kAll = {{"u32", kGgufU32, GgufNumber<uint32_t>(1)},
                                             {"array", kGgufArray, Array()},
                                             {"empty", kGgufText, GgufString("")},
                                             {"other", kGgufText, GgufString("a\nb\x1b[2J")}};
  return kAll;
}

// The published models, one or two of each architecture.
std::vector<std::pair<std::string, GgufModel>> Models() {
  std::vector<std::pair<std::string, GgufModel>> out;
  for (const char* name : {"v2", "v3", "kimi_k2", "v3_2", "glm_5", "mistral_small_4"})
    out.emplace_back(name, PublishedGguf(name));
  for (auto& [name, model] : out) {
    const std::string a = GgufArchitectureOf(PublishedConfig(name)) + ".";
    if (a == "glm-dsa.") continue;  // no YaRN
    model.F32(a + "rope.scaling.yarn_beta_fast", 32);
    model.F32(a + "rope.scaling.yarn_beta_slow", 1);
    if (a == "mistral4.") model.F32(a + "attention.temperature_scale", 0.1);
  }
  return out;
}

std::string ErrorOf(const GgufModel& model) {
  const std::string bytes = model.Bytes();
  const std::string path = "m.gguf";
  const auto header = ParseGgufHeader(std::as_bytes(std::span(bytes)), path);
  if (!header) return header.error().message;
  const Result<ModelConfig> config =
      ParseGgufConfig(header->metadata, header->tensors, [&](const StoredTensor& tensor) {
        return std::as_bytes(std::span(bytes))
            .subspan(static_cast<size_t>(tensor.begin), static_cast<size_t>(tensor.bytes));
      });
  return config ? "no error" : config.error().message;
}

void ExpectClear(const std::string& message) {
  EXPECT_TRUE(message.starts_with("m.gguf")) << message;
  EXPECT_NE(message.find("expected "), std::string::npos) << message;
  EXPECT_NE(message.find(", found "), std::string::npos) << message;
  EXPECT_NE(message.find("; take "), std::string::npos) << message;
  EXPECT_EQ(message.find_first_of(std::string_view("\n\r\x1b\0", 4)), std::string::npos);
  EXPECT_LT(message.size(), 600u) << message;
}

// Whether the text has rules of its own: gguf_config_test.cc, gguf_tokenizer_refusals_test.cc.
bool IsName(const std::string& key) {
  return key == "general.architecture" || key == "tokenizer.ggml.pre";
}

// Whether the key is not read: the keys with _mla describe the heads.
bool IsUnread(const std::string& key) {
  return key.ends_with("head_count_kv") || key.ends_with("attention.key_length") ||
         key.ends_with("attention.value_length");
}

// The type of the value that `entry` has after `key`.
uint32_t TypeOf(const std::string& key, const std::string& entry) {
  uint32_t type = 0;
  std::memcpy(&type, entry.data() + GgufString(key).size(), sizeof(type));
  return type;
}

const std::vector<BadValue>& BadValuesFor(uint32_t type) {
  if (type == kGgufU32) return BadInts();
  if (type == kGgufF32) return BadNumbers();
  return type == kGgufBool ? BadBools() : BadTexts();
}

TEST(GgufConfigMalformed, EveryKeyOfEveryArchitecture) {
  int refused = 0;
  for (const auto& [name, good] : Models()) {
    ASSERT_EQ(ErrorOf(good), "no error") << name;
    for (const auto& [key, entry] : good.entries) {
      if (IsUnread(key) || key == "general.name") continue;
      for (const BadValue& bad : BadValuesFor(TypeOf(key, entry))) {
        if (bad.type == kGgufText && IsName(key)) continue;
        SCOPED_TRACE(fmt::format("{}: {} = {}", name, key, bad.what));
        GgufModel m = good;
        m.entries[key] = GgufEntry(key, bad.type, bad.bytes);
        const std::string message = ErrorOf(m);
        ExpectClear(message);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

// Sizes that are 0 in no model.
TEST(GgufConfigMalformed, SizesOfZero) {
  for (const auto& [name, good] : Models())
    for (const char* size :
         {"block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size",
          "attention.head_count", "attention.key_length_mla", "attention.value_length_mla",
          "rope.dimension_count", "expert_used_count", "expert_feed_forward_length",
          "rope.scaling.original_context_length", "attention.indexer.head_count",
          "attention.indexer.key_length", "attention.indexer.top_k"}) {
      const std::string key = fmt::format("{}.{}", GgufArchitectureOf(PublishedConfig(name)), size);
      if (!good.entries.contains(key)) continue;
      SCOPED_TRACE(fmt::format("{}: {}", name, key));
      GgufModel m = good;
      m.U32(key, 0);
      ExpectClear(ErrorOf(m));
    }
}

// Numbers that are each possible, and not together.
TEST(GgufConfigMalformed, NumbersThatContradictOneAnother) {
  struct {
    const char *model, *key;
    int64_t value;
  } const cases[] = {
      {"v3", "deepseek2.expert_used_count", 257},
      {"v3", "deepseek2.expert_count", 7},
      {"v3", "deepseek2.leading_dense_block_count", 62},
      {"v3", "deepseek2.rope.dimension_count", 192},
      {"v3", "deepseek2.rope.dimension_count", 63},
      {"v3", "deepseek2.attention.key_length_mla", 64},
      {"v3", "deepseek2.nextn_predict_layers", 61},
      {"v3", "deepseek2.block_count", 100'000},
      {"v3", "deepseek2.embedding_length", 1 << 30},
      {"v3", "deepseek2.expert_count", 1'000'000},
      {"v3", "tokenizer.ggml.eos_token_id", 129'280},
      {"v3", "tokenizer.ggml.bos_token_id", 4'000'000'000},
      {"v3_2", "deepseek32.attention.indexer.key_length", 63},
      {"v3_2", "deepseek32.attention.indexer.head_count", 100'000},
      {"glm_5", "glm-dsa.nextn_predict_layers", 79},
      {"glm_5", "glm-dsa.expert_gating_func", 3},
      {"mistral_small_4", "mistral4.attention.temperature_length", 4096},
      {"kimi_k2", "deepseek2.expert_group_count", 1},
  };
  for (const auto& [name, key, value] : cases) {
    SCOPED_TRACE(fmt::format("{}: {} = {}", name, key, value));
    GgufModel m = PublishedGguf(name);
    m.U32(key, value);
    const std::string message = ErrorOf(m);
    EXPECT_NE(message, "no error");
    EXPECT_NE(message.find("; take "), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace latte::gguf_config_malformed_test
