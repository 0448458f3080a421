// The arguments of a call as a JSON object, while a model writes them: as one text of JSON, or
// value by value. Whatever the model writes, arguments that have ended are JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/chat/tools/json_mender.h"
#include "src/chat/tools/value_schema.h"

namespace latte {

// The one member of the arguments of a call whose text cannot be read as an object; its value is
// that text.
inline constexpr std::string_view kInvalidJson = "INVALID_JSON";

// Arguments that the model writes as JSON. Thread-compatible. Memory: of JsonMender; all of a text
// that does not begin as an object.
class JsonArguments {
 public:
  // Appends what became certain.
  void Push(std::string_view text, std::string* out);
  // The arguments end. All output together is then a JSON object. Requires: valid UTF-8.
  void Finish(std::string* out);
  // The arguments are cut: all output together is no JSON unless whole().
  void Cut(std::string* out);

  // The object is complete, or there is nothing at all, which means an object without members.
  bool whole() const { return is_object_ ? mender_.whole() : text_.empty(); }

 private:
  bool is_object_ = false;  // so far
  std::string text_;        // that is no object
  JsonMender mender_;
};

// A value that a model writes between marks. Thread-compatible.
class ParameterValue {
 public:
  // The type that the model gives.
  enum class Says : uint8_t { kNothing, kText, kJson };

  ParameterValue(ValueSchema schema, Says says);

  // Appends what became certain of the value's JSON. Where the text is cut does not matter.
  void Push(std::string_view text, std::string* out);
  // The value ends. All output together is then JSON. Requires: valid UTF-8.
  void Finish(std::string* out);
  // The value is cut: appends what was held back.
  void Cut(std::string* out);

 private:
  enum class Form : uint8_t {
    kUnknown,
    kText,  // becomes a JSON string
    kJson,  // an object or an array
    kHeld,  // its end decides
  };
  Form FormOf(std::string_view begun) const;
  bool may_be_text() const { return schema_.allows(kJsonString); }
  std::string Decide(std::string_view text) const;
  std::optional<std::string> Unquoted(const Json& json) const;
  void PutText(std::string* out);

  ValueSchema schema_;
  Says says_;
  Form form_ = Form::kUnknown;
  std::string held_;
  size_t begun_ = 0;     // bytes of held_ from the first that is no white space
  bool quoted_ = false;  // the quote before a text is written
  JsonMender mender_;
};

}  // namespace latte
