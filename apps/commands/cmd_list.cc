// latte list: the models that are here.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "src/base/bytes_text.h"
#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/hub_cache.h"
#include "src/checkpoint/model_path.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

struct Listed {
  std::string name;
  std::string kind;  // model_type, or why it cannot be used
  int64_t bytes = 0;
  std::string path;  // of the folder or the GGUF file
};

// The size of the weights in a folder; links into the cache are followed.
int64_t WeightBytes(const std::string& dir) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    const auto size = fs::file_size(it->path(), unreadable);
    if (!unreadable && it->path().extension() == ".safetensors")
      bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

Listed Look(const CachedModel& model) {
  Listed out{model.name, "no complete snapshot", model.gguf_bytes, model.path};
  if (model.path.empty()) return out;
  if (IsDirectory(model.path)) out.bytes = WeightBytes(model.path);
  const Result<ModelConfig> config = LoadModelConfig(model.path);
  out.kind = !config ? "not a model that Latte runs" : config->model_type;
  if (config && out.bytes == 0) out.kind += ", without weights";
  return out;
}

Status ListCommand(bool json) {
  std::vector<Listed> models;
  for (const std::string& name : BundledModels())
    models.push_back(Look({.name = name, .path = ResolveModelPath(name).value_or("")}));
  for (const CachedModel& model : CachedModels()) models.push_back(Look(model));
  std::string text;
  JsonOut list = JsonOut::array();
  size_t width = 0;
  for (const Listed& model : models) width = std::max(width, model.name.size());
  for (const Listed& model : models) {
    text +=
        fmt::format("{:<{}}  {:>9}  {}\n", model.name, width, BytesText(model.bytes), model.kind);
    list.push_back({{"model", model.name},
                    {"weight_bytes", model.bytes},
                    {"kind", model.kind},
                    {"path", model.path}});
  }
  return Print(json ? Dump(JsonOut{{"cache", HubCacheFolder()}, {"models", list}}, 2) + "\n"
                    : text);
}

}  // namespace

Command AddList(const FlagSet& app) {
  auto json = std::make_shared<bool>(false);
  const FlagSet sub =
      app.AddCommand("list", "The models that are here: with Latte, and in the Hugging Face cache");
  sub.Group("Output").AddSwitch("--json", *json, "one JSON object, with paths");
  sub.Footer("latte pull ORG/NAME[:QUANT] downloads one; latte inspect MODEL describes one.");
  return {sub, [json] { return ListCommand(*json); }};
}

}  // namespace latte
