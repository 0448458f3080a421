// latte completion: scripts that complete command lines.
#include "apps/flags/command.h"
#include "apps/flags/manual/completion.h"
#include "src/checkpoint/model_path.h"

namespace latte {
namespace {

struct CompletionFlags {
  FlagSet program;
  std::string shell;
  bool models = false;
};

Status PrintModels() {
  std::string out;
  for (const std::string& model : BundledModels()) out += model + "\n";
  for (const CachedModel& model : CachedModels()) out += model.name + "\n";
  return Print(out);
}

Status CompletionCommand(const CompletionFlags& flags) {
  if (flags.models) return PrintModels();
  if (flags.shell.empty()) return InvalidArgument("SHELL: expected bash, zsh or fish, found none");
  LATTE_ASSIGN_OR_RETURN(const std::string script,
                         CompletionScript(flags.shell, flags.program.Info()));
  return Print(script);
}

}  // namespace

Command AddCompletion(const FlagSet& app) {
  auto flags = std::make_shared<CompletionFlags>(CompletionFlags{app, "", false});
  const FlagSet sub =
      app.AddCommand("completion", "A script that completes command lines in a shell");
  sub.Add("SHELL", flags->shell, "bash, zsh or fish").Value("bash|zsh|fish");
  sub.AddSwitch("--models", flags->models, "print the names of the models that are here instead");
  sub.Footer(
      "Try it:\n"
      "  source <(latte completion bash)\n"
      "  latte completion zsh > \"${fpath[1]}/_latte\"\n"
      "  latte completion fish | source\n"
      "make install puts the scripts where the shells look for them.");
  return {sub, [flags] { return CompletionCommand(*flags); }};
}

}  // namespace latte
