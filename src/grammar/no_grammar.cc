// A build without xgrammar.
#include "src/grammar/grammar.h"

namespace latte {
namespace {

tl::unexpected<Error> NotBuilt() {
  return tl::unexpected(
      Error{Code::kUnsupported,
            "grammar: this build cannot constrain answers; build Latte with xgrammar "
            "(make grammar)"});
}

}  // namespace

std::string_view GrammarLibrary() { return {}; }

Status CheckGrammar(const Grammar& /*grammar*/) { return NotBuilt(); }

Result<std::string> RulesOf(const Grammar& /*grammar*/) { return NotBuilt(); }

Result<std::string> RulesOfSchema(const std::string& /*schema*/, std::string_view /*part*/) {
  return NotBuilt();
}

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::Create(const Tokenizer& /*tokenizer*/,
                                                                 int64_t /*vocab*/) {
  return NotBuilt();
}

}  // namespace latte
