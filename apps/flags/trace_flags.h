// Flags of commands that serve a trace, and the resulting settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "src/engine/settings.h"
#include "src/jobs/simulate/step_cost.h"
#include "src/jobs/simulate/trace.h"

namespace latte {

// A model, opened, and what an engine over it settles on.
struct OpenedEngine {
  OpenedModel opened;
  Settings settings;
};

// MODEL and the flags of an engine over it.
struct EngineChoice {
  std::string model = "tiny";
  EngineFlags flags;

  void Add(const FlagSet& app, const EngineUses& uses = {});
  // Errors: of EngineFlags::Options, OpenModel and ResolveOptions.
  [[nodiscard]] Result<OpenedEngine> Open() const;
};

struct TraceFlags {
  TraceShape shape;
  std::string file;  // empty: a trace of that shape

  void Add(const FlagSet& app);
  // Errors: of MakeTrace and LoadTrace.
  [[nodiscard]] Result<std::vector<TraceRequest>> Trace(const OpenedEngine& engine) const;
};

struct CostFlags {
  std::string file;  // of `latte bench steps`; empty: steps are measured

  void Add(const FlagSet& app);
  // The costs in the file; none without a file. Errors: of LoadStepCost.
  [[nodiscard]] Result<std::optional<StepCost>> Loaded(const OpenedEngine& engine) const;
  // Errors: of LoadStepCost and BenchSteps.
  [[nodiscard]] Result<StepCost> Cost(const OpenedEngine& engine) const;
};

}  // namespace latte
