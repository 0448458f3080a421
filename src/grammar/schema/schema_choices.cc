#include "src/grammar/schema/schema_choices.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr int kMostSteps = 32;   // of references and choices in one another
constexpr int kMostMembers = 6;  // of required members in one another, to see that nothing matches
constexpr size_t kMostChoices = 256;
constexpr size_t kMostExclusive = 64;
constexpr int64_t kMostMergeWork = 200'000;

const JsonOut* KeywordOf(const JsonOut& schema, const char* key) {
  const auto at = schema.is_object() ? schema.find(key) : schema.end();
  return at == schema.end() || at->is_null() ? nullptr : &*at;
}

}  // namespace

Result<SchemaChoices::List> SchemaChoices::Of(const JsonOut& schema,
                                              const std::string& path) const {
  return Of(schema, path, 0, Exclusive::kChecked);
}

Result<SchemaChoices::List> SchemaChoices::Of(const JsonOut& schema, const std::string& path,
                                              int depth, Exclusive exclusive) const {
  if (depth > kMostSteps)
    return Unsupported(
        SchemaPlace(path) +
        "'$ref' that leads back to itself, or choices that nest too deep, cannot be enforced");
  LATTE_ASSIGN_OR_RETURN(PlainSchema plain, ReadPlainSchema(schema, path));
  List out;
  if (IsPossible(plain, kMostMembers)) out.push_back(std::move(plain));
  if (const JsonOut* reference = KeywordOf(schema, "$ref")) {
    if (!reference->is_string())
      return InvalidArgument(SchemaPlace(path) + "'$ref': expected a string");
    LATTE_ASSIGN_OR_RETURN(const JsonOut* target,
                           document_.Resolve(reference->get<std::string>(), path));
    LATTE_ASSIGN_OR_RETURN(const List found, Of(*target, path, depth + 1, exclusive));
    LATTE_ASSIGN_OR_RETURN(out, Together(out, found, path));
  }
  LATTE_ASSIGN_OR_RETURN(const auto all, Parts(schema, "allOf", path, depth, exclusive));
  for (const List& part : all) {
    LATTE_ASSIGN_OR_RETURN(out, Together(out, part, path));
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    if (KeywordOf(schema, key) == nullptr) continue;
    LATTE_ASSIGN_OR_RETURN(std::vector<List> parts, Parts(schema, key, path, depth, exclusive));
    List either;
    for (List& part : parts) {
      LATTE_ASSIGN_OR_RETURN(part, Together(out, part, path));
      either.insert(either.end(), part.begin(), part.end());
    }
    if (key == std::string_view("oneOf") && exclusive == Exclusive::kChecked)
      LATTE_RETURN_IF_ERROR(CheckExclusive(parts, path));
    out = std::move(either);
  }
  const JsonOut* rest = KeywordOf(schema, "unevaluatedProperties");
  for (PlainSchema& choice : out)
    if (rest != nullptr && !choice.additional) choice.additional = *rest;
  return out;
}

Result<std::vector<SchemaChoices::List>> SchemaChoices::Parts(const JsonOut& schema,
                                                              const char* key,
                                                              const std::string& path, int depth,
                                                              Exclusive exclusive) const {
  std::vector<List> out;
  const JsonOut* parts = KeywordOf(schema, key);
  if (parts == nullptr) return out;
  if (!parts->is_array() || parts->empty())
    return InvalidArgument(
        fmt::format("{}'{}': expected an array of one or more schemas", SchemaPlace(path), key));
  for (size_t i = 0; i < parts->size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(
        List part,
        Of((*parts)[i], SchemaPath(path, fmt::format("{}[{}]", key, i)), depth + 1, exclusive));
    out.push_back(std::move(part));
  }
  return out;
}

Result<SchemaChoices::List> SchemaChoices::Together(const List& a, const List& b,
                                                    const std::string& path) const {
  for (const PlainSchema& second : b)
    work_ += static_cast<int64_t>(a.size() * (1 + second.properties.size()));
  for (const PlainSchema& first : a)
    work_ += static_cast<int64_t>(b.size() * first.properties.size());
  if (a.size() * b.size() > kMostChoices || work_ > kMostMergeWork)
    return Unsupported(fmt::format("{}choices with more than {} combinations cannot be enforced",
                                   SchemaPlace(path), kMostChoices));
  List out;
  for (const PlainSchema& first : a)
    for (const PlainSchema& second : b) {
      LATTE_ASSIGN_OR_RETURN(auto both, MergeSchemas(first, second));
      if (both) out.push_back(*std::move(both));
    }
  return out;
}

Status SchemaChoices::CheckExclusive(const std::vector<List>& parts,
                                     const std::string& path) const {
  size_t count = 0;
  for (const List& part : parts) count += part.size();
  if (count > kMostExclusive)
    return Unsupported(
        fmt::format("{}'oneOf' of more than {} schemas cannot be enforced; use anyOf",
                    SchemaPlace(path), kMostExclusive));
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = i + 1; j < parts.size(); ++j)
      for (const PlainSchema& a : parts[i])
        for (const PlainSchema& b : parts[j]) {
          LATTE_ASSIGN_OR_RETURN(const bool meet, MayMeet(a, b));
          if (meet)
            return Unsupported(fmt::format(
                "{}'oneOf': a value may match schema {} and schema {}, which cannot be excluded; "
                "use anyOf, or give each a required member with its own const",
                SchemaPlace(path), i, j));
        }
  return {};
}

Result<bool> SchemaChoices::MayMeet(const PlainSchema& a, const PlainSchema& b) const {
  work_ += static_cast<int64_t>(a.properties.size() + b.properties.size());
  LATTE_ASSIGN_OR_RETURN(const auto as_a, MergeSchemas(Closed(a), b));
  if (as_a && IsPossible(*as_a, 0)) return true;
  LATTE_ASSIGN_OR_RETURN(const auto as_b, MergeSchemas(a, Closed(b)));
  return as_b && IsPossible(*as_b, 0);
}

bool SchemaChoices::IsPossible(const PlainSchema& schema, int depth) const {
  if (schema.values)
    return std::ranges::any_of(*schema.values, [&](const JsonOut& value) {
      const auto holds = Holds(schema, value);
      return !holds || *holds;
    });
  if ((schema.types & ~kObjectType) != 0) return true;
  if (schema.types == 0) return false;
  work_ += static_cast<int64_t>(schema.required.size());
  return depth >= kMostMembers || work_ > kMostMergeWork ||
         std::ranges::all_of(schema.required, [&](const std::string& name) {
           return IsPossibleMember(schema, name, depth + 1);
         });
}

bool SchemaChoices::IsPossibleMember(const PlainSchema& schema, const std::string& name,
                                     int depth) const {
  const JsonOut* member = schema.Property(name);
  if (member == nullptr && schema.pattern_properties.empty() && schema.additional)
    member = &*schema.additional;
  if (member == nullptr) return true;
  const auto choices = Of(*member, schema.path, depth, Exclusive::kAssumed);
  return !choices || std::ranges::any_of(*choices, [&](const PlainSchema& choice) {
    return IsPossible(choice, depth);
  });
}

}  // namespace latte
