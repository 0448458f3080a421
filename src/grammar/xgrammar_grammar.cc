// Grammars by xgrammar. Its exceptions and warnings become errors here.
#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <xgrammar/xgrammar.h>

#include "src/base/limits/out_of_memory.h"
#include "src/grammar/grammar.h"
#include "src/grammar/grammar_cache.h"
#include "src/grammar/grammar_rules.h"
#include "src/grammar/schema/schema_rules.h"
#include "src/grammar/xgrammar_log.h"

namespace latte {
namespace {

// The compiled grammars that a compiler keeps.
constexpr int64_t kKeptBytes = int64_t{256} << 20;

// Runs `call`, which returns a Result, and turns xgrammar's exceptions into kInvalidArgument.
template <class Call>
auto CatchErrors(GrammarSyntax syntax, const Call& call) -> decltype(call()) {
  try {
    return CatchExhaustion(call);
  } catch (const std::exception& thrown) {
    std::string why = thrown.what();
    std::replace(why.begin(), why.end(), '\n', ' ');
    return InvalidArgument(fmt::format("grammar: this {} cannot be used: {}", Name(syntax), why));
  }
}

// A warning says that a part has no effect.
Status CheckWarnings(const GrammarWarnings& warnings) {
  for (const std::string& text : warnings.texts())
    return Unsupported(fmt::format("grammar: a part of it cannot be enforced: {}", text));
  return {};
}

Result<xgrammar::Grammar> FromStructuralTag(const std::string& tag) {
  const GrammarWarnings warnings;
  auto made = xgrammar::Grammar::FromStructuralTag(tag);
  if (const auto* error = std::get_if<xgrammar::StructuralTagError>(&made))
    return InvalidArgument(
        fmt::format("grammar: this structural-tag cannot be used: {}",
                    std::visit([](const auto& e) { return std::string(e.what()); }, *error)));
  LATTE_RETURN_IF_ERROR(CheckWarnings(warnings));
  return std::get<xgrammar::Grammar>(std::move(made));
}

Result<xgrammar::Grammar> FromRules(GrammarSyntax syntax, const std::string& rules) {
  return CatchErrors(
      syntax, [&]() -> Result<xgrammar::Grammar> { return xgrammar::Grammar::FromEBNF(rules); });
}

Result<xgrammar::Grammar> ToXgrammar(const Grammar& grammar) {
  LATTE_RETURN_IF_ERROR(CheckGrammarSize(grammar));
  if (grammar.syntax == GrammarSyntax::kJsonSchema) {
    LATTE_ASSIGN_OR_RETURN(const std::string rules, SchemaRules(grammar.text, ""));
    return FromRules(grammar.syntax, rules);
  }
  if (grammar.syntax == GrammarSyntax::kEbnf) return FromRules(grammar.syntax, grammar.text);
  return CatchErrors(grammar.syntax, [&]() -> Result<xgrammar::Grammar> {
    if (grammar.syntax == GrammarSyntax::kRegex) return xgrammar::Grammar::FromRegex(grammar.text);
    if (grammar.syntax == GrammarSyntax::kLark) return xgrammar::Grammar::FromLark(grammar.text);
    return FromStructuralTag(grammar.text);
  });
}

class XgrammarCompiled final : public CompiledGrammar {
 public:
  XgrammarCompiled(xgrammar::CompiledGrammar grammar, int64_t vocab)
      : grammar_(std::move(grammar)), vocab_(vocab) {}
  const xgrammar::CompiledGrammar& grammar() const { return grammar_; }
  int64_t vocab() const { return vocab_; }

 private:
  xgrammar::CompiledGrammar grammar_;
  int64_t vocab_;
};

// Bytes that are no text, so that no rule but the one with the token's id takes it. (A token without
// bytes is taken by no rule at all.)
std::string BytesOfAdded(int64_t id) { return fmt::format("\xFF\xFF{}", id); }

std::vector<std::string> Vocabulary(const Tokenizer& tokenizer, int64_t vocab) {
  std::vector<std::string> out(static_cast<size_t>(vocab));
  const int64_t known = std::min<int64_t>(vocab, tokenizer.vocab_size());
  for (int64_t id = 0; id < known; ++id)
    out[static_cast<size_t>(id)] = tokenizer.TokenBytes(static_cast<int32_t>(id));
  for (const int32_t id : tokenizer.AddedIds())
    if (id < vocab) out[static_cast<size_t>(id)] = BytesOfAdded(id);
  return out;
}

class XgrammarCompiler final : public GrammarCompiler {
 public:
  using Compiled = GrammarCache::Compiled;

  XgrammarCompiler(const Tokenizer& tokenizer, int64_t vocab)
      : vocab_(vocab),
        compiler_(xgrammar::TokenizerInfo(Vocabulary(tokenizer, vocab), xgrammar::VocabType::RAW,
                                          static_cast<int>(vocab), std::vector<int32_t>{}),
                  /*max_threads=*/1, /*cache_enabled=*/false) {}

