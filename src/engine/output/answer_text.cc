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
                       bool keep_special, std::optional<ContentFinder> chat)
    : tokenizer_(tokenizer),
      keep_special_(keep_special),
      decoder_(std::move(tokenizer)),
      stops_(stop_strings.begin(), stop_strings.end()) {
  if (!keep_special) all_stops_ = stops_;
  if (!stop_strings.empty() && chat) chat_.emplace(*std::move(chat));
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

void AnswerText::ResetStops() {
  for (StopString& stop : stops_) stop.Reset();
  for (StopString& stop : all_stops_) stop.Reset();
  recent_.clear();
}

bool AnswerText::Take(const Byte& byte, bool content, Step* out) {
  if (!byte.hidden) out->text += byte.value;
  if (!content) {
    ResetStops();
    return false;
  }
  const std::optional<Occurrence> found = FindStop(byte.value, byte.hidden);
  if (!found || !byte.may_stop) return false;
  out->text.resize(out->text.size() - found->shown);
  out->stopped = true;
  out->stop_string = found->stop->text();
  return true;
}

// Hidden bytes are of the kind of what they stand before.
bool AnswerText::TakeRuns(const std::vector<ContentFinder::Run>& runs, Step* out) {
  for (const ContentFinder::Run& run : runs)
    for (size_t shown = 0; shown < run.bytes;) {
      const Byte byte = undecided_.front();
      undecided_.pop_front();
      if (!byte.hidden) ++shown;
      if (Take(byte, run.content, out)) return true;
    }
  const bool certain = chat_->undecided() == 0;
  while (certain && !undecided_.empty()) {
    const Byte byte = undecided_.front();
    undecided_.pop_front();
    if (Take(byte, chat_->in_content(), out)) return true;
  }
  return false;
}

bool AnswerText::Add(const Byte& byte, Step* out) {
  if (!chat_) return Take(byte, /*content=*/true, out);
  undecided_.push_back(byte);
  std::vector<ContentFinder::Run> runs;
  if (!byte.hidden) chat_->Push(byte.value, &runs);
  return TakeRuns(runs, out);
}

void AnswerText::HoldBack(Step* out) {
  if (recent_.size() > longest_stop_) recent_.erase(0, recent_.size() - longest_stop_);
  const size_t pending = Pending();
  held_ = out->text.substr(out->text.size() - pending);
  out->text.resize(out->text.size() - pending);
}

AnswerText::Step AnswerText::Push(int32_t token, bool may_stop) {
  Step out;
  out.text = std::exchange(held_, {});
  const bool hidden = !keep_special_ && !IsShown(tokenizer_, token);
  const std::string piece =
      hidden ? std::string(tokenizer_.TokenBytes(token)) : decoder_.Push(token);
  for (const char byte : piece)
    if (Add({byte, hidden, may_stop}, &out)) return out;
  HoldBack(&out);
  return out;
}

AnswerText::Step AnswerText::Flush() {
  Step out;
  out.text = std::exchange(held_, {});
  if (chat_) {
    std::vector<ContentFinder::Run> runs;
    chat_->Finish(&runs);
    if (TakeRuns(runs, &out)) return out;
  }
  out.text += decoder_.Flush();
  return out;
}

}  // namespace latte
