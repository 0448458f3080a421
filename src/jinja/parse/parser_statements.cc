// The statements of a template; see parser.h.
#include <utility>

#include <fmt/format.h>

#include "src/jinja/parse/parser.h"

namespace latte::jinja {
namespace {

constexpr size_t kMaxTargets = 16;

bool IsOneOf(const std::string& word, std::initializer_list<std::string_view> words) {
  for (const std::string_view w : words)
    if (w == word) return true;
  return false;
}

}  // namespace

Result<Ast> Parser::Run() {
  LATTE_ASSIGN_OR_RETURN(tokens_, Tokenize(ast_.source));
  LATTE_ASSIGN_OR_RETURN(ast_.root, ParseBlock({}));
  return std::move(ast_);
}

Status Parser::ExpectBlockEnd() {
  if (Now().type != TokenType::kBlockEnd) return Bad("'%}'");
  ++at_;
  return {};
}

// Stops before a tag that begins with a word of `ends`; without `ends`, at the end of the template.
Result<int> Parser::ParseBlock(std::initializer_list<std::string_view> ends) {
  LATTE_RETURN_IF_ERROR(CheckNesting());
  Node block = At(NodeKind::kBlock, Now().offset);
  while (Now().type != TokenType::kEnd) {
    if (Now().type == TokenType::kData) {
      Node data = At(NodeKind::kData, Now().offset);
      data.value = Value::String(Now().text);
      ++at_;
      LATTE_ASSIGN_OR_RETURN(const int id, Add(std::move(data)));
      block.kids.push_back(id);
    } else if (Now().type == TokenType::kVariableBegin) {
      Node print = At(NodeKind::kPrint, Now().offset);
      ++at_;
      LATTE_ASSIGN_OR_RETURN(const int value, ParseTuple(true));
      print.kids = {value};
      if (Now().type != TokenType::kVariableEnd) return Bad("'}}'");
      ++at_;
      LATTE_ASSIGN_OR_RETURN(const int id, Add(std::move(print)));
      block.kids.push_back(id);
    } else {
      ++at_;  // kBlockBegin: no other token is possible here
      if (Now().type == TokenType::kName && IsOneOf(Now().text, ends)) return Add(std::move(block));
      LATTE_ASSIGN_OR_RETURN(const int id, ParseStatement());
      block.kids.push_back(id);
    }
  }
  if (ends.size() > 0) return Bad(fmt::format("'{{% {} %}}'", *(ends.end() - 1)));
  return Add(std::move(block));
}

Result<int> Parser::ParseStatement() {
  if (Now().type != TokenType::kName) return Bad("the name of a tag");
  const std::string tag = Now().text;
  const uint32_t offset = Now().offset;
  if (IsOneOf(tag, {"else", "elif", "endif", "endfor", "endset", "endmacro", "endgeneration",
                    "endcall", "endfilter", "endwith", "endraw"}))
    return Bad("a tag that begins something");
  ++at_;
  if (tag == "if") return ParseIf(offset);
  if (tag == "for") return ParseFor(offset);
  if (tag == "set") return ParseSet(offset);
  if (tag == "macro") return ParseMacro(offset);
  if (tag == "call") return ParseCallBlock(offset);
  if (tag == "filter") return ParseFilterBlock(offset);
  if (tag == "with") return ParseWith(offset);
  if (tag == "generation") return ParseGeneration(offset);
  if (tag == "break" || tag == "continue") {
    if (loops_ == 0) {
      --at_;
      return Bad("a loop around it");
    }
    LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
    return Add(At(tag == "break" ? NodeKind::kBreak : NodeKind::kContinue, offset));
  }
  return NoSupport(offset, fmt::format("the tag '{}'", tag));
}

// What stands before the tag `end`, which is skipped. It is no part of the loops around it.
Result<int> Parser::ParseBody(std::string_view end) {
  LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
  const int loops = std::exchange(loops_, 0);
  LATTE_ASSIGN_OR_RETURN(const int body, ParseBlock({end}));
  loops_ = loops;
  ++at_;
  LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
  return body;
}

Result<int> Parser::ParseCapture(uint32_t offset, std::string_view end) {
  Node node = At(NodeKind::kCapture, offset);
  LATTE_ASSIGN_OR_RETURN(const int body, ParseBody(end));
  node.kids = {body};
  return Add(std::move(node));
}

// A block whose tag ends with filters, at the first of them: they apply to the text of the block,
// which comes after them. So it is parsed first.
Result<int> Parser::ParseFilteredCapture(uint32_t offset, std::string_view end) {
  const size_t filters = at_;
  while (Now().type != TokenType::kBlockEnd && Now().type != TokenType::kEnd) ++at_;
  LATTE_ASSIGN_OR_RETURN(int value, ParseCapture(offset, end));
  const size_t after = std::exchange(at_, filters);
  do {
    LATTE_ASSIGN_OR_RETURN(value, ParseFilter(value));
  } while (SkipOperator("|"));
  if (Now().type != TokenType::kBlockEnd) return Bad("'%}'");
  at_ = after;
  return value;
}

// Hugging Face's mark for text of the model; it adds nothing to the output. Its variables are its
// own, because transformers makes a call block of it.
Result<int> Parser::ParseGeneration(uint32_t offset) {
  Node print = At(NodeKind::kPrint, offset);
  LATTE_ASSIGN_OR_RETURN(const int text, ParseCapture(offset, "endgeneration"));
  print.kids = {text};
  return Add(std::move(print));
}

Result<int> Parser::ParseFilterBlock(uint32_t offset) {
  Node print = At(NodeKind::kPrint, offset);
  LATTE_ASSIGN_OR_RETURN(const int text, ParseFilteredCapture(offset, "endfilter"));
  print.kids = {text};
  return Add(std::move(print));
}

Result<int> Parser::ParseWith(uint32_t offset) {
  Node node = At(NodeKind::kWith, offset);
  std::vector<int> values;
  while (Now().type != TokenType::kBlockEnd) {
    if (!values.empty()) LATTE_RETURN_IF_ERROR(ExpectOperator(","));
    LATTE_ASSIGN_OR_RETURN(std::string name, ParseTargetName());
    LATTE_RETURN_IF_ERROR(ExpectOperator("="));
    LATTE_ASSIGN_OR_RETURN(const int value, ParseExpression());
    node.names.push_back(std::move(name));
    values.push_back(value);
    if (values.size() > kMaxTargets) return Bad("fewer variables");
  }
  LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
  LATTE_ASSIGN_OR_RETURN(const int body, ParseBlock({"endwith"}));
  ++at_;
  LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
  node.kids = {body};
  node.kids.insert(node.kids.end(), values.begin(), values.end());
  return Add(std::move(node));
}

// The block becomes a macro, which the call passes on under the name `caller`.
Result<int> Parser::ParseCallBlock(uint32_t offset) {
  Node caller = At(NodeKind::kMacro, offset);
  caller.name = "caller";
  std::vector<int> defaults;
  if (IsOperator("(")) LATTE_RETURN_IF_ERROR(ParseParameters(&caller, &defaults));
  LATTE_ASSIGN_OR_RETURN(const int call, ParseExpression());
  if (ast_.nodes[static_cast<size_t>(call)].kind != NodeKind::kCall) return Bad("a call before it");
  LATTE_ASSIGN_OR_RETURN(const int body, ParseBody("endcall"));
  caller.kids = {body};
  caller.kids.insert(caller.kids.end(), defaults.begin(), defaults.end());
  LATTE_ASSIGN_OR_RETURN(const int macro, Add(std::move(caller)));
  Node with_caller = ast_.nodes[static_cast<size_t>(call)];
  with_caller.kids.push_back(macro);
  with_caller.names.push_back("caller");
  Node print = At(NodeKind::kPrint, offset);
  LATTE_ASSIGN_OR_RETURN(const int value, Add(std::move(with_caller)));
  print.kids = {value};
  return Add(std::move(print));
}

Result<int> Parser::ParseIf(uint32_t offset) {
  Node node = At(NodeKind::kIf, offset);
  while (true) {
    LATTE_ASSIGN_OR_RETURN(const int condition, ParseTuple(false));
    LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
    LATTE_ASSIGN_OR_RETURN(const int body, ParseBlock({"elif", "else", "endif"}));
    node.kids.push_back(condition);
    node.kids.push_back(body);
    if (!SkipWord("elif")) break;
  }
  int other = -1;
  if (SkipWord("else")) {
    LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
    LATTE_ASSIGN_OR_RETURN(other, ParseBlock({"endif"}));
  }
  ++at_;  // endif
  LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
  node.kids.push_back(other);
  return Add(std::move(node));
}

Result<std::string> Parser::ParseTargetName() {
  if (Now().type != TokenType::kName ||
      IsOneOf(Now().text, {"true", "false", "none", "True", "False", "None", "loop"}))
    return Bad("the name of a variable");
  return tokens_[at_++].text;
}

Status Parser::ParseTargets(std::vector<std::string>* names) {
  const bool parenthesis = SkipOperator("(");
  do {
    LATTE_ASSIGN_OR_RETURN(std::string name, ParseTargetName());
    names->push_back(std::move(name));
    if (names->size() > kMaxTargets) return Bad("fewer variables");
  } while (SkipOperator(","));
  return parenthesis ? ExpectOperator(")") : Status();
}

Result<int> Parser::ParseFor(uint32_t offset) {
  Node node = At(NodeKind::kFor, offset);
  LATTE_RETURN_IF_ERROR(ParseTargets(&node.names));
  if (!SkipWord("in")) return Bad("'in'");
  LATTE_ASSIGN_OR_RETURN(const int iterable, ParseTuple(false));
  int filter = -1;
  if (SkipWord("if")) {
    LATTE_ASSIGN_OR_RETURN(filter, ParseExpression());
  }
  if (IsWord("recursive")) return NoSupport(Now().offset, "a recursive loop");
  LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
  ++loops_;
  LATTE_ASSIGN_OR_RETURN(const int body, ParseBlock({"else", "endfor"}));
  --loops_;
  int other = -1;
  if (SkipWord("else")) {
    LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
    LATTE_ASSIGN_OR_RETURN(other, ParseBlock({"endfor"}));
  }
  ++at_;  // endfor
  LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
  node.kids = {iterable, filter, body, other};
  return Add(std::move(node));
}

Result<int> Parser::ParseSet(uint32_t offset) {
  Node node = At(NodeKind::kSet, offset);
  if (Next().type == TokenType::kOperator && Next().text == ".") {
    node.kind = NodeKind::kSetAttribute;
    LATTE_ASSIGN_OR_RETURN(node.name, ParseTargetName());
    ++at_;
    if (Now().type != TokenType::kName) return Bad("the name of an attribute");
    node.names.push_back(Now().text);
    ++at_;
  } else {
    LATTE_RETURN_IF_ERROR(ParseTargets(&node.names));
  }
  if (SkipOperator("=")) {
    LATTE_ASSIGN_OR_RETURN(const int value, ParseTuple(true));
    node.kids = {value};
    LATTE_RETURN_IF_ERROR(ExpectBlockEnd());
    return Add(std::move(node));
  }
  if (node.kind == NodeKind::kSet && node.names.size() != 1) return Bad("'='");
  LATTE_ASSIGN_OR_RETURN(const int text, SkipOperator("|") ? ParseFilteredCapture(offset, "endset")
                                                           : ParseCapture(offset, "endset"));
  node.kids = {text};
  return Add(std::move(node));
}

Status Parser::ParseParameters(Node* macro, std::vector<int>* defaults) {
  LATTE_RETURN_IF_ERROR(ExpectOperator("("));
  for (bool first = true; !SkipOperator(")"); first = false) {
    if (!first) LATTE_RETURN_IF_ERROR(ExpectOperator(","));
    LATTE_ASSIGN_OR_RETURN(std::string name, ParseTargetName());
    macro->names.push_back(std::move(name));
    if (macro->names.size() > kMaxTargets) return Bad("fewer parameters");
    if (SkipOperator("=")) {
      LATTE_ASSIGN_OR_RETURN(const int value, ParseExpression());
      defaults->push_back(value);
    } else if (!defaults->empty()) {
      return Bad("'=' and a default");
    }
  }
  return {};
}

Result<int> Parser::ParseMacro(uint32_t offset) {
  Node node = At(NodeKind::kMacro, offset);
  LATTE_ASSIGN_OR_RETURN(node.name, ParseTargetName());
  std::vector<int> defaults;
  LATTE_RETURN_IF_ERROR(ParseParameters(&node, &defaults));
  LATTE_ASSIGN_OR_RETURN(const int body, ParseBody("endmacro"));
  node.kids = {body};
  node.kids.insert(node.kids.end(), defaults.begin(), defaults.end());
  return Add(std::move(node));
}

}  // namespace latte::jinja
