// Literals, names, parentheses and arguments; see parser.h.
#include <charconv>

#include "src/jinja/parse/parser.h"

namespace latte::jinja {
namespace {

constexpr size_t kMaxArguments = 64;

}  // namespace

Result<int> Parser::ParsePrimary() {
  Node node = At(NodeKind::kLiteral, Now().offset);
  const Token& token = Now();
  if (token.type == TokenType::kName) {
    if (token.text == "true" || token.text == "True")
      node.value = Value::Bool(true);
    else if (token.text == "false" || token.text == "False")
      node.value = Value::Bool(false);
    else if (token.text != "none" && token.text != "None")
      node.kind = NodeKind::kName;
    node.name = token.text;
    ++at_;
    return Add(std::move(node));
  }
  if (token.type == TokenType::kString) {
    std::string text;
    for (; Now().type == TokenType::kString; ++at_) text += Now().text;
    node.value = Value::String(text);
    return Add(std::move(node));
  }
  const char* const last = token.text.data() + token.text.size();
  if (token.type == TokenType::kInteger) {
    int64_t value = 0;
    if (std::from_chars(token.text.data(), last, value).ec != std::errc())
      return Bad("an integer of at most 64 bits");
    node.value = Value::Int(value);
  } else if (token.type == TokenType::kFloat) {
    double value = 0;
    if (std::from_chars(token.text.data(), last, value).ec != std::errc())
      return Bad("a number in range");
    node.value = Value::Float(value);
  } else if (SkipOperator("(")) {
    return ParseParenthesis();
  } else if (SkipOperator("[")) {
    return ParseListLiteral();
  } else if (SkipOperator("{")) {
    return ParseDictLiteral();
  } else {
    return Bad("an expression");
  }
  ++at_;
  return Add(std::move(node));
}

Result<int> Parser::ParseParenthesis() {
  if (SkipOperator(")")) return Add(At(NodeKind::kTuple, Now().offset));
  LATTE_ASSIGN_OR_RETURN(const int value, ParseTuple(true));
  LATTE_RETURN_IF_ERROR(ExpectOperator(")"));
  return value;
}

Result<int> Parser::ParseListLiteral() {
  Node node = At(NodeKind::kList, Now().offset);
  while (!SkipOperator("]")) {
    if (!node.kids.empty()) LATTE_RETURN_IF_ERROR(ExpectOperator(","));
    if (SkipOperator("]")) break;
    LATTE_ASSIGN_OR_RETURN(const int item, ParseExpression());
    node.kids.push_back(item);
  }
  return Add(std::move(node));
}

Result<int> Parser::ParseDictLiteral() {
  Node node = At(NodeKind::kDict, Now().offset);
  while (!SkipOperator("}")) {
    if (!node.kids.empty()) LATTE_RETURN_IF_ERROR(ExpectOperator(","));
    if (SkipOperator("}")) break;
    LATTE_ASSIGN_OR_RETURN(const int key, ParseExpression());
    LATTE_RETURN_IF_ERROR(ExpectOperator(":"));
    LATTE_ASSIGN_OR_RETURN(const int value, ParseExpression());
    node.kids.push_back(key);
    node.kids.push_back(value);
  }
  return Add(std::move(node));
}

Status Parser::ParseArguments(Node* call) {
  LATTE_RETURN_IF_ERROR(ExpectOperator("("));
  for (bool first = true; !SkipOperator(")"); first = false) {
    if (!first) LATTE_RETURN_IF_ERROR(ExpectOperator(","));
    if (SkipOperator(")")) break;
    if (IsOperator("*") || IsOperator("**")) return NoSupport(Now().offset, "argument unpacking");
    const bool named =
        Now().type == TokenType::kName && Next().type == TokenType::kOperator && Next().text == "=";
    if (!named && !call->names.empty()) return Bad("a named argument");
    if (named) {
      call->names.push_back(Now().text);
      at_ += 2;
    }
    LATTE_ASSIGN_OR_RETURN(const int argument, ParseExpression());
    call->kids.push_back(argument);
    if (call->kids.size() > kMaxArguments) return Bad("fewer arguments");
  }
  return {};
}

}  // namespace latte::jinja
