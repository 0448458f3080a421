// Grammars over the vocabulary of models/tiny. Answers are random walks over the allowed tokens:
// what a model with a useless distribution would write.
#include "src/grammar/grammar.h"

#include <numeric>

#include <gtest/gtest.h>

#include "src/base/json.h"
#include "src/base/random.h"
#include "src/grammar/grammar_cache.h"

namespace latte::grammar_test {
namespace {

constexpr int32_t kEnd = 1;
constexpr int64_t kVocab = 1500;  // larger than the tokenizer's

class GrammarTest : public testing::Test {
 protected:
  using Compiled = std::shared_ptr<const CompiledGrammar>;

  static Tokenizer Load() {
    return Tokenizer::Load(std::string(LATTE_SOURCE_DIR) + "/models/tiny").value();
  }

  Compiled Compile(GrammarSyntax syntax, const std::string& text) {
    return compiler_->Compile({syntax, text}).value();
  }

  std::vector<int32_t> Allowed(GrammarMatcher& matcher) const {
    std::vector<uint32_t> mask(MaskWords(kVocab));
    matcher.FillMask(mask);
    std::vector<int32_t> out;
    for (int32_t t = 0; t < kVocab; ++t)
      if (InMask(mask, t)) out.push_back(t);
    return out;
  }

  std::unique_ptr<GrammarMatcher> Start(const Compiled& grammar) const {
    return GrammarMatcher::Create(grammar, std::vector<int32_t>{kEnd}).value();
  }

  struct Walk {
    std::string text;
    bool ended = false;
  };
  // Ends wherever it may after `patience` tokens.
  Walk RandomWalk(const Compiled& grammar, uint64_t seed, int most, int patience) const {
    const auto matcher = Start(grammar);
    Walk out;
    StreamDecoder decoder(tokenizer_);  // as the engine does: random bytes are no UTF-8
    for (int i = 0; i < most; ++i) {
      const std::vector<int32_t> allowed = Allowed(*matcher);
      if (allowed.empty()) ADD_FAILURE() << "nothing may follow " << out.text;
      if (allowed.empty()) return out;
      int32_t token = allowed[Mix64(seed * 100003 + static_cast<uint64_t>(i)) % allowed.size()];
      if (i >= patience && allowed.size() > 1 && InList(allowed, kEnd)) token = kEnd;
      if (i >= patience && !InList(allowed, kEnd)) token = Shortest(allowed);
      EXPECT_TRUE(matcher->Accept(token));
      out.ended = token == kEnd;
      if (out.ended) return out;
      out.text += decoder.Push(token);
    }
    return out;
  }

  static bool InList(const std::vector<int32_t>& list, int32_t token) {
    return std::find(list.begin(), list.end(), token) != list.end();
  }
  // What closes strings and brackets, if it may follow.
  int32_t Shortest(const std::vector<int32_t>& allowed) const {
    for (const char* text : {"\"", "}", "]", ":", "1"})
      if (const auto id = tokenizer_.TokenId(text); id && InList(allowed, *id)) return *id;
    return allowed.front();
  }

  bool Matches(GrammarSyntax syntax, const std::string& grammar, const std::string& text) {
    const auto matcher = Start(Compile(syntax, grammar));
    const auto ids = tokenizer_.Encode(text).value();
    return std::all_of(ids.begin(), ids.end(), [&](int32_t t) { return matcher->Accept(t); }) &&
           matcher->completed();
  }

