// The sanitizers that a test was compiled with: they make cases slow and keep freed memory.
#pragma once

namespace latte::testing_support {

// GCC and Clang use different macros.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kUnderAsan = true;
#elif !defined(__clang__)
inline constexpr bool kUnderAsan = false;
#elif __has_feature(address_sanitizer)
inline constexpr bool kUnderAsan = true;
#else
inline constexpr bool kUnderAsan = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderTsan = true;
#elif !defined(__clang__)
inline constexpr bool kUnderTsan = false;
#elif __has_feature(thread_sanitizer)
inline constexpr bool kUnderTsan = true;
#else
inline constexpr bool kUnderTsan = false;
#endif

}  // namespace latte::testing_support
