// A tokenizer.json that is small enough to modify in a test: 256 bytes (byte b has id b) and a few
// merges.
#pragma once

#include <string>
#include <vector>

#include "src/base/json_out_fwd.h"
#include "src/text/unicode/byte_level.h"

namespace latte {

// Each merge is "a b" in the byte-level alphabet; its token gets the next id from 256 on.
inline JsonOut SmallTokenizer(const std::vector<std::string>& merges = {}) {
  JsonOut vocab = JsonOut::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[std::string(ByteAlphabetSymbol(static_cast<uint8_t>(byte)))] = byte;
  for (std::string merge : merges) {
    merge.erase(merge.find(' '), 1);
    if (!vocab.contains(merge)) vocab[merge] = vocab.size();
  }
  const JsonOut byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"version", "1.0"},
          {"added_tokens", JsonOut::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

// Appends an added token with the next id; settings such as {"lstrip", true} override the defaults.
inline void AddToken(JsonOut* file, const std::string& content, const JsonOut& settings = {}) {
  JsonOut token = {{"id", (*file)["model"]["vocab"].size() + (*file)["added_tokens"].size()},
                   {"content", content},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", true}};
  if (!settings.is_null()) token.update(settings);
  (*file)["added_tokens"].push_back(token);
}

}  // namespace latte
