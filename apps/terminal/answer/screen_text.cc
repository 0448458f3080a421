#include "apps/terminal/answer/screen_text.h"

#include <algorithm>
#include <cwchar>
#include <utility>

#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";
constexpr std::string_view kFence = "```";
constexpr char32_t kReplacement = 0xfffd;
constexpr int kTab = 8;

// What stands for a character on the screen.
char32_t Shown(char32_t c) {
  if (c < 0x20) return 0x2400 + c;  // control pictures
  if (c == 0x7f) return 0x2421;
  const bool c1 = c >= 0x80 && c < 0xa0;
  const bool turns = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return c1 || turns ? kReplacement : c;
}

int WidthOf(char32_t c) {
  const int width = wcwidth(static_cast<wchar_t>(c));
  return width < 0 ? 1 : width;
}

}  // namespace

std::string ScreenText::Add(const AnswerPiece& piece) {
  const std::string thought = piece.Thought();
  if (!thought.empty() && !std::exchange(in_thought_, true)) Style(kDim);
  Feed(thought);
  if (!piece.closing.empty()) {
    Style(kPlain);
    in_thought_ = false;
  }
  return Add(piece.Content());
}

std::string ScreenText::Add(std::string_view text) {
  Feed(text);
  return std::exchange(out_, {});
}

std::string ScreenText::Finish() {
  if (!partial_.empty()) Take(kReplacement);
  partial_.clear();
  inked_.clear();
  markdown_.Finish(&inked_);
  for (const InkedChar& inked : inked_) Put(inked);
  ChangeInk(kNoInk);
  if (in_thought_) Style(kPlain);
  FlushWord();
  return std::exchange(out_, {});
}

std::string Wrapped(std::string_view text, int columns) {
  if (columns <= 0) return std::string(text);
  ScreenText shown({.columns = columns});
  std::string out = shown.Add(text);
  return out += shown.Finish();
}

void ScreenText::Style(std::string_view sequence) {
  if (style_.dims) word_ += sequence;
}

void ScreenText::Feed(std::string_view bytes) {
  partial_ += bytes;
  std::string_view rest = partial_;
  while (!rest.empty()) {
    const Utf8Step step = DecodeUtf8(rest);
    if (step.cut_off) break;
    Take(step.code_point);
    rest.remove_prefix(static_cast<size_t>(step.bytes));
  }
  partial_.erase(0, partial_.size() - rest.size());
}

void ScreenText::Take(char32_t c) {
  if (!style_.markdown || in_thought_) return Put({c});
  if (in_code_) return Put({c, kCode});
  inked_.clear();
  markdown_.Put(c, &inked_);
  for (const InkedChar& inked : inked_) Put(inked);
}

void ScreenText::ChangeInk(uint8_t ink) {
  if (ink == ink_) return;
  ink_ = ink;
  word_ += kPlain;
  if ((ink & kBold) != 0) word_ += "\x1b[1m";
  if ((ink & kItalic) != 0) word_ += "\x1b[3m";
  if ((ink & kCode) != 0) word_ += "\x1b[36m";
}

void ScreenText::Put(InkedChar inked) {
  const char32_t c = inked.c;
  if (c != ' ' && c != '\t' && c != '\n') ChangeInk(inked.ink);
  if (c == '\n') return PutNewline();
  if (c == ' ') return PutSpaces(1);
  if (c == '\t') return PutSpaces(kTab - (column_ + spaces_ + word_width_) % kTab);
  const char32_t shown = Shown(c);
  if (line_start_.size() < kFence.size()) line_start_ += c < 0x80 ? static_cast<char>(c) : '?';
  AppendUtf8(shown, &word_);
  const int width = WidthOf(shown);
  word_width_ += width;
  // A line may end after a wide character, and has to end in a word that is longer than a line.
  if (in_code_ || width > 1 || (style_.columns > 0 && word_width_ >= style_.columns)) FlushWord();
}

void ScreenText::PutSpaces(int count) {
  FlushWord();
  spaces_ += count;
}

void ScreenText::PutNewline() {
  ChangeInk(kNoInk);
  FlushWord();
  if (line_start_ == kFence) in_code_ = !in_code_;
  line_start_.clear();
  out_ += '\n';
  column_ = spaces_ = 0;
}

void ScreenText::FlushWord() {
  if (word_.empty()) return;
  const bool fits = style_.columns == 0 || column_ + spaces_ + word_width_ <= style_.columns;
  if (!fits && !in_code_ && column_ > 0) {
    out_ += '\n';
    column_ = spaces_ = 0;
  }
  out_.append(static_cast<size_t>(spaces_), ' ');
  out_ += word_;
  column_ += spaces_ + word_width_;
  word_.clear();
  spaces_ = word_width_ = 0;
}

}  // namespace latte
