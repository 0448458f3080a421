// Writes the rules of a schema.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "src/base/limits/stack_budget.h"
#include "src/grammar/pattern/rule_text.h"
#include "src/grammar/schema/json_rules.h"
#include "src/grammar/schema/plain_schema.h"
#include "src/grammar/schema/schema_choices.h"
#include "src/grammar/schema/schema_document.h"

namespace latte {

class SchemaWriter {
 public:
  explicit SchemaWriter(const SchemaDocument& document) : document_(document), choices_(document) {}

  // The grammar of values that match `schema`, a part of the document.
  // Errors: as SchemaRules.
  [[nodiscard]] Result<std::string> Write(const JsonOut& schema);

 private:
  // A rule of a schema that was met; equal schemas share one.
  struct Known {
    std::string rule;
    std::string path;
    bool done = false;
    bool nothing = false;  // no value matches
    bool used = false;     // by a schema inside of it
    int level = 0;         // of objects and arrays around it
  };
  struct Member {
    std::string name;
    std::string rule;
    bool required = false;
  };
  struct ObjectRules {
    std::vector<Member> members;
    std::vector<std::string> others;  // members with other names, one for each kind of name
    bool nothing = false;
  };
  struct Waiting {
    JsonOut schema;
    std::string path;
  };

  Result<RuleExpression> Value(const JsonOut& schema, const std::string& path);
  // The value of a member or an item.
  Result<RuleExpression> Inner(const JsonOut& schema, const std::string& path);
  Result<RuleExpression> Compute(const JsonOut& schema, const std::string& path);
  Result<const JsonOut*> Followed(const JsonOut& schema, const std::string& path) const;
  Result<RuleExpression> Plain(const PlainSchema& schema);
  Result<RuleExpression> Values(const PlainSchema& schema);
  Result<RuleExpression> Number(const PlainSchema& schema, uint8_t types);
  Result<RuleExpression> Text(const PlainSchema& schema);

  // schema_containers.cc
  Result<RuleExpression> Array(const PlainSchema& schema);
  Result<RuleExpression> Object(const PlainSchema& schema);
  Status AddMember(const PlainSchema& schema, const std::string& name, const JsonOut& value,
                   ObjectRules* out);
  Status AddNamed(const PlainSchema& schema, ObjectRules* out);
  Status AddOthers(const PlainSchema& schema, ObjectRules* out);
  Status AddOther(PatternSet names, const JsonOut& value, const std::string& path,
                  ObjectRules* out);
  Result<std::optional<PatternSet>> OtherNames(const PlainSchema& schema) const;
  Result<bool> NameMayBe(const PlainSchema& schema, const std::string& name) const;
  RuleExpression Members(const ObjectRules& object, CountRange count);
  RuleExpression OtherMembers(const ObjectRules& object, int64_t written, CountRange count);
  std::string Short(std::string expression);
  // Errors: kUnsupported for rules that cost too much, with the part that is written now.
  [[nodiscard]] Status CheckPrice(const std::string& path, int64_t before) const;
  int64_t price() const { return rules_.price() + json_.price(); }
  // Errors: kInvalidArgument for a schema that demands itself in itself, for ever.
  [[nodiscard]] Status CheckEnds(const std::string& rules) const;
  // That no value matches; the first cause is reported if the whole schema matches nothing.
  RuleExpression Nothing(const std::string& path, std::string_view cause);

  const SchemaDocument& document_;
  SchemaChoices choices_;
  RuleSet rules_;
  JsonRules json_;
  std::map<std::string, Known> known_;
  std::deque<Waiting> waiting_;
  StackBudget stack_;
  int level_ = 0;
  std::string cause_;
};

}  // namespace latte
