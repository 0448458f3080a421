// Grammars that requests may contain: a byte that chooses the syntax, a text. It is refused with a
// reason, or it constrains an answer of bytes: whatever it allows it takes, and a JSON schema
// allows only JSON. A grammar that is taken costs a bounded CPU time. fuzz/run.sh bounds the
// memory.
#include <ctime>
#include <string>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/base/random.h"
#include "src/grammar/grammar.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::fuzz {
namespace {

constexpr int32_t kEnd = 256;
constexpr int kMostTokens = 48;
// The sanitizers and the coverage make everything some ten times slower, but there are few tokens.
// In 200 s of mutations the slowest input took 11 s on a busy machine.
constexpr double kMostCheckSeconds = 5;
constexpr double kMostCompileSeconds = 20;
constexpr double kMostMaskSeconds = 5;

// Fails when what happens until its end takes too much of the processor.
class TimeLimit {
 public:
  TimeLimit(double most, const char* what) : most_(most), what_(what) {}
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  ~TimeLimit() { Require(Seconds() - begun_ <= most_, what_); }

 private:
  static double Seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  const double most_;
  const char* const what_;
  const double begun_ = Seconds();
};

Tokenizer Bytes() {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<end>", {{"special", true}});
  return Tokenizer::FromJson(Dump(file)).value();
}

// A random walk over what the grammar allows.
void Walk(const std::shared_ptr<const CompiledGrammar>& grammar, bool is_json,
          const Tokenizer& tokenizer) {
  const auto matcher = GrammarMatcher::Create(grammar, std::vector<int32_t>{kEnd}).value();
  std::vector<uint32_t> mask(MaskWords(kEnd + 1));
  StreamDecoder decoder(tokenizer);  // as the engine does: the bytes may be no UTF-8
  std::string text;
  for (int i = 0; i < kMostTokens; ++i) {
    {
      const TimeLimit limit(kMostMaskSeconds, "a mask takes seconds");
      matcher->FillMask(mask);
    }
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token <= kEnd; ++token)
      if (InMask(mask, token)) allowed.push_back(token);
    if (allowed.empty()) return;
    const int32_t token = allowed[Mix64(static_cast<uint64_t>(i) + text.size()) % allowed.size()];
    Require(matcher->Accept(token), "a token that is allowed is taken");
    if (token == kEnd) {
      Require(matcher->completed(), "an answer ends where it is complete");
      if (is_json) Require(Json::Parse(text, "answer").has_value(), "an answer is JSON");
      return;
    }
    text += decoder.Push(token);
  }
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  static const Tokenizer tokenizer = fuzz::Bytes();
  static const auto compiler = GrammarCompiler::Create(tokenizer, fuzz::kEnd + 1).value();
  if (size < 1) return 0;
  const Grammar grammar{static_cast<GrammarSyntax>(data[0] % 5),
                        std::string(fuzz::AsText(data, size).substr(1))};
  const Status checked = [&] {
    const fuzz::TimeLimit limit(fuzz::kMostCheckSeconds, "a check takes seconds");
    return CheckGrammar(grammar);
  }();
  const auto compiled = [&] {
    const fuzz::TimeLimit limit(fuzz::kMostCompileSeconds, "a compilation takes seconds");
    return compiler->Compile(grammar);
  }();
  fuzz::Require(checked || !compiled, "what is refused is not compiled");
  if (compiled) fuzz::Walk(*compiled, grammar.syntax == GrammarSyntax::kJsonSchema, tokenizer);
  return 0;
}
