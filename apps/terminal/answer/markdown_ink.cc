#include "apps/terminal/answer/markdown_ink.h"

#include <string_view>
#include <utility>

namespace latte {
namespace {

constexpr int kFenceTicks = 3;
constexpr int kMostHashes = 6;

bool IsSpace(char32_t c) { return c == U' ' || c == U'\t' || c == U'\n'; }

// The marks that a backslash turns into plain characters.
bool IsMark(char32_t c) {
  return c < 0x80 &&
         std::string_view("#*+-_`").find(static_cast<char>(c)) != std::string_view::npos;
}

}  // namespace

bool MarkdownInk::BeginsRun(char32_t c) const {
  if (is_fence_) return false;
  if (c == U'`') return true;
  if ((ink_ & kCode) != 0) return false;
  return c == U'*' || (at_start_ && (c == U'#' || c == U'-' || c == U'+'));
}

void MarkdownInk::Put(char32_t c, std::vector<InkedChar>* out) {
  if (std::exchange(escaped_, false)) {
    if (IsMark(c)) return Emit(c, out);
    Emit(U'\\', out);
  }
  if (count_ > 0 && c == run_) {
    ++count_;
    return;
  }
  if (count_ > 0) EndRun(c, out);
  if (std::exchange(skips_space_, false) && c == U' ') return;
  if (BeginsRun(c)) {
    run_ = c;
    count_ = 1;
    return;
  }
  if (c == U'\\' && (ink_ & kCode) == 0 && !is_fence_) {
    escaped_ = true;
    return;
  }
  Emit(c, out);
}

void MarkdownInk::Finish(std::vector<InkedChar>* out) {
  if (std::exchange(escaped_, false)) Emit(U'\\', out);
  if (count_ > 0) EndRun(U'\n', out);
}

void MarkdownInk::EndRun(char32_t next, std::vector<InkedChar>* out) {
  if (run_ == U'`') return EndTicks(out);
  if (run_ == U'#' && count_ <= kMostHashes && next == U' ') {
    count_ = 0;
    heading_ = skips_space_ = true;
    ink_ |= kBold;
    at_start_ = false;
    return;
  }
  if (run_ != U'#' && at_start_ && count_ == 1 && next == U' ') {
    count_ = 0;
    return Emit(U'•', out);
  }
  if (run_ == U'*') return EndStars(next, out);
  Literal(out);
}

// Emphasis begins before a character and ends after one.
void MarkdownInk::EndStars(char32_t next, std::vector<InkedChar>* out) {
  const auto wanted = static_cast<uint8_t>(count_ == 1   ? kItalic
                                           : count_ == 2 ? kBold
                                                         : kBold | kItalic);
  const bool closes = (ink_ & wanted) == wanted && !IsSpace(previous_);
  const bool opens = (ink_ & wanted) == 0 && !IsSpace(next);
  if (count_ > 3 || heading_ || !(closes || opens)) return Literal(out);
  count_ = 0;
  ink_ ^= wanted;
  at_start_ = false;
}

void MarkdownInk::EndTicks(std::vector<InkedChar>* out) {
  if ((ink_ & kCode) == 0 && at_start_ && count_ >= kFenceTicks) {
    is_fence_ = true;
    return Literal(out);
  }
  if ((ink_ & kCode) != 0 && count_ != code_ticks_) return Literal(out);
  code_ticks_ = std::exchange(count_, 0);
  ink_ ^= kCode;
  at_start_ = false;
}

void MarkdownInk::Literal(std::vector<InkedChar>* out) {
  for (; count_ > 0; --count_) Emit(run_, out);
}

void MarkdownInk::Emit(char32_t c, std::vector<InkedChar>* out) {
  if (c == U'\n') {
    ink_ &= ~kCode;
    if (heading_ || at_start_)
      ink_ = kNoInk;  // at_start_: the line is empty, so the paragraph ends
    heading_ = is_fence_ = false;
    at_start_ = true;
  } else if (!IsSpace(c)) {
    at_start_ = false;
  }
  out->push_back({c, c == U'\n' ? uint8_t{kNoInk} : ink_});
  previous_ = c;
}

}  // namespace latte
