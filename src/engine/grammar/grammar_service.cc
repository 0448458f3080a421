#include "src/engine/grammar/grammar_service.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"

namespace latte {
namespace {

constexpr size_t kMostWaiting = 64;

}  // namespace

GrammarService::~GrammarService() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<const GrammarJob>> GrammarService::Start(Grammar grammar) {
  if (tokenizer_ == nullptr)
    return InvalidArgument("grammar: expected none, as this engine has no tokenizer");
  if (GrammarLibrary().empty()) LATTE_RETURN_IF_ERROR(CheckGrammar(grammar));
  auto job = std::make_shared<GrammarJob>(std::move(grammar));
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting)
      return Exhausted(
          fmt::format("{} grammars wait to be compiled; try again later", kMostWaiting));
    if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
    waiting_.push_back(job);
  }
  changed_.notify_all();
  return job;
}

Result<std::shared_ptr<const CompiledGrammar>> GrammarService::Compile(const Grammar& grammar) {
  if (!compiler_) {
    LATTE_ASSIGN_OR_RETURN(compiler_, GrammarCompiler::Create(*tokenizer_, vocab_));
  }
  return compiler_->Compile(grammar);
}

void GrammarService::Loop() {
  while (true) {
    std::shared_ptr<GrammarJob> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      job->compiled_ = Compile(job->grammar_);
    } catch (const std::exception& thrown) {
      job->compiled_ = tl::unexpected(ErrorOf(thrown));
    }
    job->done_.store(true, std::memory_order_release);
    on_done_();
  }
}

}  // namespace latte
