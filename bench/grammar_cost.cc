// What grammars cost: seconds of the processor to check and to compile, memory, and time of the
// masks of random answers. Each grammar is measured in a process of its own, which may use so many
// seconds.
//
// Usage: grammar_cost TOKENIZER_FOLDER [SECONDS]; reads grammars from standard input, one per line:
// NAME, SYNTAX, TEXT, separated by tabs, with \x01 for line feeds, and prints a line for each.
// bench/hostile_grammars.py --print writes some.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/random.h"
#include "src/grammar/grammar.h"
#include "src/text/tokenizer.h"

namespace latte {
namespace {

constexpr int32_t kEnd = 1;
constexpr int kTokens = 100;

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double PeakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct MaskCost {
  double sum = 0;
  double most = 0;
  double accept = 0;  // the most
  int count = 0;
};

MaskCost Walk(const std::shared_ptr<const CompiledGrammar>& compiled, int64_t vocab,
              uint64_t seed) {
  MaskCost out;
  const auto matcher = GrammarMatcher::Create(compiled, std::vector<int32_t>{kEnd}).value();
  std::vector<uint32_t> mask(MaskWords(vocab));
  for (int i = 0; i < kTokens; ++i) {
    double begun = CpuSeconds();
    matcher->FillMask(mask);
    const double took = CpuSeconds() - begun;
    out.sum += took;
    out.most = std::max(out.most, took);
    ++out.count;
    std::vector<int32_t> allowed;
    for (int32_t t = 0; t < vocab; ++t)
      if (InMask(mask, t) && (t != kEnd || allowed.empty())) allowed.push_back(t);
    if (allowed.empty()) break;
    if (allowed.size() > 1) std::erase(allowed, kEnd);
    const int32_t token = allowed[Mix64(seed * 1000 + static_cast<uint64_t>(i)) % allowed.size()];
    begun = CpuSeconds();
    if (!matcher->Accept(token) || token == kEnd) break;
    out.accept = std::max(out.accept, CpuSeconds() - begun);
  }
  return out;
}

void Measure(const Grammar& grammar, const Tokenizer& tokenizer, GrammarCompiler* compiler,
             const std::string& name) {
  const double before = PeakMebibytes();
  double begun = CpuSeconds();
  const Status checked = CheckGrammar(grammar);
  const double check = CpuSeconds() - begun;
  const double check_peak = PeakMebibytes() - before;
  fmt::print("{} | {} | {:.3f} | {:.0f} | ", name, grammar.text.size(), check, check_peak);
  if (!checked) {
    fmt::print("refused: {}\n", checked.error().message.substr(0, 160));
    return;
  }
  std::cout.flush();
  begun = CpuSeconds();
  const auto compiled = compiler->Compile(grammar);
  const double seconds = CpuSeconds() - begun;
  fmt::print("{:.3f} | {:.0f} | ", seconds, PeakMebibytes() - before);
  std::cout.flush();
  if (!compiled) {
    fmt::print("not compiled: {}\n", compiled.error().message.substr(0, 160));
    return;
  }
  MaskCost all;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const MaskCost one = Walk(*compiled, tokenizer.vocab_size(), seed);
    all.sum += one.sum;
    all.count += one.count;
    all.most = std::max(all.most, one.most);
    all.accept = std::max(all.accept, one.accept);
  }
  fmt::print("{:.2f} | {:.2f} | {:.2f}\n", all.sum / all.count * 1e3, all.most * 1e3,
             all.accept * 1e3);
}

int Main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto seconds = static_cast<rlim_t>(argc > 2 ? std::stoi(argv[2]) : 60);
  const Tokenizer tokenizer = Tokenizer::Load(argv[1]).value();
  const auto compiler = GrammarCompiler::Create(tokenizer, tokenizer.vocab_size()).value();
  if (const auto warm = compiler->Compile({GrammarSyntax::kRegex, "a"}); !warm) return 1;
  fmt::print("name | bytes | check s | MiB | compile s | MiB | mask ms | most | accept ms\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const size_t first = line.find('\t');
    const size_t second = line.find('\t', first + 1);
    if (second == line.npos) continue;
    Grammar grammar{*FindGrammarSyntax(line.substr(first + 1, second - first - 1)),
                    line.substr(second + 1)};
    for (size_t at = 0; (at = grammar.text.find('\x01', at)) != grammar.text.npos;)
      grammar.text[at] = '\n';
    const std::string name = line.substr(0, first);
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limit{seconds, seconds};
      setrlimit(RLIMIT_CPU, &limit);
      setvbuf(stdout, nullptr, _IONBF, 0);
      Measure(grammar, tokenizer, compiler.get(), name);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) fmt::print(" stopped after {} s\n", seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace latte

int main(int argc, char** argv) { return latte::Main(argc, argv); }
