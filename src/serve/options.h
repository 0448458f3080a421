// The options of `latte serve`, in addition to the engine's: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/fields.h"
#include "latte/status.h"

namespace latte {

struct ServeOptions {
  // Address
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string uds = "";
  std::string ssl_certfile = "";
  std::string ssl_keyfile = "";
  // API
  std::vector<std::string> served_model_name;
  std::string chat_template = "";  // path of a file
  int64_t seed = -1;
  int max_logprobs = 20;
  // Access
  std::vector<std::string> api_key;
  std::string api_key_file = "";
  bool salt_by_key = false;  // each key has cached prefixes of its own
  std::vector<std::string> allowed_host;
  std::vector<std::string> cors_origin;
  // Limits
  int64_t max_connections = 4096;
  int64_t max_head_bytes = 32 << 10;
  int64_t max_body_bytes = 32 << 20;
  int64_t max_bodies_bytes = int64_t{1} << 30;
  int64_t max_tokenize_bytes = 4 << 20;
  int64_t max_answer_bytes = 64 << 20;
  int64_t max_unsent_bytes = 4 << 20;
  int64_t max_answers_bytes = int64_t{1} << 30;
  int max_n = 64;              // answers per prompt
  int64_t max_prompts = 1024;  // prompts per request
  int min_priority = 0;        // lower ones of requests count as this one
  double head_timeout = 10;
  double body_timeout = 60;
  double idle_timeout = 75;
  double stall_timeout = 30;
  double drain_timeout = 60;
  double step_timeout = 300;  // the watchdog's; 0: none
  int workers = 2;            // threads that parse requests and apply templates
  int64_t max_parsing = 512;  // requests that wait for them
  // Log
  std::string log_level = "info";
  std::string log_format = "text";
  double stats_interval = 10;
  bool access_log = true;
  // Processes
  bool isolate = false;  // the engine is a separate process

  // Errors: kInvalidArgument naming the field, its value and the accepted range.
  [[nodiscard]] Status Validate() const;

