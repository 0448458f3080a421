// latte: one binary, one small file per subcommand.
//
// Exit codes: 0 done · 1 run-time failure · 2 bad usage or bad input · 3 a bug in Latte.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "apps/flags/aliases/rewrite.h"
#include "apps/flags/command.h"
#include "apps/ranks.h"
#include "apps/reserves.h"
#include "src/base/limits/out_of_memory.h"
#include "src/base/map_guard.h"
#include "src/grammar/grammar.h"

#ifndef LATTE_VERSION
#error "the build passes LATTE_VERSION"
#endif

namespace {

std::string Version() {
  const std::string_view grammar = latte::GrammarLibrary();
  return "latte " LATTE_VERSION "\nconstrained answers: " +
         (grammar.empty() ? "not in this build (make grammar)" : std::string(grammar));
}

// The exit code of an error, which is told on standard error.
int Report(const latte::Error& error) {
  std::fprintf(stderr, "latte: %s\n", ToString(error).c_str());
  return latte::ExitCode(error.code);
}

int RunLatte(int argc, char** argv) {
  latte::CommandLine line(
      "Latte: inference for models with Multi-head Latent Attention (DeepSeek V2/V3/R1, Kimi-K2, "
      "Moonlight).\n\n  latte run -p \"Once upon a time\"      write a story with the built-in "
      "model\n  latte run path/to/checkpoint < prompt.txt\n  latte chat "
      "path/to/checkpoint\n  latte pull org/name                    download a model\n\n"
      "MODEL is a Hugging Face folder, a "
      "repository id (org/name) in the local Hugging Face cache, tiny or tiny-sparse.",
      Version());
  const latte::FlagSet app = line.flags();
  const std::vector<latte::Command> commands = {
      latte::AddRun(app),      latte::AddChat(app),  latte::AddBatch(app),
      latte::AddServe(app),    latte::AddScore(app), latte::AddInspect(app),
      latte::AddTokenize(app), latte::AddEval(app),  latte::AddBench(app),
      latte::AddQuantize(app), latte::AddSynth(app), latte::AddSimulate(app),
      latte::AddPull(app)};
  const latte::Result<latte::CommandWords> words = latte::RewriteAliases({argv, argv + argc});
  if (!words) return Report(words.error());
  if (latte::PrintsNotes())
    for (const std::string& note : words->notes) std::fprintf(stderr, "latte: %s\n", note.c_str());
  if (const int code = line.Parse(words->words); code >= 0) return code;
  for (const latte::Command& command : commands) {
    if (!command.flags.chosen()) continue;
    if (const latte::Status status = command.run(); !status) return Report(status.error());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `latte … | head`: write fails instead of a signal ending the
                                  // process
  std::signal(SIGXFSZ, SIG_IGN);  // the same for `ulimit -f`
  latte::InstallMapGuard();
  try {
    latte::KeepReserves();
    return RunLatte(argc, argv);
  } catch (const std::exception& thrown) {  // lack of memory or threads; nothing else throws
    const latte::Error error = latte::ErrorOf(thrown);
    std::fprintf(stderr, "latte: %.*s: %s\n", static_cast<int>(CodeName(error.code).size()),
                 CodeName(error.code).data(), error.message.c_str());
    return latte::ExitCode(error.code);
  }
}
