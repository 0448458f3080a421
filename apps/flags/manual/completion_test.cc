#include "apps/flags/manual/completion.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace latte::completion_test {
namespace {

constexpr const char* kOdd = R"(it's [odd]: \'a\' "b" \ $HOME `c` * ; & | < > (d) {e} #)";

// "latte run --odd VALUE" and "latte help COMMAND".
CommandInfo OddProgram() {
  CommandInfo run;
  run.name = "run";
  run.help = kOdd;
  run.options = {{{"MODEL"}, "TEXT", kOdd, "", true, false},
                 {{"--odd"}, "VALUE", kOdd, "Options", false, false}};
  CommandInfo help;
  help.name = "help";
  help.help = "Help";
  help.options = {{{"COMMAND"}, "TEXT", "a command", "", false, true}};
  CommandInfo out;
  out.commands = {run, help};
  out.options = {{{"-h", "--help"}, "", kOdd, "Other", false, false}};
  return out;
}

// What `program`, given the script for `shell` as $1, prints.
std::string Ran(const std::string& shell, const std::string& flags, const std::string& program) {
  const testing_support::ScratchDir dir;
  std::ofstream(dir.File("script")) << CompletionScript(shell, OddProgram()).value();
  std::ofstream(dir.File("program")) << program;
  const std::string line =
      fmt::format("{} {} {} {} 2>&1", shell, flags, dir.File("program"), dir.File("script"));
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(line.c_str(), "r"), pclose);
  std::string out;
  for (int c = fgetc(pipe.get()); c != EOF; c = fgetc(pipe.get())) out += static_cast<char>(c);
  return out;
}

bool IsInstalled(const std::string& shell) {
  return std::system(fmt::format("command -v {} >/dev/null", shell).c_str()) == 0;
}

TEST(Completion, FishShowsTextsAsTheyAre) {
  if (!IsInstalled("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_EQ(
      Ran("fish", "--no-config", "function latte; end; source $argv[1]; complete -C 'latte r'"),
      fmt::format("run\t{}\n", kOdd));
  EXPECT_EQ(Ran("fish", "--no-config",
                "function latte; end; source $argv[1]; complete -C 'latte run --o'"),
            fmt::format("--odd\t{}\n", kOdd));
}

TEST(Completion, ZshReadsTextsAsTheyAre) {
  if (!IsInstalled("zsh")) GTEST_SKIP() << "zsh is not installed";
  // Prints the words that _arguments and _describe get.
  const std::string program =
      "_arguments() { print -rl -- $@; state=command }; _describe() { print -rl -- ${(P)2} }\n"
      "source $1; _latte_program; print ---; _latte_run\n";
  const std::string printed = Ran("zsh", "-f", program);
  const std::string text =
      R"(it's \[odd\]\: \\'a\\' "b" \\ $HOME `c` * ; & | < > (d) {e} #)";  // of _arguments
  EXPECT_NE(printed.find("\nrun:" + text + "\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("\n(--odd)--odd=[" + text + "]:VALUE: \n"), std::string::npos) << printed;
}

TEST(Completion, BashCompletesCommandsOfHelp) {
  const std::string program =
      "source $1; COMP_WORDS=(latte help r); COMP_CWORD=2; _latte; echo \"${COMPREPLY[@]}\"\n";
  EXPECT_EQ(Ran("bash", "--norc", program), "run\n");
}

TEST(Completion, AnotherShellIsRefused) { EXPECT_FALSE(CompletionScript("tcsh", OddProgram())); }

}  // namespace
}  // namespace latte::completion_test