  Tokenizer tokenizer_ = Load();
  std::unique_ptr<GrammarCompiler> compiler_ = GrammarCompiler::Create(tokenizer_, kVocab).value();
};

TEST_F(GrammarTest, JsonSchemaGivesValidJson) {
  const char* const kSchemas[] = {
      R"({"type": "object"})",
      R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 2, "maxLength": 9},
          "tags": {"type": "array", "items": {"enum": ["a\n", "b\"", "ü"]}, "maxItems": 3},
          "n": {"type": "integer", "minimum": 3, "maximum": 77}}, "required": ["name", "tags"],
          "additionalProperties": false})",
      R"({"$defs": {"tree": {"type": "object", "properties": {"value": {"type": "number"},
          "left": {"$ref": "#/$defs/tree"}}, "required": ["value"]}}, "$ref": "#/$defs/tree"})",
      R"({"anyOf": [{"type": "null"}, {"type": "string", "pattern": "^.{3,7}$"}, {"const": {"a": [1]}}]})",
      R"({"type": "object", "additionalProperties": {"type": "boolean"}})"};
  for (const char* schema : kSchemas) {
    const Compiled grammar = Compile(GrammarSyntax::kJsonSchema, schema);
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const Walk walk = RandomWalk(grammar, seed, 400, 60);
      ASSERT_TRUE(walk.ended) << schema << "\n" << walk.text;
      const auto json = Json::Parse(walk.text, "answer");
      ASSERT_TRUE(json) << schema << "\n" << walk.text << "\n" << json.error().message;
    }
  }
}

// xgrammar's own rule for them takes any character but line feeds.
TEST_F(GrammarTest, StringsOfBoundedLengthHaveNoControlCharacters) {
  const auto matcher =
      Start(Compile(GrammarSyntax::kJsonSchema, R"({"type": "string", "minLength": 1})"));
  ASSERT_TRUE(matcher->Accept(*tokenizer_.TokenId("\"")));
  const std::vector<int32_t> allowed = Allowed(*matcher);
  EXPECT_GT(allowed.size(), 1000U);
  for (const int32_t token : allowed)
    for (const char c : tokenizer_.TokenBytes(token))
      EXPECT_GE(static_cast<unsigned char>(c), 0x20U) << token;
}

TEST_F(GrammarTest, ObjectsHaveNoOtherMembers) {
  const std::string schema = R"({"type": "object", "properties": {"a": {"type": "integer"}}})";
  EXPECT_TRUE(Matches(GrammarSyntax::kJsonSchema, schema, R"({"a": 5})"));
  EXPECT_TRUE(Matches(GrammarSyntax::kJsonSchema, schema, "{}"));
  EXPECT_FALSE(Matches(GrammarSyntax::kJsonSchema, schema, R"({"b": 5})"));
  EXPECT_FALSE(Matches(GrammarSyntax::kJsonSchema, schema, R"({"a": "5"})"));
}

TEST_F(GrammarTest, OtherSyntaxes) {
  EXPECT_TRUE(Matches(GrammarSyntax::kRegex, "[a-c]{2,4}x?", "abcx"));
  EXPECT_FALSE(Matches(GrammarSyntax::kRegex, "[a-c]{2,4}x?", "abd"));
  const std::string sums = "root ::= n (\"+\" n)*\nn ::= [0-9]+";
  EXPECT_TRUE(Matches(GrammarSyntax::kEbnf, sums, "12+3+4"));
  EXPECT_FALSE(Matches(GrammarSyntax::kEbnf, sums, "12+"));
  EXPECT_TRUE(Matches(GrammarSyntax::kLark, "start: \"yes\" | \"no\"", "no"));
}

TEST_F(GrammarTest, AddedTokensAreTakenByIdOnly) {
  const int32_t user = *tokenizer_.TokenId("<｜User｜>");
  for (const auto& [syntax, text] :
       {std::pair(GrammarSyntax::kRegex, ".*"), std::pair(GrammarSyntax::kRegex, "[^a]*"),
        std::pair(GrammarSyntax::kEbnf, "root ::= [^\"]*")})
    EXPECT_FALSE(InList(Allowed(*Start(Compile(syntax, text))), user)) << text;
  const auto in_string = Start(Compile(GrammarSyntax::kJsonSchema, R"({"type": "string"})"));
  ASSERT_TRUE(in_string->Accept(*tokenizer_.TokenId("\"")));
  EXPECT_FALSE(InList(Allowed(*in_string), user));

  const std::string tag = R"({"type": "structural_tag", "format": {"type": "sequence", "elements": [
      {"type": "any_text"}, {"type": "token", "token": )" +
                          std::to_string(user) + R"(}, {"type": "const_string", "value": "a"}]}})";
  const auto matcher = Start(Compile(GrammarSyntax::kStructuralTag, tag));
  EXPECT_TRUE(InList(Allowed(*matcher), user));
  EXPECT_FALSE(InList(Allowed(*matcher), *tokenizer_.TokenId("<｜Assistant｜>")));
  EXPECT_FALSE(InList(Allowed(*matcher), kEnd));
  ASSERT_TRUE(matcher->Accept(*tokenizer_.TokenId("b")));
  ASSERT_TRUE(matcher->Accept(user));
  EXPECT_EQ(Allowed(*matcher), std::vector<int32_t>{*tokenizer_.TokenId("a")});
}

