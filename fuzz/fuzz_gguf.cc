// A GGUF file: its header is read, then every value of its metadata by every getter, every byte of
// its tensors, and the config and the tokenizer of the model.
#include <string>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "fuzz/text_checks.h"
#include "src/checkpoint/config/gguf/gguf_config.h"
#include "src/checkpoint/config/gguf/gguf_tokenizer.h"
#include "src/checkpoint/gguf/gguf_header.h"
#include "src/checkpoint/gguf/gguf_parts.h"

namespace latte::fuzz {
namespace {

// At most one getter fits a value, and none fails without a reason.
void CheckValues(const GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    int fits = 0;
    const auto count = [&fits](const auto& result) {
      if (result) Require(result->has_value(), "a key that is there is found");
      fits += result ? 1 : 0;
      Require(result || result.error().code == Code::kCorrupt, "another type is corrupt");
    };
    count(metadata.Int(key));
    count(metadata.Number(key));
    count(metadata.Bool(key));
    count(metadata.String(key));
    count(metadata.Ints(key));
    count(metadata.Bools(key));
    count(metadata.Strings(key));
    Require(fits <= 1, "a value has one type");
    Require(!value.is_array || value.count <= static_cast<int64_t>(value.bytes.size()),
            "elements have bytes");
  }
  const Result<GgufPlace> place = ReadGgufPlace(metadata);
  Require(!place || (place->number >= 1 && place->number <= place->count), "a part is in its set");
}

void CheckTensors(const GgufHeader& header, std::span<const std::byte> bytes) {
  unsigned sum = 0;
  int64_t covered = 0;
  for (const auto& [name, tensor] : header.tensors) {
    Require(tensor.begin >= 24 && tensor.bytes > 0, "places are in the data");
    Require(tensor.begin + tensor.bytes <= static_cast<int64_t>(bytes.size()),
            "data is in the file");
    for (int64_t i = 0; i < tensor.bytes; ++i)
      sum += static_cast<unsigned>(bytes[static_cast<size_t>(tensor.begin + i)]);
    covered += tensor.bytes;
  }
  Require(covered <= static_cast<int64_t>(bytes.size()), "no byte belongs to two tensors");
  Require(sum + 1 != 0, "the bytes can be read");
}

void CheckConfig(const GgufHeader& header, std::span<const std::byte> bytes) {
  const Result<ModelConfig> config =
      ParseGgufConfig(header.metadata, header.tensors, [&](const StoredTensor& tensor) {
        return bytes.subspan(static_cast<size_t>(tensor.begin), static_cast<size_t>(tensor.bytes));
      });
  if (config) return Require(config->layers >= 1 && config->mla.n >= 1, "a config has sizes");
  const Code code = config.error().code;
  Require(code == Code::kCorrupt || code == Code::kUnsupported, "a bad config is refused");
}

void CheckGgufTokenizer(const GgufHeader& header, std::string_view text) {
  const Result<Tokenizer> tokenizer = ParseGgufTokenizer(header.metadata);
  if (!tokenizer) {
    const Code code = tokenizer.error().code;
    Require(code == Code::kCorrupt || code == Code::kUnsupported, "a bad tokenizer is refused");
    return Require(tokenizer.error().message.starts_with("file"), "a refusal names the file");
  }
  // A token of a byte that is marked as added is spelled as in the file.
  // SentencePiece's kind writes "▁" for spaces.
  const bool spaces = header.metadata.Find("tokenizer.ggml.scores") == nullptr;
  CheckTokenizer(*tokenizer, text, /*lossless=*/spaces && tokenizer->AddedIds().empty());
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  // An exact copy on the heap, so that a read past its end is detected.
  const std::vector<uint8_t> copy(data, data + size);
  const auto bytes = std::as_bytes(std::span(copy));
  const std::string path = "file";
  const Result<GgufHeader> header = ParseGgufHeader(bytes, path);
  if (header) {
    fuzz::CheckValues(header->metadata);
    fuzz::CheckTensors(*header, bytes);
    if (fuzz::OneIn(4, fuzz::AsText(data, size)))
      fuzz::CheckConfig(*header, std::as_bytes(std::span(data, size)));
    if (fuzz::OneIn(8, fuzz::AsText(data, size)))
      fuzz::CheckGgufTokenizer(*header, fuzz::AsText(data, size));
  } else {
    const Code code = header.error().code;
    fuzz::Require(code == Code::kCorrupt || code == Code::kUnsupported, "a bad file is refused");
  }
  const std::string name(fuzz::AsText(data, size));
  if (const auto part = ParseGgufPart(name))
    fuzz::Require(part->Path(part->number) == name, "a part's name is made of its parts");
  return 0;
}
