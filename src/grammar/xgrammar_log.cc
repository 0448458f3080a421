// The two functions that xgrammar calls if it is compiled with XGRAMMAR_LOG_CUSTOMIZE=1.
#include "src/grammar/xgrammar_log.h"

#include <stdexcept>

namespace latte {
namespace {

// xgrammar passes no context to its messages: the thread is the only link to the call.
thread_local GrammarWarnings* collector = nullptr;

}  // namespace

GrammarWarnings::GrammarWarnings() { collector = this; }
GrammarWarnings::~GrammarWarnings() { collector = nullptr; }

}  // namespace latte

namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string& file, int lineno, const std::string& message);
void LogMessageImpl(const std::string& file, int lineno, int level, const std::string& message);

[[noreturn]] void LogFatalImpl(const std::string& /*file*/, int /*lineno*/,
                               const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string& /*file*/, int /*lineno*/, int level,
                    const std::string& message) {
  constexpr int kWarning = 1;
  if (level >= kWarning && latte::collector != nullptr) latte::collector->Add(message);
}

}  // namespace xgrammar
