#include "src/text/tokenizer.h"
#include "src/text/unicode/unicode.h"

namespace latte {

std::string StreamDecoder::Push(int32_t id) {
  if (skip_special_ && tokenizer_.IsSpecial(id)) return {};
  pending_ += tokenizer_.TokenBytes(id);
  const size_t ready = pending_.size() - UnfinishedUtf8Suffix(pending_);
  std::string out;
  AppendValidUtf8(std::string_view(pending_).substr(0, ready), &out);
  pending_.erase(0, ready);
  return out;
}

std::string StreamDecoder::Flush() {
  std::string out;
  AppendValidUtf8(pending_, &out);
  pending_.clear();
  return out;
}

}  // namespace latte
