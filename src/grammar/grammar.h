// Grammars constrain the text of an answer. A grammar that is compiled for a vocabulary gives,
// after every token, the tokens that may follow. xgrammar does the work, if the build has it
// (tools/get_xgrammar.sh).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/text/tokenizer.h"

namespace latte {

enum class GrammarSyntax : uint8_t {
  kJsonSchema,     // JSON that matches the schema; objects have no members that it does not name
  kRegex,          // the whole text matches
  kEbnf,           // rules NAME ::= …, the first of them named root
  kLark,           // rules NAME: …, the first of them named start
  kStructuralTag,  // xgrammar's JSON notation: sequences and choices of texts, tokens and the above
};

std::string_view Name(GrammarSyntax syntax);  // "json-schema"
std::optional<GrammarSyntax> FindGrammarSyntax(std::string_view name);

struct Grammar {
  GrammarSyntax syntax = GrammarSyntax::kJsonSchema;
  std::string text;
};

// "xgrammar 0.2.8"; empty if this build has no library: then all that follows is kUnsupported.
std::string_view GrammarLibrary();

// Checks a grammar and its price without a vocabulary. Takes milliseconds. A kStructuralTag may
// still be refused by Compile.
// Errors: kInvalidArgument for a text that is no grammar or is too large; kUnsupported for a part
// of a schema that cannot be enforced, and for a grammar that costs too much
// (pattern/rule_price.h).
[[nodiscard]] Status CheckGrammar(const Grammar& grammar);

// The grammar in the syntax kEbnf, as a part of a kStructuralTag. Errors: as CheckGrammar.
[[nodiscard]] Result<std::string> RulesOf(const Grammar& grammar);
// The same of a part of a JSON schema, at a JSON pointer ("/properties/a"). References in it may
// lead to all of the schema.
[[nodiscard]] Result<std::string> RulesOfSchema(const std::string& schema, std::string_view part);

class GrammarMatcher;

// Immutable, thread-safe.
class CompiledGrammar : public std::enable_shared_from_this<CompiledGrammar> {
 public:
  virtual ~CompiledGrammar() = default;

  // As GrammarMatcher::Create.
  [[nodiscard]] virtual Result<std::unique_ptr<GrammarMatcher>> NewMatcher(
      std::span<const int32_t> stop_tokens) const = 0;
};

// Compiles grammars for one vocabulary and keeps the ones used last. Thread-safe.
class GrammarCompiler {
 public:
  // vocab: of the model, which may be larger than the tokenizer's. Added tokens of the tokenizer,
  // special or not, are no text in a grammar; only kStructuralTag can name them, by id.
  // Takes a fraction of a second. Errors: kUnsupported.
  [[nodiscard]] static Result<std::unique_ptr<GrammarCompiler>> Create(const Tokenizer& tokenizer,
                                                                       int64_t vocab);
  virtual ~GrammarCompiler() = default;

  // May take seconds. Errors: as CheckGrammar.
  [[nodiscard]] virtual Result<std::shared_ptr<const CompiledGrammar>> Compile(
      const Grammar& grammar) = 0;
};

// Bit t of a mask is bit t % 32 of word t / 32.
inline size_t MaskWords(int64_t vocab) { return static_cast<size_t>((vocab + 31) / 32); }
inline bool InMask(std::span<const uint32_t> mask, int32_t token) {
  const auto t = static_cast<size_t>(token);
  return (mask[t / 32] >> (t % 32) & 1U) != 0;
}

// Where one answer is in its grammar. Thread-compatible.
class GrammarMatcher {
 public:
  // stop_tokens: end the answer, and may follow only where the grammar is complete. Ids outside
  // the vocabulary are ignored.
  [[nodiscard]] static Result<std::unique_ptr<GrammarMatcher>> Create(
      std::shared_ptr<const CompiledGrammar> grammar, std::span<const int32_t> stop_tokens);
  virtual ~GrammarMatcher() = default;

  // false: the token may not follow; nothing has changed.
  virtual bool Accept(int32_t token) = 0;
  // Takes the last accepted tokens back.
  virtual void Rollback(int tokens) = 0;
  // The tokens that may follow: none after a stop token. mask: MaskWords(vocab) words.
  virtual void FillMask(std::span<uint32_t> mask) = 0;
  // Whether the answer may end here.
  virtual bool completed() const = 0;
};

inline Result<std::unique_ptr<GrammarMatcher>> GrammarMatcher::Create(
    std::shared_ptr<const CompiledGrammar> grammar, std::span<const int32_t> stop_tokens) {
  return grammar->NewMatcher(stop_tokens);
}

}  // namespace latte