// xgrammar's cache of compiled rules does not look at the ids.
TEST_F(GrammarTest, GrammarsThatDifferInATokenDiffer) {
  for (const char* token : {"<｜User｜>", "<｜Assistant｜>"}) {
    const int32_t id = *tokenizer_.TokenId(token);
    const std::string tag =
        R"({"type": "structural_tag", "format": {"type": "sequence", "elements": [
        {"type": "const_string", "value": "a"}, {"type": "token", "token": )" +
        std::to_string(id) + R"(}, {"type": "const_string", "value": "b"}]}})";
    const auto matcher = Start(Compile(GrammarSyntax::kStructuralTag, tag));
    ASSERT_TRUE(matcher->Accept(*tokenizer_.TokenId("a")));
    EXPECT_EQ(Allowed(*matcher), std::vector<int32_t>{id});
  }
}

TEST_F(GrammarTest, AGrammarIsCompiledOnce) {
  const auto compile = [&](GrammarSyntax syntax) { return Compile(syntax, "root ::= \"a\""); };
  const Compiled first = compile(GrammarSyntax::kEbnf);
  EXPECT_NE(compile(GrammarSyntax::kRegex), first);
  EXPECT_EQ(compile(GrammarSyntax::kEbnf), first);
}

struct NoGrammar final : CompiledGrammar {
  Result<std::unique_ptr<GrammarMatcher>> NewMatcher(std::span<const int32_t>) const override {
    return Unsupported("");
  }
};

TEST(GrammarCacheTest, TheOneUsedLeastRecentlyLeaves) {
  GrammarCache cache(100);
  const auto compiled = std::make_shared<NoGrammar>();
  const auto add = [&](const char* text, int64_t bytes) {
    cache.Add({GrammarSyntax::kRegex, text}, compiled, bytes);
  };
  const auto has = [&](const char* text) {
    return cache.Find({GrammarSyntax::kRegex, text}) != nullptr;
  };
  add("a", 40);
  add("b", 40);
  EXPECT_TRUE(has("a"));
  add("c", 40);
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(has("b"));
  EXPECT_TRUE(has("c"));
  add("d", 1000);  // alone it is kept, whatever its size
  EXPECT_EQ(cache.size(), 1U);
}

TEST_F(GrammarTest, TheEndFollowsOnlyACompleteAnswer) {
  const auto matcher = Start(Compile(GrammarSyntax::kRegex, "ab?"));
  EXPECT_FALSE(InList(Allowed(*matcher), kEnd));
  EXPECT_FALSE(matcher->completed());
  EXPECT_FALSE(matcher->Accept(kEnd));
  ASSERT_TRUE(matcher->Accept(*tokenizer_.TokenId("a")));
  EXPECT_TRUE(matcher->completed());
  EXPECT_EQ(Allowed(*matcher).size(), 2U);
  ASSERT_TRUE(matcher->Accept(kEnd));
  EXPECT_TRUE(matcher->completed());
  EXPECT_TRUE(Allowed(*matcher).empty());
  matcher->Rollback(2);
  EXPECT_FALSE(matcher->completed());
  EXPECT_FALSE(InList(Allowed(*matcher), kEnd));
}

