#include "src/jinja/parse/parser.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

constexpr size_t kMaxSource = 4 << 20;
constexpr size_t kMaxNodes = 500'000;
// Maximum depth of the tree. Real templates reach 22; a chain of `+` adds one level per term.
constexpr int kMaxNodeDepth = 400;

std::string Describe(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
      return "text";
    case TokenType::kVariableBegin:
      return "'{{'";
    case TokenType::kVariableEnd:
      return "'}}'";
    case TokenType::kBlockBegin:
      return "'{%'";
    case TokenType::kBlockEnd:
      return "'%}'";
    case TokenType::kEnd:
      return "the end";
    case TokenType::kString:
      return "a string";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace

bool Parser::IsOperator(std::string_view op) const {
  return Now().type == TokenType::kOperator && Now().text == op;
}
bool Parser::IsWord(std::string_view word) const {
  return Now().type == TokenType::kName && Now().text == word;
}
bool Parser::SkipOperator(std::string_view op) {
  const bool is = IsOperator(op);
  at_ += is ? 1 : 0;
  return is;
}
bool Parser::SkipWord(std::string_view word) {
  const bool is = IsWord(word);
  at_ += is ? 1 : 0;
  return is;
}
Status Parser::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) return Bad(fmt::format("'{}'", op));
  return {};
}

tl::unexpected<Error> Parser::Bad(std::string_view what) const {
  return InvalidArgument(fmt::format("{}expected {}, found {}", Where(ast_.source, Now().offset),
                                     what, Describe(Now())));
}
tl::unexpected<Error> Parser::NoSupport(uint32_t offset, std::string_view what) const {
  return Unsupported(fmt::format("{}{} is not supported", Where(ast_.source, offset), what));
}

// A level of parentheses takes about ten stack frames: 6 KiB. Real templates need 20 levels.
Status Parser::CheckNesting() const {
  if (stack_.Left()) return {};
  return InvalidArgument(fmt::format("{}nested too deeply", Where(ast_.source, Now().offset)));
}

Node Parser::At(NodeKind kind, uint32_t offset) const {
  Node node;
  node.kind = kind;
  node.offset = offset;
  return node;
}

Result<int> Parser::Add(Node node) {
  for (const int kid : node.kids)
    if (kid >= 0) node.depth = std::max(node.depth, 1 + ast_.nodes[static_cast<size_t>(kid)].depth);
  if (node.depth > kMaxNodeDepth)
    return InvalidArgument(
        fmt::format("{}nested deeper than {}", Where(ast_.source, node.offset), kMaxNodeDepth));
  if (ast_.nodes.size() >= kMaxNodes)
    return InvalidArgument(fmt::format("chat template: more than {} nodes", kMaxNodes));
  ast_.nodes.push_back(std::move(node));
  return static_cast<int>(ast_.nodes.size()) - 1;
}

Result<int> Parser::ParseTuple(bool conditional) {
  Node tuple = At(NodeKind::kTuple, Now().offset);
  bool comma = false;
  while (true) {
    const TokenType type = Now().type;
    if (type == TokenType::kVariableEnd || type == TokenType::kBlockEnd || IsOperator(")")) break;
    LATTE_ASSIGN_OR_RETURN(const int item, ParseExpression(conditional));
    tuple.kids.push_back(item);
    if (!SkipOperator(",")) break;
    comma = true;
  }
  if (tuple.kids.empty()) return Bad("an expression");
  return comma ? Add(std::move(tuple)) : tuple.kids[0];
}

Result<int> Parser::ParseExpression(bool conditional) {
  LATTE_RETURN_IF_ERROR(CheckNesting());
  LATTE_ASSIGN_OR_RETURN(int value, ParseLogic(true));
  while (conditional && IsWord("if")) {
    Node node = At(NodeKind::kConditional, Now().offset);
    ++at_;
    LATTE_ASSIGN_OR_RETURN(const int condition, ParseLogic(true));
    int other = -1;
    if (SkipWord("else")) {
      LATTE_ASSIGN_OR_RETURN(other, ParseExpression());
    }
    node.kids = {condition, value, other};
    LATTE_ASSIGN_OR_RETURN(value, Add(std::move(node)));
  }
  return value;
}

