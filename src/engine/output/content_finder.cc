#include "src/engine/output/content_finder.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace latte {
namespace {

std::span<const std::string_view> EndsOfReasoning(std::optional<ToolFormat> calls) {
  if (!calls) return {};
  return CallOpenings(*calls);
}

void AddRun(size_t bytes, bool content, std::vector<ContentFinder::Run>* runs) {
  if (bytes > 0) runs->push_back({bytes, content});
}

}  // namespace

ContentFinder::ContentFinder(bool in_thought, std::optional<ToolFormat> calls)
    : splitter_(in_thought, EndsOfReasoning(calls)) {
  if (calls) parser_.emplace(*calls);
}

void ContentFinder::Push(char byte, std::vector<Run>* runs) {
  const size_t before = splitter_.undecided() + 1;
  const AnswerSplitter::Parts parts = splitter_.Push({&byte, 1});
  // Reasoning and its marks come before content.
  AddRun(before - splitter_.undecided() - parts.content.size(), false, runs);
  AddContent(parts.content, runs);
}

void ContentFinder::Finish(std::vector<Run>* runs) {
  const AnswerSplitter::Parts rest = splitter_.Flush();
  AddRun(rest.reasoning.size(), false, runs);
  AddContent(rest.content, runs);
  if (!parser_) return;
  const size_t undecided = parser_->undecided();
  AddCalls(parser_->Finish(/*cut=*/false), undecided, runs);
}

void ContentFinder::AddContent(std::string_view text, std::vector<Run>* runs) {
  if (!parser_) return AddRun(text.size(), true, runs);
  for (const char byte : text) {
    const size_t before = parser_->undecided() + 1;
    const std::vector<ToolEvent> events = parser_->Add({&byte, 1});
    AddCalls(events, before - parser_->undecided(), runs);
  }
}

// `bytes` became certain with `events`: content, a part of a call, content. Marks and white space that the
// parser drops are no content.
void ContentFinder::AddCalls(const std::vector<ToolEvent>& events, size_t bytes,
                             std::vector<Run>* runs) {
  size_t first = 0;
  size_t last = 0;
  bool called = false;
  for (const ToolEvent& event : events) {
    called = called || event.kind != ToolEvent::Kind::kContent;
    if (event.kind == ToolEvent::Kind::kContent) (called ? last : first) += event.text.size();
  }
  if (!called) std::swap(first, last);
  first = std::min(first, bytes);
  last = std::min(last, bytes - first);
  AddRun(first, true, runs);
  AddRun(bytes - first - last, false, runs);
  AddRun(last, true, runs);
}

}  // namespace latte
