// A record of a bench as text for people.
#pragma once

#include <string>

#include "src/base/json_out_fwd.h"

namespace latte {

// The members of `record`, an object, in their order: "key value" lines; a list of objects, or an
// object of objects with equal keys, as a table. No line has more than 120 columns: a wide table
// continues below itself, a long text on the next line, and a long cell ends with "…". Decimal
// numbers have four digits. A table leaves out a column that has no value in any row.
std::string RecordTable(const JsonOut& record);

}  // namespace latte
