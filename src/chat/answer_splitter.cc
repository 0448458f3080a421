#include "src/chat/answer_splitter.h"

#include <algorithm>
#include <utility>

#include "src/base/strings.h"

namespace latte {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

}  // namespace

AnswerSplitter::Parts AnswerSplitter::Push(std::string_view text) {
  Parts out;
  if (step_ == Step::kContent) {
    out.content = text;
    return out;
  }
  held_ += text;
  if (step_ == Step::kBeginning) Begin(&out);
  if (step_ == Step::kReasoning) Reason(&out);
  return out;
}

// White space and a <think> may begin the answer; without the tag both are content.
void AnswerSplitter::Begin(Parts* out) {
  const size_t first = held_.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return;
  const std::string_view rest = std::string_view(held_).substr(first);
  if (rest.starts_with(kOpen)) {
    held_.erase(0, first + kOpen.size());
    step_ = Step::kReasoning;
  } else if (!kOpen.starts_with(rest)) {
    out->content = std::exchange(held_, {});
    step_ = Step::kContent;
  }
}

void AnswerSplitter::Reason(Parts* out) {
  const size_t close = held_.find(kClose);
  size_t end = close;
  size_t certain = held_.size() - BeginningOf(kClose, held_);
  for (const std::string_view mark : ends_) {
    end = std::min(end, held_.find(mark));
    certain = std::min(certain, held_.size() - BeginningOf(mark, held_));
  }
  if (end == std::string::npos) {
    out->reasoning += held_.substr(0, certain);
    held_.erase(0, certain);
    return;
  }
  out->reasoning += held_.substr(0, end);
  out->content += held_.substr(end == close ? end + kClose.size() : end);
  held_.clear();
  step_ = Step::kContent;
}

AnswerSplitter::Parts AnswerSplitter::Flush() {
  Parts out;
  (step_ == Step::kReasoning ? out.reasoning : out.content) = std::exchange(held_, {});
  return out;
}

}  // namespace latte
