// Requests that generate text, from their body to the end of their answer:
//
//   I/O thread     Start: the body goes to a worker
//   worker         parses it, applies the chat template, tokenises
//   I/O thread     submits it to the engine
//   engine thread  computes; passes on the events of every step
//   I/O thread     Deliver: writes them to the clients
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "latte/engine.h"

#include "src/api/common/request.h"
#include "src/api/running.h"
#include "src/http/server.h"
#include "src/serve/endpoints/reply.h"
#include "src/serve/workers.h"

namespace latte {

// What becomes known of a generation, for log, metrics and the view of requests. All are called on
// the I/O thread.
class GenerationObserver {
 public:
  virtual ~GenerationObserver() = default;
  // A request arrives. It is listed under its id until Refused or Ended, and at most as long as the
  // result lives. `client`: its address.
  [[nodiscard]] virtual std::shared_ptr<void> Began(const std::string& id, ApiEndpoint endpoint,
                                                    const std::string& client) = 0;
  // `request` contains the prompts, which must not be shown.
  virtual void Parsed(const std::string& id, const ApiRequest& request) = 0;
  virtual void Refused(const std::string& id, const Error& error) = 0;
  // Every event of an answer, before it is written.
  virtual void Event(const std::string& id, const TokenEvent& event) = 0;
  // The answer is complete, or ends early: `error` says why, kCancelled when the client left.
  virtual void Ended(const std::string& id, const ApiUsage& usage,
                     const std::optional<Error>& error) = 0;
};

// What generations need. All must outlive them.
struct GenerationParts {
  HttpServer* http = nullptr;
  Workers* workers = nullptr;
  const ApiModel* model = nullptr;
  std::vector<std::string> names;  // of the model; requests may use any
  ApiRules rules;
  GenerationObserver* observer = nullptr;
};

// A request as it arrives.
struct ArrivedRequest {
  ApiEndpoint endpoint = ApiEndpoint::kChat;
  std::string id;      // unique, without spaces
  std::string client;  // its address
  std::string
      salt_secret;  // makes its prefixes its own (prefix_salt.h); empty: they are everybody's
  CountedBody body;
};

// On the I/O thread only, but for what a worker does.
class Generations {
 public:
  explicit Generations(GenerationParts parts) : parts_(std::move(parts)) {}
  ~Generations();

  void SetEngine(Engine* engine);

  // Answers through `reply`.
  void Start(ArrivedRequest arrived, const std::shared_ptr<Reply>& reply);

  // The events of one step of the engine. An answer that there is too little memory for fails
  // alone.
  void Deliver(std::span<const TokenEvent> events);

  // Ends all with an error.
  void FailAll(const Error& error);

  // Keeps waiting streams alive: a client or proxy must not take a long prompt for a dead server.
  // Call it once per second or so.
  void Tick();

  size_t size() const { return running_.size(); }
  size_t prompts() const { return places_.size(); }  // that the engine works on

  // Seconds after which a refused client may try again: an estimate.
  int RetryAfter() const;

 private:
  struct Generation;
  // A request of the engine: one prompt.
  struct Place {
    std::shared_ptr<Generation> generation;
    size_t prompt = 0;
  };

  void OnParsed(const std::shared_ptr<Generation>& g, Result<ApiRequest> request);
  Status Begin(const std::shared_ptr<Generation>& g, Result<ApiRequest> request);
  Status Check(const ApiRequest& request) const;
  Status Submit(const std::shared_ptr<Generation>& g);
  void Advance(const std::shared_ptr<Generation>& g);
  void Write(Generation& g);
  void End(const std::shared_ptr<Generation>& g, std::optional<Error> error);
  Status Answer(Generation& g, const std::optional<Error>& error);
  void Cancel(const std::shared_ptr<Generation>& g);
  void Forget(Generation& g);

  GenerationParts parts_;
  Engine* engine_ = nullptr;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, Place> places_;               // by Request::user_data
  std::unordered_set<std::shared_ptr<Generation>> running_;  // parsed or not, until the end
};

}  // namespace latte
