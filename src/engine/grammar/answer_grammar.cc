#include "src/engine/grammar/answer_grammar.h"

#include <utility>

namespace latte {
namespace {

std::shared_ptr<AnswerGrammar> Begin(std::shared_ptr<const CompiledGrammar> compiled,
                                     std::span<const int32_t> stop_tokens) {
  auto out = std::make_shared<AnswerGrammar>();
  out->compiled = std::move(compiled);
  out->stop_tokens.assign(stop_tokens.begin(), stop_tokens.end());
  return out;
}

}  // namespace

Status BeginGrammar(Output& output) {
  const RequestState& request = *output.state;
  const auto& compiled = request.grammar->compiled();
  if (!compiled) return tl::unexpected(compiled.error());
  output.grammar = Begin(*compiled, request.stop_token_ids);
  return {};
}

void ForkGrammar(Output& fork) {
  const std::shared_ptr<AnswerGrammar> shared = fork.grammar;
  if (!shared) return;
  fork.grammar = Begin(shared->compiled, fork.state->stop_token_ids);
  fork.grammar->masks = shared->masks;
  fork.grammar->rows = shared->rows;
  fork.grammar->status = shared->status;
  fork.grammar->completed = shared->completed;
  fork.grammar->state = AnswerGrammar::State::kReady;
  fork.grammar->slow = shared->slow.load();
}

}  // namespace latte