  // The list of fields; latte/fields.h. A new option is a member above and an entry below.
  template <class Visit>
  static void VisitFields(Visit&& visit);
};

template <class Visit>
void ServeOptions::VisitFields(Visit&& visit) {
  constexpr double kMany = 1 << 30;
  constexpr double kManyBytes = static_cast<double>(int64_t{1} << 40);
  constexpr FieldRange kSeconds = {0, 86400, /*above_low=*/true};
  visit(
      Field{.name = "host",
            .help = "address to listen on; 0.0.0.0 or :: for all; empty: only --uds",
            .may_be_empty = true,
            .group = "Address"},
      [](auto& o) -> auto& { return o.host; });
  visit(
      Field{.name = "port", .help = "TCP port; 0: a free one", .range = {0, 65535}},
      [](auto& o) -> auto& { return o.port; });
  visit(
      Field{.name = "uds",
            .help = "listen on this Unix socket too",
            .may_be_empty = true,
            .value = "PATH"},
      [](auto& o) -> auto& { return o.uds; });
  visit(
      Field{.name = "ssl_certfile",
            .help = "PEM file with the certificate chain: TLS on the TCP port",
            .may_be_empty = true,
            .value = "FILE"},
      [](auto& o) -> auto& { return o.ssl_certfile; });
  visit(
      Field{.name = "ssl_keyfile",
            .help = "PEM file with its key",
            .may_be_empty = true,
            .value = "FILE"},
      [](auto& o) -> auto& { return o.ssl_keyfile; });
  visit(
      Field{.name = "served_model_name",
            .help = "name of the model in the API; may be given several times",
            .most = 64,
            .fallback = "MODEL",
            .group = "API"},
      [](auto& o) -> auto& { return o.served_model_name; });
  visit(
      Field{.name = "chat_template",
            .help = "file with a Jinja template that replaces the checkpoint's",
            .may_be_empty = true,
            .value = "FILE"},
      [](auto& o) -> auto& { return o.chat_template; });
  visit(
      Field{.name = "seed",
            .help = "seed of requests without one; -1: a different seed for each",
            .range = {-1, kManyBytes},
            .flag = "-s,--seed"},
      [](auto& o) -> auto& { return o.seed; });
  visit(
      Field{.name = "max_logprobs",
            .help = "most alternatives per token that a request may have",
            .range = {0, 20}},
      [](auto& o) -> auto& { return o.max_logprobs; });
  visit(
      Field{.name = "api_key",
            .help = "clients must send one of these keys; may be given several times",
            .most = 1024,
            .group = "Access"},
      [](auto& o) -> auto& { return o.api_key; });
  visit(
      Field{.name = "api_key_file",
            .help = "file with one key per line",
            .may_be_empty = true,
            .value = "FILE"},
      [](auto& o) -> auto& { return o.api_key_file; });
  visit(
      Field{.name = "salt_by_key",
            .help = "keys share no cached prefixes, so none can detect the prompts of another"},
      [](auto& o) -> auto& { return o.salt_by_key; });
  visit(
      Field{.name = "allowed_host",
            .help = "further host name that clients may use in the Host field",
            .most = 64},
      [](auto& o) -> auto& { return o.allowed_host; });
  visit(
      Field{.name = "cors_origin",
            .help = "web pages of this origin may use the API; *: of every origin",
            .most = 64},
      [](auto& o) -> auto& { return o.cors_origin; });
  visit(
      Field{.name = "max_connections",
            .help = "open connections",
            .range = {1, 1 << 20},
            .group = "Limits",
            .expert = true},
      [](auto& o) -> auto& { return o.max_connections; });
  visit(
      Field{.name = "max_head_bytes",
            .help = "size of a request's line and header fields",
            .range = {1024, 1 << 20},
            .bytes = true,
            .expert = true},
      [](auto& o) -> auto& { return o.max_head_bytes; });
  visit(
      Field{.name = "max_body_bytes",
            .help = "size of a request's body",
            .range = {1024, kManyBytes},
            .bytes = true},
      [](auto& o) -> auto& { return o.max_body_bytes; });
  visit(
      Field{.name = "max_bodies_bytes",
            .help = "size of all bodies that are received or wait to be parsed",
            .range = {1024, kManyBytes},
            .bytes = true,
            .expert = true},
      [](auto& o) -> auto& { return o.max_bodies_bytes; });
  visit(
      Field{.name = "max_tokenize_bytes",
            .help = "largest body of /tokenize, /detokenize, /apply-template and count_tokens",
            .range = {1024, kManyBytes},
            .bytes = true,
            .expert = true},
      [](auto& o) -> auto& { return o.max_tokenize_bytes; });
  visit(
      Field{.name = "max_answer_bytes",
            .help = "largest answer that is not a stream, and most log-probabilities of a prompt",
            .range = {1024, kManyBytes},
            .bytes = true,
            .expert = true},
      [](auto& o) -> auto& { return o.max_answer_bytes; });
  visit(
      Field{.name = "max_unsent_bytes",
            .help = "answer bytes that wait for a slow reader before it is dropped",
            .range = {1024, kManyBytes},
            .bytes = true,
            .expert = true},
      [](auto& o) -> auto& { return o.max_unsent_bytes; });
  visit(
      Field{.name = "max_answers_bytes",
            .help = "the same for all clients; the clients that are behind longest are dropped",
            .range = {1024, kManyBytes},
            .bytes = true,
            .expert = true},
      [](auto& o) -> auto& { return o.max_answers_bytes; });
  visit(
      Field{.name = "max_n", .help = "answers per prompt", .range = {1, 64}},
      [](auto& o) -> auto& { return o.max_n; });
  visit(
      Field{.name = "max_prompts", .help = "prompts per completion request", .range = {1, 65536}},
      [](auto& o) -> auto& { return o.max_prompts; });
  visit(
      Field{.name = "min_priority",
            .help = "lowest priority of a request, served first; lower priorities are raised to it",
            .range = {INT32_MIN, INT32_MAX}},
      [](auto& o) -> auto& { return o.min_priority; });
  visit(
      Field{.name = "head_timeout",
            .help = "seconds for a request's head",
            .range = kSeconds,
            .expert = true},
      [](auto& o) -> auto& { return o.head_timeout; });
  visit(
      Field{.name = "body_timeout",
            .help = "seconds for a request's body",
            .range = kSeconds,
            .expert = true},
      [](auto& o) -> auto& { return o.body_timeout; });
  visit(
      Field{.name = "idle_timeout",
            .help = "seconds that a connection may wait for its next request",
            .range = kSeconds},
      [](auto& o) -> auto& { return o.idle_timeout; });
  visit(
      Field{.name = "stall_timeout",
            .help = "seconds after which a client that reads nothing is dropped",
            .range = kSeconds},
      [](auto& o) -> auto& { return o.stall_timeout; });
  visit(
      Field{.name = "drain_timeout",
            .help = "seconds that running requests get after SIGTERM",
            .range = {0, 86400}},
      [](auto& o) -> auto& { return o.drain_timeout; });
  visit(
      Field{.name = "step_timeout",
            .help = "seconds after which a step counts as stuck and the engine ends; 0: never",
            .range = {0, 86400}},
      [](auto& o) -> auto& { return o.step_timeout; });
  visit(
      Field{.name = "workers",
            .help = "threads that parse requests and apply chat templates",
            .range = {1, 64},
            .expert = true},
      [](auto& o) -> auto& { return o.workers; });
  visit(
      Field{.name = "max_parsing",
            .help = "requests that wait for those threads",
            .range = {1, kMany},
            .expert = true},
      [](auto& o) -> auto& { return o.max_parsing; });
  visit(
      Field{.name = "log_level",
            .help = "debug, info, warning or error",
            .choices = "debug, info, warning or error",
            .group = "Log"},
      [](auto& o) -> auto& { return o.log_level; });
  visit(
      Field{.name = "log_format", .help = "text or json", .choices = "text or json"},
      [](auto& o) -> auto& { return o.log_format; });
  visit(
      Field{.name = "stats_interval",
            .help = "seconds between two lines of statistics; 0: none",
            .range = {0, 86400}},
      [](auto& o) -> auto& { return o.stats_interval; });
  visit(
      Field{.name = "access_log", .help = "no log line per request", .flag = "--no-access-log"},
      [](auto& o) -> auto& { return o.access_log; });
  visit(
      Field{.name = "isolate",
            .help = "run the engine in a separate process, and restart it if it dies",
            .group = "Processes"},
      [](auto& o) -> auto& { return o.isolate; });
}

}  // namespace latte
