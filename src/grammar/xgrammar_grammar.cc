// Grammars by xgrammar. Its exceptions and warnings become errors here.
#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <xgrammar/xgrammar.h>

#include "src/base/json_out.h"
#include "src/base/limits/out_of_memory.h"
#include "src/grammar/grammar.h"
#include "src/grammar/grammar_cache.h"
#include "src/grammar/grammar_rules.h"
#include "src/grammar/pattern/pattern_rules.h"
#include "src/grammar/pattern/rule_price.h"
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

// Each part of a tag with rules has its own bound, which CheckGrammar and RulesOf check.
int64_t PriceOfTag(const JsonOut& part) {
  if (part.is_string()) return PriceOfRules(part.get_ref<const std::string&>());
  int64_t out = 0;
  if (part.is_structured())
    for (const JsonOut& inner : part) out += PriceOfTag(inner);
  return out;
}

Status CheckTag(const std::string& tag) {
  const Result<JsonOut> parts = ParseToEdit(tag, "grammar");
  if (!parts) return InvalidArgument(parts.error().message);
  if (const int64_t price = PriceOfTag(*parts) / 1000; price > kMostTagPrice)
    return Unsupported(
        fmt::format("grammar: expected functions and a format of a price of at most {} together, "
                    "found {}; give fewer functions, or simpler schemas",
                    kMostTagPrice, price));
  return {};
}

// The rules of a grammar that is not written as rules.
Result<std::string> RulesFrom(const Grammar& grammar) {
  if (grammar.syntax == GrammarSyntax::kJsonSchema) return SchemaRules(grammar.text, "");
  if (grammar.syntax == GrammarSyntax::kRegex) {
    LATTE_ASSIGN_OR_RETURN(std::string rules, RegexRules(grammar.text));
    LATTE_RETURN_IF_ERROR(CheckPrice(rules));
    return rules;
  }
  return grammar.text;
}

Result<xgrammar::Grammar> ToXgrammar(const Grammar& grammar) {
  LATTE_RETURN_IF_ERROR(CheckGrammarSize(grammar));
  if (grammar.syntax == GrammarSyntax::kStructuralTag) {
    LATTE_RETURN_IF_ERROR(CheckTag(grammar.text));
    return CatchErrors(grammar.syntax, [&] { return FromStructuralTag(grammar.text); });
  }
  if (grammar.syntax == GrammarSyntax::kLark)
    return CatchErrors(grammar.syntax, [&]() -> Result<xgrammar::Grammar> {
      xgrammar::Grammar out = xgrammar::Grammar::FromLark(grammar.text);
      LATTE_RETURN_IF_ERROR(CheckPrice(out.ToString()));
      return out;
    });
  LATTE_ASSIGN_OR_RETURN(const std::string rules, RulesFrom(grammar));
  if (grammar.syntax == GrammarSyntax::kEbnf) LATTE_RETURN_IF_ERROR(CheckPrice(rules));
  return FromRules(grammar.syntax, rules);
}

class XgrammarCompiled final : public CompiledGrammar {
 public:
  XgrammarCompiled(xgrammar::CompiledGrammar grammar, int64_t vocab)
      : grammar_(std::move(grammar)), vocab_(vocab) {}
  Result<std::unique_ptr<GrammarMatcher>> NewMatcher(
      std::span<const int32_t> stop_tokens) const override;
  const xgrammar::CompiledGrammar& grammar() const { return grammar_; }
  int64_t vocab() const { return vocab_; }

 private:
  xgrammar::CompiledGrammar grammar_;
  int64_t vocab_;
};

// Bytes that are no text, so that no rule but the one with the token's id takes it. (A token
// without bytes is taken by no rule at all.)
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
    {
      const std::lock_guard lock(mutex_);
      if (Compiled known = kept_.Find(grammar)) return known;
    }
    LATTE_ASSIGN_OR_RETURN(const xgrammar::Grammar rules, ToXgrammar(grammar));
    return CatchErrors(grammar.syntax, [&]() -> Result<Compiled> {
      const xgrammar::CompiledGrammar compiled = compiler_.CompileGrammar(rules);
      Compiled out = std::make_shared<XgrammarCompiled>(compiled, vocab_);
      const std::lock_guard lock(mutex_);
      kept_.Add(grammar, out, static_cast<int64_t>(compiled.MemorySizeBytes()));
      return out;
    });
  }

 private:
  const int64_t vocab_;
  // Its own cache takes rules that differ only in the ids of tokens for the same (0.2.8). Without
  // it a compiler has no state: calls may come at the same time.
  xgrammar::GrammarCompiler compiler_;
  std::mutex mutex_;  // guards what follows
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

Result<std::unique_ptr<GrammarMatcher>> XgrammarCompiled::NewMatcher(
    std::span<const int32_t> stop_tokens) const {
  return CatchExhaustion([&]() -> Result<std::unique_ptr<GrammarMatcher>> {
    return std::make_unique<XgrammarMatcher>(
        std::static_pointer_cast<const XgrammarCompiled>(shared_from_this()), stop_tokens);
  });
}

}  // namespace

std::string_view GrammarLibrary() { return "xgrammar " LATTE_XGRAMMAR_VERSION; }

// xgrammar reads only what a client wrote in its syntax: rules of schemas and of regular
// expressions are our own, and may be long.
Status CheckGrammar(const Grammar& grammar) {
  LATTE_RETURN_IF_ERROR(CheckGrammarSize(grammar));
  return CatchExhaustion([&]() -> Status {
    if (grammar.syntax == GrammarSyntax::kStructuralTag) return CheckTag(grammar.text);
    if (grammar.syntax == GrammarSyntax::kEbnf || grammar.syntax == GrammarSyntax::kLark)
      LATTE_RETURN_IF_ERROR(ToXgrammar(grammar));
    else
      LATTE_RETURN_IF_ERROR(RulesFrom(grammar));
    return {};
  });
}

Result<std::string> RulesOf(const Grammar& grammar) {
  if (grammar.syntax == GrammarSyntax::kJsonSchema) return RulesOfSchema(grammar.text, "");
  if (grammar.syntax == GrammarSyntax::kRegex) {
    LATTE_RETURN_IF_ERROR(CheckGrammarSize(grammar));
    return RulesFrom(grammar);
  }
  LATTE_ASSIGN_OR_RETURN(const xgrammar::Grammar rules, ToXgrammar(grammar));
  return rules.ToString();
}

Result<std::string> RulesOfSchema(const std::string& schema, std::string_view part) {
  LATTE_RETURN_IF_ERROR(CheckGrammarSize({GrammarSyntax::kJsonSchema, schema}));
  return SchemaRules(schema, part);
}

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::Create(const Tokenizer& tokenizer,
                                                                 int64_t vocab) {
  return CatchExhaustion([&]() -> Result<std::unique_ptr<GrammarCompiler>> {
    return std::make_unique<XgrammarCompiler>(tokenizer, vocab);
  });
}

}  // namespace latte
