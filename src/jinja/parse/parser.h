// The parser. Expressions are in parser.cc and parser_literals.cc, statements in
// parser_statements.cc. The precedence is Jinja2's. Internal to src/jinja.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/limits/stack_budget.h"
#include "src/jinja/parse/ast.h"
#include "src/jinja/parse/lexer.h"

namespace latte::jinja {

class Parser {
 public:
  explicit Parser(std::string source) { ast_.source = std::move(source); }
  Result<Ast> Run();

 private:
  // Statements.
  Result<int> ParseBlock(std::initializer_list<std::string_view> ends);
  Result<int> ParseStatement();
  Result<int> ParseIf(uint32_t offset);
  Result<int> ParseFor(uint32_t offset);
  Result<int> ParseSet(uint32_t offset);
  Result<int> ParseMacro(uint32_t offset);
  Status ParseParameters(Node* macro, std::vector<int>* defaults);
  Result<int> ParseCallBlock(uint32_t offset);
  Result<int> ParseFilterBlock(uint32_t offset);
  Result<int> ParseWith(uint32_t offset);
  Result<int> ParseGeneration(uint32_t offset);
  Result<int> ParseBody(std::string_view end);
  Result<int> ParseCapture(uint32_t offset, std::string_view end);
  Result<int> ParseFilteredCapture(uint32_t offset, std::string_view end);
  Status ParseTargets(std::vector<std::string>* names);
  Result<std::string> ParseTargetName();
  Status ExpectBlockEnd();

  // Expressions, lowest precedence first.
  Result<int> ParseTuple(bool conditional);
  Result<int> ParseExpression(bool conditional = true);
  Result<int> ParseLogic(bool is_or);
  Result<int> ParseNot();
  Result<int> ParseCompare();
  Result<int> ParseBinary(int level);
  Result<int> ParseUnary(bool with_filter);
  Result<int> ParsePrimary();
  Result<int> ParseParenthesis();
  Result<int> ParseListLiteral();
  Result<int> ParseDictLiteral();
  Result<int> ParsePostfix(int node);
  Result<int> ParseSubscript(int object);
  Result<int> ParseFilterOrTest(int node);
  Result<int> ParseFilter(int input);
  Result<int> ParseTest(int input);
  Status ParseArguments(Node* call);

  // Tokens.
  const Token& Now() const { return tokens_[at_]; }
  const Token& Next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool IsOperator(std::string_view op) const;
  bool IsWord(std::string_view word) const;
  bool SkipOperator(std::string_view op);
  bool SkipWord(std::string_view word);
  Status ExpectOperator(std::string_view op);

  // Errors: too many nodes, or too deep nesting.
  Result<int> Add(Node node);
  Node At(NodeKind kind, uint32_t offset) const;
  tl::unexpected<Error> Bad(std::string_view what) const;
  tl::unexpected<Error> NoSupport(uint32_t offset, std::string_view what) const;
  Status CheckNesting() const;  // limits the recursion of the parser itself

  Ast ast_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  StackBudget stack_;
  int loops_ = 0;  // the number of loops around this place that break and continue can reach
};

}  // namespace latte::jinja
