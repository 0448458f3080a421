// An engine with its own thread, for programs that embed Latte. Any thread may submit requests;
// queues return the results.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "latte/engine.h"

#include "src/embed/embedded_model.h"
#include "src/embed/result_queue.h"
#include "src/embed/service_jobs.h"
#include "src/engine/core/create_engine.h"

namespace latte {

// Called on the thread of the service while it loads. Each may be empty.
struct ServiceHooks {
  std::function<void(const std::string& message)> log;  // warnings about options and model
  std::function<void(const char* what, int64_t done, int64_t total)> progress;
};

// All functions are thread-safe. Results arrive in the given queue, the last one with `last`.
class Service {
 public:
  // Reads the small files of options.model and begins to load its weights.
  // Errors: of EngineOptions::Validate and EmbeddedModel::Open; kUnsupported for several ranks;
  // kExhausted without a thread.
  [[nodiscard]] static Result<std::unique_ptr<Service>> Start(const EngineOptions& options,
                                                              ServiceHooks hooks);

  // Ends all requests with kUnavailable, saves prefixes and joins the thread, after the running
  // step.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Waits for the model. False: `deadline` came first. Errors: of CreateEngine, or of the step that
  // failed.
  [[nodiscard]] Result<bool> WaitUntilLoaded(std::chrono::steady_clock::time_point deadline);

  // Events, or whole answers, of a request. Returns its id, which the results carry.
  // Errors: as Engine::Submit; kUnavailable while the model loads.
  [[nodiscard]] Result<uint64_t> Submit(std::shared_ptr<ResultQueue> queue, Request request,
                                        bool whole);

  // The bytes that `latte serve` answers to `body` at `url`: one JSON text or, of a stream,
  // server-sent events. Errors: kNotFound for a url that is no API; of ParseApiBody and
  // Engine::Submit.
  [[nodiscard]] Result<uint64_t> Answer(std::shared_ptr<ResultQueue> queue, std::string_view url,
                                        std::string_view body, uint64_t user_data);

  // Computes the logits of a given sequence between two steps, and writes the rows of the tokens
  // from `first` on to `out`, [tokens − first, vocab], which must live until the last result.
  // Errors: kInvalidArgument for no tokens, and for other sizes.
  [[nodiscard]] Result<uint64_t> Logits(std::shared_ptr<ResultQueue> queue,
                                        std::vector<int32_t> tokens, int64_t first,
                                        std::span<float> out, uint64_t user_data);

  // Ends a request early; its last result comes nevertheless. Ignores an id that is unknown.
  void Cancel(uint64_t id);

  // Errors: kUnavailable while the model loads; the error of loading.
  [[nodiscard]] Result<EngineStats> Stats();
  [[nodiscard]] Result<const EngineOptions*> SettledOptions();

  const std::shared_ptr<const EmbeddedModel>& model() const { return model_; }

 private:
  Service(EngineOptions options, ServiceHooks hooks, std::shared_ptr<const EmbeddedModel> model);
  void Run();
  Status Drive();
  Status Load();
  void ComputeSequences();
  std::shared_ptr<ServiceJob> NextSequence();
  Result<Engine*> Loaded();
  Status SubmitPrompt(Engine* engine, ServiceJob& job, size_t prompt, Request request);
  void CancelAll(std::span<const RequestId> requests);

  const EngineOptions options_;
  const ServiceHooks hooks_;
  const std::shared_ptr<const EmbeddedModel> model_;
  ServiceJobs jobs_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // of the members below
  std::condition_variable changed_;
  CreatedEngine created_;
  bool loaded_ = false;
  std::optional<Error> failed_;
  std::deque<std::shared_ptr<ServiceJob>> sequences_;
  std::thread thread_;  // last: it uses all of them
};

}  // namespace latte
