// Tokenizers in GGUF metadata.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "src/text/tokenizer.h"
#include "src/text/unicode/byte_level.h"
#include "tests/support/checkpoint/gguf_model.h"

namespace latte::testing_support {

inline std::string InByteAlphabet(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += ByteAlphabetSymbol(static_cast<uint8_t>(byte));
  return out;
}

// Arrays that tests change before they are written.
struct GgufVocabularyArrays {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  std::vector<float> scores;  // of SentencePiece; then there are no merges
  std::string model = "gpt2";
  std::string pre = "deepseek-v3";
  int64_t bos = -1, eos = -1;  // -1: not in the file

  void Add(const std::string& token, int32_t type) {
    tokens.push_back(token);
    types.push_back(type);
  }

  static std::string Elements(const std::vector<std::string>& texts) {
    std::string out;
    for (const std::string& text : texts) out += GgufString(text);
    return out;
  }

  GgufModel Model() const {
    GgufModel m;
    std::string numbers;
    for (const int32_t type : types) numbers += GgufNumber(type);
    m.Text("tokenizer.ggml.model", model);
    m.Text("tokenizer.ggml.pre", pre);
    const auto array = [&m](const std::string& key, uint32_t type, size_t count,
                            const std::string& elements) {
      m.entries[key] = GgufArrayEntry(key, type, count, elements);
    };
    array("tokenizer.ggml.tokens", kGgufText, tokens.size(), Elements(tokens));
    array("tokenizer.ggml.token_type", kGgufI32, types.size(), numbers);
    if (scores.empty()) {
      array("tokenizer.ggml.merges", kGgufText, merges.size(), Elements(merges));
    } else {
      std::string values;
      for (const float score : scores) values += GgufNumber(score);
      array("tokenizer.ggml.scores", kGgufF32, scores.size(), values);
    }
    if (bos >= 0) m.U32("tokenizer.ggml.bos_token_id", bos);
    if (eos >= 0) m.U32("tokenizer.ggml.eos_token_id", eos);
    return m;
  }
};

// 256 bytes, "ab" (256), control tokens <s> (257) and </s> (258), <user> (259) of the user, an
// unused one.
inline GgufVocabularyArrays SmallGgufVocabulary() {
  GgufVocabularyArrays out;
  for (int byte = 0; byte < 256; ++byte)
    out.Add(std::string(ByteAlphabetSymbol(static_cast<uint8_t>(byte))), 1);
  out.Add("ab", 1);
  out.Add("<s>", 3);
  out.Add("</s>", 3);
  out.Add("<user>", 4);
  out.Add("[PAD260]", 5);
  out.merges = {"a b"};
  out.bos = 257;
  out.eos = 258;
  return out;
}

// <unk>, <s>, </s>, the 256 bytes from id 3, and from 259 on "▁", "a", "b", "▁a", "ab"; then <user>
// (264).
inline GgufVocabularyArrays SmallSentencePiece() {
  GgufVocabularyArrays out;
  out.model = "llama";
  out.pre = "default";
  out.Add("<unk>", 2);
  out.Add("<s>", 3);
  out.Add("</s>", 3);
  for (int byte = 0; byte < 256; ++byte) out.Add(fmt::format("<0x{:02X}>", byte), 6);
  for (const char* piece : {"▁", "a", "b", "▁a", "ab"}) out.Add(piece, 1);
  out.Add("<user>", 4);
  out.scores.resize(out.tokens.size());
  for (size_t id = 259; id < 264; ++id) out.scores[id] = -static_cast<float>(id);
  out.bos = 1;
  out.eos = 2;
  return out;
}

// What llama.cpp's converter makes of a tokenizer: padded to a multiple of 64 tokens, and tokens
// that look special are control tokens.
inline GgufVocabularyArrays ConvertedVocabulary(const Tokenizer& from, std::string_view pre,
                                                std::vector<std::string> merges) {
  GgufVocabularyArrays out;
  const std::vector<int32_t> added = from.AddedIds();
  std::vector<bool> is_added(static_cast<size_t>(from.vocab_size()));
  for (const int32_t id : added) is_added[static_cast<size_t>(id)] = true;
  for (int32_t id = 0; id < (from.vocab_size() + 63) / 64 * 64; ++id) {
    const std::string text(from.TokenBytes(id));
    const bool looks_special = (text.starts_with("<|") && text.ends_with("|>")) ||
                               (text.starts_with("<｜") && text.ends_with("｜>"));
    if (text.empty())
      out.Add(fmt::format("[PAD{}]", id), 5);
    else if (is_added[static_cast<size_t>(id)])
      out.Add(text, from.IsSpecial(id) || looks_special ? 3 : 4);
    else
      out.Add(InByteAlphabet(text), 1);
  }
  out.merges = std::move(merges);
  out.pre = pre;
  out.bos = from.bos_id().value_or(-1);
  out.eos = from.eos_id().value_or(-1);
  return out;
}

// The merges of a tokenizer.json as one text each.
inline std::vector<std::string> MergesOf(const Json& tokenizer) {
  const Json merges = tokenizer.Get("model").value().Get("merges").value();
  std::vector<std::string> out;
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json merge = merges.At(i);
    out.push_back(merge.is_string()
                      ? merge.AsString().value()
                      : merge.At(0).AsString().value() + " " + merge.At(1).AsString().value());
  }
  return out;
}

}  // namespace latte::testing_support
