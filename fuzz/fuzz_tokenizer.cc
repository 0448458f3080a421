// tokenizer.json, then NUL, tokenizer_config.json, NUL and a text; the last two may be missing. The
// key "@" in the vocabulary stands for the 256 tokens of single bytes (ids 0 to 255), which every
// file needs and mutations would break.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "fuzz/text_checks.h"
#include "src/base/json.h"
#include "src/text/pretokenize_json.h"
#include "src/text/unicode/byte_level.h"

namespace latte::fuzz {
namespace {

const std::string& ByteTokens() {
  static const std::string tokens = [] {
    std::string out;
    for (int byte = 0; byte < 256; ++byte) {
      const std::string_view symbol = ByteAlphabetSymbol(static_cast<uint8_t>(byte));
      out += byte == 0 ? "\"" : ",\"";
      if (symbol == "\"" || symbol == "\\") out += '\\';
      out += std::string(symbol) + "\":" + std::to_string(byte);
    }
    return out;
  }();
  return tokens;
}

std::string WithByteTokens(std::string_view json) {
  constexpr std::string_view kMark = "\"@\":0";
  const size_t at = json.find(kMark);
  if (at == std::string_view::npos) return std::string(json);
  return std::string(json.substr(0, at)) + ByteTokens() +
         std::string(json.substr(at + kMark.size()));
}

// Whether every step of the file keeps the text unchanged.
bool IsLossless(std::string_view json) {
  const Result<Json> root = Json::Parse(json, "tokenizer.json");
  const auto pipeline = root.and_then(ReadPipeline);
  if (!pipeline) return false;
  return std::none_of(pipeline->steps.begin(), pipeline->steps.end(),
                      [](const PreTokenizeStep& step) {
                        return step.kind == PreTokenizeStep::Kind::kPrefixSpace ||
                               step.kind == PreTokenizeStep::Kind::kMetaspace ||
                               step.behavior == SplitBehavior::kRemoved;
                      });
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  const auto [json, rest] = fuzz::Cut(fuzz::AsText(data, size), '\0');
  const auto [config, text] = fuzz::Cut(rest, '\0');
  const auto tokenizer = Tokenizer::FromJson(fuzz::WithByteTokens(json), config);
  if (!tokenizer) {
    fuzz::Require(tokenizer.error().message.find("tokenizer") == 0, "a refusal names the file");
    return 0;
  }
  fuzz::CheckTokenizer(*tokenizer, text.empty() ? json : text, fuzz::IsLossless(json));
  return 0;
}
