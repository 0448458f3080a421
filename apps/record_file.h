// JSON files that a bench writes and later commands read.
#pragma once

#include <string>

#include "src/base/files/output_file.h"
#include "src/base/json_out_fwd.h"

namespace latte {

FileKind RatesFile();     // written by `latte bench calibrate`
FileKind StepCostFile();  // written by `latte bench steps`

// Replaces the file by `record`; on an error the file stays unchanged. Errors: of OutputFile.
[[nodiscard]] Status WriteRecord(const std::string& path, const JsonOut& record,
                                 const FileKind& kind);

}  // namespace latte