Result<int> Parser::ParseLogic(bool is_or) {
  LATTE_ASSIGN_OR_RETURN(int left, is_or ? ParseLogic(false) : ParseNot());
  while (IsWord(is_or ? "or" : "and")) {
    Node node = At(is_or ? NodeKind::kOr : NodeKind::kAnd, Now().offset);
    ++at_;
    LATTE_ASSIGN_OR_RETURN(const int right, is_or ? ParseLogic(false) : ParseNot());
    node.kids = {left, right};
    LATTE_ASSIGN_OR_RETURN(left, Add(std::move(node)));
  }
  return left;
}

Result<int> Parser::ParseNot() {
  if (!IsWord("not")) return ParseCompare();
  LATTE_RETURN_IF_ERROR(CheckNesting());
  Node node = At(NodeKind::kNot, Now().offset);
  ++at_;
  LATTE_ASSIGN_OR_RETURN(const int operand, ParseNot());
  node.kids = {operand};
  return Add(std::move(node));
}

Result<int> Parser::ParseCompare() {
  Node node = At(NodeKind::kCompare, Now().offset);
  LATTE_ASSIGN_OR_RETURN(const int first, ParseBinary(0));
  node.kids.push_back(first);
  while (true) {
    const auto is = [this](std::string_view op) { return IsOperator(op); };
    if (std::any_of(std::begin(kComparisons), std::end(kComparisons), is)) {
      node.names.push_back(Now().text);
      ++at_;
    } else if (SkipWord("in")) {
      node.names.push_back("in");
    } else if (IsWord("not") && Next().type == TokenType::kName && Next().text == "in") {
      node.names.push_back("not in");
      at_ += 2;
    } else {
      break;
    }
    LATTE_ASSIGN_OR_RETURN(const int operand, ParseBinary(0));
    node.kids.push_back(operand);
  }
  return node.names.empty() ? Result<int>(first) : Add(std::move(node));
}

// In Jinja2, `~` binds tighter than `+`, and `**` groups from the left.
Result<int> Parser::ParseBinary(int level) {
  constexpr int kLevels = 4;
  if (level == kLevels) return ParseUnary(true);
  const auto here = [this, level] {
    if (level == 0) return IsOperator("+") || IsOperator("-");
    if (level == 1) return IsOperator("~");
    if (level == 3) return IsOperator("**");
    return IsOperator("*") || IsOperator("/") || IsOperator("//") || IsOperator("%");
  };
  LATTE_ASSIGN_OR_RETURN(int left, ParseBinary(level + 1));
  while (here()) {
    Node node = At(NodeKind::kBinary, Now().offset);
    node.name = Now().text;
    ++at_;
    LATTE_ASSIGN_OR_RETURN(const int right, ParseBinary(level + 1));
    node.kids = {left, right};
    LATTE_ASSIGN_OR_RETURN(left, Add(std::move(node)));
  }
  return left;
}

Result<int> Parser::ParseUnary(bool with_filter) {
  int value = -1;
  if (IsOperator("-") || IsOperator("+")) {
    LATTE_RETURN_IF_ERROR(CheckNesting());
    Node node = At(IsOperator("-") ? NodeKind::kNegate : NodeKind::kPlus, Now().offset);
    ++at_;
    LATTE_ASSIGN_OR_RETURN(const int operand, ParseUnary(false));
    node.kids = {operand};
    LATTE_ASSIGN_OR_RETURN(value, Add(std::move(node)));
  } else {
    LATTE_ASSIGN_OR_RETURN(value, ParsePrimary());
  }
  LATTE_ASSIGN_OR_RETURN(value, ParsePostfix(value));
  return with_filter ? ParseFilterOrTest(value) : value;
}

