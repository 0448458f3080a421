#include "apps/flags/manual/environment.h"

#include <algorithm>

#include <fmt/format.h>

#include "latte/options.h"
#include "latte/request.h"

#include "src/base/fields/fields.h"
#include "src/base/fields/suggest.h"
#include "src/serve/options.h"

namespace latte {
namespace {

constexpr EnvironmentVariable kVariables[] = {
    {"LATTE_ISA", "most that kernels may use: avx2, avx512, ... (latte inspect --kernels)"},
    {"LATTE_KERNEL", "kernels to prefer, by name (latte inspect --kernels)"},
    {"LATTE_CUDA_DRIVER", "library of the CUDA driver; otherwise libcuda.so.1"},
    {"LATTE_CUDA_BLOCKING", "1: wait for each kernel of a GPU, so that an error names it"},
    {"LATTE_RATES",
     "file of latte bench calibrate; empty: none; otherwise latte/rates.json in XDG_CACHE_HOME or "
     "~/.cache"},
    {"LATTE_API_KEY", "key for the server of latte chat --url and latte bench serve"},
    {"OPENAI_API_KEY", "the same, if LATTE_API_KEY is not set"},
    {"HF_HUB_CACHE", "folder of downloaded models; HUGGINGFACE_HUB_CACHE is its former name"},
    {"HF_HOME", "its parent folder, with the token; otherwise huggingface in XDG_CACHE_HOME"},
    {"XDG_CACHE_HOME", "folder of caches; otherwise ~/.cache"},
    {"XDG_STATE_HOME", "folder of the history of latte chat; otherwise ~/.local/state"},
    {"HF_TOKEN",
     "token of the Hugging Face Hub; HUGGING_FACE_HUB_TOKEN is its former name; HF_TOKEN_PATH "
     "names a file"},
    {"HF_ENDPOINT", "address of the Hub or of a mirror"},
    {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1: no token is sent"},
    {"HF_HUB_OFFLINE", "1: latte pull connects to nothing; also TRANSFORMERS_OFFLINE"},
    {"https_proxy",
     "proxy for https, also HTTPS_PROXY; for http: http_proxy; for both: all_proxy, ALL_PROXY; "
     "hosts "
     "without one: no_proxy, NO_PROXY"},
    {"SSL_CERT_FILE", "certificates to trust, for https; also CURL_CA_BUNDLE and SSL_CERT_DIR"},
    {"TMPDIR", "folder of temporary files; otherwise /tmp"},
    {"NO_COLOR", "no colors, if it is not empty"},
};

constexpr std::string_view kPrefix = "LATTE_";

// The names without the prefix, which says nothing about what is meant.
std::vector<std::string> KnownNames() {
  std::vector<std::string> out;
  const auto add = [&](std::string_view name) {
    if (name.starts_with(kPrefix)) out.emplace_back(name.substr(kPrefix.size()));
  };
  for (const EnvironmentVariable& variable : kVariables) add(variable.name);
  const auto add_field = [&](const Field& field, auto&&...) { add(Variable(field)); };
  EngineOptions::VisitFields(add_field);
  ServeOptions::VisitFields(add_field);
  SamplingParams::VisitFields(add_field);
  StopConditions::VisitFields(add_field);
  Request::VisitFields(add_field);
  return out;
}

}  // namespace

std::vector<std::string> NotesOnVariables(const char* const* environment) {
  const std::vector<std::string> known = KnownNames();
  std::vector<std::string> out;
  for (; *environment != nullptr; ++environment) {
    std::string_view name = *environment;
    name = name.substr(0, name.find('='));
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view own = name.substr(kPrefix.size());
    if (own.starts_with("TEST_") || std::find(known.begin(), known.end(), own) != known.end())
      continue;
    if (const std::optional<std::string> near = Closest(own, known))
      out.push_back(
          fmt::format("the variable {} has no meaning; did you mean {}{}?", name, kPrefix, *near));
  }
  return out;
}

std::span<const EnvironmentVariable> EnvironmentVariables() { return kVariables; }

}  // namespace latte