TEST_F(GrammarTest, WithoutStopTokensNothingFollowsACompleteAnswer) {
  const auto matcher =
      GrammarMatcher::Create(Compile(GrammarSyntax::kRegex, "a"), std::vector<int32_t>{}).value();
  ASSERT_TRUE(matcher->Accept(*tokenizer_.TokenId("a")));
  EXPECT_TRUE(matcher->completed());
  EXPECT_TRUE(Allowed(*matcher).empty());
}

TEST_F(GrammarTest, WhatIsNoGrammarIsRefused) {
  const auto code = [](GrammarSyntax syntax, const std::string& text) {
    const Status status = CheckGrammar({syntax, text});
    return status ? Code::kOk : status.error().code;
  };
  using enum GrammarSyntax;
  EXPECT_EQ(code(kJsonSchema, R"({"type": "banana"})"), Code::kInvalidArgument);
  EXPECT_EQ(code(kJsonSchema, "garbage"), Code::kInvalidArgument);
  EXPECT_EQ(code(kJsonSchema, R"({"$ref": "#/$defs/none"})"), Code::kInvalidArgument);
  EXPECT_EQ(code(kRegex, "(a"), Code::kInvalidArgument);
  EXPECT_EQ(code(kRegex, std::string(10'000, '(')), Code::kInvalidArgument);
  EXPECT_EQ(code(kEbnf, "root ::= a"), Code::kInvalidArgument);
  EXPECT_EQ(code(kLark, "start: ("), Code::kInvalidArgument);
  EXPECT_EQ(code(kStructuralTag, R"({"type": "structural_tag")"), Code::kInvalidArgument);
  const auto compiled = compiler_->Compile({kStructuralTag, R"({"type": "structural_tag"})"});
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, Code::kInvalidArgument);
  EXPECT_EQ(code(kRegex, "a+"), Code::kOk);
}

TEST_F(GrammarTest, WhatCannotBeEnforcedIsRefused) {
  for (const char* schema :
       {R"({"not": {"type": "string"}})", R"({"type": "number", "multipleOf": 0.5})",
        R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
        R"({"$ref": "https://example.org/schema"})"}) {
    const Status status = CheckGrammar({GrammarSyntax::kJsonSchema, schema});
    ASSERT_FALSE(status) << schema;
    EXPECT_EQ(status.error().code, Code::kUnsupported) << schema << status.error().message;
  }
}

TEST_F(GrammarTest, ThePartsOfATagHaveAPriceTogether) {
  const auto tag = [](int parts) {
    std::string out = R"({"type": "structural_tag", "format": {"type": "or", "elements": [)";
    for (int i = 0; i < parts; ++i)
      out += (i > 0 ? "," : "") +
             std::string(R"({"type": "grammar", "grammar": "root ::= [a-zA-Z]{200}"})");
    return out + "]}}";
  };
  EXPECT_TRUE(CheckGrammar({GrammarSyntax::kStructuralTag, tag(6)}));
  const Status refused = CheckGrammar({GrammarSyntax::kStructuralTag, tag(7)});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("at most 40000"), std::string::npos);
}

TEST_F(GrammarTest, RulesOfASchemaArePartOfATag) {
  const std::string rules =
      RulesOf({GrammarSyntax::kJsonSchema, R"({"enum": ["x", "y"]})"}).value();
  const std::string tag = R"({"type": "structural_tag", "format": {"type": "sequence", "elements": [
      {"type": "const_string", "value": "go: "}, {"type": "grammar", "grammar": )" +
                          std::string("\"") +
                          [&] {
                            std::string quoted;
                            for (const char c : rules) {
                              if (c == '"' || c == '\\') quoted += '\\';
                              quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
                            }
                            return quoted;
                          }() +
                          "\"}]}}";
  EXPECT_TRUE(Matches(GrammarSyntax::kStructuralTag, tag, R"(go: "y")"));
  EXPECT_FALSE(Matches(GrammarSyntax::kStructuralTag, tag, R"(go: "z")"));
}

}  // namespace
}  // namespace latte::grammar_test
