#include "apps/flags/aliases/aliases.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/flags/aliases/alias_values.h"
#include "src/base/strings.h"

namespace latte {
namespace {

constexpr auto kNone = AliasWords::kNone;
constexpr auto kOne = AliasWords::kOne;
constexpr auto kSeveral = AliasWords::kSeveral;
constexpr auto kPerhaps = AliasWords::kPerhapsOne;
constexpr auto kFlag = AliasEffect::kFlag;
constexpr auto kModel = AliasEffect::kModel;
constexpr auto kChecked = AliasEffect::kChecked;
constexpr auto kIgnored = AliasEffect::kIgnored;
constexpr auto kOneRank = AliasEffect::kOneRank;
constexpr auto kRefused = AliasEffect::kRefused;
constexpr auto kServe = AliasScope::kServe;
constexpr auto kAll = AliasScope::kAll;

constexpr std::string_view kRanks =
    "larger numbers are refused: only --tp, --dp and --ep divide a model among ranks";
constexpr std::string_view kNoGpu = "--device chooses the CPUs or a GPU";
constexpr std::string_view kNoTuning = "kernels are built in and chosen by processor and shape";
constexpr std::string_view kNoCode = "no code of a checkpoint is ever run";
constexpr std::string_view kByModel = "the model determines the format of reasoning";
constexpr std::string_view kByRequest = "a parameter of requests; defaults: generation_config.json";
constexpr std::string_view kAlways = "always on";
constexpr std::string_view kToolsByModel = "the model determines the format of tool calls";
constexpr std::string_view kProxy = "put a reverse proxy in front of the server";
constexpr std::string_view kNoEmbeddings = "Latte answers in tokens, not in embeddings";
constexpr std::string_view kOwnFormat =
    "weights are used as the checkpoint stores them; latte quantize makes smaller copies";
constexpr std::string_view kMapped = "weights are mapped files that the system may drop and reread";

constexpr Alias kAliases[] = {
    // Model
    {"--model,-m", "vLLM, llama.cpp", kOne, kModel, "", nullptr, "", kAll},
    {"--model-path", "SGLang", kOne, kModel},
    {"--hf-repo,-hf,-hfr", "llama.cpp", kOne, kModel, "", nullptr,
     "a repository id in the local Hugging Face cache; nothing is downloaded"},
    {"--trust-remote-code", "vLLM, SGLang", kNone, kIgnored, "", nullptr, kNoCode, kAll},
    {"--dtype", "vLLM, SGLang", kOne, kFlag, "--dtype", ConvertDType,
     "bfloat16, half, float16, float and float32 too; auto: the default"},
    {"--load-format", "vLLM, SGLang", kOne, kChecked, "", OnlySafetensors, "auto or safetensors"},
    {"--device,--device-type,-dev", "vLLM, SGLang, llama.cpp", kOne, kFlag, "--device",
     ConvertDevice, "auto and none: cpu"},
    {"--quantization,-q", "vLLM, SGLang", kOne, kIgnored, "", nullptr, kOwnFormat},
    {"--tokenizer,--tokenizer-path,--revision,--tokenizer-revision,--hf-overrides,"
     "--json-model-override-args,--rope-scaling,--rope-theta",
     "vLLM, SGLang, llama.cpp", kOne, kRefused, "", nullptr,
     "the model's folder holds its tokenizer and configuration; make a copy of the folder"},
    {"--tokenizer-mode", "vLLM, SGLang", kOne, kIgnored, "", nullptr, "the tokenizer is built in"},
    {"--lora-modules,--lora-paths,--lora", "vLLM, SGLang, llama.cpp", kSeveral, kRefused, "",
     nullptr, "Latte has no LoRA adapters"},
    {"--enable-lora", "vLLM, SGLang", kNone, kRefused, "", nullptr, "Latte has no LoRA adapters"},
    {"--speculative-config,-sc,--speculative-model,--num-speculative-tokens,"
     "--speculative-algorithm,--speculative-algo,--speculative-num-steps,--speculative-eagle-topk,"
     "--speculative-num-draft-tokens,--speculative-draft-model-path,--model-draft,-md,--spec-type,"
     "--draft-max,--draft,--draft-n,--draft-min,--draft-p-min",
     "vLLM, SGLang, llama.cpp", kOne, kRefused, "", nullptr,
     "say --draft-tokens and --drafter instead"},
    {"--limit-mm-per-prompt,--mm-processor-kwargs,--media-io-kwargs,--mm-encoder-tp-mode", "vLLM",
     kOne, kIgnored, "", nullptr, "content is text; a request with images is refused"},
    {"--model-loader-extra-config,--additional-config,--profiler-config", "vLLM", kOne, kIgnored,
     "", nullptr, "it changes no answer"},
    // Ranks
    {"--tensor-parallel-size,-tp,--tp-size", "vLLM, SGLang", kOne, kFlag, "--tp", ConvertCount, ""},
    {"--pipeline-parallel-size,-pp,--pp-size", "vLLM, SGLang", kOne, kOneRank, "", nullptr, kRanks},
    {"--data-parallel-size,-dp,--dp-size", "vLLM, SGLang", kOne, kFlag, "--dp", ConvertCount,
     "--tp is the number of all processes, as in SGLang"},
    {"--expert-parallel-size,--ep-size", "SGLang", kOne, kFlag, "--ep", ConvertCount, ""},
    {"--decode-context-parallel-size,-dcp", "vLLM", kOne, kFlag, "--dcp", ConvertCount,
     "the cache is divided by 1,024 positions, not by single ones"},
    {"--nnodes", "SGLang", kOne, kOneRank, "", nullptr, kRanks},
    {"--enable-expert-parallel,-ep,--enable-ep-moe", "vLLM, SGLang", kNone, kIgnored, "", nullptr,
     "--ep with the number of ranks spreads experts whole; no answer changes"},
    {"--enable-dp-attention", "SGLang", kNone, kIgnored, "", nullptr, "--dp always means that"},
    {"--distributed-executor-backend,--node-rank,--dist-init-addr", "vLLM, SGLang", kOne, kIgnored,
     "", nullptr, "one rank needs no other"},
    // Sizes
    {"--max-model-len,--context-length,--ctx-size,-c", "vLLM, SGLang, llama.cpp", kOne, kFlag,
     "--context", ConvertCount,
     "tokens of the longest sequence, not of all together; auto or -1: the default", kAll},
    {"--n-predict,--predict,--max-tokens", "llama.cpp, vLLM", kOne, kFlag, "--max-new-tokens",
     nullptr, "", kAll},
    {"--max-tokens", "Latte 0.1", kOne, kFlag, "--context", nullptr,
     "where there is no -n: the longest sequence, prompt and answer together", kAll},
    {"--block-size,--page-size", "vLLM, SGLang", kOne, kFlag, "--page-tokens", nullptr, ""},
    {"--kv-cache-dtype,--cache-type-k,-ctk", "vLLM, SGLang, llama.cpp", kOne, kFlag,
     "--cache-dtype", ConvertCacheDType,
     "fp8_e4m3: fp8; bfloat16: bf16; float16: f16; q8_0: int8; auto: the default; fp8_e5m2 is "
     "refused"},
    {"--cache-type-v,-ctv", "llama.cpp", kOne, kIgnored, "", nullptr,
     "a cached row is key and value at once; --cache-dtype sets its format"},
    {"--kv-cache-memory-bytes", "vLLM", kOne, kFlag, "--cache-bytes", ConvertCount, ""},
    {"--max-num-seqs,--max-running-requests,--parallel,-np", "vLLM, SGLang, llama.cpp", kOne, kFlag,
     "--max-sequences", ConvertCount, "-1: the default"},
    {"--max-num-batched-tokens,--chunked-prefill-size,--ubatch-size,-ub", "vLLM, SGLang, llama.cpp",
     kOne, kFlag, "--max-batch-tokens", ConvertChunk, "-1 (no chunks) is refused"},
    {"--batch-size,-b", "llama.cpp", kOne, kIgnored, "", nullptr,
     "--ubatch-size sets the tokens of a step"},
    {"--chunk,--batch-size,-b", "llama.cpp", kOne, kFlag, "--max-batch-tokens", nullptr,
     "prompt tokens per step", kAll},
    {"--max-num-queued-reqs", "vLLM", kOne, kFlag, "--max-queued-requests", ConvertCount, ""},
    {"--max-num-queued-tokens", "vLLM", kOne, kFlag, "--max-queued-tokens", ConvertCount, ""},
    {"--gpu-memory-utilization,--mem-fraction-static", "vLLM, SGLang", kOne, kIgnored, "", nullptr,
     "it has no effect on CPUs; --cache-bytes sets the size of the cache"},
    {"--max-total-tokens", "SGLang", kOne, kRefused, "", nullptr,
     "--cache-bytes sets the size of the cache"},
    {"--swap-space,--cpu-offload-gb", "vLLM, SGLang", kOne, kIgnored, "", nullptr,
     "all memory is the processor's; --cache-dir keeps prefixes on disk"},
    // Computation
    {"--threads,-t", "llama.cpp", kOne, kFlag, "--threads", ConvertCount, "-1: the default", kAll},
    {"--threads-batch,-tb", "llama.cpp", kOne, kIgnored, "", nullptr,
     "--threads is for prompts and answers", kAll},
    {"--numa", "llama.cpp", kOne, kFlag, "--numa", ConvertNuma,
     "distribute: interleave; isolate and numactl are refused"},
    {"--disable-mla", "vLLM, SGLang", kNone, kFlag, "--attention decompressed", nullptr,
     "keys and values of every head are cached: many times the memory"},
    {"--attention-backend,--prefill-attention-backend,--decode-attention-backend,"
     "--sampling-backend,--moe-backend,--moe-runner-backend,--compilation-config,-cc,-O,"
     "--attention-config,-ac,--kernel-config,--eplb-config,--torchao-config",
     "vLLM, SGLang", kOne, kIgnored, "", nullptr, kNoTuning},
    {"-O0,-O1,-O2,-O3", "vLLM", kNone, kIgnored, "", nullptr, kNoTuning},
    {"--enforce-eager,--disable-cuda-graph,--enable-torch-compile,--disable-custom-all-reduce,"
     "--disable-overlap-schedule,--async-scheduling,--no-async-scheduling,--skip-server-warmup",
     "vLLM, SGLang", kNone, kIgnored, "", nullptr, kNoTuning},
    {"--flash-attn,-fa", "llama.cpp", kPerhaps, kIgnored, "", nullptr, kNoTuning, kAll},
    {"--n-gpu-layers,--gpu-layers,-ngl,--n-cpu-moe,-ncmoe,--override-tensor,-ot,--split-mode,-sm,"
     "--tensor-split,-ts,--main-gpu,-mg",
     "llama.cpp", kOne, kIgnored, "", nullptr, kNoGpu, kAll},
    {"--cpu-moe,-cmoe,--no-kv-offload,-nkvo", "llama.cpp", kNone, kIgnored, "", nullptr, kNoGpu,
     kAll},
    {"--mlock,--no-mmap,--mmap", "llama.cpp", kNone, kIgnored, "", nullptr, kMapped, kAll},
    {"--load-mode", "llama.cpp", kOne, kIgnored, "", nullptr, kMapped, kAll},
    {"--seed,-s,--random-seed", "SGLang, llama.cpp", kOne, kFlag, "--seed", nullptr,
     "-1: another one for each request", AliasScope::kServe},
    {"--seed,-s,--random-seed", "SGLang, llama.cpp", kOne, kFlag, "--seed", ConvertSeed,
     "-1: a random one", kAll},
    // Requests
    {"--temp", "llama.cpp", kOne, kFlag, "--temperature", nullptr, "", kAll},
    {"--repeat-penalty", "llama.cpp", kOne, kFlag, "--repetition-penalty", nullptr, "", kAll},
    {"--file", "llama.cpp", kOne, kFlag, "--prompt-file", nullptr, "", kAll},
    // Scheduling, prefix cache
    {"--enable-chunked-prefill,--cont-batching,-cb", "vLLM, llama.cpp", kNone, kIgnored, "",
     nullptr, kAlways},
    {"--no-enable-chunked-prefill", "vLLM", kNone, kRefused, "", nullptr,
     "prompts are always computed in chunks of --max-batch-tokens"},
    {"--no-cont-batching,-nocb", "llama.cpp", kNone, kRefused, "", nullptr,
     "--max-sequences 1 serves one sequence at a time"},
    {"--scheduling-policy,--schedule-policy,--schedule-conservativeness,--stream-interval",
     "vLLM, SGLang", kOne, kIgnored, "", nullptr,
     "requests start by priority, then by age; every token is sent at once"},
    {"--enable-prefix-caching,--cache-prompt", "vLLM, llama.cpp", kNone, kIgnored, "", nullptr,
     "on by default"},
    {"--no-enable-prefix-caching,--disable-radix-cache,--no-cache-prompt",
     "vLLM, SGLang, llama.cpp", kNone, kFlag, "--no-prefix-cache"},
    {"--cache-reuse,--cache-ram,-cram,--slot-prompt-similarity,-sps", "llama.cpp", kOne, kIgnored,
     "", nullptr, "all sequences share one prefix cache in --cache-bytes"},
    {"--kv-transfer-config,--kv-events-config,--ec-transfer-config", "vLLM", kOne, kRefused, "",
     nullptr, "caches are not shared among servers; --cache-dir keeps prefixes on disk"},
    {"--slot-save-path", "llama.cpp", kOne, kRefused, "", nullptr,
     "--cache-dir keeps prefixes on disk by itself"},
    {"--enable-hierarchical-cache", "SGLang", kNone, kRefused, "", nullptr,
     "--cache-dir keeps prefixes on disk"},
    {"--watchdog-timeout", "SGLang", kOne, kFlag, "--step-timeout", nullptr, "", kServe},
    // API
    {"--host", "llama.cpp", kOne, kFlag, "--host", ConvertHost,
     "a path that ends in .sock: --uds, without a TCP port", kServe},
    {"--served-model-name", "vLLM", kSeveral, kFlag, "--served-model-name", nullptr,
     "several names in a row, if MODEL stands first or --model gives it", kServe},
    {"--alias,-a", "llama.cpp", kOne, kFlag, "--served-model-name", ConvertCommaList,
     "names separated by commas", kServe},
    {"--api-key", "vLLM", kSeveral, kFlag, "--api-key", nullptr,
     "several keys in a row, as names above", kServe},
    {"--chat-template-file", "llama.cpp", kOne, kFlag, "--chat-template", nullptr, "", kServe},
    {"--ssl-cert-file", "llama.cpp", kOne, kFlag, "--ssl-certfile", nullptr, "", kServe},
    {"--ssl-key-file", "llama.cpp", kOne, kFlag, "--ssl-keyfile", nullptr, "", kServe},
    {"--ssl-ca-certs,--ssl-cert-reqs", "vLLM", kOne, kRefused, "", nullptr,
     "the server requests no client certificates; --api-key authenticates clients", kServe},
    {"--root-path,--api-prefix,--path", "vLLM, SGLang, llama.cpp", kOne, kRefused, "", nullptr,
     kProxy, kServe},
    {"--allowed-origins", "vLLM", kOne, kRefused, "", nullptr,
     "--cors-origin ORIGIN, once for each", kServe},
    {"--allow-credentials", "vLLM", kNone, kRefused, "", nullptr,
     "web pages send the API key themselves", kServe},
    {"--threads-http", "llama.cpp", kOne, kFlag, "--workers", ConvertCount, "", kServe},
    {"--timeout,-to", "llama.cpp", kOne, kFlag, "--stall-timeout", nullptr, "", kServe},
    {"--reasoning-parser,--reasoning-format", "vLLM, SGLang, llama.cpp", kOne, kIgnored, "",
     nullptr, kByModel, kServe},
    {"--enable-reasoning", "vLLM", kNone, kIgnored, "", nullptr, kByModel, kServe},
    {"--enable-auto-tool-choice", "vLLM", kNone, kIgnored, "", nullptr, kToolsByModel, kServe},
    {"--tool-call-parser", "vLLM, SGLang", kOne, kIgnored, "", nullptr, kToolsByModel, kServe},
    {"--jinja", "llama.cpp", kNone, kIgnored, "", nullptr, kAlways, kServe},
    {"--generation-config,--override-generation-config,--sampling-defaults", "vLLM, SGLang", kOne,
     kRefused, "", nullptr, "defaults come from the model's generation_config.json", kServe},
    {"--default-chat-template-kwargs,--chat-template-kwargs", "vLLM, llama.cpp", kOne, kRefused, "",
     nullptr, "chat_template_kwargs is a parameter of requests", kServe},
    {"--structured-outputs-config,--reasoning-config", "vLLM", kOne, kRefused, "", nullptr,
     "formats and reasoning are parameters of requests", kServe},
    {"--structured-outputs-config.backend,--guided-decoding-backend,--grammar-backend",
     "vLLM, SGLang", kOne, kIgnored, "", nullptr, "xgrammar makes answers match"},
    {"--n-predict,--predict,-n,--temp,--top-k,--top-p,--min-p,--repeat-penalty,"
     "--presence-penalty,--frequency-penalty",
     "llama.cpp", kOne, kRefused, "", nullptr, kByRequest, kServe},
    {"--embedding,--embeddings,--is-embedding,--reranking,--rerank", "SGLang, llama.cpp", kNone,
     kRefused, "", nullptr, kNoEmbeddings, kServe},
    {"--pooler-config,--override-pooler-config", "vLLM", kOne, kRefused, "", nullptr, kNoEmbeddings,
     kServe},
    // Log and metrics
    {"--uvicorn-log-level,--log-level-http", "vLLM, SGLang", kOne, kFlag, "--log-level",
     ConvertLogLevel, "critical: error", kServe},
    {"--log-level", "SGLang", kOne, kFlag, "--log-level", ConvertLogLevel,
     "warn, critical and uppercase too", kServe},
    {"--verbose,-v", "llama.cpp", kNone, kFlag, "--log-level debug", nullptr, "", kServe},
    {"--disable-log-requests,--no-enable-log-requests,--disable-uvicorn-access-log", "vLLM", kNone,
     kFlag, "--no-access-log", nullptr, "", kServe},
    {"--enable-log-requests,--log-requests", "vLLM, SGLang", kNone, kIgnored, "", nullptr,
     "the log has a line per request, never with its text", kServe},
    {"--disable-log-stats", "vLLM", kNone, kFlag, "--stats-interval 0", nullptr, "", kServe},
    {"--decode-log-interval", "SGLang", kOne, kIgnored, "", nullptr,
     "--stats-interval is in seconds", kServe},
    {"--metrics,--enable-metrics,--slots,--props,--enable-cache-report,"
     "--enable-prompt-tokens-details,--enable-request-id-headers",
     "vLLM, SGLang, llama.cpp", kNone, kIgnored, "", nullptr, kAlways, kServe},
    {"--no-webui", "llama.cpp", kNone, kIgnored, "", nullptr, "the web page is always served",
     kServe},
    {"--no-slots,--disable-fastapi-docs", "vLLM, llama.cpp", kNone, kIgnored, "", nullptr,
     "there is no such page", kServe},
    {"--log-file", "llama.cpp", kOne, kRefused, "", nullptr,
     "the log is standard error: redirect it", kServe},
};

std::string Dashed(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string EffectText(const Alias& alias) {
  switch (alias.effect) {
    case AliasEffect::kFlag:
      return fmt::format("`{}`", alias.flag);
    case AliasEffect::kChecked:
      return "checked";
    case AliasEffect::kModel:
      return "`MODEL`";
    case AliasEffect::kIgnored:
      return "ignored";
    case AliasEffect::kOneRank:
      return "1 is accepted";
    case AliasEffect::kRefused:
      return "refused";
  }
  return "";
}

std::string NamesText(const Alias& alias) {
  std::string out;
  for (const std::string_view name : NamesOf(alias))
    out += fmt::format("{}`{}`", out.empty() ? "" : " ", name);
  return out;
}

// The option that an alias stands for, or null.
const OptionInfo* OptionOf(const Alias& alias, const CommandInfo& command) {
  return FindOption(command, alias.flag.substr(0, alias.flag.find(' ')));
}

bool HasModel(const CommandInfo& command) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [](const OptionInfo& option) { return option.names.front() == "MODEL"; });
}

bool Takes(const CommandInfo& command, const Alias& alias) {
  switch (alias.scope) {
    case AliasScope::kServeAndBatch:
      return command.name == "serve" || command.name == "batch";
    case AliasScope::kServe:
      return command.name == "serve";
    case AliasScope::kAll:
      break;
  }
  return alias.flag.empty() ? HasModel(command) : OptionOf(alias, command) != nullptr;
}

std::string ScopeText(const Alias& alias) {
  switch (alias.scope) {
    case AliasScope::kServeAndBatch:
      return "serve, batch";
    case AliasScope::kServe:
      return "serve";
    case AliasScope::kAll:
      break;
  }
  return alias.flag.empty() ? "all with MODEL" : fmt::format("all with `{}`", alias.flag);
}

constexpr std::string_view kHead = R"(
## Names of other programs

Commands also take flags of vLLM, SGLang and llama.cpp, with dashes or underscores: all commands take common ones,
`latte serve` and `latte batch` also flags of servers. A note on standard error says what is ignored. A flag is refused with
exit code 2 if it would change answers or if Latte lacks what it asks for. A member of a flag whose value is an object, such as
`--speculative-config.method`, is read as the flag itself, unless it has a row of its own.

| Flag | Of | Is | Commands | Note |
|---|---|---|---|---|
)";

}  // namespace

