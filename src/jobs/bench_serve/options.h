// The options of `latte bench serve`: the load, and the criteria for answers.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/session/remote/api_server.h"

namespace latte {

// A length in tokens, drawn uniformly; MIN:MAX or one number.
struct TokenRange {
  int64_t low = 1;
  int64_t high = 1;
};
// Errors: kInvalidArgument naming the flag.
[[nodiscard]] Result<TokenRange> ParseTokenRange(std::string_view flag, std::string_view text);

// The largest times that an answer may have to count as good; not set: any.
struct Goodput {
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;
  std::optional<double> e2el_ms;

  bool given() const { return ttft_ms || tpot_ms || e2el_ms; }
};
// "ttft:200,tpot:50". Errors: kInvalidArgument.
[[nodiscard]] Result<Goodput> ParseGoodput(std::string_view text);

// "4.5" or "inf". Errors: kInvalidArgument.
[[nodiscard]] Result<double> ParseRate(std::string_view text);

struct BenchServeOptions {
  ApiAddress address;
  std::string ca_file;
  bool chat = false;  // /v1/chat/completions instead of /v1/completions
  std::string model;  // empty: the first of /v1/models
  bool stream = true;
  bool ignore_eos = false;
  bool token_ids = false;  // prompts as ids also if the server is not Latte
  int64_t vocab = 0;       // ids are below it; 0: what /props says, else 32,000
  double timeout_s = 0;    // of one request; 0: none

  double rate = std::numeric_limits<double>::infinity();  // requests per second
  double burstiness = 1;    // shape of the gamma distribution of gaps; 1: Poisson; less: bursts
  int64_t concurrency = 0;  // most requests in flight; 0: no limit
  int64_t requests = 100;
  TokenRange input{64, 64};
  TokenRange output{64, 64};
  int64_t shared_prefix = 0;  // tokens before each prompt that its group shares
  int64_t prefixes = 1;       // groups
  std::string trace;          // a file of requests instead
  uint64_t seed = 0;
  Goodput goodput;

  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Validate() const;
};

}  // namespace latte
