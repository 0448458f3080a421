// Plain data of the C API to and from that of the C++ API.
#pragma once

#include "latte/engine.h"
#include "latte/latte.h"

namespace latte::capi {

// Enumerators have one order in both.
latte_code ToC(Code code);
latte_finish ToC(FinishReason reason);

// The strings point into `options`, which must outlive what is returned.
latte_engine_options ToC(const EngineOptions& options);
latte_stats ToC(const EngineStats& stats);

const EngineOptions& DefaultOptions();
latte_request DefaultRequest();
// The request's numbers; its texts and lists are the defaults.
latte_request ToC(const Request& request);

// Copies all that `options` points to. Errors: kInvalidArgument for a flag that is neither 0 nor 1;
// what else may be wrong is told by EngineOptions::Validate.
[[nodiscard]] Result<EngineOptions> FromC(const latte_engine_options& options);

// Copies all that `request` points to. Errors: kInvalidArgument naming the member, for a flag that
// is neither 0 nor 1, a null pointer with a length, and a length above the limit of latte.h, of
// which nothing is read; what else may be wrong is told by Request::Validate.
[[nodiscard]] Result<Request> FromC(const latte_request& request);

}  // namespace latte::capi