std::span<const Alias> Aliases() { return kAliases; }

size_t DotOfMember(std::string_view name) {
  const size_t dot = name.find('.');
  const bool named = dot != std::string_view::npos && dot + 1 < name.size() &&
                     name[dot + 1] >= 'a' && name[dot + 1] <= 'z';
  return named ? dot : std::string_view::npos;
}

std::vector<std::string_view> NamesOf(const Alias& alias) {
  std::vector<std::string_view> out;
  std::string_view rest = alias.names;
  while (!rest.empty()) {
    out.push_back(TakePiece(&rest, ','));
  }
  return out;
}

const Alias* FindAlias(std::string_view name, const CommandInfo& command) {
  const std::string wanted = Dashed(name);
  const OptionInfo* own = FindOption(command, wanted);
  for (const Alias& alias : kAliases) {
    if (!Takes(command, alias) || (own != nullptr && own != OptionOf(alias, command))) continue;
    for (const std::string_view candidate : NamesOf(alias))
      if (candidate == wanted) return &alias;
  }
  const size_t dot = DotOfMember(wanted);
  if (dot == std::string::npos) return nullptr;
  const Alias* whole = FindAlias(wanted.substr(0, dot), command);
  const bool any_object = whole != nullptr && whole->words == kOne &&
                          (whole->effect == kIgnored || whole->effect == kRefused);
  return any_object ? whole : nullptr;
}

std::string AliasesDocument() {
  std::string out(kHead);
  for (const Alias& alias : kAliases)
    out += fmt::format("| {} | {} | {} | {} | {} |\n", NamesText(alias), alias.of,
                       EffectText(alias), ScopeText(alias), alias.note);
  return out;
}

}  // namespace latte
