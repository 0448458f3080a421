#include "apps/record_file.h"

#include <initializer_list>
#include <span>
#include <string_view>

#include "src/base/json.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

bool HasKeys(std::string_view text, std::initializer_list<std::string_view> keys) {
  const Result<Json> json = Json::Parse(text, "");
  if (!json) return false;
  for (const std::string_view key : keys)
    if (!json->Find(key)) return false;
  return true;
}

}  // namespace

FileKind RatesFile() {
  return {"rates of an earlier `latte bench calibrate`", [](std::string_view text) {
            return HasKeys(text, {"isa", "memory_gbps"});
          }};
}

FileKind StepCostFile() {
  return {"prices of an earlier `latte bench steps`", [](std::string_view text) {
            return HasKeys(text, {"made_for", "microseconds"});
          }};
}

Status WriteRecord(const std::string& path, const JsonOut& record, const FileKind& kind) {
  LATTE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, kind));
  const std::string text = Dump(record, 2) + "\n";
  LATTE_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(text))));
  return file.Commit();
}

}  // namespace latte
