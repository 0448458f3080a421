#include "src/jinja/interpreter.h"

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/jinja/parse/lexer.h"

namespace latte::jinja {

Result<Template> Template::Parse(std::string_view source) {
  LATTE_ASSIGN_OR_RETURN(Ast ast, jinja::Parse(source));
  return Template(std::make_shared<const Ast>(std::move(ast)));
}

Result<Text> Template::Render(const Value& variables, const RenderOptions& options) const {
  LATTE_CHECK(variables.Is(Kind::kDict));
  return Evaluator(*ast_, variables, options).Run();
}

Result<Text> Evaluator::Run() {
  Push(-1, nullptr);
  return Capture(ast_.root);
}

tl::unexpected<Error> Evaluator::Locate(const Node& node, Error error) const {
  // The innermost failed node has already added its position.
  if (!error.message.starts_with("chat template, "))
    error.message = Where(ast_.source, node.offset) + CutMessage(error.message);
  return tl::unexpected<Error>(std::move(error));
}

// Null if there is none.
Result<const Value*> Evaluator::Find(std::string_view name) {
  for (int i = current_; i >= 0; i = scopes_[static_cast<size_t>(i)].parent) {
    const auto& variables = scopes_[static_cast<size_t>(i)].variables;
    LATTE_RETURN_IF_ERROR(budget_.SpendNames(variables.size(), name.size()));
    for (const auto& [key, value] : variables)
      if (key == name) return &value;
  }
  return variables_.Find(name);
}

Evaluator::Loop* Evaluator::FindLoop() const {
  for (int i = current_; i >= 0; i = scopes_[static_cast<size_t>(i)].parent)
    if (scopes_[static_cast<size_t>(i)].loop) return scopes_[static_cast<size_t>(i)].loop;
  return nullptr;
}

Status Evaluator::Assign(const std::string& name, Value value) {
  auto& variables = scopes_[static_cast<size_t>(current_)].variables;
  LATTE_RETURN_IF_ERROR(budget_.SpendNames(variables.size(), name.size()));
  for (auto& [key, old] : variables) {
    if (key != name) continue;
    old = std::move(value);
    return {};
  }
  variables.emplace_back(name, std::move(value));
  return {};
}

void Evaluator::Push(int parent, Loop* loop) {
  scopes_.push_back({{}, parent, loop, births_++});
  current_ = static_cast<int>(scopes_.size()) - 1;
}

void Evaluator::Pop(int current) {
  scopes_.pop_back();
  current_ = current;
}

Status Evaluator::Emit(const Text& text) {
  LATTE_RETURN_IF_ERROR(budget_.SpendAppended(out_->size(), out_->size() + text.size()));
  LATTE_RETURN_IF_ERROR(budget_.SpendRuns(text.runs().size()));
  out_->Append(text);
  return {};
}

Result<Text> Evaluator::Capture(int block) {
  Text text;
  Text* const outer = std::exchange(out_, &text);
  const Result<Flow> flow = Execute(block);
  out_ = outer;
  LATTE_RETURN_IF_ERROR(flow);
  return text;
}

// A block that writes into a variable or into a filter has variables of its own.
Result<Text> Evaluator::CaptureInScope(int block) {
  const int outer = current_;
  Push(outer, nullptr);
  Result<Text> text = Capture(block);
  Pop(outer);
  return text;
}

Result<Evaluator::Flow> Evaluator::Execute(int id) {
  const Node& node = At(id);
  LATTE_RETURN_IF_ERROR(budget_.Spend(1));
  if (!stack_.Left()) return Locate(node, Error{Code::kExhausted, "calls nest too deeply"});
  Result<Flow> flow = ExecuteNode(node);
  if (!flow) return Locate(node, std::move(flow).error());
  return flow;
}

Result<Evaluator::Flow> Evaluator::ExecuteNode(const Node& node) {
  switch (node.kind) {
    case NodeKind::kBlock:
      return ExecuteBlock(node);
    case NodeKind::kData:
      LATTE_RETURN_IF_ERROR(Emit(node.value.text()));
      return Flow::kNext;
    case NodeKind::kPrint: {
      LATTE_ASSIGN_OR_RETURN(const Text text, Printed(node.kids[0]));
      LATTE_RETURN_IF_ERROR(Emit(text));
      return Flow::kNext;
    }
    case NodeKind::kIf:
      return ExecuteIf(node);
    case NodeKind::kFor:
      return ExecuteFor(node);
    case NodeKind::kWith:
      return ExecuteWith(node);
    case NodeKind::kSet:
      LATTE_RETURN_IF_ERROR(ExecuteSet(node));
      return Flow::kNext;
    case NodeKind::kSetAttribute:
      LATTE_RETURN_IF_ERROR(ExecuteSetAttribute(node));
      return Flow::kNext;
    case NodeKind::kMacro:
      LATTE_RETURN_IF_ERROR(Assign(node.name, MakeMacro(node)));
      return Flow::kNext;
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      return Internal("an expression where a statement belongs");
  }
}

Result<Evaluator::Flow> Evaluator::ExecuteBlock(const Node& node) {
  for (const int kid : node.kids) {
    LATTE_ASSIGN_OR_RETURN(const Flow flow, Execute(kid));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Evaluator::Flow> Evaluator::ExecuteIf(const Node& node) {
  for (size_t i = 0; i + 1 < node.kids.size(); i += 2) {
    LATTE_ASSIGN_OR_RETURN(const Value condition, Evaluate(node.kids[i]));
    if (Truthy(condition)) return Execute(node.kids[i + 1]);
  }
  return node.kids.back() < 0 ? Result<Flow>(Flow::kNext) : Execute(node.kids.back());
}

Status Evaluator::BindTargets(const std::vector<std::string>& names, const Value& value) {
  if (names.size() == 1) return Assign(names[0], value);
  LATTE_ASSIGN_OR_RETURN(const std::vector<Value> items, Items(value, &budget_));
  if (items.size() != names.size())
    return InvalidArgument(fmt::format("{} values for {} variables", items.size(), names.size()));
  for (size_t i = 0; i < names.size(); ++i) LATTE_RETURN_IF_ERROR(Assign(names[i], items[i]));
  return {};
}

Result<Evaluator::Flow> Evaluator::ExecuteFor(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(const Value iterable, Evaluate(node.kids[0]));
  LATTE_ASSIGN_OR_RETURN(std::vector<Value> items, Items(iterable, &budget_));
  if (node.kids[1] >= 0) {
    std::vector<Value> kept;
    for (Value& item : items) {
      const int outer = current_;
      Push(outer, nullptr);
      Status bound = BindTargets(node.names, item);
      Result<Value> condition = bound ? Evaluate(node.kids[1]) : Value();
      Pop(outer);
      LATTE_RETURN_IF_ERROR(bound);
      LATTE_RETURN_IF_ERROR(condition);
      if (Truthy(*condition)) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  if (!items.empty()) return RunLoop(node, items);
  return node.kids[3] < 0 ? Result<Flow>(Flow::kNext) : Execute(node.kids[3]);
}

Result<Evaluator::Flow> Evaluator::RunLoop(const Node& node, const std::vector<Value>& items) {
  const int outer = current_;
  const Loop* const around = FindLoop();
  Loop loop{&items, 0, around ? around->depth + 1 : 1, {}};
  Flow flow = Flow::kNext;
  for (; loop.index < items.size() && flow != Flow::kBreak; ++loop.index) {
    Push(outer, &loop);
    Result<Flow> step = Flow::kNext;
    if (Status bound = BindTargets(node.names, items[loop.index]); !bound)
      step = tl::unexpected(std::move(bound).error());
    else
      step = Execute(node.kids[2]);
    Pop(outer);
    LATTE_ASSIGN_OR_RETURN(flow, std::move(step));
  }
  return Flow::kNext;
}

Status Evaluator::ExecuteSet(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(const Value value, Evaluate(node.kids[0]));
  return BindTargets(node.names, value);
}

Status Evaluator::ExecuteSetAttribute(const Node& node) {
  LATTE_ASSIGN_OR_RETURN(Value value, Evaluate(node.kids[0]));
  LATTE_ASSIGN_OR_RETURN(const Value* const target, Find(node.name));
  if (!target || !target->Is(Kind::kNamespace))
    return InvalidArgument(fmt::format("'{}' is no namespace, so '{}.{}' cannot be set", node.name,
                                       node.name, node.names[0]));
  auto& members = target->ns()->members;
  LATTE_RETURN_IF_ERROR(budget_.SpendNames(members.size(), node.names[0].size()));
  for (auto& [key, old] : members) {
    if (key != node.names[0]) continue;
    old = std::move(value);
    return {};
  }
  LATTE_RETURN_IF_ERROR(budget_.Spend(1, 64 + std::ssize(node.names[0])));
  members.emplace_back(node.names[0], std::move(value));
  return {};
}

// The values do not see each other's variables.
Result<Evaluator::Flow> Evaluator::ExecuteWith(const Node& node) {
  Values values;
  for (size_t i = 1; i < node.kids.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(Value value, Evaluate(node.kids[i]));
    values.push_back(std::move(value));
  }
  const int outer = current_;
  Push(outer, nullptr);
  Status assigned;
  for (size_t i = 0; i < values.size() && assigned; ++i)
    assigned = Assign(node.names[i], std::move(values[i]));
  Result<Flow> flow =
      assigned ? Execute(node.kids[0]) : tl::unexpected(std::move(assigned).error());
  Pop(outer);
  return flow;
}

}  // namespace latte::jinja
