// Schemas with references and choices as lists of plain schemas: a value matches if it matches one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out.h"
#include "src/grammar/schema/plain_schema.h"
#include "src/grammar/schema/schema_document.h"

namespace latte {

// Thread-compatible.
class SchemaChoices {
 public:
  explicit SchemaChoices(const SchemaDocument& document) : document_(document) {}

  // None if nothing matches. Choices of `oneOf` exclude one another: no answer that matches one of
  // them, and has no members that it does not name, matches another.
  // Errors: as ReadPlainSchema and Resolve; kUnsupported for references that lead back, for too
  // many combinations, and for choices of `oneOf` that do not exclude one another.
  [[nodiscard]] Result<std::vector<PlainSchema>> Of(const JsonOut& schema,
                                                    const std::string& path) const;

 private:
  using List = std::vector<PlainSchema>;
  enum class Exclusive : uint8_t { kChecked, kAssumed };  // of the schemas of oneOf

  Result<List> Of(const JsonOut& schema, const std::string& path, int depth,
                  Exclusive exclusive) const;
  Result<List> Together(const List& a, const List& b, const std::string& path) const;
  Result<std::vector<List>> Parts(const JsonOut& schema, const char* key, const std::string& path,
                                  int depth, Exclusive exclusive) const;
  Status CheckExclusive(const std::vector<List>& parts, const std::string& path) const;
  Result<bool> MayMeet(const PlainSchema& a, const PlainSchema& b) const;
  // Whether some value may match; true if in doubt.
  bool IsPossible(const PlainSchema& schema, int depth) const;
  bool IsPossibleMember(const PlainSchema& schema, const std::string& name, int depth) const;

  const SchemaDocument& document_;
  mutable int64_t work_ = 0;  // members merged; bounded
};

}  // namespace latte
