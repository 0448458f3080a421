// The types that a function's JSON schema allows for its parameters. They determine the meaning of
// a value without quotes: 5 may be a number or a text.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "src/base/json.h"

namespace latte {

// The types of JSON values. A number without a fraction is an integer.
enum JsonType : uint8_t {
  kJsonNull = 1,
  kJsonBoolean = 2,
  kJsonInteger = 4,
  kJsonFraction = 8,
  kJsonString = 16,
  kJsonArray = 32,
  kJsonObject = 64,
};
constexpr uint8_t kAnyJsonType = 127;

JsonType TypeOf(const Json& value);

struct ValueSchema {
  uint8_t types = kAnyJsonType;       // of JsonType
  std::set<std::string> values = {};  // of enum and const, as JSON; empty: all of the types
  bool plain_text = false;            // the schema itself says type string
  bool operator==(const ValueSchema&) const = default;

  bool allows(JsonType type) const { return (types & type) != 0; }
};

// The values that a schema allows by type, enum, const, nullable, anyOf, oneOf, allOf and by
// references to `root`; without these, what its keywords speak of. Schemas that refer to themselves
// allow anything there.
ValueSchema ValuesOf(const Json& schema, const Json& root);

struct FunctionParameters {
  std::map<std::string, ValueSchema, std::less<>> named;
  ValueSchema others;  // by additionalProperties
  bool operator==(const FunctionParameters&) const = default;

  const ValueSchema& Of(std::string_view parameter) const;
};

// The parameters that the schema of a function's arguments describes.
FunctionParameters ParametersOf(const Json& schema);

// The functions of a request by name.
using KnownFunctions = std::map<std::string, FunctionParameters, std::less<>>;

}  // namespace latte
