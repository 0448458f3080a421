// latte version: what this build is and can do.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "latte_commit.h"  // LATTE_COMMIT; the build writes it
#include "src/engine/core/compute_device.h"
#include "src/grammar/grammar.h"
#include "src/kernels/machine.h"
#include "src/serve/web/web_files.h"

#ifndef LATTE_VERSION
#error "the build passes LATTE_VERSION"
#endif

namespace latte {
namespace {

#ifdef __clang__
constexpr std::string_view kCompiler = __VERSION__;
#else
constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif

// "ref, avx2, avx512; here: avx2", or why none is used here.
std::string InstructionSets() {
  std::string out;
  for (const auto isa : AllIsas()) out += fmt::format("{}{}", out.empty() ? "" : ", ", Name(isa));
  const Result<Machine> machine = Machine::Detect();
  return fmt::format("{}; here: {}", out, machine ? Name(machine->isa) : machine.error().message);
}

}  // namespace

Status PrintVersion() {
  constexpr std::string_view commit = LATTE_COMMIT;  // empty: not built from a repository
  const std::string_view grammar = GrammarLibrary();
  std::string out = "latte " LATTE_VERSION "\n";
  if (!commit.empty()) out += fmt::format("commit: {}\n", commit);
  out += fmt::format("compiler: {}\ninstruction sets: {}\n", kCompiler, InstructionSets());
  out += fmt::format("NVIDIA GPUs: {}\n", GpuSummary());
  out += fmt::format("constrained answers: {}\n",
                     grammar.empty() ? "not in this build (make grammar)" : grammar);
  out += fmt::format("web page: {}\n", WebLibraries());
  return Print(out);
}

Command AddVersion(const FlagSet& app) {
  const FlagSet sub = app.AddCommand("version", "The version, and what this build can do");
  return {sub, [] { return PrintVersion(); }};
}

}  // namespace latte
