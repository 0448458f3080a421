#include "src/embed/service.h"

#include <utility>

#include <fmt/format.h>

#include "src/api/request.h"
#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"
#include "src/embed/sequence_logits.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kServicePatience = std::chrono::seconds(1);

Status CheckOneProcess(const EngineOptions& options) {
  for (const auto& [name, value] : {std::pair("tp", options.tp), std::pair("dp", options.dp)})
    if (value > 1)
      return Unsupported(fmt::format(
          "{}: expected 1, because only the commands of latte start other processes, found {}",
          name, value));
  return {};
}

}  // namespace

Service::Service(EngineOptions options, ServiceHooks hooks,
                 std::shared_ptr<const EmbeddedModel> model)
    : options_(std::move(options)), hooks_(std::move(hooks)), model_(std::move(model)) {}

Result<std::unique_ptr<Service>> Service::Start(const EngineOptions& options, ServiceHooks hooks) {
  return CatchExhaustion([&]() -> Result<std::unique_ptr<Service>> {
    LATTE_RETURN_IF_ERROR(options.Validate());
    LATTE_RETURN_IF_ERROR(CheckOneProcess(options));
    LATTE_ASSIGN_OR_RETURN(auto model, EmbeddedModel::Open(options.model));
    std::unique_ptr<Service> out(new Service(options, std::move(hooks), std::move(model)));
    out->thread_ = std::thread([self = out.get()] { self->Run(); });
    return out;
  });
}

Service::~Service() {
  stopping_ = true;
  if (const Result<Engine*> engine = Loaded()) (*engine)->Wake();
  if (thread_.joinable()) thread_.join();
}

void Service::Run() {
  Status status;
  try {
    status = Drive();
  } catch (const std::exception& thrown) {
    status = tl::unexpected(ErrorOf(thrown));
  }
  const Error error =
      status ? Error{Code::kUnavailable, "the service has stopped"} : status.error();
  {
    const std::lock_guard lock(mutex_);
    failed_ = error;
  }
  changed_.notify_all();
  jobs_.Close(error);
}

Status Service::Load() {
  LoadingHooks loading;
  if (hooks_.progress) {
    loading.repacked = [this](int64_t done, int64_t layers) {
      hooks_.progress("layers repacked", done, layers);
    };
    loading.checked = [this](int64_t done, int64_t total) {
      hooks_.progress("bytes checked", done, total);
    };
  }
  LATTE_ASSIGN_OR_RETURN(CreatedEngine created,
                         CreateEngine(options_, model_->files(), nullptr, loading));
  created.engine->SetEventSink(
      [this](std::span<const TokenEvent> events) { CancelAll(jobs_.Deliver(events)); });
  if (hooks_.log)
    for (const std::string& warning : created.warnings) hooks_.log(warning);
  {
    const std::lock_guard lock(mutex_);
    created_ = std::move(created);
    loaded_ = true;
  }
  changed_.notify_all();
  return {};
}

Status Service::Drive() {
  LATTE_RETURN_IF_ERROR(Load());
  Engine& engine = *created_.engine;
  while (!stopping_) {
    ComputeSequences();
    LATTE_RETURN_IF_ERROR(engine.Step());
    engine.WaitForWork(Clock::now() + kServicePatience);
  }
  return engine.SavePrefixes();
}

std::shared_ptr<ServiceJob> Service::NextSequence() {
  const std::lock_guard lock(mutex_);
  if (sequences_.empty()) return nullptr;
  std::shared_ptr<ServiceJob> out = std::move(sequences_.front());
  sequences_.pop_front();
  return out;
}

void Service::ComputeSequences() {
  while (const std::shared_ptr<ServiceJob> job = NextSequence()) {
    if (stopping_) return;
    const Status status = CatchExhaustion([&] {
      return ComputeLogits({.model = created_.model,
                            .machine = created_.machine,
                            .options = created_.engine->options()},
                           job->tokens, job->first, job->logits,
                           [&] { return job->stop || stopping_; });
    });
    jobs_.Finish(*job, status);
  }
}

Result<bool> Service::WaitUntilLoaded(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return loaded_ || failed_; });
  if (failed_) return tl::unexpected(*failed_);
  return loaded_;
}

Result<Engine*> Service::Loaded() {
  const std::lock_guard lock(mutex_);
  if (failed_) return tl::unexpected(*failed_);
  if (!loaded_) return Fail(Code::kUnavailable, "the model is not loaded yet: wait for it");
  return created_.engine.get();
}

