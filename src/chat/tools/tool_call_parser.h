// Parses the function calls in the text of an answer while it is generated.
//
// The text is the answer without its reasoning, and contains the marks of the format
// (tool_syntax.h). If a mark is a special token of the tokenizer, the request must keep special
// tokens in the text. A mark counts everywhere, even inside a JSON string: the models' own parsers
// do the same.
//
// Text that is not a call stays content, byte for byte. A call is certain as soon as its name is
// complete; its arguments then follow in pieces. The arguments of a complete call are a JSON object
// without duplicate names (call_arguments.h). The arguments of an incomplete call are invalid JSON,
// unless only the mark at the end is missing. White space between and after calls is not content,
// and neither are marks without a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/chat/tools/call_arguments.h"
#include "src/chat/tools/tool_syntax.h"
#include "src/chat/tools/value_schema.h"

namespace latte {

struct ToolEvent {
  enum class Kind : uint8_t {
    kContent,    // text: content of the answer
    kCallBegin,  // text: the name of the function
    kArguments,  // text: a piece of the arguments, which are JSON text of an object
    kCallEnd,
  };
  Kind kind = Kind::kContent;
  size_t call = 0;  // the number of the call in this answer, from 0
  std::string text;
  std::string id = {};  // of kCallBegin; empty if the format has no ids
  bool operator==(const ToolEvent&) const = default;
};

// Thread-compatible. Memory: some kilobytes; up to 64 KiB for a value whose end says what it is;
// all of arguments that are no object.
class ToolCallParser {
 public:
  // known: the functions of the request. Which text is content does not depend on them.
  explicit ToolCallParser(ToolFormat format, std::shared_ptr<const KnownFunctions> known = nullptr);

  // The events that became certain with `text`. Neighbours of the same kind and call are joined.
  // All events together do not depend on how the text is cut.
  std::vector<ToolEvent> Add(std::string_view text);

  // The answer ends. cut: by a limit of tokens, so that an unfinished call stays unfinished;
  // otherwise it is ended, unless it is inside a value.
  std::vector<ToolEvent> Finish(bool cut);

  size_t calls() const { return calls_; }  // that have begun
  bool in_call() const { return state_ >= State::kArguments; }
  // Bytes at the end of the text of which it is not certain whether they are content.
  size_t undecided() const { return held_.size() + skipped_.size(); }

 private:
  enum class State : uint8_t {
    kContent,
    kAfterCall,   // as kContent, before the first text after a call
    kBlock,       // between the calls of a block
    kName,        // inside the name
    kArguments,   // inside arguments of JSON text
    kParameters,  // between parameters
    kKey,
    kValue,
  };

  bool Step();  // takes a decided part of held_; false: more text is needed
  bool ReadContent();
  bool ReadBlock();
  bool ReadName();
  bool ReadArguments();
  bool ReadParameters();
  bool ReadKey();
  bool ReadValue();

  bool SkipSpace();            // into skipped_; false: there is too much of it
  std::string Take(size_t n);  // from the beginning of held_
  bool GiveBack();             // what was skipped is content after all
  void BeginCall(std::string name, std::string id);
  void BeginValue(const std::string& key, ParameterValue::Says says);
  void EndCall();
  void CutCall();
  void PushRest(std::string_view rest);
  void EmitArguments(std::string_view text);
  void Emit(ToolEvent::Kind kind, std::string_view text);

  ToolFormat format_;
  const ToolSyntax& syntax_;
  std::shared_ptr<const KnownFunctions> known_;
  std::vector<ToolEvent> out_;
  State state_ = State::kContent;
  std::string held_;     // not decided yet
  std::string skipped_;  // marks and white space before a call that is not certain yet
  bool in_block_ = false;
  size_t calls_ = 0;
  // Of this call.
  std::string function_;
  JsonArguments arguments_;
  std::set<std::string> keys_;
  std::optional<ParameterValue> value_;
  bool repeated_ = false;  // the value's key stood before
};

}  // namespace latte
