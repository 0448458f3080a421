// The interpreter's expressions; see interpreter.h.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/jinja/interpreter.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

bool IsPrintedFilter(const Node& node) {
  return node.kids.size() == 1 && (node.name == "safe" || node.name == "escape" ||
                                   node.name == "e" || node.name == "forceescape");
}

}  // namespace

Result<Value> Evaluator::Evaluate(int id) {
  const Node& node = At(id);
  LATTE_RETURN_IF_ERROR(budget_.Spend(1));
  if (!stack_.Left()) return Locate(node, Error{Code::kExhausted, "calls nest too deeply"});
  const int64_t bytes_before = budget_.bytes();
  Result<Value> value = EvaluateNode(node);
  if (!value) return Locate(node, std::move(value).error());
  if (Status spent = budget_.SpendMade(*value, bytes_before); !spent)
    return Locate(node, std::move(spent).error());
  return value;
}

// The text of a value that is printed or joined by `~`. Jinja2 marks what `safe` and `escape`
// return, and the mark changes later operations, but not these.
Result<Text> Evaluator::Printed(int id) {
  const Node& node = At(id);
  if (node.kind == NodeKind::kFilter && IsPrintedFilter(node)) return PrintedFilter(node);
  if (node.kind == NodeKind::kConditional) {
    LATTE_ASSIGN_OR_RETURN(const Value condition, Evaluate(node.kids[0]));
    const int chosen = node.kids[Truthy(condition) ? 1 : 2];
    if (!stack_.Left()) return Locate(node, Error{Code::kExhausted, "calls nest too deeply"});
    return chosen < 0 ? Result<Text>(Text()) : Printed(chosen);
  }
  LATTE_ASSIGN_OR_RETURN(const Value value, Evaluate(id));
  LATTE_RETURN_IF_ERROR(budget_.SpendOperand(value));
  Result<Text> text = Str(value, &budget_);
  if (!text) return Locate(node, std::move(text).error());
  return text;
}

Result<Text> Evaluator::PrintedFilter(const Node& node) {
  if (!stack_.Left()) return Locate(node, Error{Code::kExhausted, "calls nest too deeply"});
  LATTE_ASSIGN_OR_RETURN(Text text, Printed(node.kids[0]));
  const Node& input = At(node.kids[0]);
  const bool marked = input.kind == NodeKind::kFilter && IsPrintedFilter(input);
  if (node.name == "safe" || (marked && node.name != "forceescape")) return text;
  constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
  LATTE_RETURN_IF_ERROR(budget_.Spend(static_cast<int64_t>(text.size()) / 16));
  size_t size = text.size();
  size_t runs = text.runs().size();
  for (const char c : text.bytes()) {
    for (const auto& [from, to] : kEscapes) {
      if (c != from) continue;
      size += to.size() - 1;
      runs += 2;
    }
  }
  if (Status spent = budget_.SpendString(size, runs); !spent)
    return Locate(node, std::move(spent).error());
  Text out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto* const found =
        std::find_if(std::begin(kEscapes), std::end(kEscapes),
                     [&](const auto& escape) { return escape.first == text.bytes()[i]; });
    if (found == std::end(kEscapes))
      out.AppendRange(text, i, i + 1);
    else
      out.Append(found->second, true);
  }
  return out;
}

Result<Value> Evaluator::EvaluateNode(const Node& node) {
  switch (node.kind) {
    case NodeKind::kLiteral:
      return node.value;
    case NodeKind::kName:
      return EvaluateName(node);
    case NodeKind::kList:
    case NodeKind::kTuple:
      return EvaluateItems(node);
    case NodeKind::kDict:
      return EvaluateDict(node);
    case NodeKind::kNegate:
    case NodeKind::kPlus: {
      LATTE_ASSIGN_OR_RETURN(const Value value, Evaluate(node.kids[0]));
      if (value.Is(Kind::kFloat))
        return Value::Float(node.kind == NodeKind::kPlus ? value.number() : -value.number());
      const char* op = node.kind == NodeKind::kPlus ? "+" : "-";
      return BinaryOperation(op, Value::Int(0), value, &budget_);
    }
    case NodeKind::kNot:
    case NodeKind::kAnd:
    case NodeKind::kOr:
      return EvaluateLogic(node);
    case NodeKind::kBinary: {
      if (node.name == "~") {
        LATTE_ASSIGN_OR_RETURN(Text out, Printed(node.kids[0]));
        LATTE_ASSIGN_OR_RETURN(const Text tail, Printed(node.kids[1]));
        LATTE_RETURN_IF_ERROR(
            budget_.SpendString(out.size() + tail.size(), out.runs().size() + tail.runs().size()));
        out.Append(tail);
        return Value::String(std::move(out));
      }
      LATTE_ASSIGN_OR_RETURN(const Value a, Evaluate(node.kids[0]));
      LATTE_ASSIGN_OR_RETURN(const Value b, Evaluate(node.kids[1]));
      return BinaryOperation(node.name, a, b, &budget_);
    }
    case NodeKind::kCompare:
      return EvaluateCompare(node);
    case NodeKind::kConditional:
      return EvaluateConditional(node);
    case NodeKind::kAttribute:
    case NodeKind::kItem:
      return EvaluateAttribute(node);
    case NodeKind::kSlice:
      return EvaluateSlice(node);
    case NodeKind::kCall:
      return EvaluateCall(node);
    case NodeKind::kFilter:
    case NodeKind::kTest: {
      LATTE_ASSIGN_OR_RETURN(const Value input, Evaluate(node.kids[0]));
      LATTE_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(node));
      if (node.kind == NodeKind::kFilter) return ApplyFilter(node.name, input, arguments, &budget_);
      LATTE_ASSIGN_OR_RETURN(const bool holds, ApplyTest(node.name, input, arguments, &budget_));
      return Value::Bool(holds);
    }
    case NodeKind::kCapture: {
      LATTE_ASSIGN_OR_RETURN(Text text, CaptureInScope(node.kids[0]));
      return Value::String(std::move(text));
    }
    case NodeKind::kMacro:
      return MakeMacro(node);
    default:
      return Internal("a statement where an expression belongs");
  }
}

