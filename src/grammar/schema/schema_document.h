// A JSON schema with the targets of its $refs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/base/json_out.h"

namespace latte {

class SchemaDocument {
 public:
  // Errors: kInvalidArgument for text that is no JSON or no schema; kUnsupported for "#" below
  // another $id than the document's, which changes what it means.
  [[nodiscard]] static Result<SchemaDocument> Read(const std::string& text);

  const JsonOut& root() const { return *root_; }

  // "#", "#/$defs/a~1b/anyOf/1", percent-encoded or not, "#anchor"; all of them also behind the $id
  // of the document or of a schema in it. path: of the schema with the reference, for messages.
  // Errors: kInvalidArgument for a reference that leads to no schema; kUnsupported for one to
  // another document.
  [[nodiscard]] Result<const JsonOut*> Resolve(const std::string& reference,
                                               const std::string& path) const;
  // pointer: "/properties/a". Null if nothing is there.
  static const JsonOut* At(const JsonOut& root, std::string_view pointer);

 private:
  // below_id: below a schema with an $id that is not the document's.
  Status Index(const JsonOut& schema, bool below_id);
  Status IndexSchema(const JsonOut& schema, bool* below_id);

  std::shared_ptr<const JsonOut> root_;
  // By name; null: several have it.
  std::map<std::string, const JsonOut*, std::less<>> anchors_;
  std::map<std::string, const JsonOut*, std::less<>> ids_;
};

}  // namespace latte
