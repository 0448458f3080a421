#include "src/checkpoint/container/tensor_files.h"

#include <fmt/format.h>

#include "src/base/one_of.h"
#include "src/text/unicode/printable.h"

namespace latte {

Result<DType> ToDType(std::string_view dtype_name) {
  std::vector<std::string_view> known;
  for (const DTypeInfo& info : kDTypes) {
    if (info.stored.empty()) continue;
    if (info.stored == dtype_name) return info.dtype;
    // Containers refuse types of blocks that are not read.
    if (info.use != DTypeUse::kBlocks) known.push_back(info.stored);
  }
  return Unsupported(fmt::format("dtype '{}': expected {}", Printable(dtype_name), OneOf(known)));
}

}  // namespace latte
