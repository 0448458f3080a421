#include "src/io/generation_config.h"

#include "src/base/file.h"
#include "src/base/json.h"

namespace latte {

Result<GenerationDefaults> LoadGenerationDefaults(const std::string& dir) {
  GenerationDefaults out;
  const std::string path = dir + "/generation_config.json";
  if (!Exists(path)) return out;
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 1 << 20));
  LATTE_ASSIGN_OR_RETURN(const Json config, Json::Parse(text, path));
  if (!config.is_object()) return Corrupt(path + ": expected an object, found another type");
  LATTE_ASSIGN_OR_RETURN(out.repetition_penalty, config.GetDoubleOr("repetition_penalty", 1.0));
  LATTE_ASSIGN_OR_RETURN(const bool sample, config.GetBoolOr("do_sample", false));
  if (!sample) return out;
  LATTE_ASSIGN_OR_RETURN(out.temperature, config.GetDoubleOr("temperature", 1.0));
  LATTE_ASSIGN_OR_RETURN(out.top_k, config.GetIntOr("top_k", 0));
  LATTE_ASSIGN_OR_RETURN(out.top_p, config.GetDoubleOr("top_p", 1.0));
  return out;
}

}  // namespace latte