void Service::CancelAll(std::span<const RequestId> requests) {
  for (const RequestId request : requests) created_.engine->Cancel(request);
}

Status Service::SubmitPrompt(Engine* engine, ServiceJob& job, size_t prompt, Request request) {
  request.user_data = job.keys[prompt];
  LATTE_ASSIGN_OR_RETURN(const RequestId id, engine->Submit(std::move(request)));
  if (!jobs_.Submitted(job, id)) engine->Cancel(id);
  return {};
}

Result<uint64_t> Service::Submit(std::shared_ptr<ResultQueue> queue, Request request, bool whole) {
  return CatchExhaustion([&]() -> Result<uint64_t> {
    LATTE_RETURN_IF_ERROR(request.Validate());
    LATTE_ASSIGN_OR_RETURN(Engine * engine, Loaded());
    const auto job = std::make_shared<ServiceJob>();
    job->queue = std::move(queue);
    job->user_data = request.user_data;
    job->open = request.n;
    job->whole = whole;
    if (whole) job->answers.resize(static_cast<size_t>(request.n));
    LATTE_RETURN_IF_ERROR(jobs_.Add(job, 1));
    const Status submitted = SubmitPrompt(engine, *job, 0, std::move(request));
    if (submitted) return job->id;
    jobs_.Drop(*job);
    return tl::unexpected(submitted.error());
  });
}

Result<uint64_t> Service::Answer(std::shared_ptr<ResultQueue> queue, std::string_view url,
                                 std::string_view body, uint64_t user_data) {
  const std::optional<ApiEndpoint> endpoint = FindEndpoint(url);
  if (!endpoint)
    return NotFound(fmt::format("url: expected {}, {}, {} or {}, found '{}'",
                                Url(ApiEndpoint::kChat), Url(ApiEndpoint::kCompletions),
                                Url(ApiEndpoint::kResponses), Url(ApiEndpoint::kMessages), url));
  return CatchExhaustion([&]() -> Result<uint64_t> {
    LATTE_ASSIGN_OR_RETURN(Engine * engine, Loaded());
    const ApiModel& model = model_->api();
    const ApiRules rules{.max_model_len = engine->options().max_tokens};
    LATTE_ASSIGN_OR_RETURN(ApiRequest request, ParseApiBody(*endpoint, body, model, rules));
    const auto job = std::make_shared<ServiceJob>();
    job->queue = std::move(queue);
    job->user_data = user_data;
    const size_t prompts = request.requests.size();
    job->running.emplace(std::move(request), &model, fmt::format("{:016x}", model.new_seed()),
                         UnixSeconds());
    LATTE_RETURN_IF_ERROR(jobs_.Add(job, prompts));
    for (size_t i = 0; i < prompts; ++i) {
      const Status submitted = SubmitPrompt(engine, *job, i, job->running->TakePrompt(i));
      if (submitted) continue;
      CancelAll(jobs_.Drop(*job));
      return tl::unexpected(submitted.error());
    }
    return job->id;
  });
}

Result<uint64_t> Service::Logits(std::shared_ptr<ResultQueue> queue, std::vector<int32_t> tokens,
                                 int64_t first, std::span<float> out, uint64_t user_data) {
  return CatchExhaustion([&]() -> Result<uint64_t> {
    LATTE_ASSIGN_OR_RETURN(Engine * engine, Loaded());
    LATTE_RETURN_IF_ERROR(CheckLogits(model_->files().config, tokens, first, out.size()));
    const auto job = std::make_shared<ServiceJob>();
    job->queue = std::move(queue);
    job->user_data = user_data;
    job->tokens = std::move(tokens);
    job->first = first;
    job->logits = out;
    LATTE_RETURN_IF_ERROR(jobs_.Add(job, 0));
    {
      const std::lock_guard lock(mutex_);
      sequences_.push_back(job);
    }
    engine->Wake();
    return job->id;
  });
}

void Service::Cancel(uint64_t id) {
  const std::vector<RequestId> requests = jobs_.Cancel(id);
  if (!requests.empty()) CancelAll(requests);
}

Result<EngineStats> Service::Stats() {
  LATTE_ASSIGN_OR_RETURN(const Engine* engine, Loaded());
  return engine->Stats();
}

Result<const EngineOptions*> Service::SettledOptions() {
  LATTE_ASSIGN_OR_RETURN(const Engine* engine, Loaded());
  return &engine->options();
}

}  // namespace latte
