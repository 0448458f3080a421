// JSON files that a bench writes and later runs read.
#pragma once

#include <string>

#include "src/base/json_out_fwd.h"
#include "src/base/output_file.h"

namespace latte {

FileKind RatesFile();     // of `latte bench calibrate`
FileKind StepCostFile();  // of `latte bench steps`

// Replaces the file by `record`, or leaves it. Errors: of OutputFile.
[[nodiscard]] Status WriteRecord(const std::string& path, const JsonOut& record,
                                 const FileKind& kind);

}  // namespace latte
