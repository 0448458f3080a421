// The reaction to a failed request to the Hub: retry, wait, or give up with a message for the user.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "latte/status.h"

#include "src/hub/environment.h"
#include "src/hub/net/http.h"

namespace latte {

struct Fault {
  enum class Kind {
    kRetry,    // may pass
    kFatal,    // will not pass
    kStopped,  // by the user
  };
  Kind kind = Kind::kFatal;
  Error error;                 // what to say if trying again does not help
  std::optional<double> wait;  // seconds that the server asks for
};

// A request, for messages about it.
struct Asked {
  std::string repo;         // "org/name"
  std::string revision;     // "main"
  std::string file;         // empty: the listing
  std::string host;         // that answered
  bool redirected = false;  // the host is not the Hub but where it sent us
};

// `first`: nothing has been received yet, so that a wrong address or an unreachable network ends at
// once.
Fault FaultOfNet(const NetError& error, bool first);

// For every status but 200 and 206.
Fault FaultOfStatus(const HttpHead& head, const Asked& asked, const HubEnvironment& hub);

struct RetryPolicy {
  int retries = 5;            // in a row without a byte
  double base = 0.5;          // seconds before the first; doubled for each further one
  double longest_wait = 330;  // seconds; a server that asks for more ends the download
};

// Seconds to wait before trying again after `failures` in a row.
double Backoff(const RetryPolicy& policy, int failures);

// The seconds to wait before trying again, or the error to end with.
[[nodiscard]] Result<double> NextTry(const Fault& fault, const RetryPolicy& policy, int failures);

}  // namespace latte
