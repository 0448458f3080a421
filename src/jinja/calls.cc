// The interpreter's calls: of functions, methods, macros, and of `loop`; see interpreter.h.
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "src/jinja/interpreter.h"
#include "src/jinja/operators.h"

namespace latte::jinja {

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

// The loop that the name `loop` means in `node`; null for any other name.
Result<Evaluator::Loop*> Evaluator::LoopOf(const Node& node) {
  if (node.kind != NodeKind::kName || node.name != "loop") return nullptr;
  LATTE_ASSIGN_OR_RETURN(const Value* const variable, Find("loop"));
  return variable ? nullptr : FindLoop();
}

// `loop` as a value, for inner loops and macros: its members as they are now.
Result<Value> Evaluator::LoopValue(const Loop& loop) {
  LATTE_RETURN_IF_ERROR(budget_.Spend(16, 1024));
  Arguments members;
  for (const char* name : {"index", "index0", "first", "last", "length", "revindex", "revindex0",
                           "depth", "depth0", "previtem", "nextitem"}) {
    LATTE_ASSIGN_OR_RETURN(Value value, LoopMember(loop, name));
    members.named.emplace_back(name, std::move(value));
  }
  return MakeNamespace(members);
}

// loop.cycle(a, b, …) and loop.changed(a, …).
Result<Value> Evaluator::LoopFunction(Loop& loop, const std::string& name,
                                      const Arguments& arguments) {
  if (!arguments.named.empty())
    return InvalidArgument(fmt::format("loop.{}() takes no named values", name));
  const Values& values = arguments.positional;
  if (name == "cycle") {
    if (values.empty()) return InvalidArgument("loop.cycle() needs values");
    return values[loop.index % values.size()];
  }
  LATTE_ASSIGN_OR_RETURN(Value now, MakeList(values, true));
  bool same = false;
  if (loop.changed) {
    LATTE_ASSIGN_OR_RETURN(same, Equal(*loop.changed, now, &budget_));
  }
  loop.changed = std::move(now);
  return Value::Bool(!same);
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
  const Node& target = At(node.kids[0]);
  if (target.kind == NodeKind::kAttribute && (target.name == "cycle" || target.name == "changed")) {
    LATTE_ASSIGN_OR_RETURN(Loop* const loop, LoopOf(At(target.kids[0])));
    if (loop) {
      LATTE_ASSIGN_OR_RETURN(const Arguments values, EvaluateArguments(node));
      return LoopFunction(*loop, target.name, values);
    }
  }
  LATTE_ASSIGN_OR_RETURN(const Value callee, Evaluate(node.kids[0]));
  if (callee.Is(Kind::kUndefined)) return InvalidArgument(callee.undefined());
  if (!callee.Is(Kind::kCallable))
    return InvalidArgument(fmt::format("a '{}' cannot be called", TypeName(callee)));
  LATTE_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(node));
  const Callable& function = callee.callable();
  if (function.type == Callable::Type::kMacro) return CallMacro(function, arguments);
  if (function.type == Callable::Type::kMethod)
    return CallMethod(function.self, function.name, arguments, &budget_);
  return CallBuiltin(function.name, arguments);
}

Value Evaluator::MakeMacro(const Node& node) const {
  Callable macro;
  macro.type = Callable::Type::kMacro;
  macro.name = node.name;
  macro.macro = static_cast<int>(&node - ast_.nodes.data());
  macro.scope = current_;
  macro.birth = scopes_[static_cast<size_t>(current_)].birth;
  return Value::Wrap(std::make_shared<const Callable>(std::move(macro)));
}

// A macro sees the variables of the place where it stands.
Result<Value> Evaluator::CallMacro(const Callable& callable, const Arguments& arguments) {
  const Node& macro = At(callable.macro);
  const auto scope = static_cast<size_t>(callable.scope);
  if (scope >= scopes_.size() || scopes_[scope].birth != callable.birth)
    return Unsupported(fmt::format(
        "a call of macro '{}' after the loop or macro around it has ended is not supported",
        macro.name));
  if (arguments.positional.size() > macro.names.size())
    return InvalidArgument(
        fmt::format("macro '{}' takes at most {} arguments", macro.name, macro.names.size()));
  std::vector<const Value*> given(macro.names.size());
  const Value* caller = nullptr;  // of a call block; a macro need not declare it
  LATTE_RETURN_IF_ERROR(budget_.Spend(std::ssize(macro.names)));
  for (size_t i = 0; i < arguments.positional.size(); ++i) given[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    LATTE_RETURN_IF_ERROR(budget_.SpendNames(macro.names.size(), name.size()));
    size_t i = 0;
    while (i < macro.names.size() && macro.names[i] != name) ++i;
    if (i == macro.names.size() && name == "caller" && !caller) {
      caller = &value;
      continue;
    }
    if (i == macro.names.size() || given[i])
      return InvalidArgument(fmt::format("macro '{}' does not take '{}' here", macro.name, name));
    given[i] = &value;
  }
  const int outer = current_;
  Push(callable.scope, nullptr);
  Status bound = BindParameters(macro, given, caller);
  Result<Text> text =
      bound ? Capture(macro.kids[0]) : tl::unexpected<Error>(std::move(bound).error());
  Pop(outer);
  LATTE_RETURN_IF_ERROR(text);
  return Value::String(*std::move(text));
}

Status Evaluator::BindParameters(const Node& macro, const std::vector<const Value*>& given,
                                 const Value* caller) {
  if (caller) LATTE_RETURN_IF_ERROR(Assign("caller", *caller));
  const size_t first_default = macro.names.size() - (macro.kids.size() - 1);
  for (size_t i = 0; i < macro.names.size(); ++i) {
    Value value;
    if (given[i]) {
      value = *given[i];
    } else if (i < first_default) {
      value = Value::MakeUndefined(fmt::format("'{}' is undefined", macro.names[i]));
    } else {
      LATTE_ASSIGN_OR_RETURN(value, Evaluate(macro.kids[1 + i - first_default]));
    }
    LATTE_RETURN_IF_ERROR(Assign(macro.names[i], std::move(value)));
  }
  return {};
}

Result<Value> Evaluator::CallBuiltin(const std::string& name, const Arguments& arguments) {
  LATTE_RETURN_IF_ERROR(SpendArguments(arguments, &budget_));
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
  if (!arguments.positional.empty()) {
    for (const Dict::Entry& entry : arguments.positional[0].dict().entries) {
      if (!entry.key.Is(Kind::kString)) continue;  // no other key can be the name of a member
      LATTE_RETURN_IF_ERROR(budget_.Spend(1, 64));
      LATTE_RETURN_IF_ERROR(budget_.SpendString(entry.key.text().size()));
      ns.members.emplace_back(entry.key.bytes(), entry.value);
    }
  }
  LATTE_RETURN_IF_ERROR(budget_.Spend(0, 64 * std::ssize(arguments.named)));
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
