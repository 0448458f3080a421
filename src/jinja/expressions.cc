// The interpreter's expressions; see interpreter.h.
#include <ctime>

#include <fmt/format.h>

#include "src/jinja/interpreter.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

constexpr std::string_view kFunctions[] = {"namespace", "range", "raise_exception", "strftime_now",
                                           "dict"};

}  // namespace

Result<Value> Evaluator::Evaluate(int id) {
  const Node& node = At(id);
  LATTE_RETURN_IF_ERROR(budget_.Spend(1));
  if (!stack_.Left()) return Locate(node, Error{Code::kExhausted, "calls nest too deeply"});
  Result<Value> value = EvaluateNode(node);
  if (!value) return Locate(node, std::move(value).error());
  return value;
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
    default:
      return Internal("a statement where an expression belongs");
  }
}

Result<Value> Evaluator::EvaluateName(const Node& node) {
  if (const Value* value = Find(node.name)) return *value;
  if (node.name == "loop" && FindLoop())
    return Unsupported("'loop' is supported only as 'loop.NAME'");
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
    if (!key.Is(Kind::kString))
      return Unsupported(fmt::format("a key of type '{}' is not supported", TypeName(key)));
    entries.push_back({key.text(), std::move(value)});
  }
  return MakeDict(std::move(entries));
}

Result<Value> Evaluator::EvaluateLogic(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(Value left, Evaluate(node.kids[0]));
  if (node.kind == NodeKind::kNot) return Value::Bool(!Truthy(left));
  return Truthy(left) == (node.kind == NodeKind::kOr) ? Result<Value>(std::move(left))
                                                      : Evaluate(node.kids[1]);
}

Result<bool> Evaluator::CompareTwo(const std::string& op, const Value& a, const Value& b) {
  if (op == "==" || op == "!=") {
    LATTE_ASSIGN_OR_RETURN(const bool same, Equal(a, b, &budget_));
    return same == (op == "==");
  }
  if (op == "in" || op == "not in") {
    LATTE_ASSIGN_OR_RETURN(const bool has, Contains(b, a, &budget_));
    return has == (op == "in");
  }
  LATTE_ASSIGN_OR_RETURN(const int order, Compare(a, b, op));
  if (order == 0) return op.size() == 2;
  return (order < 0) == (op[0] == '<');
}

