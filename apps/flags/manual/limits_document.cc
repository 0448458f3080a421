#include "apps/flags/manual/limits_document.h"

#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "latte/options.h"
#include "latte/request.h"

#include "apps/flags/manual/options_document.h"
#include "src/base/check.h"
#include "src/base/fields/fields.h"
#include "src/base/strings.h"
#include "src/serve/options.h"

namespace latte {
namespace {

// The page. A row has five cells: the limit, the most, what sets it, what happens beyond it, and
// the test that shows it. The most of an option is its default, so that its cell stays empty. What
// sets another limit is a constant in a file. tests/e2e/usage/limits_page_test.py compares them,
// and looks for the tests.
constexpr std::string_view kLimits =
    R"(# Limits

<!-- `latte inspect --limits` writes this page. -->

All input from clients, files and other machines has limits. "Set by" names the option that changes a limit, or the
constant of a fixed limit. "Most" is the default of the option ([options.md](options.md)). "Shown by" names the test of
the limit: a unit test, or a program in `tests` and its function or case.

A number such as 413 is the status that `latte serve` answers, with a message that names the field, the expected value and
the value found. In `latte batch`, the line gets the same error. For files, "refused" means exit code 2 and one line
([bad_input.md](bad_input.md)).

## Connections

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| open connections | | --max-connections | 503, or the connection ends | HttpSockets.TooManyConnections |
| further connections that still get their 503 | 64 | kMostRefusing in src/http/server.cc | they end without an answer | HttpSockets.TooManyConnections |
| open files of the process | as the system allows | `ulimit -n` | further connections wait | HttpSockets.NoDescriptorsLeft |
| request line and header fields | | --max-head-bytes | 431 | HttpHead.Limits |
| header fields | 100 | max_head_fields in src/http/server.h | 431 | HttpHead.Limits |
| target of a request | 8 KiB | target in src/http/connection/head_check.h | 414 | HttpHead.Limits |
| time for a head or a TLS handshake | | --head-timeout | 408, or the connection ends | HttpRequests.SlowRequests |
| body of a request | | --max-body-bytes | 413 before the body is read | HttpRequests.ALargeBodyIsRefusedVisibly |
| all bodies that are received or wait to be parsed | | --max-bodies-bytes | 503 | HttpRequests.BodiesCountAsLongAsTheyAreKept |
| time for a body | | --body-timeout | 408 | HttpRequests.TrickledRequests |
| line of a chunk | 1 KiB | kMostLineBytes in src/http/connection/body_reader.cc | 400 | HttpBody.ChunksThatAreNone |
| trailers | 8 KiB | kMostTrailerBytes in src/http/connection/body_reader.cc | 400 | HttpBody.ChunksThatAreNone |
| bytes sent ahead of the next answer | 64 KiB | kMostAhead in src/http/connection/connection.cc | read later | HttpRequests.ReadsABoundedPartAhead |
| time between two requests | | --idle-timeout | the connection ends | HttpRequests.SlowRequests |
| body of `/tokenize`, `/detokenize`, `/apply-template` and `count_tokens` | | --max-tokenize-bytes | 413 | tests/e2e/serve/memory_test.py test_bodies_to_tokenise_have_their_own_limit |
| answer that is not a stream | | --max-answer-bytes | 400 | ApiRunning.AnAnswerThatGrowsBeyondItsLimitFails |
| bytes of a stream that wait for a slow reader | | --max-unsent-bytes | the connection ends | HttpClients.AReaderTooFarBehindIsDropped |
| bytes of a longer answer that a reader takes in --stall-timeout | | --max-unsent-bytes | the connection ends | UnsentBytes.AClientFarBehindMustTakeMore |
| bytes that wait for all readers together | | --max-answers-bytes | the connections that wait longest end | HttpSlowReaders.HaveABoundTogether |
| time in which a reader takes 16 KiB | | --stall-timeout | the connection ends | HttpSlowReaders.AreDropped |
| request id of a client | 128 bytes | kMostBytes in src/serve/observe/request_id.cc | replaced by a new one | RequestId.TakesVisibleAsciiOnly |
| a key file | 1 MiB | kMostKeyFileBytes in src/serve/endpoints/access.cc | exit code 2 | Access.AFileOfKeysIsBounded |
| time for running requests after SIGTERM | | --drain-timeout | an error event ends them | tests/e2e/serve/life_test.py test_the_drain_timeout_ends_streams_with_an_error |
| time of a step | | --step-timeout | the server ends with exit code 1 | Server.AStepThatIsStuckEndsTheProcess |

## Requests that wait

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| for a worker that parses them | | --max-parsing | 429 | Workers.MoreThanMayWaitAreRefused |
| for the engine | | --max-queued-requests | 429 | tests/e2e/serve/life_test.py test_a_full_queue_is_429 |
| tokens of their prompts | | --max-queued-tokens | 429 | EngineCoreTest.QueueIsBounded |
| sequences that run at once | | --max-sequences | the others wait | Scheduler.ThereIsAPlaceForEveryAnswer |
| grammars that wait to be compiled | 64 | kMostWaiting in src/engine/grammar/grammar_service.h | 429 | SlowGrammarsTest.ThreadsThatCompileAreBounded |
| grammars that are compiled at once | 4 | kThreads in src/engine/grammar/grammar_service.h | the others wait | SlowGrammarsTest.ThreadsThatCompileAreBounded |
| running requests that `/requests` shows | 1,000 | kMostShown in src/serve/observe/request_views.h | the oldest are shown | RequestViews.ShowsTheOldestOfVeryMany |
| ended requests that `/requests` shows | 32 | kMostFinished in src/serve/observe/request_views.h | the latest are shown | RequestViews.KeepsTheLastFinishedOnes |

## Fields of requests

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| depth of JSON | 64 | max_depth in src/api/request.cc | 400 | BadRequest.BodiesThatAreNoJson |
| values of JSON | 2,000,000 | max_elements in src/api/request.cc | 400 | BadRequest.BodiesThatAreNoJson |
| the same of `/v1/messages` | 2,000,000 | max_elements in src/api/messages/request.cc | 400 | BodyLimits.HoldForEveryEndpoint |
| the same of `/tokenize` and `/detokenize` | 2,000,000 | max_elements in src/serve/info.cc | 400 | tests/e2e/serve/attacks_test.py test_json_that_is_too_large |
| tokens of prompt and answer | the model's context | --context | 400, `context_length_exceeded` | BadRequest.TheEngineRefusesTheRest |
| prompts of a request | | --max-prompts | 400 | BadRequest.PromptsAndMessages |
| answers per prompt | | --max-n | 400 | BodyLimits.AServerMayAllowLess |
| answers of a request | 4,096 | max_answers in src/api/common/request.h | 400 | BadRequest.PromptsAndMessages |
| alternatives per token | | --max-logprobs | 400 | BodyLimits.AServerMayAllowLess |
| alternatives for the tokens of prompts, at 64 bytes each | | --max-answer-bytes | 400 | BadRequest.NumbersOutOfRange |
| messages of a conversation | 16,384 | kMaxMessages in src/api/common/conversation.h | 400 | Conversation.HasAtMostSoManyMessages |
| text of a prompt | the context, all of the longest token | `--context` | 400 before it is tokenised | BadRequest.ATextThatCannotFitIsRefusedBeforeItIsTokenised |
| a word of a text | 1 MiB | kMaxWordBytes in src/text/tokenizer.cc | 400 | Tokenizer.AWordOfMoreThanAMebibyteIsRefused |
| memory while a request is read, above its body | 16 times the body | `--max-body-bytes` | as the rows above | tests/e2e/serve/memory_test.py test_alone |
| `priority` | | --min-priority | raised to it | ApiRequest.PrioritiesHaveAFloor |
| bytes of a `cache_salt` that the cache keeps | 64 | kLongestAsItIs in src/serve/prefix_salt.cc | its digest is kept | PrefixSalt.SeparatesKeysAndSalts |
| `n` | | n | 400 | Request.ValidateLooksAtAllOfIt |
| `logprobs`, `top_logprobs` | | logprobs | 400 | BadRequest.NumbersOutOfRange |
| `prompt_logprobs` | | prompt_logprobs | 400 | Request.ValidateLooksAtAllOfIt |
| `temperature` | | temperature | 400 | BadRequest.NumbersOutOfRange |
| `top_p` | | top_p | 400 | BadRequest.NumbersOutOfRange |
| `min_p` | | min_p | 400 | BadRequest.NumbersOutOfRange |
| `repetition_penalty` | | repetition_penalty | 400 | BadRequest.NumbersOutOfRange |
| `presence_penalty` | | presence_penalty | 400 | BadRequest.NumbersOutOfRange |
| `frequency_penalty` | | frequency_penalty | 400 | BadRequest.NumbersOutOfRange |
| `logit_bias` | | logit_bias | 400 | SamplingParams.LogitBiasIsBounded |
| `stop` | | stop | 400 | StopConditions.ValidateNamesFieldValueAndRange |
| bytes of a string of `stop` | 256 | kLongest in src/engine/request/request.cc | 400 | StopConditions.ValidateNamesFieldValueAndRange |
| `stop_token_ids` | | stop_token_ids | 400 | StopConditions.ValidateNamesFieldValueAndRange |
| `stop_sequences` of `/v1/messages` | 16 | kMostStops in src/api/messages/fields.cc | 400 | AnthropicRequest.WhatIsWrongIsNamedByItsField |
| `tools` | 1,024 | kMaxTools in src/api/common/tools/tools.cc | 400 | BodyLimits.Tools |
| bytes of a function's name | 256 | kMaxName in src/api/common/tools/tools.cc | 400 | BodyLimits.Tools |
| `guided_choice` | 1,024 | kMostChoices in src/api/common/format/answer_format.cc | 400 | BodyLimits.Choices |

## Structured output

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| a grammar, regular expression or schema | 256 KiB | kMostBytes in src/grammar/grammar_rules.cc | 400 | GrammarRulesTest.SizeAndDepthAreBounded |
| all tools of a request | 4 MiB | kMostTagBytes in src/grammar/grammar_rules.cc | 400 | GrammarRulesTest.SizeAndDepthAreBounded |
| [price](structured_output.md#limits) of a grammar | 8,000 | kMostRulePrice in src/grammar/pattern/rule_price.h | 400 | RulePriceTest.TheSumIsBounded |
| nested brackets | 200 | kMostDepth in src/grammar/grammar_rules.cc | 400 | GrammarRulesTest.SizeAndDepthAreBounded |
| price of all tools and the format | 40,000 | kMostTagPrice in src/grammar/pattern/rule_price.h | 400 | GrammarTest.ThePartsOfATagHaveAPriceTogether |
| product of nested counts | 256 | kMostNested in src/grammar/pattern/rule_price.h | 400 | RulePriceTest.CountsInOneAnotherAreBounded |
| seconds to compile a grammar | 30 | kMostTime in src/engine/grammar/grammar_service.h | the request fails | SlowGrammarsTest.AGrammarThatIsCompiledTooLongFailsItsRequest |
| seconds that a grammar waits for others | 60 | kMostWait in src/engine/grammar/grammar_service.h | 429 | SlowGrammarsTest.ThreadsThatCompileAreBounded |
| seconds of a mask | 5 | kMostTime in src/engine/grammar/mask_worker.h | the request fails | SlowGrammarsTest.AMaskThatTakesTooLongFailsItsRequest |
| consecutive optional or repeated parts | 64 | kMostVarying in src/grammar/pattern/rule_price.h | 400 | RulePriceTest.PartsThatMayBeLeftOutAreBounded |
| members of an object in a schema | 2,000 | kMostMembersOfSchema in src/grammar/schema/plain_schema.cc | 400 | RulePriceTest.MembersOfAnObjectAreBounded |
| references in a chain | 1,000 | kMostReferences in src/grammar/schema/schema_writer.cc | 400 | SchemaRefusedTest.DeepSchemasAndLongChainsAreBounded |
| `minLength`, `minItems` and similar | 100,000 | kMostCount in src/grammar/schema/plain_schema.cc | 400 | SchemaRefusedTest.WhatCannotBeEnforced |
| nested groups of a pattern | 60 | kMostNesting in src/grammar/pattern/pattern_parser.cc | 400 | PatternTest.WhatNoGrammarCanDoIsRefused |
| a count in a pattern | 10,000 | kMostRepeats in src/grammar/pattern/pattern_parser.cc | 400 | PatternTest.WhatNoGrammarCanDoIsRefused |
| states of several patterns together | 512 | kMostStates in src/grammar/pattern/pattern_rules.cc | 400 | PatternTest.SetsHaveABoundedNumberOfStates |
| digits of a bound of numbers | 31 | kMostDigits in src/grammar/schema/number_rules.cc | 400 | SchemaRefusedTest.WhatCannotBeEnforced |
| `multipleOf` | 1,000 | kMostNamed in src/grammar/schema/number_multiples.cc | 400 | SchemaRefusedTest.WhatCannotBeEnforced |
| compiled grammars that are kept | 256 MiB | kKeptBytes in src/grammar/xgrammar_grammar.cc | the least recently used are dropped | GrammarCacheTest.TheOneUsedLeastRecentlyLeaves |

## Chat templates

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| a template | 4 MiB | kMaxSource in src/jinja/parse/parser.cc | refused | JinjaTemplate.SourcesAreBounded |
| its parts | 500,000 | kMaxNodes in src/jinja/parse/parser.cc | refused | JinjaTemplate.SourcesAreBounded |
| its nesting | 400 | kMaxNodeDepth in src/jinja/parse/parser.cc | refused | JinjaTemplate.DeepNestingIsRefusedWhenParsed |
| steps of one rendering | 5,000,000 | steps in src/jinja/limits/budget.h | 400 | JinjaTemplate.EndlessWorkEndsSoon |
| bytes of all its texts and lists | 512 MiB | total_bytes in src/jinja/limits/budget.h | 400 | JinjaTemplate.EndlessWorkEndsSoon |
| one text, and the prompt | 64 MiB | string_bytes in src/jinja/limits/budget.h | 400 | JinjaTemplate.EndlessWorkEndsSoon |
| CPU seconds of one rendering | 2 | cpu_seconds in src/jinja/limits/budget.h | 400 | JinjaBudget.ProcessorTimeIsTheLastLimit |
| bytes of a message about a value | 4,096 | kMaxMessageBytes in src/jinja/value.h | cut | JinjaBudget.EveryFilterEndsSoon |
| nested values | 100 | kMaxValueDepth in src/jinja/value.h | 400 | JinjaTemplate.EndlessWorkEndsSoon |
| numbers of `range` | 100,000 | kMaxRange in src/jinja/functions.cc | 400 | JinjaTemplate.EndlessWorkEndsSoon |
| arguments of a call | 64 | kMaxArguments in src/jinja/parse/parser_literals.cc | refused | JinjaTemplate.SourcesAreBounded |
| variables of a loop, parameters of a macro | 16 | kMaxTargets in src/jinja/parse/parser_statements.cc | refused | JinjaTemplate.SourcesAreBounded |
| stack of nested expressions and macros | 128 KiB | kBytes in src/base/limits/stack_budget.h | 400 | JinjaTemplate.NoTemplateNeedsMuchStack |

## Tokenizers

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| `tokenizer.json` | 256 MiB | kMaxTokenizerBytes in src/text/tokenizer.cc | refused unread | TokenizerFolder.FilesAreBounded |
| `tiktoken.model` | 64 MiB | kMaxTiktokenBytes in src/text/tokenizer.cc | refused unread | TiktokenFolder.ErrorsNameFolderAndFile |
| token ids | 16,777,216 | kMaxTokens in src/text/tokenizer_json.cc | refused | TokenizerFile.BadVocabulariesAreCorrupt |
| bytes of an added token | 1,024 | kMaxAddedTokenBytes in src/text/tokenizer_json.cc | refused | TokenizerFile.BadAddedTokensAreCorrupt |
| ranks of `tiktoken.model` | 1,048,576 | kMaxRanks in src/text/tokenizer_tiktoken.cc | refused | TiktokenFile.HostileSizesEndQuickly |
| base64 characters of a token | 1,368 | kMaxBase64Chars in src/text/tokenizer_tiktoken.cc | refused | TiktokenFile.BadLinesAreCorruptAndNamed |
| a pattern | 16 KiB | kMaxPatternBytes in src/text/unicode/regex_onig_syntax.cc | refused | tests/e2e/folder_cases.py T10 |
| backtracks of one search | 10,000,000 | kMatchLimit in src/text/unicode/regex.cc | 400 | Regex.ExponentialPatternsHitTheLimitInsteadOfHanging |
| memory of one search, KiB | 65,536 | kHeapLimitKib in src/text/unicode/regex.cc | 400 | Regex.DeepBacktrackingHasRoomOrIsAnError |
| CPU seconds of all searches in a text | 5 | seconds in src/text/unicode/regex.h | 400 | Regex.WorkInTheSquareOfTheTextEndsAtTheBudget |
| text for each further second | 128 KiB | bytes_per_second in src/text/unicode/regex.h | 400 | Regex.WorkInTheSquareOfTheTextEndsAtTheBudget |

## Weights and configuration

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| `config.json` | 16 MiB | kMaxConfigBytes in src/checkpoint/config/model_config.cc | refused unread | ModelFolder.C18_WhatIsNoConfigIsCorrupt |
| depth of JSON in files | 64 | max_depth in src/base/json.h | refused | Json.LimitsHoldWhileParsing |
| values of JSON in files | 4,000,000 | max_elements in src/base/json.h | refused | Json.LimitsHoldWhileParsing |
| parameters of a model | 10^18 | kMaxParams in src/checkpoint/config/model_config.cc | refused | ModelConfigRefusals.C20_ModelsTooLargeToCount |
| header of a safetensors file, bytes | 100,000,000 | kMaxHeaderBytes in src/checkpoint/safetensors/safetensors_header.cc | refused unread | BadFileTest.IsCorruptAndSaysWhy |
| values in a header | 2,000,000 | max_elements in src/checkpoint/safetensors/safetensors_header.cc | refused | SafetensorsHeader.F31_TooManyTensorsAreRefused |
| index of shards | 64 MiB | kMaxIndexBytes in src/checkpoint/safetensors/safetensors.cc | refused unread | CheckpointTest.P07_HugeIndexIsRefusedUnread |
| a message of Latte | 2,000 bytes | kMaxMessageBytes in src/base/status.cc | loses its middle | Status.LongMessagesLoseTheirMiddle |

## Downloads: `latte pull`

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| a listing | 32 MiB | kMostListingBytes in src/hub/pull.cc | refused | tests/e2e/hub/pull_test.py test_a_listing_or_head_that_is_too_large |
| head of an answer, of a proxy's, and of a chunk | 64 KiB | max_head_bytes in src/http/client/client.h | refused | tests/e2e/hub/pull_test.py test_a_listing_or_head_that_is_too_large |
| body of a redirect or an error | 64 KiB | kMostSkippedBytes in src/hub/net/http.cc | the connection ends | Clients.BodiesThatAreNotWanted |
| hosts whose connections are kept | 8 | kMostOrigins in src/hub/net/http.cc | new connections | Clients.KeepConnectionsToAFewHosts |
| path of a file, bytes | 1,024 | kMostPathBytes in src/hub/repo/listing.cc | refused | Listing.NamesThatLeadElsewhereAreRefused |
| quant after the name of a repository, bytes | 255 | kMostQuantBytes in src/checkpoint/hub_cache.cc | refused | HubCache.WhatIsNoQuantIsRefused |
| redirects | 5 | kMostRedirects in src/hub/hub_get.cc | refused | HubGet.RedirectsThatAreNotFollowed |
| wrong copies of a file | 2 | kMostBadCopies in src/hub/download.cc | exit code 1 | Downloads.WrongBytesAreNeverKept |
| seconds that a Hub may ask to wait | 330 | longest_wait in src/hub/fault.h | exit code 1 | Fault.WaitsAreBounded |

## Files of prefixes: `--cache-dir`

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| the folder | | --cache-dir-bytes | the least recently used files are deleted | PrefixStoreTest.LeastRecentlyUsedFilesGoWhenItIsFull |
| a file | its page | its name | refused unread and deleted | PrefixStoreTest.LargeFileUnderOurNameIsRefusedUnread |

## Log

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| a line, bytes | 3,900 | kMostLineBytes in src/serve/observe/log.cc | ends with `truncated` | Log.CutsLongValuesAndLines |
| a message, bytes | 1,000 | kMostMessageBytes in src/serve/observe/log.cc | cut | Log.CutsLongValuesAndLines |
| a value, bytes | 500 | kMostValueBytes in src/serve/observe/log.cc | cut | Log.CutsOneLongValue |
| lines that wait for a reader | 4,096 | queue_lines in src/serve/observe/log.h | the oldest are dropped and counted | Log.DropsLinesInsteadOfWaiting |

## Ranks

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| a message before a rank has joined, bytes | 512 | kMostHandshakeBytes in src/comm/control/handshake.h | the connection ends | Control.AFrameThatClaims4GiBIsRefused |
| a message | 32 MiB | most_payload in src/comm/control/connection.h | the rank is lost | Frame.LengthsAndTypesAreChecked |
| bytes that a rank does not read | 128 MiB | most_waiting in src/comm/control/connection.h | the rank is lost | Control.ARankThatDoesNotReadStopsNothing |
| connections that have not joined | 32 | kMostStrangers in src/comm/control/front.cc | the oldest ends | Control.StrangersAreRefusedOnceAndDisturbNothing |

## Answers of servers: `latte chat --url`, `latte bench serve`

| Limit | Most | Set by | Beyond it | Shown by |
|---|---|---|---|---|
| an address, bytes | 4,096 | kMostBytes in src/http/client/url.cc | exit code 2 | Url.Refused |
| head of an answer, of a proxy's, and of a chunk | 64 KiB | max_head_bytes in src/http/client/client.h | an error of the request | ResponseReader.WhatNeverEndsIsBounded |
| an answer | 64 MiB | max_body_bytes in src/http/client/client.h | an error of the request | HttpClient.BoundsBodiesWithoutALength |
| an event of a stream | 8 MiB | max_event_bytes in src/http/client/sse.h | an error of the request | Sse.LinesAndEventsAreBounded |
)";

struct LimitSetting {
  std::string set_by;
  std::string most;
};

std::string SizeText(int64_t bytes) {
  constexpr std::string_view kUnits[] = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

template <class Value>
std::string LimitByDefault(const Field& field, const Value& value) {
  if (!field.fallback.empty()) return std::string(field.fallback);
  if constexpr (std::is_arithmetic_v<Value>) {
    if (field.bytes) return SizeText(static_cast<int64_t>(value));
    return fmt::format("{}{}", value, field.name.ends_with("_timeout") ? " s" : "");
  }
  return ValuesText(field);
}

// An option by its flag, or a field of requests by its key; none: `name` is neither.
std::optional<LimitSetting> FindLimitSetting(std::string_view name) {
  std::optional<LimitSetting> out;
  const auto option = [&](const auto& defaults) {
    return [&](const Field& field, auto member, auto&&...) {
      if (LongFlag(field) == name)
        out = {fmt::format("`{}`", name), LimitByDefault(field, member(defaults))};
    };
  };
  const auto key = [&](const Field& field, auto&&...) {
    if (JsonKey(field) == name) out = {"the request", ValuesText(field)};
  };
  EngineOptions::VisitFields(option(EngineOptions()));
  ServeOptions::VisitFields(option(ServeOptions()));
  SamplingParams::VisitFields(key);
  StopConditions::VisitFields(key);
  Request::VisitFields(key);
  return out;
}

std::vector<std::string_view> CellsOf(std::string_view row) {
  std::vector<std::string_view> out;
  row.remove_prefix(1);
  for (size_t end = row.find('|'); end != row.npos; end = row.find('|')) {
    out.push_back(Trimmed(row.substr(0, end)));
    row.remove_prefix(end + 1);
  }
  return out;
}

// "kMost in src/a.cc" → "`kMost` in `src/a.cc`"; other words stay.
std::string PlaceText(std::string_view place) {
  const size_t in = place.find(" in ");
  if (in == place.npos) return std::string(place);
  return fmt::format("`{}` in `{}`", place.substr(0, in), place.substr(in + 4));
}

std::string RowOfPage(std::string_view row) {
  const std::vector<std::string_view> cells = CellsOf(row);
  LATTE_CHECK(cells.size() == 5, "a limit has five cells, found {}: {}", cells.size(), row);
  LimitSetting setting{PlaceText(cells[2]), std::string(cells[1])};
  if (const std::optional<LimitSetting> found = FindLimitSetting(cells[2]))
    setting = {found->set_by, cells[1].empty() ? found->most : setting.most};
  LATTE_CHECK(!setting.most.empty(), "no option has the name of this limit: {}", row);
  return fmt::format("| {} | {} | {} | {} | {} |", cells[0], setting.most, setting.set_by, cells[3],
                     cells[4]);
}

}  // namespace

std::string LimitsDocument() {
  std::string out;
  for (std::string_view rest = kLimits; !rest.empty();) {
    const std::string_view line = TakePiece(&rest, '\n');
    const bool is_row = line.starts_with("| ") && !line.starts_with("| Limit |");
    out += is_row ? RowOfPage(line) : std::string(line);
    out += '\n';
  }
  return out;
}

}  // namespace latte