  Result<Compiled> Compile(const Grammar& grammar) override {
    const std::lock_guard lock(mutex_);
    if (Compiled known = kept_.Find(grammar)) return known;
    LATTE_ASSIGN_OR_RETURN(const xgrammar::Grammar rules, ToXgrammar(grammar));
    return CatchErrors(grammar.syntax, [&]() -> Result<Compiled> {
      const xgrammar::CompiledGrammar compiled = compiler_.CompileGrammar(rules);
      Compiled out = std::make_shared<XgrammarCompiled>(compiled, vocab_);
      kept_.Add(grammar, out, static_cast<int64_t>(compiled.MemorySizeBytes()));
      return out;
    });
  }

 private:
  const int64_t vocab_;
  std::mutex mutex_;  // guards what follows
  // Its own cache takes rules that differ only in the ids of tokens for the same (0.2.8).
  xgrammar::GrammarCompiler compiler_;
  GrammarCache kept_{kKeptBytes};
};

std::optional<std::vector<int>> StopTokens(std::span<const int32_t> tokens, int64_t vocab) {
  std::vector<int> out;
  std::ranges::copy_if(tokens, std::back_inserter(out),
                       [&](int32_t t) { return t >= 0 && t < vocab; });
  return out.empty() ? std::nullopt : std::optional(out);
}

class XgrammarMatcher final : public GrammarMatcher {
 public:
  XgrammarMatcher(std::shared_ptr<const XgrammarCompiled> grammar,
                  std::span<const int32_t> stop_tokens)
      : grammar_(std::move(grammar)),
        matcher_(grammar_->grammar(), StopTokens(stop_tokens, grammar_->vocab())) {}

  bool Accept(int32_t token) override {
    try {
      return matcher_.AcceptToken(token);
    } catch (const std::runtime_error&) {  // a check inside xgrammar; a lack of memory passes
      return false;
    }
  }
  void Rollback(int tokens) override {
    if (tokens > 0) matcher_.Rollback(tokens);
  }
  void FillMask(std::span<uint32_t> mask) override {
    const bool ended = matcher_.IsTerminated();
    std::ranges::fill(mask,
                      ended ? 0 : ~uint32_t{0});  // it may be left as it is: everything is allowed
    if (ended) return;
    std::array<int64_t, 1> shape = {static_cast<int64_t>(mask.size())};
    DLTensor tensor{};
    tensor.data = mask.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = {kDLInt, 32, 1};
    tensor.shape = shape.data();
    matcher_.FillNextTokenBitmask(&tensor);
  }
  bool completed() const override { return matcher_.IsTerminated() || matcher_.IsCompleted(); }

 private:
  std::shared_ptr<const XgrammarCompiled> grammar_;
  xgrammar::GrammarMatcher matcher_;
};

}  // namespace

std::string_view GrammarLibrary() { return "xgrammar " LATTE_XGRAMMAR_VERSION; }

Status CheckGrammar(const Grammar& grammar) {
  LATTE_RETURN_IF_ERROR(ToXgrammar(grammar));
  return {};
}

Result<std::string> RulesOf(const Grammar& grammar) {
  if (grammar.syntax == GrammarSyntax::kJsonSchema) return RulesOfSchema(grammar.text, "");
  LATTE_ASSIGN_OR_RETURN(const xgrammar::Grammar rules, ToXgrammar(grammar));
  return rules.ToString();
}

Result<std::string> RulesOfSchema(const std::string& schema, std::string_view part) {
  LATTE_RETURN_IF_ERROR(CheckGrammarSize({GrammarSyntax::kJsonSchema, schema}));
  LATTE_ASSIGN_OR_RETURN(std::string rules, SchemaRules(schema, part));
  LATTE_RETURN_IF_ERROR(FromRules(GrammarSyntax::kJsonSchema, rules));
  return rules;
}

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::Create(const Tokenizer& tokenizer,
                                                                 int64_t vocab) {
  return CatchExhaustion([&]() -> Result<std::unique_ptr<GrammarCompiler>> {
    return std::make_unique<XgrammarCompiler>(tokenizer, vocab);
  });
}

Result<std::unique_ptr<GrammarMatcher>> GrammarMatcher::Create(
    std::shared_ptr<const CompiledGrammar> grammar, std::span<const int32_t> stop_tokens) {
  return CatchExhaustion([&]() -> Result<std::unique_ptr<GrammarMatcher>> {
    return std::make_unique<XgrammarMatcher>(
        std::static_pointer_cast<const XgrammarCompiled>(std::move(grammar)), stop_tokens);
  });
}

}  // namespace latte
