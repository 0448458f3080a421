// A safetensors file, or the index of a sharded checkpoint. The first byte of the input selects:
// 'f' a whole file; 'h' a JSON header, to which this target adds a fitting length field and data
// section, so that mutations pass the first checks; 'i' an index.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "src/base/json.h"
#include "src/checkpoint/expected_tensors.h"
#include "src/checkpoint/formats/formats.h"
#include "src/checkpoint/safetensors/safetensors_header.h"
#include "src/checkpoint/safetensors/safetensors_index.h"

namespace latte::fuzz {
namespace {

constexpr int64_t kMostData = 1 << 16;

// A model of a few tensors, for comparing the content of a file with the tensors that a config
// requires.
ModelConfig SmallModel() {
  ModelConfig config;
  config.architecture = "DeepseekV3ForCausalLM";
  config.layers = 1;
  config.vocab = 8;
  config.dense_width = 4;
  config.quant = {{{.format = &kFp8Weights, .block_rows = 2, .block_columns = 2}}};
  config.mla = {.d = 4, .h = 1, .cq = 2, .c = 2, .n = 2, .r = 2, .v = 2};
  return config;
}

// The size of the data section that the header describes, up to a limit.
int64_t DataBytes(std::string_view header) {
  int64_t end = 0;
  const Result<Json> json = Json::Parse(header, "header");
  if (!json) return 0;
  const Status visited = json->ForEachMember([&](const std::string&, const Json& entry) -> Status {
    const std::optional<Json> range = entry.Find("data_offsets");
    if (!range || !range->is_array() || range->size() != 2) return {};
    const Result<int64_t> value = range->At(1).AsInt();
    if (value) end = std::max(end, *value);
    return {};
  });
  return visited ? std::min(end, kMostData) : 0;
}

std::string FileOf(std::string_view header) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += header;
  return file + std::string(static_cast<size_t>(DataBytes(header)), '\0');
}

void CheckFile(std::string_view text) {
  // An exact copy on the heap, so that a read past its end is detected.
  const std::vector<char> copy(text.begin(), text.end());
  const auto bytes = std::as_bytes(std::span(copy));
  const auto tensors = ParseSafetensorsHeader(bytes, "file");
  if (!tensors) {
    Require(tensors.error().code == Code::kCorrupt, "a bad file is corrupt");
    return;
  }
  StoredTensors by_name;
  int64_t covered = 0;
  unsigned sum = 0;
  for (const auto& [name, tensor] : *tensors) {
    Require(tensor.begin >= 8 && tensor.bytes >= 0, "ranges are not negative");
    Require(tensor.begin + tensor.bytes <= static_cast<int64_t>(bytes.size()),
            "data is in the file");
    for (int64_t i = 0; i < tensor.bytes; ++i)
      sum += static_cast<unsigned>(bytes[static_cast<size_t>(tensor.begin + i)]);
    covered += tensor.bytes;
    Require(by_name.emplace(name, tensor).second, "names are unique");
  }
  uint64_t header = 0;
  std::memcpy(&header, copy.data(), sizeof(header));
  Require(covered == static_cast<int64_t>(copy.size() - sizeof(header) - header),
          "every byte of the data belongs to one tensor");
  Require(sum + 1 != 0, "the bytes can be read");
  const Status fits = CheckTensors(SmallModel(), by_name);
  Require(fits || !fits.error().message.empty(), "a refusal says why");
}

void CheckIndex(std::string_view text) {
  const auto shards = ParseSafetensorsIndex(text, "index");
  if (!shards) return;
  Require(!shards->empty(), "an index names a shard");
  for (const auto& [shard, tensors] : *shards) {
    Require(shard.find('/') == std::string::npos && shard.find("..") == std::string::npos,
            "a shard lies in the folder");
    Require(shard.find('\0') == std::string::npos && !tensors.empty(), "a shard has a plain name");
  }
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte::fuzz;
  if (size == 0) return 0;
  const std::string_view rest = AsText(data + 1, size - 1);
  if (data[0] == 'f') CheckFile(rest);
  if (data[0] == 'h') CheckFile(FileOf(rest));
  if (data[0] == 'i') CheckIndex(rest);
  return 0;
}
