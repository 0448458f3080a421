#include "src/capi/convert.h"

#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
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

// Converts a member from its C type to its C++ type. Errors: kInvalidArgument naming the member.
Status Set(const char* from, std::string_view, std::string* to) {
  if (from != nullptr) *to = from;
  return {};
}
Status Set(latte_text from, std::string_view member, std::string* to) {
  LATTE_ASSIGN_OR_RETURN(*to, Text(from, member));
  return {};
}
template <class Integer>
Status Set(Integer from, std::string_view member, bool* to) {
  LATTE_ASSIGN_OR_RETURN(*to, Flag(from, member));
  return {};
}
Status Set(int64_t from, std::string_view member, int* to) {
  using Int = std::numeric_limits<int>;
  if (from < Int::min() || from > Int::max())
    return Expected(member, "a value within int32_t", std::to_string(from));
  *to = static_cast<int>(from);
  return {};
}
template <class Number>
Status Set(Number from, std::string_view, Number* to) {
  *to = from;
  return {};
}

Status Append(int32_t from, std::string_view, std::vector<int32_t>* to) {
  to->push_back(from);
  return {};
}
Status Append(latte_logit_bias from, std::string_view, std::vector<std::pair<int32_t, float>>* to) {
  to->emplace_back(from.token, from.bias);
  return {};
}
Status Append(latte_text from, std::string_view member, std::vector<std::string>* to) {
  LATTE_ASSIGN_OR_RETURN(std::string text, Text(from, member));
  to->push_back(std::move(text));
  return {};
}

// Sets the fields of a C++ struct from the members of a C struct.
template <class From, class To>
struct CppSetter {
  const From& from;
  To& to;
  Status status = {};

  template <class Member>
  void operator()(const Field& field, Member member) {
    if (status) status = Set(member(from), field.name, &member(to));
  }
  template <class Member>
  void operator()(const Field&, Member, OnlyInCpp) {}
  template <class Member, class Array>
  void operator()(const Field& field, Member member, Array array) {
    if (!status) return;
    From copy = from;
    const auto [data, count, data_name, count_name] = array(copy);
    status = CheckArray(data, count, static_cast<size_t>(field.most), count_name);
    for (size_t i = 0; status && i < count; ++i) status = Append(data[i], data_name, &member(to));
  }
};

template <class From, class To>
Status SetFields(const From& from, To* to) {
  CppSetter<From, To> setter{from, *to};
  To::VisitFields(setter);
  return setter.status;
}

void Put(const std::string& from, const char** to) { *to = from.c_str(); }
void Put(const std::string& from, latte_text* to) {
  *to = from.empty() ? latte_text{nullptr, SIZE_MAX} : latte_text{from.data(), from.size()};
}
template <class From, class Number>
void Put(From from, Number* to) {
  *to = static_cast<Number>(from);
}

// Sets the fields of a C struct, whose texts point into the C++ struct. Lists stay empty.
template <class From, class To>
void PutFields(const From& from, To* to) {
  From::VisitFields([&](const Field&, auto member, auto... in_c) {
    if constexpr (sizeof...(in_c) == 0) Put(member(from), &member(*to));
  });
}

}  // namespace

latte_code ToC(Code code) { return static_cast<latte_code>(code); }

latte_finish ToC(FinishReason reason) {
  return static_cast<latte_finish>(static_cast<int>(reason) + 1);
}

latte_engine_options ToC(const EngineOptions& options) {
  latte_engine_options out = {};
  out.size = sizeof out;
  PutFields(options, &out);
  return out;
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
          .forward_seconds = stats.forward_seconds,
          .drafted_tokens = stats.drafted_tokens,
          .accepted_tokens = stats.accepted_tokens,
          .masks = stats.masks,
          .mask_seconds = stats.mask_seconds,
          .mask_wait_seconds = stats.mask_wait_seconds};
}

const EngineOptions& DefaultOptions() {
  static const EngineOptions defaults;  // lives on: latte_engine_options point into it
  return defaults;
}

latte_request ToC(const Request& request) {
  static const Request texts;  // the struct points into it
  latte_request out = {};
  out.size = sizeof out;
  out.prompt = {nullptr, SIZE_MAX};
  PutFields(texts, &out);
  PutFields(request.sampling, &out);
  PutFields(request.stop, &out);
  return out;
}

latte_request DefaultRequest() { return ToC(Request()); }

Result<EngineOptions> FromC(const latte_engine_options& from) {
  EngineOptions options;
  LATTE_RETURN_IF_ERROR(SetFields(from, &options));
  return options;
}

Result<Request> FromC(const latte_request& from) {
  Request request;
  LATTE_ASSIGN_OR_RETURN(request.prompt, Text(from.prompt, "prompt"));
  LATTE_ASSIGN_OR_RETURN(request.tokens,
                         Ids(from.tokens, from.token_count, kMaxTokens, "token_count"));
  LATTE_RETURN_IF_ERROR(SetFields(from, &request));
  LATTE_RETURN_IF_ERROR(SetFields(from, &request.sampling));
  LATTE_RETURN_IF_ERROR(SetFields(from, &request.stop));
  return request;
}

}  // namespace latte::capi
