// One rendering of a template. Statements are in interpreter.cc, expressions in expressions.cc.
// Internal to src/jinja.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/limits/stack_budget.h"
#include "src/jinja/call.h"
#include "src/jinja/parse/ast.h"
#include "src/jinja/template.h"

namespace latte::jinja {

class Evaluator {
 public:
  Evaluator(const Ast& ast, const Value& variables, const RenderOptions& options)
      : ast_(ast), variables_(variables.dict()), options_(options), budget_(options.limits) {}
  Result<Text> Run();

 private:
  enum class Flow { kNext, kBreak, kContinue };
  struct Loop {
    const std::vector<Value>* items = nullptr;
    size_t index = 0;
    int depth = 1;
    std::optional<Value> changed;  // what loop.changed() was called with last
  };
  struct Scope {
    std::vector<std::pair<std::string, Value>> variables;
    int parent = -1;
    Loop* loop = nullptr;  // null unless this is the scope of a loop
    int64_t birth = 0;     // differs between all scopes of a rendering
  };

  // Statements.
  Result<Flow> Execute(int id);
  Result<Flow> ExecuteNode(const Node& node);
  Result<Flow> ExecuteBlock(const Node& node);
  Result<Flow> ExecuteIf(const Node& node);
  Result<Flow> ExecuteFor(const Node& node);
  Result<Flow> RunLoop(const Node& node, const std::vector<Value>& items);
  Status ExecuteSet(const Node& node);
  Status ExecuteSetAttribute(const Node& node);
  Result<Flow> ExecuteWith(const Node& node);
  Status BindTargets(const std::vector<std::string>& names, const Value& value);
  Result<Text> Capture(int block);
  Result<Text> CaptureInScope(int block);
  Status Emit(const Text& text);

  // Expressions.
  Result<Value> Evaluate(int id);
  Result<Value> EvaluateNode(const Node& node);
  Result<Text> Printed(int id);
  Result<Text> PrintedFilter(const Node& node);
  Result<Value> EvaluateName(const Node& node);
  Result<Value> EvaluateItems(const Node& node);
  Result<Value> EvaluateDict(const Node& node);
  Result<Value> EvaluateLogic(const Node& node);
  Result<Value> EvaluateCompare(const Node& node);
  Result<Value> EvaluateConditional(const Node& node);
  Result<Value> EvaluateAttribute(const Node& node);
  Result<Value> EvaluateSlice(const Node& node);
  Result<Value> EvaluateCall(const Node& node);
  Result<Value> CallMacro(const Callable& callable, const Arguments& arguments);
  Status BindParameters(const Node& macro, const std::vector<const Value*>& given,
                        const Value* caller);
  Result<Value> CallBuiltin(const std::string& name, const Arguments& arguments);
  Result<Value> MakeNamespace(const Arguments& arguments);
  Result<Value> StrftimeNow(const Arguments& arguments);
  Result<Arguments> EvaluateArguments(const Node& node);
  Result<Value> LoopMember(const Loop& loop, const std::string& name);
  Result<Value> LoopFunction(Loop& loop, const std::string& name, const Arguments& arguments);
  Result<Value> LoopValue(const Loop& loop);
  Result<Loop*> LoopOf(const Node& node);
  Value MakeMacro(const Node& node) const;

  // Scopes.
  const Node& At(int id) const { return ast_.nodes[static_cast<size_t>(id)]; }
  Result<const Value*> Find(std::string_view name);
  Loop* FindLoop() const;
  Status Assign(const std::string& name, Value value);
  void Push(int parent, Loop* loop);
  void Pop(int current);
  tl::unexpected<Error> Locate(const Node& node, Error error) const;

  const Ast& ast_;
  const Dict& variables_;
  const RenderOptions& options_;
  Budget budget_;
  std::vector<Scope> scopes_;
  int current_ = -1;
  int64_t births_ = 0;
  StackBudget stack_;  // limits nested expressions, statements and macro calls
  Text* out_ = nullptr;
  std::deque<Namespace> namespaces_;  // values point into it
};

}  // namespace latte::jinja
