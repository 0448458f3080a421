#include "src/engine/output/content_finder.h"

#include <algorithm>

namespace latte {
namespace {

void AddRun(size_t bytes, bool content, std::vector<ContentFinder::Run>* runs) {
  if (bytes > 0) runs->push_back({bytes, content});
}

// `bytes` became certain with `events`: content, a part of a call, content. Marks and white space
// that the parser drops are no content.
void AddEvents(const std::vector<ToolEvent>& events, size_t bytes,
               std::vector<ContentFinder::Run>* runs) {
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

// Reasoning and its marks come before content.
void AddPiece(const AnswerPiece& piece, size_t bytes, std::vector<ContentFinder::Run>* runs) {
  const size_t thought = piece.Thought().size();
  AddRun(thought, false, runs);
  AddEvents(piece.events, bytes - thought, runs);
}

}  // namespace

void ContentFinder::Push(char byte, std::vector<Run>* runs) {
  const size_t before = undecided() + 1;
  const AnswerPiece piece = splitter_.Push({&byte, 1});
  AddPiece(piece, before - undecided(), runs);
}

void ContentFinder::Finish(std::vector<Run>* runs) {
  const size_t before = undecided();
  AddPiece(splitter_.Finish(), before, runs);
}

}  // namespace latte
