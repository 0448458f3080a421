#include "src/checkpoint/gguf/gguf_types.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/tensor/dtype.h"

namespace latte {
namespace {

constexpr GgufType TypeOf(uint32_t number, DType dtype) {
  const DTypeInfo& info = InfoOf(dtype);
  return {number, info.stored, info.values, info.bytes};
}

constexpr GgufType kGgufTypes[] = {
    TypeOf(0, DType::kF32),     TypeOf(1, DType::kF16),     TypeOf(2, DType::kQ4_0),
    TypeOf(3, DType::kQ4_1),    TypeOf(6, DType::kQ5_0),    TypeOf(7, DType::kQ5_1),
    TypeOf(8, DType::kQ8_0),    TypeOf(10, DType::kQ2_K),   TypeOf(11, DType::kQ3_K),
    TypeOf(12, DType::kQ4_K),   TypeOf(13, DType::kQ5_K),   TypeOf(14, DType::kQ6_K),
    TypeOf(20, DType::kIQ4_NL), TypeOf(23, DType::kIQ4_XS), TypeOf(30, DType::kBF16),
    TypeOf(39, DType::kMXFP4),
};

constexpr std::string_view kLargerCopy =
    "it is not built yet; take a copy of the model in Q2_K, Q3_K, IQ4_XS, Q4_K or a larger type";
constexpr std::string_view kNewerCopy =
    "it is no longer in the format; take a newer copy of the model, in Q4_0 or Q4_K";
constexpr std::string_view kNoWeight =
    "files with weights do not use it; take another copy of the model";
constexpr std::string_view kOtherFp4 =
    "its scales are in further tensors, which are not read; take a copy of the model in MXFP4 or "
    "Q4_K";
constexpr std::string_view kOfFork =
    "ik_llama.cpp alone has it; take a copy of the model for llama.cpp, such as Q4_K_M, Q4_X or "
    "UD-Q4_K_XL";

struct RefusedType {
  uint32_t number;
  std::string_view name;
  std::string_view advice;
};
constexpr RefusedType kRefusedTypes[] = {
    {4, "Q4_2", kNewerCopy},        {5, "Q4_3", kNewerCopy},        {9, "Q8_1", kNoWeight},
    {15, "Q8_K", kNoWeight},        {16, "IQ2_XXS", kLargerCopy},   {17, "IQ2_XS", kLargerCopy},
    {18, "IQ3_XXS", kLargerCopy},   {19, "IQ1_S", kLargerCopy},     {21, "IQ3_S", kLargerCopy},
    {22, "IQ2_S", kLargerCopy},     {24, "I8", kNoWeight},          {25, "I16", kNoWeight},
    {26, "I32", kNoWeight},         {27, "I64", kNoWeight},         {28, "F64", kNoWeight},
    {29, "IQ1_M", kLargerCopy},     {31, "Q4_0_4_4", kNewerCopy},   {32, "Q4_0_4_8", kNewerCopy},
    {33, "Q4_0_8_8", kNewerCopy},   {34, "TQ1_0", kLargerCopy},     {35, "TQ2_0", kLargerCopy},
    {36, "IQ4_NL_4_4", kNewerCopy}, {37, "IQ4_NL_4_8", kNewerCopy}, {38, "IQ4_NL_8_8", kNewerCopy},
    {40, "NVFP4", kOtherFp4},       {41, "Q1_0", kLargerCopy},      {42, "Q2_0", kLargerCopy},
    {133, "Q6_0", kOfFork},         {137, "IQ2_K", kOfFork},        {138, "IQ3_K", kOfFork},
    {139, "IQ4_K", kOfFork},        {140, "IQ5_K", kOfFork},        {141, "IQ6_K", kOfFork},
    {144, "IQ4_KS", kOfFork},       {145, "IQ2_KS", kOfFork},       {146, "IQ4_KSS", kOfFork},
    {152, "IQ5_KS", kOfFork},       {153, "IQ2_KT", kOfFork},       {154, "IQ3_KT", kOfFork},
    {155, "IQ4_KT", kOfFork},       {156, "IQ3_KS", kOfFork},       {157, "IQ2_KL", kOfFork},
    {158, "IQ1_KT", kOfFork},
};

// Interleaved rows of ik_llama.cpp have the number of the type whose rows they interleave, plus
// 200.
constexpr uint32_t kInterleaved = 200;
constexpr uint32_t kFirstOfFork = 97;
constexpr uint32_t kLastOfFork = 399;

// Empty if the number has no name.
std::string_view NameOfGgufType(uint32_t number) {
  for (const GgufType& type : kGgufTypes)
    if (type.number == number) return type.name;
  for (const RefusedType& type : kRefusedTypes)
    if (type.number == number) return type.name;
  return {};
}

std::string NameOfForkType(uint32_t number) {
  const std::string_view rows =
      number >= kInterleaved ? NameOfGgufType(number - kInterleaved) : std::string_view();
  return rows.empty() ? fmt::format("number {}", number) : fmt::format("{} interleaved", rows);
}

tl::unexpected<Error> RefuseGgufType(std::string_view name, std::string_view advice) {
  return Unsupported(fmt::format("expected a type that is read, found {}: {}", name, advice));
}

// Why a type of this name, or a mixture of types of its family, is not read; empty if it is.
std::string_view WhyNameIsRefused(std::string_view name) {
  if (name.ends_with("_R4") || name.ends_with("_R8")) return kOfFork;
  for (const bool exact : {true, false}) {
    const std::string_view begin = exact ? name : name.substr(0, name.find('_') + 1);
    const auto is_meant = [&](std::string_view type) {
      return exact ? type == begin : !begin.empty() && type.starts_with(begin);
    };
    for (const GgufType& type : kGgufTypes)
      if (is_meant(type.name)) return {};
    for (const RefusedType& type : kRefusedTypes)
      if (is_meant(type.name)) return type.advice;
  }
  return {};
}

}  // namespace

std::string_view WhyQuantIsRefused(std::string_view quant) {
  const std::string name = InCapitals(quant);
  for (std::string_view left = name; !left.empty();) {
    if (const std::string_view why = WhyNameIsRefused(TakePiece(&left, '-')); !why.empty())
      return why;
  }
  return {};
}

Result<const GgufType*> FindGgufType(uint32_t number) {
  for (const GgufType& type : kGgufTypes)
    if (type.number == number) return &type;
  for (const RefusedType& type : kRefusedTypes)
    if (type.number == number) return RefuseGgufType(type.name, type.advice);
  if (number >= kFirstOfFork && number <= kLastOfFork)
    return RefuseGgufType(NameOfForkType(number), kOfFork);
  return Corrupt(fmt::format(
      "expected the number of a known type, found {}; the file may be damaged, or newer "
      "than this version",
      number));
}

}  // namespace latte