Result<Value> Evaluator::EvaluateCompare(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(Value left, Evaluate(node.kids[0]));
  for (size_t i = 0; i < node.names.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(Value right, Evaluate(node.kids[i + 1]));
    LATTE_ASSIGN_OR_RETURN(const bool holds, CompareTwo(node.names[i], left, right));
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

Result<Value> Evaluator::LoopMember(const Loop& loop, const std::string& name) {
  const auto size = static_cast<int64_t>(loop.items->size());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return Value::Int(index + 1);
  if (name == "index0") return Value::Int(index);
  if (name == "first") return Value::Bool(index == 0);
  if (name == "last") return Value::Bool(index + 1 == size);
  if (name == "length") return Value::Int(size);
  if (name == "revindex") return Value::Int(size - index);
  if (name == "revindex0") return Value::Int(size - index - 1);
  if (name == "depth") return Value::Int(loop.depth);
  if (name == "depth0") return Value::Int(loop.depth - 1);
  if (name == "previtem" || name == "nextitem") {
    const int64_t other = name == "previtem" ? index - 1 : index + 1;
    if (other >= 0 && other < size) return (*loop.items)[static_cast<size_t>(other)];
    return Value::MakeUndefined(fmt::format("there is no {} item", name.substr(0, 4)));
  }
  return Unsupported(fmt::format("'loop.{}' is not supported", name));
}

Result<Value> Evaluator::EvaluateAttribute(const Node& node) {
  const Node& object_node = At(node.kids[0]);
  if (node.kind == NodeKind::kAttribute && object_node.kind == NodeKind::kName &&
      object_node.name == "loop") {
    const Loop* const loop = FindLoop();
    if (loop && !Find("loop")) return LoopMember(*loop, node.name);
  }
  LATTE_ASSIGN_OR_RETURN(const Value object, Evaluate(node.kids[0]));
  if (node.kind == NodeKind::kAttribute) return GetAttribute(object, node.name);
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

Result<Arguments> Evaluator::EvaluateArguments(const Node& node) {
  Arguments out;
  const size_t named = node.kids.size() - node.names.size();
  for (size_t i = 1; i < node.kids.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(Value value, Evaluate(node.kids[i]));
    if (i < named)
      out.positional.push_back(std::move(value));
    else
      out.named.emplace_back(node.names[i - named], std::move(value));
  }
  return out;
}

Result<Value> Evaluator::EvaluateCall(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(const Value callee, Evaluate(node.kids[0]));
  if (callee.Is(Kind::kUndefined)) return InvalidArgument(callee.undefined());
  if (!callee.Is(Kind::kCallable))
    return InvalidArgument(fmt::format("a '{}' cannot be called", TypeName(callee)));
  LATTE_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(node));
  const Callable& function = callee.callable();
  if (function.type == Callable::Type::kMacro) return CallMacro(At(function.macro), arguments);
  if (function.type == Callable::Type::kMethod)
    return CallMethod(function.self, function.name, arguments, &budget_);
  return CallBuiltin(function.name, arguments);
}

Result<Value> Evaluator::CallMacro(const Node& macro, const Arguments& arguments) {
  if (arguments.positional.size() > macro.names.size())
    return InvalidArgument(
        fmt::format("macro '{}' takes at most {} arguments", macro.name, macro.names.size()));
  std::vector<const Value*> given(macro.names.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) given[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    size_t i = 0;
    while (i < macro.names.size() && macro.names[i] != name) ++i;
    if (i == macro.names.size() || given[i])
      return InvalidArgument(fmt::format("macro '{}' does not take '{}' here", macro.name, name));
    given[i] = &value;
  }
  const int caller = current_;
  Push(0, nullptr);
  const size_t first_default = macro.names.size() - (macro.kids.size() - 1);
  Result<Text> text = Text();
  for (size_t i = 0; i < macro.names.size() && text; ++i) {
    if (given[i]) {
      Assign(macro.names[i], *given[i]);
    } else if (i < first_default) {
      Assign(macro.names[i],
             Value::MakeUndefined(fmt::format("'{}' is undefined", macro.names[i])));
    } else if (Result<Value> value = Evaluate(macro.kids[1 + i - first_default]); value) {
      Assign(macro.names[i], *std::move(value));
    } else {
      text = tl::unexpected(std::move(value).error());
    }
  }
  if (text) text = Capture(macro.kids[0]);
  Pop(caller);
  LATTE_RETURN_IF_ERROR(text);
  return Value::String(*std::move(text));
}

Result<Value> Evaluator::CallBuiltin(const std::string& name, const Arguments& arguments) {
  if (name == "namespace") return MakeNamespace(arguments);
  if (name == "strftime_now") return StrftimeNow(arguments);
  return CallFunction(name, arguments, &budget_);
}

Result<Value> Evaluator::MakeNamespace(const Arguments& arguments) {
  LATTE_RETURN_IF_ERROR(budget_.Spend(1, 256));
  Namespace ns;
  if (arguments.positional.size() > 1 ||
      (arguments.positional.size() == 1 && !arguments.positional[0].Is(Kind::kDict)))
    return InvalidArgument("namespace() takes named values, or one dict");
  if (!arguments.positional.empty())
    for (const Dict::Entry& entry : arguments.positional[0].dict().entries)
      ns.members.emplace_back(entry.key.bytes(), entry.value);
  ns.members.insert(ns.members.end(), arguments.named.begin(), arguments.named.end());
  namespaces_.push_back(std::move(ns));
  return Value::Wrap(&namespaces_.back());
}

Result<Value> Evaluator::StrftimeNow(const Arguments& arguments) {
  LATTE_ASSIGN_OR_RETURN(const std::vector<Value> a, Bind(arguments, {"format"}, 1));
  if (!a[0].Is(Kind::kString) || a[0].text().size() > 256)
    return InvalidArgument("strftime_now() needs a format of at most 256 bytes");
  const std::time_t now =
      options_.unix_seconds ? static_cast<std::time_t>(*options_.unix_seconds) : std::time(nullptr);
  std::tm local{};
  if (!localtime_r(&now, &local)) return InvalidArgument("strftime_now(): no such time");
  char buffer[4096];
  // The format comes from the template. strftime writes at most the size of the buffer for any
  // format.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const size_t size = std::strftime(buffer, sizeof(buffer), a[0].bytes().c_str(), &local);
#pragma GCC diagnostic pop
  return Value::String(std::string_view(buffer, size));
}

}  // namespace latte::jinja
