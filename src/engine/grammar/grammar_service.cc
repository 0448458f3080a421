#include "src/engine/grammar/grammar_service.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"

namespace latte {

Result<std::shared_ptr<GrammarJob>> GrammarService::Start(Grammar grammar) {
  if (!make_compiler_)
    return InvalidArgument("grammar: expected none, as this engine has no tokenizer");
  if (GrammarLibrary().empty()) LATTE_RETURN_IF_ERROR(CheckGrammar(grammar));
  if (threads_.waiting() >= kMostWaiting)
    return Exhausted(fmt::format("{} grammars wait to be compiled; try again later", kMostWaiting));
  auto job = std::make_shared<GrammarJob>(std::move(grammar), now_());
  threads_.Run([this, job] { Run(*job); });
  return job;
}

Status GrammarService::CheckTime(GrammarJob& job) const {
  const auto now = now_();
  if (const auto begun = job.begun_.load(); begun != GrammarJob::Time::max()) {
    if (now - begun <= kMostTime) return {};
    return Unsupported(fmt::format(
        "grammar: it is not compiled after {} s; use fewer or simpler parts, and lower the "
        "counts",
        kMostTime.count()));
  }
  if (now - job.asked_ <= kMostWait) return {};
  job.dropped_ = true;
  return Exhausted(fmt::format("grammar: other grammars were compiled for {} s; try again later",
                               kMostWait.count()));
}

Result<std::shared_ptr<const CompiledGrammar>> GrammarService::Compile(const Grammar& grammar) {
  GrammarCompiler* compiler = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!compiler_) {
      LATTE_ASSIGN_OR_RETURN(compiler_, make_compiler_());
    }
    compiler = compiler_.get();
  }
  return compiler->Compile(grammar);
}

void GrammarService::Run(GrammarJob& job) {
  if (job.dropped_) return;
  job.begun_ = now_();
  try {
    job.compiled_ = Compile(job.grammar_);
  } catch (const std::exception& thrown) {
    job.compiled_ = tl::unexpected(ErrorOf(thrown));
  }
  job.done_.store(true, std::memory_order_release);
  on_done_();
}

}  // namespace latte
