#include "src/jobs/simulate/bench_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/base/limits/processors.h"
#include "src/base/math.h"
#include "src/base/random.h"
#include "src/engine/sampling/sampler.h"
#include "src/engine/step/step_settings.h"
#include "src/jobs/bench/bench_timer.h"
#include "src/jobs/bench/fill_cache.h"
#include "src/layers/path_groups.h"

namespace latte {
namespace {

// The number of equal pieces in a step.
struct Pieces {
  int64_t many = 1;
  PieceShape shape;
};

StepShape ShapeOf(const std::vector<Pieces>& kinds, int64_t drawn) {
  StepShape out;
  out.drawn = drawn;
  for (const Pieces& kind : kinds)
    out.pieces.insert(out.pieces.end(), static_cast<size_t>(kind.many), kind.shape);
  return out;
}

// The steps to measure: all combinations within the limits.
class Grid {
 public:
  Grid(const Settings& settings, const MlaDims& dims, bool quick)
      : settings_(settings), dims_(dims), quick_(quick) {
    AddDecodes();
    AddPrompts();
    AddMixed();
    AddWoken();
    if (settings.sparse_from != kNeverSparse) AddSparse();
  }
  const std::vector<StepShape>& steps() const { return steps_; }

 private:
  void Add(const std::vector<Pieces>& kinds, int64_t drawn) {
    const EngineOptions& o = settings_.options;
    const StepShape shape = ShapeOf(kinds, drawn);
    const bool fits = std::all_of(
        shape.pieces.begin(), shape.pieces.end(),
        [&](const PieceShape& piece) { return piece.cached + piece.count < o.max_tokens; });
    if (fits && shape.tokens() <= o.max_batch_tokens && std::ssize(shape.pieces) <= o.max_sequences)
      steps_.push_back(shape);
  }

  PieceShape Decode(int64_t depth) const {
    return {1, depth,
            depth >= settings_.sparse_from ? MlaPath::kSparse : DecodePath(settings_.attention)};
  }

  // All values, or every other one, always including the first and the last.
  std::vector<int64_t> Some(std::vector<int64_t> values) const {
    if (!quick_) return values;
    std::vector<int64_t> out;
    for (size_t i = 0; i < values.size(); i += 2) out.push_back(values[i]);
    return out;
  }

  void AddDecodes() {
    for (const int64_t depth : Some({32, 256, 1024}))
      for (const int64_t batch : Some({1, 2, 4, 8, 16, 32, 64}))
        Add({{batch, Decode(depth)}}, batch);
  }

  void AddPrompts() {
    for (const int64_t cached : Some({0, 256, 1024}))
      for (const int64_t count : Some({4, 16, 64, 128, 512, 1024, 2048})) {
        if (settings_.attention == AttentionMode::kAuto) {
          Add({{1, {count, cached, MlaPath::kAbsorbed}}}, count % 64 == 0 ? 1 : 0);
          Add({{1, {count, cached, MlaPath::kLatent}}}, 1);
        } else {
          Add({{1, {count, cached, PromptPath(settings_.attention)}}}, 1);
        }
      }
    for (const int64_t many : {2, 4})
      for (const int64_t count : Some({16, 64, 128})) Add({{many, Prompt(count, 0)}}, many);
  }

  void AddMixed() {
    for (const int64_t batch : Some({1, 4, 16}))
      for (const int64_t cached : {0, 512})
        for (const int64_t count : Some({32, 128, 480}))
          Add({{batch, Decode(256)}, {1, Prompt(count, cached)}}, batch);
  }

  // Adds decodes and pieces of prompts that choose their keys among one, three and seven times as
  // many.
  void AddSparse() {
    for (const int64_t times : {1, 3, 7}) {
      const int64_t cached = times * settings_.sparse_from;
      for (const int64_t batch : Some({1, 2, 4, 8, 16})) Add({{batch, Decode(cached)}}, batch);
      for (const int64_t count : Some({4, 16, 64, 128, 512}))
        Add({{1, {count, cached, MlaPath::kSparse}}}, 1);
    }
  }

  // Adds prompts that arrive after idle time.
  void AddWoken() {
    for (const int64_t count : Some({4, 16, 32, 128, 256, 512, 1024})) {
      const size_t before = steps_.size();
      Add({{1, Prompt(count, 0)}}, 1);
      if (steps_.size() > before) steps_.back().woken = true;
    }
  }

