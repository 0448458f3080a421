// Gauges of the resources of requests in a server, which their end releases: bytes, list entries.
#pragma once

#include <functional>
#include <vector>

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include "src/serve/observe/metrics.h"

namespace latte {

class RequestGauges {
 public:
  // `registry` must outlive it.
  explicit RequestGauges(prometheus::Registry& registry);
  void Set(const ServerSnapshot& state);

 private:
  prometheus::Gauge& unsent_bytes_;
  prometheus::Gauge& body_bytes_;
  std::vector<std::reference_wrapper<prometheus::Gauge>> records_;  // one for each list
};

}  // namespace latte
