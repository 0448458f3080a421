// latte: one binary, one small file per subcommand.
//
// Exit codes: 0 done · 1 run-time failure · 2 bad usage or bad input · 3 a bug in Latte.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/flags/command_words.h"
#include "apps/flags/manual/environment.h"
#include "apps/flags/manual/help_text.h"
#include "apps/ranks.h"
#include "apps/reserves.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/screen.h"
#include "apps/unread_lines.h"
#include "src/base/files/map_guard.h"
#include "src/base/limits/out_of_memory.h"

namespace {

constexpr char kAbout[] =
    "Latte: inference for models with Multi-head Latent Attention (DeepSeek V2/V3/R1, Kimi-K2, "
    "Moonlight)";
constexpr char kExamples[] =
    "Examples:\n"
    "  latte run -p \"Once upon a time\"        write a story with the built-in model\n"
    "  latte run path/to/checkpoint < prompt.txt\n"
    "  latte chat path/to/checkpoint\n"
    "  latte pull org/name                     download a model\n\n"
    "MODEL is a Hugging Face folder, a .gguf file, a repository id (org/name or org/name:QUANT) in "
    "the local Hugging Face cache, tiny or tiny-sparse.";

// Prints an error of usage and returns its exit code.
int ReportUsage(const std::string& message) {
  latte::TellLine(message);
  return latte::ExitCode(latte::Code::kInvalidArgument);
}

// Whether output failed because its reader is gone, as in `latte … | head`: no one misses the rest.
bool ReaderIsGone() {
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return std::ferror(stdout) != 0 && poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// Prints an error of `command` and returns its exit code.
int Report(const latte::Error& error, const std::string& command) {
  if (error.code == latte::Code::kUnavailable && ReaderIsGone()) return latte::ExitCode(error.code);
  if (error.code == latte::Code::kInvalidArgument) {
    const bool named = error.message.starts_with("latte");
    return ReportUsage(named ? error.message : command + ": " + error.message);
  }
  latte::TellLine("latte: " + ToString(error));
  return latte::ExitCode(error.code);
}

std::vector<latte::Command> AddCommands(const latte::FlagSet& app) {
  std::vector<latte::Command> out;
  for (const auto& add :
       {latte::AddRun, latte::AddChat, latte::AddServe, latte::AddBatch, latte::AddPull,
        latte::AddList, latte::AddInspect, latte::AddQuantize, latte::AddTokenize, latte::AddScore,
        latte::AddEval, latte::AddBench, latte::AddSimulate, latte::AddSynth, latte::AddCompletion,
        latte::AddHelp, latte::AddVersion})
    out.push_back(add(app));
  return out;
}

// Runs the command that `words` name.
int RunWords(latte::CommandLine* line, const std::vector<latte::Command>& commands,
             const latte::CheckedWords& words) {
  if (const latte::Status set = line->Set(words); !set)
    return ReportUsage(latte::UsageError(*words.command, set.error().message));
  for (const latte::Command& candidate : commands) {
    if (!candidate.flags.chosen()) continue;
    if (const latte::Status status = candidate.run(); !status)
      return Report(status.error(), words.command->title());
  }
  return 0;
}

int RunLatte(int argc, char** argv) {
  // A server goes on, and ends, whether its lines are read or not.
  if (argc > 1 && std::string_view(argv[1]) == "serve") latte::DropUnreadLines();
  latte::CommandLine line(kAbout);
  const latte::FlagSet app = line.flags();
  app.Footer(kExamples);
  bool version = false;
  app.Group("Other").AddSwitch("-V,-v,--version", version, "print the version");
  const std::vector<latte::Command> commands = AddCommands(app);
  const latte::CommandInfo program = app.Info();
  const latte::Result<latte::CheckedWords> checked =
      latte::CheckWords({argv, argv + argc}, program);
  if (!checked) return Report(checked.error(), "latte");
  if (latte::PrintsNotes())
    for (const std::string& note : checked->notes) latte::TellLine("latte: " + note);
  if (checked->version) return latte::PrintVersion() ? 0 : 1;
  if (checked->help)
    return latte::Print(latte::HelpText(*checked->command, latte::ColumnsOf(STDOUT_FILENO))) ? 0
                                                                                             : 1;
  if (checked->incomplete) {
    latte::Tell(latte::HelpText(*checked->command, latte::ColumnsOf(STDERR_FILENO)));
    return latte::ExitCode(latte::Code::kInvalidArgument);
  }
  if (latte::PrintsNotes()) latte::ShowNotes(latte::NotesOnVariables(environ));
  return RunWords(&line, commands, *checked);
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
    latte::TellLine("latte: " + ToString(error));
    return latte::ExitCode(error.code);
  }
}
