#include "src/engine/grammar/step_masks.h"

namespace latte {
namespace {

using State = AnswerGrammar::State;

AnswerGrammar* SampledGrammar(const SequenceStep& step) {
  return step.samples ? step.sequence->output->grammar.get() : nullptr;
}

}  // namespace

std::vector<std::pair<Output*, Error>> StepMasks::Prepare(const Requests& requests) {
  std::vector<std::pair<Output*, Error>> out;
  for (const auto& [id, request] : requests) {
    if (request->grammar == nullptr) continue;
    for (const auto& output : request->outputs) {
      if (output->ended() || output->grammar == nullptr) continue;
      Sequence& s = output->sequence;
      AnswerGrammar& grammar = *output->grammar;
      if (grammar.state == State::kUnderWay) {
        if (const Status status = worker_.CheckTime(grammar); !status)
          out.emplace_back(output.get(), status.error());
      } else if (grammar.state == State::kReady) {
        s.held = false;
      } else if (grammar.slow && s.state == SequenceState::kRunning && s.remain_len() == 1) {
        s.held = true;
        s.drafts.clear();
        grammar.drafts.clear();
        worker_.Start(output->grammar);
      }
    }
  }
  return out;
}

void StepMasks::Start(const StepPlan& plan) {
  for (const SequenceStep& step : plan.steps) {
    AnswerGrammar* const grammar = SampledGrammar(step);
    if (grammar == nullptr || grammar->state != State::kNone) continue;
    const auto& drafts = step.sequence->drafts;
    grammar->drafts.assign(drafts.begin(), drafts.begin() + step.drafts);
    worker_.Start(step.sequence->output->grammar);
  }
}

void StepMasks::Wait(StepPlan& plan) {
  std::vector<AnswerGrammar*> answers;
  for (const SequenceStep& step : plan.steps)
    if (AnswerGrammar* const grammar = SampledGrammar(step)) answers.push_back(grammar);
  worker_.Wait(answers, answers.size() < plan.steps.size());
  for (SequenceStep& step : plan.steps) {
    const AnswerGrammar* const grammar = SampledGrammar(step);
    if (grammar == nullptr || grammar->state == State::kReady) continue;
    step.samples = false;
    step.repeats = true;
    step.sequence->held = true;
    step.sequence->drafts.clear();
  }
}

void StepMasks::Sampled(Output& output) {
  if (output.grammar) output.grammar->state = State::kNone;
}

}  // namespace latte
