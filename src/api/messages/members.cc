#include "src/api/messages/members.h"

#include <algorithm>

namespace latte {

Status CheckMembers(const Json& object, std::initializer_list<std::string_view> names) {
  if (!object.is_object()) return InvalidArgument(object.path() + ": expected an object");
  return object.ForEachMember([&](const std::string& name, const Json& value) -> Status {
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (known || !object.Find(name)) return {};
    return InvalidArgument(value.path() + ": unknown field; leave it out");
  });
}

}  // namespace latte
