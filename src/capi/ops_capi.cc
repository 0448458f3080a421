// The functions of latte_ops.h.
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "latte/latte.h"

#include "src/capi/guarded.h"
#include "src/capi/sized.h"
#include "src/embed/array_ops.h"

struct latte_ops {
  std::unique_ptr<latte::ArrayOps> ops;
};

namespace latte::capi {
namespace {

struct NamedAddress {
  const void* address;
  std::string_view name;
};

Status AllGiven(std::initializer_list<NamedAddress> addresses) {
  for (const auto& [address, name] : addresses) LATTE_RETURN_IF_ERROR(NotNull(address, name));
  return {};
}

Result<DType> ReadDType(const char* text) {
  const std::string_view name = text == nullptr ? "f32" : text;
  if (name == "f32") return DType::kF32;
  if (name == "bf16") return DType::kBF16;
  if (name == "f16") return DType::kF16;
  return InvalidArgument("dtype: expected f32, bf16 or f16, found '" + std::string(name) + "'");
}

Status CreateOps(int32_t threads, latte_ops** ops) {
  LATTE_RETURN_IF_ERROR(NotNull(ops, "ops"));
  *ops = nullptr;
  LATTE_ASSIGN_OR_RETURN(auto created, ArrayOps::Create(threads));
  *ops = new latte_ops{std::move(created)};
  return {};
}

Status Gemm(latte_ops* ops, GemmArrays arrays, const char* dtype) {
  LATTE_RETURN_IF_ERROR(
      AllGiven({{ops, "ops"}, {arrays.x, "x"}, {arrays.w, "w"}, {arrays.y, "y"}}));
  LATTE_ASSIGN_OR_RETURN(arrays.dtype, ReadDType(dtype));
  return ops->ops->Gemm(arrays);
}

Status MlaDecode(latte_ops* ops, const latte_mla_decode* given) {
  LATTE_RETURN_IF_ERROR(NotNull(ops, "ops"));
  LATTE_ASSIGN_OR_RETURN(const latte_mla_decode a,
                         ReadSized(given, latte_mla_decode{}, "latte_mla_decode"));
  LATTE_RETURN_IF_ERROR(AllGiven({{a.q_latent, "q_latent"},
                                  {a.q_rope, "q_rope"},
                                  {a.pages, "pages"},
                                  {a.page_table, "page_table"},
                                  {a.lengths, "lengths"},
                                  {a.new_tokens, "new_tokens"},
                                  {a.o_latent, "o_latent"},
                                  {a.lse, "lse"}}));
  if (a.b < 1 || a.b > (int64_t{1} << 31))
    return InvalidArgument("b: expected at least 1 sequence, found " + std::to_string(a.b));
  LATTE_ASSIGN_OR_RETURN(const DType dtype, ReadDType(a.dtype));
  const auto sequences = static_cast<size_t>(a.b);
  return ops->ops->MlaDecode({.q_latent = a.q_latent,
                              .q_rope = a.q_rope,
                              .pages = a.pages,
                              .page_table = a.page_table,
                              .lengths = {a.lengths, sequences},
                              .new_tokens = {a.new_tokens, sequences},
                              .o_latent = a.o_latent,
                              .lse = a.lse,
                              .t = a.t,
                              .h = a.h,
                              .c = a.c,
                              .r = a.r,
                              .page_count = a.page_count,
                              .page_tokens = a.page_tokens,
                              .page_table_width = a.page_table_width,
                              .scale = static_cast<float>(a.scale),
                              .dtype = dtype});
}

Status MlaPrefill(latte_ops* ops, const latte_mla_prefill* given) {
  LATTE_RETURN_IF_ERROR(NotNull(ops, "ops"));
  LATTE_ASSIGN_OR_RETURN(const latte_mla_prefill a,
                         ReadSized(given, latte_mla_prefill{}, "latte_mla_prefill"));
  LATTE_RETURN_IF_ERROR(AllGiven({{a.q_nope, "q_nope"},
                                  {a.q_rope, "q_rope"},
                                  {a.k_nope, "k_nope"},
                                  {a.k_rope, "k_rope"},
                                  {a.v, "v"},
                                  {a.o, "o"},
                                  {a.lse, "lse"}}));
  LATTE_ASSIGN_OR_RETURN(const DType dtype, ReadDType(a.dtype));
  return ops->ops->MlaPrefill({.q_nope = a.q_nope,
                               .q_rope = a.q_rope,
                               .k_nope = a.k_nope,
                               .k_rope = a.k_rope,
                               .v = a.v,
                               .o = a.o,
                               .lse = a.lse,
                               .t = a.t,
                               .s = a.s,
                               .h = a.h,
                               .n = a.n,
                               .r = a.r,
                               .v_width = a.v_width,
                               .scale = static_cast<float>(a.scale),
                               .dtype = dtype});
}

}  // namespace
}  // namespace latte::capi

using latte::capi::Guarded;

latte_code latte_ops_create(int32_t threads, latte_ops** ops, latte_error* error) {
  return Guarded(error, [&] { return latte::capi::CreateOps(threads, ops); });
}

void latte_ops_destroy(latte_ops* ops) { delete ops; }

latte_code latte_op_gemm(latte_ops* ops, const float* x, const float* w, float* y, int64_t m,
                         int64_t n, int64_t k, const char* dtype, latte_error* error) {
  return Guarded(error, [&] {
    return latte::capi::Gemm(ops, {.x = x, .w = w, .y = y, .m = m, .n = n, .k = k}, dtype);
  });
}

latte_code latte_op_mla_decode(latte_ops* ops, const latte_mla_decode* arrays, latte_error* error) {
  return Guarded(error, [&] { return latte::capi::MlaDecode(ops, arrays); });
}

latte_code latte_op_mla_prefill(latte_ops* ops, const latte_mla_prefill* arrays,
                                latte_error* error) {
  return Guarded(error, [&] { return latte::capi::MlaPrefill(ops, arrays); });
}
