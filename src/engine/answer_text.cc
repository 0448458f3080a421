#include "src/engine/answer_text.h"

#include <algorithm>
#include <utility>

namespace latte {

StopString::StopString(std::string text) : text_(std::move(text)), borders_(text_.size() + 1) {
  size_t border = 0;
  for (size_t end = 1; end < text_.size(); ++end) {
    while (border > 0 && text_[end] != text_[border]) border = borders_[border];
    if (text_[end] == text_[border]) ++border;
    borders_[end + 1] = border;
  }
}

bool StopString::Advance(char byte) {
  while (matched_ > 0 && text_[matched_] != byte) matched_ = borders_[matched_];
  if (text_[matched_] == byte) ++matched_;
  if (matched_ < text_.size()) return false;
  matched_ = borders_[matched_];
  return true;
}

AnswerText::AnswerText(Tokenizer tokenizer, const std::vector<std::string>& stop_strings,
                       bool skip_special)
    : decoder_(std::move(tokenizer), skip_special),
      stops_(stop_strings.begin(), stop_strings.end()) {}

// The size of the longest stop string that ends with this byte.
std::optional<size_t> AnswerText::LongestEnding(char byte) {
  std::optional<size_t> longest;
  for (StopString& stop : stops_)
    if (stop.Advance(byte)) longest = std::max(longest.value_or(0), stop.size());
  return longest;
}

AnswerText::Step AnswerText::Push(int32_t token, bool may_stop) {
  Step out;
  out.text = std::exchange(held_, {});
  for (const char byte : decoder_.Push(token)) {
    out.text += byte;
    const std::optional<size_t> stop = LongestEnding(byte);
    if (!stop || !may_stop) continue;
    out.text.resize(out.text.size() - *stop);
    out.stopped = true;
    return out;
  }
  size_t pending = 0;
  for (const StopString& stop : stops_) pending = std::max(pending, stop.pending());
  held_ = out.text.substr(out.text.size() - pending);
  out.text.resize(out.text.size() - pending);
  return out;
}

std::string AnswerText::Flush() { return std::exchange(held_, {}) + decoder_.Flush(); }

}  // namespace latte