Result<int> Parser::ParsePostfix(int object) {
  while (IsOperator(".") || IsOperator("[") || IsOperator("(")) {
    const uint32_t offset = Now().offset;
    if (SkipOperator(".")) {
      Node node = At(NodeKind::kAttribute, offset);
      node.name = Now().text;
      node.kids = {object};
      if (Now().type == TokenType::kInteger) {  // "items.0"
        LATTE_ASSIGN_OR_RETURN(const int index, ParsePrimary());
        node.kind = NodeKind::kItem;
        node.kids.push_back(index);
        LATTE_ASSIGN_OR_RETURN(object, Add(std::move(node)));
        continue;
      }
      if (Now().type != TokenType::kName) return Bad("the name of an attribute");
      ++at_;
      LATTE_ASSIGN_OR_RETURN(object, Add(std::move(node)));
    } else if (SkipOperator("[")) {
      LATTE_ASSIGN_OR_RETURN(object, ParseSubscript(object));
    } else {
      Node node = At(NodeKind::kCall, offset);
      node.kids = {object};
      LATTE_RETURN_IF_ERROR(ParseArguments(&node));
      LATTE_ASSIGN_OR_RETURN(object, Add(std::move(node)));
    }
  }
  return object;
}

Result<int> Parser::ParseSubscript(int object) {
  Node node = At(NodeKind::kItem, Now().offset);
  int parts[3] = {-1, -1, -1};
  int colons = 0;
  while (!IsOperator("]")) {
    if (IsOperator(",")) return NoSupport(Now().offset, "an index of several values");
    if (SkipOperator(":")) {
      if (++colons > 2) return Bad("']'");
    } else {
      if (parts[colons] >= 0) return Bad("']'");
      LATTE_ASSIGN_OR_RETURN(parts[colons], ParseExpression());
    }
  }
  LATTE_RETURN_IF_ERROR(ExpectOperator("]"));
  if (colons == 0 && parts[0] < 0) return Bad("an index before ']'");
  if (colons > 0) node.kind = NodeKind::kSlice;
  node.kids = {object, parts[0]};
  if (colons > 0) node.kids.insert(node.kids.end(), {parts[1], parts[2]});
  return Add(std::move(node));
}

Result<int> Parser::ParseFilterOrTest(int value) {
  while (true) {
    if (SkipOperator("|")) {
      LATTE_ASSIGN_OR_RETURN(value, ParseFilter(value));
    } else if (SkipWord("is")) {
      LATTE_ASSIGN_OR_RETURN(value, ParseTest(value));
    } else if (IsOperator("(")) {
      LATTE_ASSIGN_OR_RETURN(value, ParsePostfix(value));
    } else {
      return value;
    }
  }
}

Result<int> Parser::ParseFilter(int input) {
  if (Now().type != TokenType::kName) return Bad("the name of a filter");
  Node node = At(NodeKind::kFilter, tokens_[at_ - 1].offset);
  node.name = Now().text;
  node.kids = {input};
  ++at_;
  if (IsOperator("(")) LATTE_RETURN_IF_ERROR(ParseArguments(&node));
  return Add(std::move(node));
}

Result<int> Parser::ParseTest(int input) {
  Node node = At(NodeKind::kTest, Now().offset);
  const bool negated = SkipWord("not");
  if (Now().type != TokenType::kName) return Bad("the name of a test");
  node.name = Now().text;
  node.kids = {input};
  ++at_;
  const TokenType type = Now().type;
  const bool value = type == TokenType::kString || type == TokenType::kInteger ||
                     type == TokenType::kFloat || IsOperator("[") || IsOperator("{");
  const bool name = type == TokenType::kName && !IsWord("else") && !IsWord("or") &&
                    !IsWord("and") && !IsWord("if");
  if (IsOperator("(")) {
    LATTE_RETURN_IF_ERROR(ParseArguments(&node));
  } else if (value || name) {
    if (IsWord("is")) return Bad("no second 'is'");
    LATTE_ASSIGN_OR_RETURN(int argument, ParsePrimary());
    LATTE_ASSIGN_OR_RETURN(argument, ParsePostfix(argument));
    node.kids.push_back(argument);
  }
  Node negation = At(NodeKind::kNot, node.offset);
  LATTE_ASSIGN_OR_RETURN(const int test, Add(std::move(node)));
  if (!negated) return test;
  negation.kids = {test};
  return Add(std::move(negation));
}

Result<Ast> Parse(std::string_view source) {
  if (source.size() > kMaxSource)
    return InvalidArgument(
        fmt::format("chat template: {} bytes; the limit is {}", source.size(), kMaxSource));
  // Rules about characters must not see invalid UTF-8.
  return Parser(NormaliseNewlines(UserText(source).bytes())).Run();
}

}  // namespace latte::jinja