  PieceShape Prompt(int64_t count, int64_t cached) const {
    return {count, cached, settings_.PathOf(dims_, count, cached)};
  }

  const Settings& settings_;
  const MlaDims& dims_;
  bool quick_;
  std::vector<StepShape> steps_;
};

// A model with a full cache.
class StepHarness {
 public:
  StepHarness(const Model& model, const Settings& settings, const Machine& machine,
              LatentCache cache)
      : model_(model),
        machine_(&machine),
        threads_(settings.options.threads),
        cache_(std::move(cache)),
        step_(CapacityOf(settings)),
        runner_({.model = &model,
                 .cache = &cache_,
                 .workspace = &workspace_,
                 .exec = {.threads = &threads_, .machine = &machine}},
                OptionsOfRunner(settings), step_.capacity()) {
    Random random(1);
    for (int64_t i = 0; i < 2 * settings.options.max_batch_tokens; ++i)
      tokens_.push_back(
          static_cast<int32_t>(random.Below(static_cast<uint64_t>(model.config().vocab))));
    const std::vector<int32_t> first = {0};
    const int64_t page = std::min(settings.options.page_tokens, std::ssize(tokens_));
    const auto chunk = SequenceChunk::Of(std::span(tokens_).first(static_cast<size_t>(page)), 0,
                                         PromptPath(settings.attention), first);
    step_.AddChunk(chunk, settings.sparse_from);
    runner_.Run(step_);
    CopyFirstPage(cache_);
  }

  double Seconds(const StepShape& shape) {
    BuildBatch(shape);
    const auto step = [&] {
      runner_.Run(step_);
      for (int64_t i = 0; i < step_.logit_blocks(); ++i) SampleFrom(runner_.NextLogits().logits);
    };
    if (!shape.woken) return SecondsOf(step);
    // Measured from the planned start, because waking up takes time too.
    return SecondsOf([&] {
             std::this_thread::sleep_for(kIdle);
             step();
           }) -
           std::chrono::duration<double>(kIdle).count();
  }

 private:
  // Chunks are sorted by path. Sequences take pages in turn and share them if the cache is too
  // small. Every step has different tokens: equal tokens would choose the same experts, whose
  // weights may still be in the processor's cache.
  void BuildBatch(const StepShape& shape) {
    step_.Clear();
    std::vector<PieceShape> pieces = shape.pieces;
    SortByPath(pieces, &PieceShape::path);
    pages_.assign(pieces.size(), {});
    std::vector<int64_t> rows;
    first_token_ = (first_token_ + kTokenStride) % (std::ssize(tokens_) / 2);
    int64_t token = first_token_;
    int64_t page = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const PieceShape& piece = pieces[i];
      const int64_t own = CeilDiv(piece.cached + piece.count, cache_.spec().page_tokens);
      for (int64_t p = 0; p < own; ++p)
        pages_[i].push_back(static_cast<int32_t>(page++ % cache_.pages()));
      step_.AddChunk(SequenceChunk::Of(std::span(tokens_).subspan(static_cast<size_t>(token),
                                                                  static_cast<size_t>(piece.count)),
                                       piece.cached, piece.path, pages_[i]),
                     runner_.options().sparse_from);
      token += piece.count;
      if (std::ssize(rows) < shape.drawn) rows.push_back(token - first_token_ - 1);
    }
    step_.AddLogits(rows);
  }

  void SampleFrom(const TensorView& logits) {
    std::vector<SampleInput> inputs(static_cast<size_t>(logits.shape[0]));
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].logits = {logits.Row<float>(static_cast<int64_t>(i)),
                          static_cast<size_t>(model_.config().vocab)};
      inputs[i].params = &params_;
      inputs[i].position = static_cast<int64_t>(i);
      inputs[i].machine = machine_;
    }
    sampled_ = SampleAll(inputs, threads_);
  }

  const Model& model_;
  const Machine* machine_;
  ThreadPool threads_;
  LatentCache cache_;
  Workspace workspace_;
  Step step_;
  Runner runner_;
  SamplingParams params_;
  static constexpr int64_t kTokenStride = 37;
  // Longer than threads spin, and long enough for other programs to evict a shared cache.
  static constexpr std::chrono::milliseconds kIdle{100};
  std::vector<int32_t> tokens_;
  int64_t first_token_ = 0;
  std::vector<std::vector<int32_t>> pages_;
  std::vector<Result<SampledToken>> sampled_;  // of the last step, not used
};