Result<Value> Evaluator::EvaluateName(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(const Value* const value, Find(node.name));
  if (value) return *value;
  LATTE_ASSIGN_OR_RETURN(const Loop* const loop, LoopOf(node));
  if (loop) return LoopValue(*loop);
  for (const std::string_view function : kFunctions) {
    if (function != node.name) continue;
    Callable callable;
    callable.name = node.name;
    return Value::Wrap(std::make_shared<const Callable>(std::move(callable)));
  }
  return Value::MakeUndefined(fmt::format("'{}' is undefined", node.name));
}

Result<Value> Evaluator::EvaluateItems(const Node& node) {
  std::vector<Value> items;
  LATTE_RETURN_IF_ERROR(budget_.Spend(0, 64 + 32 * static_cast<int64_t>(node.kids.size())));
  for (const int kid : node.kids) {
    LATTE_ASSIGN_OR_RETURN(Value item, Evaluate(kid));
    items.push_back(std::move(item));
  }
  return MakeList(std::move(items), node.kind == NodeKind::kTuple);
}

Result<Value> Evaluator::EvaluateDict(const Node& node) {
  std::vector<Dict::Entry> entries;
  LATTE_RETURN_IF_ERROR(budget_.Spend(0, 96 + 96 * static_cast<int64_t>(node.kids.size())));
  for (size_t i = 0; i < node.kids.size(); i += 2) {
    LATTE_ASSIGN_OR_RETURN(const Value key, Evaluate(node.kids[i]));
    LATTE_ASSIGN_OR_RETURN(Value value, Evaluate(node.kids[i + 1]));
    if (!IsKey(key))
      return Unsupported(fmt::format("a key of type '{}' is not supported", TypeName(key)));
    entries.emplace_back(key, std::move(value));
  }
  LATTE_RETURN_IF_ERROR(SpendKeys(entries, &budget_));
  return MakeDict(std::move(entries));
}

Result<Value> Evaluator::EvaluateLogic(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(Value left, Evaluate(node.kids[0]));
  if (node.kind == NodeKind::kNot) return Value::Bool(!Truthy(left));
  return Truthy(left) == (node.kind == NodeKind::kOr) ? Result<Value>(std::move(left))
                                                      : Evaluate(node.kids[1]);
}

Result<Value> Evaluator::EvaluateCompare(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(Value left, Evaluate(node.kids[0]));
  for (size_t i = 0; i < node.names.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(Value right, Evaluate(node.kids[i + 1]));
    LATTE_ASSIGN_OR_RETURN(const bool holds, Compares(node.names[i], left, right, &budget_));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Result<Value> Evaluator::EvaluateConditional(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(const Value condition, Evaluate(node.kids[0]));
  if (Truthy(condition)) return Evaluate(node.kids[1]);
  if (node.kids[2] >= 0) return Evaluate(node.kids[2]);
  return Value::MakeUndefined("an inline 'if' without 'else' was not taken");
}

Result<Value> Evaluator::EvaluateAttribute(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(const Loop* const loop, LoopOf(At(node.kids[0])));
  if (loop && node.kind == NodeKind::kAttribute) return LoopMember(*loop, node.name);
  LATTE_ASSIGN_OR_RETURN(const Value object, Evaluate(node.kids[0]));
  if (node.kind == NodeKind::kAttribute) return GetAttribute(object, node.name, &budget_);
  LATTE_ASSIGN_OR_RETURN(const Value index, Evaluate(node.kids[1]));
  return GetItem(object, index, &budget_);
}

Result<Value> Evaluator::EvaluateSlice(const Node& node) {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i) {
    if (node.kids[i] < 0) continue;
    LATTE_ASSIGN_OR_RETURN(parts[i], Evaluate(node.kids[i]));
  }
  return GetSlice(parts[0], parts[1], parts[2], parts[3], &budget_);
}

}  // namespace latte::jinja
