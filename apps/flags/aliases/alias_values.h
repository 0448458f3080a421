// Converts values of other servers' flags to values of Latte's flags. Each function is a
// ConvertAlias.
#pragma once

#include <string>

#include "apps/flags/aliases/aliases.h"

namespace latte {

// "131072", "128k" (thousands), "128K" (1024s), "25.6k"; "auto" and "-1" leave our default.
Result<AliasValue> ConvertCount(const std::string& flag, const std::string& value);
// bfloat16, float16, half, float, float32; "auto" leaves our default.
Result<AliasValue> ConvertDType(const std::string& flag, const std::string& value);
// fp8_e4m3, bfloat16, f16, q8_0 and our own names; "auto" leaves our default.
Result<AliasValue> ConvertCacheDType(const std::string& flag, const std::string& value);
// Prompt tokens per step; refuses -1, which turns chunks off elsewhere.
Result<AliasValue> ConvertChunk(const std::string& flag, const std::string& value);
// A list separated by commas: one flag for each entry.
Result<AliasValue> ConvertCommaList(const std::string& flag, const std::string& value);
// "-1" is a random number.
Result<AliasValue> ConvertSeed(const std::string& flag, const std::string& value);
// llama.cpp's "distribute" means interleave.
Result<AliasValue> ConvertNuma(const std::string& flag, const std::string& value);
// A path that ends in ".sock" is a Unix socket, and no TCP port is opened.
Result<AliasValue> ConvertHost(const std::string& flag, const std::string& value);
// uvicorn's levels: trace and debug, info, warning, error and critical.
Result<AliasValue> ConvertLogLevel(const std::string& flag, const std::string& value);

// Only "auto", "cpu": no other device computes here.
Result<AliasValue> ConvertDevice(const std::string& flag, const std::string& value);
// Only formats that Latte reads.
Result<AliasValue> OnlySafetensors(const std::string& flag, const std::string& value);

}  // namespace latte
