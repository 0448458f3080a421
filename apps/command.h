// What the subcommands share: how one is registered, the flags of the engine, and opening a model.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "latte/status.h"

#include "src/engine/session.h"
#include "src/io/tokenizer.h"
#include "src/models/model.h"

namespace latte {

// Adds a subcommand to `app`; returns what runs when it was chosen.
using CommandRun = std::function<Status()>;
struct Command {
  CLI::App* app = nullptr;
  CommandRun run;
};

Command AddRun(CLI::App& app);
Command AddScore(CLI::App& app);
Command AddInspect(CLI::App& app);
Command AddTokenize(CLI::App& app);

// The flags that decide how a sequence is computed.
struct EngineFlags {
  std::string attention = "auto";
  std::string dtype = "bf16";
  int64_t chunk = 512;
  int64_t expand_tokens = 4096;
  int64_t page_tokens = 64;
  int threads = 0;

  void Add(CLI::App& app);
  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Result<SessionOptions> Options(int64_t max_tokens) const;
};

// A model and the machine it runs on.
struct OpenedModel {
  std::string dir;
  Machine machine;
  std::unique_ptr<Model> model;
};
// `check_weights`: refuse weights that are not finite (--check-weights).
[[nodiscard]] Result<OpenedModel> OpenModel(const std::string& name, bool check_weights = false);

// Adds --check-weights.
void AddCheckWeights(CLI::App& app, bool& check_weights);

// The text of `path`, or of standard input for "-". Errors: of ReadFile; kCorrupt above 1 GiB.
[[nodiscard]] Result<std::string> ReadText(const std::string& path);

// "1,2,3" → ids. Errors: kInvalidArgument naming the piece that is no number.
[[nodiscard]] Result<std::vector<int32_t>> ParseIds(const std::string& text);

// Writes to standard output and flushes. Errors: kUnavailable when the reader is gone.
[[nodiscard]] Status Print(std::string_view text);

}  // namespace latte
