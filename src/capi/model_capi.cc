// The functions of latte_service.h on models.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "latte/latte.h"

#include "src/capi/convert.h"
#include "src/capi/guarded.h"
#include "src/capi/model_handle.h"
#include "src/capi/sized.h"

namespace latte::capi {
namespace {

// The version of the C API: +1 for each release that adds to it.
constexpr int32_t kAbiVersion = 1;

Status OpenModel(const char* model, latte_model** out) {
  LATTE_RETURN_IF_ERROR(NotNull(out, "out"));
  *out = nullptr;
  LATTE_RETURN_IF_ERROR(NotNull(model, "model"));
  LATTE_ASSIGN_OR_RETURN(auto opened, EmbeddedModel::Open(model));
  *out = new latte_model{std::move(opened)};
  return {};
}

Status Encode(const latte_model* model, latte_text text, int32_t bos, int32_t parse_special,
              int32_t* tokens, size_t capacity, size_t* count) {
  LATTE_RETURN_IF_ERROR(NotNull(model, "model"));
  LATTE_ASSIGN_OR_RETURN(const std::string_view read, ReadText(text, "text"));
  LATTE_ASSIGN_OR_RETURN(const bool with_bos, ReadFlag(bos, "bos"));
  LATTE_ASSIGN_OR_RETURN(const bool special, ReadFlag(parse_special, "parse_special"));
  LATTE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         model->model->Encode(read, with_bos, special));
  return Fill<int32_t>(ids, tokens, capacity, count);
}

Status Decode(const latte_model* model, const int32_t* tokens, size_t count, int32_t skip_special,
              char* text, size_t capacity, size_t* bytes) {
  LATTE_RETURN_IF_ERROR(NotNull(model, "model"));
  LATTE_ASSIGN_OR_RETURN(const auto ids, ReadIds(tokens, count, "tokens"));
  LATTE_ASSIGN_OR_RETURN(const bool skip, ReadFlag(skip_special, "skip_special"));
  LATTE_ASSIGN_OR_RETURN(const std::string out, model->model->Decode(ids, skip));
  return Fill<char>(out, text, capacity, bytes);
}

Status ChatPrompt(const latte_model* model, latte_text body, int32_t* tokens, size_t capacity,
                  size_t* count) {
  LATTE_RETURN_IF_ERROR(NotNull(model, "model"));
  LATTE_ASSIGN_OR_RETURN(const std::string_view read, ReadText(body, "body"));
  LATTE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, model->model->ChatPrompt(read));
  return Fill<int32_t>(ids, tokens, capacity, count);
}

}  // namespace
}  // namespace latte::capi

using latte::Status;
using latte::capi::Guarded;
using latte::capi::NotNull;

int32_t latte_abi_version() { return latte::capi::kAbiVersion; }

latte_code latte_model_open(const char* model, latte_model** out, latte_error* error) {
  return Guarded(error, [&] { return latte::capi::OpenModel(model, out); });
}

void latte_model_close(latte_model* model) { delete model; }

latte_code latte_model_encode(const latte_model* model, latte_text text, int32_t bos,
                              int32_t parse_special, int32_t* tokens, size_t capacity,
                              size_t* count, latte_error* error) {
  return Guarded(error, [&] {
    return latte::capi::Encode(model, text, bos, parse_special, tokens, capacity, count);
  });
}

latte_code latte_model_decode(const latte_model* model, const int32_t* tokens, size_t count,
                              int32_t skip_special, char* text, size_t capacity, size_t* bytes,
                              latte_error* error) {
  return Guarded(error, [&] {
    return latte::capi::Decode(model, tokens, count, skip_special, text, capacity, bytes);
  });
}

latte_code latte_model_chat_prompt(const latte_model* model, latte_text body, int32_t* tokens,
                                   size_t capacity, size_t* count, latte_error* error) {
  return Guarded(error,
                 [&] { return latte::capi::ChatPrompt(model, body, tokens, capacity, count); });
}

latte_code latte_model_info(const latte_model* model, char* json, size_t capacity, size_t* bytes,
                            latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(model, "model"));
    const std::string info = model->model->InfoJson();
    return latte::capi::Fill<char>(info, json, capacity, bytes);
  });
}

latte_code latte_model_request_init(const latte_model* model, latte_request* request, size_t size,
                                    latte_error* error) {
  return Guarded(error, [&]() -> Status {
    LATTE_RETURN_IF_ERROR(NotNull(model, "model"));
    return latte::capi::WriteSized(request, size, latte::capi::ToC(model->model->DefaultRequest()),
                                   "latte_request");
  });
}
