// latte serve: the OpenAI API over HTTP.
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "src/base/file.h"
#include "src/engine/create_engine.h"
#include "src/serve/server.h"

namespace latte {
namespace {

struct ServeFlags {
  std::string model = "tiny";
  EngineFlags engine;
  StructFlags<ServeOptions> serve;
};

void Say(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

Result<OpenAiModel> MakeModel(const ServeOptions& options, const std::string& name,
                              const ModelFiles& files) {
  LATTE_ASSIGN_OR_RETURN(OpenAiModel model, OpenAiModel::Create(name, files));
  model.seed = static_cast<uint64_t>(options.seed);
  if (!options.chat_template.empty()) {
    LATTE_ASSIGN_OR_RETURN(const std::string text, ReadText(options.chat_template));
    LATTE_RETURN_IF_ERROR(model.UseChatTemplate(text, files.config));
  }
  if (!model.chat) {
    Say(fmt::format("latte: warning: no chat: {}", model.chat.error().message));
  } else {
    for (const std::string& caveat : model.chat->UnusedFeatures()) Say("latte: warning: " + caveat);
  }
  return model;
}

Status ServeCommand(const ServeFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(const EngineOptions options, flags.engine.Options(flags.model));
  ServeParts parts{.version = LATTE_VERSION, .say = Say};
  LATTE_RETURN_IF_ERROR(flags.serve.Apply(parts.options));
  LATTE_RETURN_IF_ERROR(flags.serve.Validate(parts.options));
  LATTE_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Load(flags.model));
  parts.names = parts.options.served_model_name;
  if (parts.names.empty()) parts.names.push_back(flags.model);
  LATTE_ASSIGN_OR_RETURN(const OpenAiModel model,
                         MakeModel(parts.options, parts.names.front(), files));
  parts.model = &model;
  parts.load = [&]() -> Result<std::unique_ptr<Engine>> {
    if (options.cache_bytes > 0) WarnIfLarge(files.dir, files.config);
    LATTE_ASSIGN_OR_RETURN(auto engine, CreateEngine(options, files));
    WarnIfFewer(options.threads, engine->options().threads);
    WarnAboutRates(engine->settings().rates_warning);
    Introduce(*engine, files.config);
    return engine;
  };
  return Serve(parts);
}

}  // namespace

Command AddServe(const FlagSet& app) {
  auto flags = std::make_shared<ServeFlags>();
  const FlagSet sub = app.AddCommand("serve", "Answer requests of the OpenAI API over HTTP");
  sub.Footer("docs/serving.md describes the paths, limits, metrics and security.");
  sub.Add("MODEL", flags->model, "model (default: tiny)");
  flags->serve.Add(sub, [](const Field&, std::string_view) { return true; });
  flags->engine.AddAll(sub);
  return {sub, [flags] { return ServeCommand(*flags); }};
}

}  // namespace latte
