#include "src/capi/convert.h"

#include <cstring>
#include <limits>
#include <utility>

namespace latte::capi {
namespace {

static_assert(LATTE_OK == static_cast<int>(Code::kOk) &&
              LATTE_INVALID_ARGUMENT == static_cast<int>(Code::kInvalidArgument) &&
              LATTE_NOT_FOUND == static_cast<int>(Code::kNotFound) &&
              LATTE_UNSUPPORTED == static_cast<int>(Code::kUnsupported) &&
              LATTE_CORRUPT == static_cast<int>(Code::kCorrupt) &&
              LATTE_EXHAUSTED == static_cast<int>(Code::kExhausted) &&
              LATTE_CANCELLED == static_cast<int>(Code::kCancelled) &&
              LATTE_UNAVAILABLE == static_cast<int>(Code::kUnavailable) &&
              LATTE_INTERNAL == static_cast<int>(Code::kInternal));
static_assert(LATTE_FINISH_STOP == static_cast<int>(FinishReason::kStop) + 1 &&
              LATTE_FINISH_LENGTH == static_cast<int>(FinishReason::kLength) + 1 &&
              LATTE_FINISH_CANCELLED == static_cast<int>(FinishReason::kCancelled) + 1 &&
              LATTE_FINISH_ERROR == static_cast<int>(FinishReason::kError) + 1);

// Both are members of structs, whose layout may not depend on the compiler.
static_assert(sizeof(latte_code) == sizeof(int32_t) && sizeof(latte_finish) == sizeof(int32_t));

constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr size_t kMaxTokens = size_t{1} << 30;
constexpr size_t kMaxLogitBias = 1024;
constexpr size_t kMaxStopTokens = 128;
constexpr size_t kMaxStopStrings = 16;

tl::unexpected<Error> Expected(std::string_view member, std::string_view expected,
                               const std::string& found) {
  return InvalidArgument(std::string(member) + ": expected " + std::string(expected) + ", found " +
                         found);
}

Result<bool> Flag(int64_t value, std::string_view member) {
  if (value != 0 && value != 1) return Expected(member, "0 or 1", std::to_string(value));
  return value == 1;
}

// That `count` items may be read from `data`.
Status CheckArray(const void* data, size_t count, size_t limit, std::string_view member) {
  if (count > limit)
    return Expected(member, "at most " + std::to_string(limit), std::to_string(count));
  if (data == nullptr && count > 0)
    return Expected(member, "the address of " + std::to_string(count), "NULL");
  return {};
}

Result<std::string> Text(latte_text text, std::string_view member) {
  if (text.bytes == SIZE_MAX) return std::string(text.data == nullptr ? "" : text.data);
  LATTE_RETURN_IF_ERROR(CheckArray(text.data, text.bytes, kMaxTextBytes, member));
  return text.bytes == 0 ? std::string() : std::string(text.data, text.bytes);
}

Result<std::vector<int32_t>> Ids(const int32_t* ids, size_t count, size_t limit,
                                 std::string_view member) {
  LATTE_RETURN_IF_ERROR(CheckArray(ids, count, limit, member));
  return std::vector<int32_t>(ids, ids + count);
}

std::string OrDefault(const char* text, const std::string& otherwise) {
  return text == nullptr ? otherwise : text;
}

Result<SamplingParams> Sampling(const latte_request& request) {
  LATTE_RETURN_IF_ERROR(
      CheckArray(request.logit_bias, request.logit_bias_count, kMaxLogitBias, "logit_bias_count"));
  SamplingParams sampling = {.temperature = request.temperature,
                             .top_k = request.top_k,
                             .top_p = request.top_p,
                             .min_p = request.min_p,
                             .repetition_penalty = request.repetition_penalty,
                             .presence_penalty = request.presence_penalty,
                             .frequency_penalty = request.frequency_penalty,
                             .logit_bias = {},
                             .seed = request.seed};
  for (size_t i = 0; i < request.logit_bias_count; ++i)
    sampling.logit_bias.emplace_back(request.logit_bias[i].token, request.logit_bias[i].bias);
  return sampling;
}

Result<StopConditions> Stop(const latte_request& request) {
  StopConditions stop = {.max_tokens = request.max_tokens, .min_tokens = request.min_tokens};
  LATTE_ASSIGN_OR_RETURN(stop.ignore_eos, Flag(request.ignore_eos, "ignore_eos"));
  LATTE_ASSIGN_OR_RETURN(stop.tokens, Ids(request.stop_tokens, request.stop_token_count,
                                          kMaxStopTokens, "stop_token_count"));
  LATTE_RETURN_IF_ERROR(CheckArray(request.stop_strings, request.stop_string_count, kMaxStopStrings,
                                   "stop_string_count"));
  for (size_t i = 0; i < request.stop_string_count; ++i) {
    LATTE_ASSIGN_OR_RETURN(std::string text, Text(request.stop_strings[i], "stop_strings"));
    stop.strings.push_back(std::move(text));
  }
  return stop;
}

}  // namespace

latte_code ToC(Code code) { return static_cast<latte_code>(code); }

latte_finish ToC(FinishReason reason) {
  return static_cast<latte_finish>(static_cast<int>(reason) + 1);
}

latte_engine_options ToC(const EngineOptions& options) {
  return {.size = sizeof(latte_engine_options),
          .model = options.model.c_str(),
          .dtype = options.dtype.c_str(),
          .cache_dtype = options.cache_dtype.c_str(),
          .attention = options.attention.c_str(),
          .deterministic = options.deterministic.c_str(),
          .cache_dir = options.cache_dir.c_str(),
          .cache_dir_bytes = options.cache_dir_bytes,
          .page_tokens = options.page_tokens,
          .cache_bytes = options.cache_bytes,
          .max_tokens = options.max_tokens,
          .max_batch_tokens = options.max_batch_tokens,
          .max_sequences = options.max_sequences,
          .max_queued_requests = options.max_queued_requests,
          .max_queued_tokens = options.max_queued_tokens,
          .aging_steps = options.aging_steps,
          .prefill_workspace_tokens = options.prefill_workspace_tokens,
          .threads = options.threads,
          .int8_activations = options.int8_activations ? 1 : 0,
          .check_weights = options.check_weights ? 1 : 0,
          .prefix_cache = options.prefix_cache ? 1 : 0};
}

latte_stats ToC(const EngineStats& stats) {
  return {.size = sizeof(latte_stats),
          .waiting = stats.waiting,
          .running = stats.running,
          .pages_total = stats.pages_total,
          .pages_used = stats.pages_used,
          .pages_cached = stats.pages_cached,
          .page_bytes = stats.page_bytes,
          .page_tokens = stats.page_tokens,
          .steps = stats.steps,
          .requests_finished = stats.requests_finished,
          .requests_failed = stats.requests_failed,
          .requests_cancelled = stats.requests_cancelled,
          .preemptions = stats.preemptions,
          .prompt_tokens = stats.prompt_tokens,
          .cached_tokens = stats.cached_tokens,
          .disk_tokens = stats.disk_tokens,
          .computed_tokens = stats.computed_tokens,
          .generated_tokens = stats.generated_tokens,
          .step_seconds = stats.step_seconds,
          .forward_seconds = stats.forward_seconds};
}

const EngineOptions& DefaultOptions() {
  static const EngineOptions defaults;  // lives on: latte_engine_options point into it
  return defaults;
}

latte_request DefaultRequest() {
  const Request request;
  return {.size = sizeof(latte_request),
          .prompt = {nullptr, SIZE_MAX},
          .tokens = nullptr,
          .token_count = 0,
          .logit_bias = nullptr,
          .logit_bias_count = 0,
          .temperature = request.sampling.temperature,
          .top_p = request.sampling.top_p,
          .min_p = request.sampling.min_p,
          .repetition_penalty = request.sampling.repetition_penalty,
          .presence_penalty = request.sampling.presence_penalty,
          .frequency_penalty = request.sampling.frequency_penalty,
          .top_k = request.sampling.top_k,
          .seed = request.sampling.seed,
          .max_tokens = request.stop.max_tokens,
          .min_tokens = request.stop.min_tokens,
          .stop_tokens = nullptr,
          .stop_token_count = 0,
          .stop_strings = nullptr,
          .stop_string_count = 0,
          .cache_salt = {nullptr, SIZE_MAX},
          .priority = request.priority,
          .ignore_eos = request.stop.ignore_eos ? 1 : 0,
          .parse_special = request.parse_special ? 1 : 0,
          .n = request.n,
          .logprobs = request.logprobs,
          .prompt_logprobs = request.prompt_logprobs,
          .echo = request.echo ? 1 : 0,
          .keep_special = request.keep_special ? 1 : 0,
          .user_data = request.user_data};
}

Result<EngineOptions> FromC(const latte_engine_options& from) {
  const EngineOptions& defaults = DefaultOptions();
  EngineOptions options = {.model = OrDefault(from.model, defaults.model),
                           .dtype = OrDefault(from.dtype, defaults.dtype),
                           .cache_dtype = OrDefault(from.cache_dtype, defaults.cache_dtype),
                           .attention = OrDefault(from.attention, defaults.attention),
                           .deterministic = OrDefault(from.deterministic, defaults.deterministic),
                           .threads = from.threads,
                           .page_tokens = from.page_tokens,
                           .cache_bytes = from.cache_bytes,
                           .max_tokens = from.max_tokens,
                           .max_batch_tokens = from.max_batch_tokens,
                           .max_sequences = from.max_sequences,
                           .max_queued_requests = from.max_queued_requests,
                           .max_queued_tokens = from.max_queued_tokens,
                           .aging_steps = from.aging_steps,
                           .prefill_workspace_tokens = from.prefill_workspace_tokens,
                           .cache_dir = OrDefault(from.cache_dir, defaults.cache_dir),
                           .cache_dir_bytes = from.cache_dir_bytes};
  LATTE_ASSIGN_OR_RETURN(options.int8_activations, Flag(from.int8_activations, "int8_activations"));
  LATTE_ASSIGN_OR_RETURN(options.check_weights, Flag(from.check_weights, "check_weights"));
  LATTE_ASSIGN_OR_RETURN(options.prefix_cache, Flag(from.prefix_cache, "prefix_cache"));
  return options;
}

Result<Request> FromC(const latte_request& from) {
  Request request;
  LATTE_ASSIGN_OR_RETURN(request.prompt, Text(from.prompt, "prompt"));
  LATTE_ASSIGN_OR_RETURN(request.tokens,
                         Ids(from.tokens, from.token_count, kMaxTokens, "token_count"));
  LATTE_ASSIGN_OR_RETURN(request.parse_special, Flag(from.parse_special, "parse_special"));
  LATTE_ASSIGN_OR_RETURN(request.sampling, Sampling(from));
  LATTE_ASSIGN_OR_RETURN(request.stop, Stop(from));
  request.n = from.n;
  request.logprobs = from.logprobs;
  request.prompt_logprobs = from.prompt_logprobs;
  LATTE_ASSIGN_OR_RETURN(request.echo, Flag(from.echo, "echo"));
  LATTE_ASSIGN_OR_RETURN(request.keep_special, Flag(from.keep_special, "keep_special"));
  using Int = std::numeric_limits<int>;
  if (from.priority < Int::min() || from.priority > Int::max())
    return Expected("priority", "a value within int32_t", std::to_string(from.priority));
  request.priority = static_cast<int>(from.priority);
  LATTE_ASSIGN_OR_RETURN(request.cache_salt, Text(from.cache_salt, "cache_salt"));
  request.user_data = from.user_data;
  return request;
}

}  // namespace latte::capi
