#include "src/chat/answer_splitter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/strings.h"

namespace latte {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

void Append(std::vector<ToolEvent> more, std::vector<ToolEvent>* all) {
  all->insert(all->end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
}

}  // namespace

std::string AnswerPiece::Content() const {
  std::string out;
  for (const ToolEvent& event : events)
    if (event.kind == ToolEvent::Kind::kContent) out += event.text;
  return out;
}

AnswerSplitter::AnswerSplitter(bool in_thought, std::optional<ToolFormat> calls,
                               std::shared_ptr<const KnownFunctions> known)
    : step_(in_thought ? Step::kReasoning : Step::kBeginning) {
  if (!calls) return;
  ends_ = CallOpenings(*calls);
  parser_.emplace(*calls, std::move(known));
}

AnswerPiece AnswerSplitter::Push(std::string_view text) {
  AnswerPiece out;
  if (step_ == Step::kContent) {
    AddContent(text, &out);
    return out;
  }
  held_ += text;
  if (step_ == Step::kBeginning) Begin(&out);
  if (step_ == Step::kReasoning) Reason(&out);
  return out;
}

// White space and a <think> may begin the answer; without the tag both are content.
void AnswerSplitter::Begin(AnswerPiece* out) {
  const size_t first = held_.find_first_not_of(kSpaces);
  if (first == std::string::npos) return;
  const std::string_view rest = std::string_view(held_).substr(first);
  if (rest.starts_with(kOpen)) {
    out->opening = held_.substr(0, first + kOpen.size());
    held_.erase(0, out->opening.size());
    step_ = Step::kReasoning;
  } else if (!kOpen.starts_with(rest)) {
    step_ = Step::kContent;
    AddContent(std::exchange(held_, {}), out);
  }
}

void AnswerSplitter::Reason(AnswerPiece* out) {
  const size_t close = held_.find(kClose);
  size_t end = close;
  size_t certain = held_.size() - BeginningOf(kClose, held_);
  for (const std::string_view mark : ends_) {
    end = std::min(end, held_.find(mark));
    certain = std::min(certain, held_.size() - BeginningOf(mark, held_));
  }
  if (end == std::string::npos) {
    out->reasoning = held_.substr(0, certain);
    held_.erase(0, certain);
    return;
  }
  out->reasoning = held_.substr(0, end);
  if (end == close) out->closing = kClose;
  step_ = Step::kContent;
  AddContent(std::exchange(held_, {}).substr(end + out->closing.size()), out);
}

void AnswerSplitter::AddContent(std::string_view text, AnswerPiece* out) {
  if (parser_) return Append(parser_->Add(text), &out->events);
  if (!text.empty()) out->events.push_back({.text = std::string(text)});
}

AnswerPiece AnswerSplitter::Finish(bool cut) {
  AnswerPiece out;
  const std::string rest = std::exchange(held_, {});
  if (in_reasoning())
    out.reasoning = rest;
  else
    AddContent(rest, &out);
  if (parser_) Append(parser_->Finish(cut), &out.events);
  return out;
}

ChatMessage AnswerMessage(std::string_view text, bool in_thought) {
  AnswerSplitter splitter(in_thought);
  const AnswerPiece piece = splitter.Push(text);
  const AnswerPiece rest = splitter.Finish();
  ChatMessage message;
  message.role = "assistant";
  message.content = piece.Content() + rest.Content();
  if (in_thought || !piece.opening.empty()) message.reasoning = piece.reasoning + rest.reasoning;
  return message;
}

}  // namespace latte
