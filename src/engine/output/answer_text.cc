#include "src/engine/output/answer_text.h"

#include <algorithm>
#include <utility>

namespace latte {
namespace {

constexpr char kShown = 's';
constexpr char kHidden = 'h';

}  // namespace

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

bool IsShown(const Tokenizer& tokenizer, int32_t token) {
  if (!tokenizer.IsSpecial(token)) return true;
  const std::string_view text = tokenizer.TokenBytes(token);
  return text == "<think>" || text == "</think>";
}

AnswerText::AnswerText(Tokenizer tokenizer, const std::vector<std::string>& stop_strings,
                       bool keep_special)
    : tokenizer_(tokenizer),
      keep_special_(keep_special),
      decoder_(std::move(tokenizer)),
      stops_(stop_strings.begin(), stop_strings.end()) {
  if (!keep_special) all_stops_ = stops_;
  for (const StopString& stop : stops_) longest_stop_ = std::max(longest_stop_, stop.size());
}

size_t AnswerText::ShownOf(size_t last_bytes) const {
  const auto end = static_cast<std::ptrdiff_t>(std::min(last_bytes, recent_.size()));
  return static_cast<size_t>(std::count(recent_.end() - end, recent_.end(), kShown));
}

std::optional<AnswerText::Occurrence> AnswerText::FindStop(char byte, bool hidden) {
  std::optional<Occurrence> found;
  const auto add = [&](const StopString& stop, size_t shown) {
    const bool longer = !found || shown > found->shown ||
                        (shown == found->shown && stop.size() > found->stop->size());
    if (longer) found = {&stop, shown};
  };
  if (!hidden)
    for (StopString& stop : stops_)
      if (stop.Advance(byte)) add(stop, stop.size());
  if (all_stops_.empty()) return found;
  recent_ += hidden ? kHidden : kShown;
  for (StopString& stop : all_stops_)
    if (stop.Advance(byte)) add(stop, ShownOf(stop.size()));
  return found;
}

size_t AnswerText::Pending() const {
  size_t pending = 0;
  for (const StopString& stop : stops_) pending = std::max(pending, stop.pending());
  for (const StopString& stop : all_stops_) pending = std::max(pending, ShownOf(stop.pending()));
  return pending;
}

AnswerText::Step AnswerText::Push(int32_t token, bool may_stop) {
  Step out;
  out.text = std::exchange(held_, {});
  const bool hidden = !keep_special_ && !IsShown(tokenizer_, token);
  const std::string piece =
      hidden ? std::string(tokenizer_.TokenBytes(token)) : decoder_.Push(token);
  for (const char byte : piece) {
    if (!hidden) out.text += byte;
    const std::optional<Occurrence> found = FindStop(byte, hidden);
    if (!found || !may_stop) continue;
    out.text.resize(out.text.size() - found->shown);
    out.stopped = true;
    out.stop_string = found->stop->text();
    return out;
  }
  if (recent_.size() > longest_stop_) recent_.erase(0, recent_.size() - longest_stop_);
  const size_t pending = Pending();
  held_ = out.text.substr(out.text.size() - pending);
  out.text.resize(out.text.size() - pending);
  return out;
}

std::string AnswerText::Flush() { return std::exchange(held_, {}) + decoder_.Flush(); }

}  // namespace latte
