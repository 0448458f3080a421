// tiktoken.model, then NUL, tokenizer_config.json, NUL and a text; the last two may be missing. A
// line "@" stands for the 256 tokens of single bytes (ranks 0 to 255), which every file needs and
// mutations would break.
#include <string>

#include "fuzz/fuzz_input.h"
#include "fuzz/text_checks.h"
#include "src/text/tokenizer_tiktoken.h"

namespace latte::fuzz {
namespace {

const std::string& ByteTokens() {
  static const std::string tokens = [] {
    constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (int byte = 0; byte < 256; ++byte)
      out += std::string{kBase64[byte >> 2], kBase64[(byte & 3) << 4]} +
             "== " + std::to_string(byte) + "\n";
    return out;
  }();
  return tokens;
}

std::string WithByteTokens(std::string_view model) {
  constexpr std::string_view kMark = "@\n";
  const size_t at = model.find(kMark);
  if (at == std::string_view::npos) return std::string(model);
  return std::string(model.substr(0, at)) + ByteTokens() +
         std::string(model.substr(at + kMark.size()));
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  const auto [model, rest] = fuzz::Cut(fuzz::AsText(data, size), '\0');
  const auto [config, text] = fuzz::Cut(rest, '\0');
  // Compiling Kimi's pattern takes ten times as long as the rest.
  if (!fuzz::OneIn(8, fuzz::AsText(data, size))) {
    static_cast<void>(ParseTiktokenFile(fuzz::WithByteTokens(model), config));
    return 0;
  }
  const auto tokenizer = Tokenizer::FromTiktoken(
      fuzz::WithByteTokens(model), config.empty() ? R"({"added_tokens_decoder":{}})" : config);
  if (!tokenizer) {
    const std::string& message = tokenizer.error().message;
    fuzz::Require(message.find("tiktoken.model") == 0 || message.find("tokenizer_config.json") == 0,
                  "a refusal names the file");
    return 0;
  }
  // Kimi's pattern matches every character.
  fuzz::CheckTokenizer(*tokenizer, text.empty() ? model : text, /*lossless=*/true);
  return 0;
}
