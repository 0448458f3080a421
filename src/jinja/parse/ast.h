// The tree of a parsed template: nodes in one array that refer to each other by index. The depth is
// checked when a node is made, so code that walks the tree cannot overflow the stack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/jinja/value.h"

namespace latte::jinja {

// The comment of each kind lists its `kids` in order (-1 for an absent optional one), then its
// `names`.
enum class NodeKind {
  // Expressions.
  kLiteral,      // value
  kName,         // name
  kList,         // items
  kTuple,        // items
  kDict,         // key, value, key, value, …
  kNegate,       // operand
  kPlus,         // operand
  kNot,          // operand
  kAnd,          // left, right
  kOr,           // left, right
  kBinary,       // left, right; `name` is the operator
  kCompare,      // first, second, …; `names` are the operators between them
  kConditional,  // condition, value, other value or -1
  kAttribute,    // object; name
  kItem,         // object, index
  kSlice,        // object, start, stop, step
  kCall,         // callee, arguments…; names of the last arguments
  kFilter,       // input, arguments…; names of the last arguments; name
  kTest,         // input, arguments…; names of the last arguments; name
  kCapture,      // block; the text that it writes
  // Statements.
  kBlock,         // statements
  kData,          // value
  kPrint,         // expression
  kIf,            // condition, block, condition, block, …, last block or -1
  kFor,           // iterable, filter or -1, block, else block or -1; names of the targets
  kSet,           // expression; names of the targets
  kSetAttribute,  // expression; `name` is the namespace, names[0] its member
  kWith,          // block, values…; names of their variables
  kMacro,         // block, defaults…; names of the parameters (defaults belong to the last ones);
                  // also an expression: the macro itself, which a call block passes on
  kBreak,
  kContinue
};

struct Node {
  NodeKind kind = NodeKind::kBlock;
  uint32_t offset = 0;  // in the source, for error messages
  int depth = 1;
  std::string name;
  Value value;
  std::vector<int> kids;
  std::vector<std::string> names;
};

struct Ast {
  std::string source;
  std::vector<Node> nodes;
  int root = -1;
};

// Errors: kInvalidArgument or kUnsupported with line and column.
[[nodiscard]] Result<Ast> Parse(std::string_view source);

}  // namespace latte::jinja
