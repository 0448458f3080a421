// For tests: which texts the grammar of a schema takes.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/grammar/grammar.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte {

// A schema, texts that it takes, and texts that it does not take.
struct SchemaCase {
  std::string schema;
  std::vector<std::string> taken;
  std::vector<std::string> refused;
};

class SchemaMatches : public testing::Test {
 protected:
  // Tokens are bytes.
  bool Matches(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
    const auto matcher = GrammarMatcher::Create(grammar, std::vector<int32_t>{}).value();
    const auto ids = tokenizer_.Encode(text).value();
    return std::ranges::all_of(ids, [&](int32_t t) { return matcher->Accept(t); }) &&
           matcher->completed();
  }
  void Check(const std::vector<SchemaCase>& cases) {
    for (const SchemaCase& one : cases) {
      const auto grammar = compiler_->Compile({GrammarSyntax::kJsonSchema, one.schema});
      if (!grammar) {
        ADD_FAILURE() << one.schema << "\n" << grammar.error().message;
        continue;
      }
      for (const std::string& text : one.taken)
        EXPECT_TRUE(Matches(*grammar, text)) << one.schema << "\n" << text;
      for (const std::string& text : one.refused)
        EXPECT_FALSE(Matches(*grammar, text)) << one.schema << "\n" << text;
    }
  }

  Tokenizer tokenizer_ = Tokenizer::FromJson(Dump(SmallTokenizer())).value();
  std::unique_ptr<GrammarCompiler> compiler_ =
      GrammarCompiler::Create(tokenizer_, tokenizer_.vocab_size()).value();
};

}  // namespace latte
