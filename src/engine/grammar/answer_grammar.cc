#include "src/engine/grammar/answer_grammar.h"

#include <utility>

namespace latte {
namespace {

Result<std::shared_ptr<AnswerGrammar>> Begin(std::shared_ptr<const CompiledGrammar> compiled,
                                             std::span<const int32_t> stop_tokens) {
  auto out = std::make_shared<AnswerGrammar>();
  out->compiled = std::move(compiled);
  LATTE_ASSIGN_OR_RETURN(out->matcher, GrammarMatcher::Create(out->compiled, stop_tokens));
  return out;
}

}  // namespace

Status BeginGrammar(Output& output) {
  const RequestState& request = *output.state;
  const auto& compiled = request.grammar->compiled();
  if (!compiled) return tl::unexpected(compiled.error());
  LATTE_ASSIGN_OR_RETURN(output.grammar, Begin(*compiled, request.stop_token_ids));
  return {};
}

Status ForkGrammar(Output& fork) {
  const std::shared_ptr<AnswerGrammar> shared = fork.grammar;
  if (!shared) return {};
  LATTE_ASSIGN_OR_RETURN(fork.grammar, Begin(shared->compiled, fork.state->stop_token_ids));
  fork.grammar->masks = shared->masks;
  fork.grammar->rows = shared->rows;
  fork.grammar->status = shared->status;
  return {};
}

}  // namespace latte
