// Chat templates: an interpreter for the part of Jinja2 that the templates of real checkpoints use,
// with the settings of Hugging Face's apply_chat_template (trim_blocks, lstrip_blocks, loop
// controls, `tojson` without HTML escapes). A template comes from a checkpoint and is not trusted:
// it sees the values passed in and nothing else, and every rendering ends within its limits. What
// is not supported is an error that says so, with line and column, never ignored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "latte/status.h"

#include "src/jinja/value.h"

namespace latte::jinja {

struct Ast;

struct RenderOptions {
  Limits limits;
  std::optional<int64_t> unix_seconds;  // what strftime_now shows, in local time; now if not set
};

// Immutable, thread-safe. Copies are cheap.
class Template {
 public:
  // Errors: kInvalidArgument for a template that is wrong, kUnsupported for one that needs more
  // than this interpreter does; both with line and column.
  [[nodiscard]] static Result<Template> Parse(std::string_view source);

  // The text with `variables` (a dict) in scope; its runs say which bytes the template wrote.
  // Errors: kInvalidArgument with line and column, for what the template does wrong and for
  // raise_exception; kUnsupported; kExhausted beyond the limits.
  [[nodiscard]] Result<Text> Render(const Value& variables,
                                    const RenderOptions& options = {}) const;

 private:
  explicit Template(std::shared_ptr<const Ast> ast) : ast_(std::move(ast)) {}
  std::shared_ptr<const Ast> ast_;
};

}  // namespace latte::jinja