JsonOut PiecesJson(const StepShape& shape) {
  JsonOut out = JsonOut::array();
  for (size_t i = 0; i < shape.pieces.size();) {
    const PieceShape& piece = shape.pieces[i];
    const size_t begin = i;
    while (i < shape.pieces.size() && shape.pieces[i].count == piece.count &&
           shape.pieces[i].cached == piece.cached && shape.pieces[i].path == piece.path)
      ++i;
    out.push_back({{"many", i - begin},
                   {"count", piece.count},
                   {"cached", piece.cached},
                   {"path", Name(piece.path)}});
  }
  return out;
}

JsonOut RecordOf(const StepCost& cost, const std::vector<MeasuredStep>& steps,
                 const StepModel& model, const std::string& made_for) {
  JsonOut out = ToJson(cost, made_for);
  JsonOut list = JsonOut::array();
  std::vector<double> errors;
  for (const MeasuredStep& step : steps) {
    const double fitted = cost.Of(step.shape, model);
    errors.push_back(std::abs(fitted / step.seconds - 1));
    list.push_back({{"tokens", step.shape.tokens()},
                    {"drawn", step.shape.drawn},
                    {"woken", step.shape.woken},
                    {"pieces", PiecesJson(step.shape)},
                    {"us", step.seconds * 1e6},
                    {"fitted_us", fitted * 1e6}});
  }
  out["worst_error"] = *std::max_element(errors.begin(), errors.end());
  out["median_error"] = Median(errors);
  out["steps"] = std::move(list);
  return out;
}

int64_t PagesOf(const StepShape& shape, int64_t page_tokens) {
  int64_t pages = 0;
  for (const PieceShape& piece : shape.pieces)
    pages += CeilDiv(piece.cached + piece.count, page_tokens);
  return pages;
}

}  // namespace

Result<BenchedSteps> BenchSteps(const Model& model, const Settings& settings,
                                const Machine& machine, const BenchStepsOptions& options,
                                const JobProgress& progress) {
  const Grid grid(settings, model.config().mla, options.quick);
  const int runs = options.quick ? 3 : 9;
  MeasuredSteps counted(progress, (runs + 1) * std::ssize(grid.steps()));
  int64_t pages = 1;
  for (const StepShape& shape : grid.steps())
    pages = std::max(pages, PagesOf(shape, settings.options.page_tokens));
  LATTE_ASSIGN_OR_RETURN(LatentCache cache,
                         LatentCache::Create(settings.cache_spec, std::min(pages, settings.pages)));
  StepHarness harness(model, settings, machine, std::move(cache));
  std::vector<std::vector<double>> seconds(grid.steps().size());
  // Interleaves the steps, so that a slow moment of the machine does not affect all runs of one
  // step.
  for (int run = -1; run < runs; ++run)
    for (size_t i = 0; i < grid.steps().size(); ++i) {
      if (run < 0)
        counted.WarmUp("warming up");
      else
        counted.Begin("measuring");
      const double time = harness.Seconds(grid.steps()[i]);
      if (run >= 0) seconds[i].push_back(time);
    }
  counted.End();
  std::vector<MeasuredStep> steps;
  for (size_t i = 0; i < grid.steps().size(); ++i)
    steps.push_back({grid.steps()[i], Median(seconds[i])});
  const StepModel priced = {model.config().moe, settings.sparse_from};
  BenchedSteps out;
  out.cost = FitStepCost(steps, priced);
  out.record = RecordOf(out.cost, steps, priced, StepsMadeFor(model.config(), settings, machine));
  return out;
}

std::string StepsMadeFor(const ModelConfig& config, const Settings& settings,
                         const Machine& machine) {
  const EngineOptions& o = settings.options;
  return fmt::format(
      "{} layers={} width={} heads={} latent={} vocab={} experts={}/{} dtype={} cache={} "
      "attention={}{} page_tokens={} isa={} threads={}",
      config.architecture, config.layers, config.mla.d, config.mla.h, config.mla.latent(),
      config.vocab, config.moe.chosen, config.moe.experts, o.dtype,
      o.cache_dtype.empty() ? o.dtype : o.cache_dtype, o.attention,
      settings.sparse_from == kNeverSparse ? "" : fmt::format(" topk={}", settings.sparse_from),
      o.page_tokens, Name(machine.isa), o.threads > 0 ? o.threads : DefaultThreads());
}

}  // namespace latte
