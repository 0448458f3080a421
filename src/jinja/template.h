// Chat templates: an interpreter for the part of Jinja2 that the templates of real checkpoints use,
// with the settings of Hugging Face's apply_chat_template (trim_blocks, lstrip_blocks, loop
// controls, `tojson` without HTML escapes). A template comes from a checkpoint and is not trusted:
// it sees only the values passed in, and every rendering ends within its limits. An unsupported
// construct is an error with line and column; it is never ignored. llama.cpp's common/jinja has the
// same design.
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
  std::optional<int64_t> unix_seconds;  // the time that strftime_now shows, in local time; now if
                                        // not set
};

// Immutable, thread-safe. Copies are cheap.
class Template {
 public:
  // Errors: kInvalidArgument for an invalid template, kUnsupported for one that needs a feature
  // that this interpreter lacks; both with line and column.
  [[nodiscard]] static Result<Template> Parse(std::string_view source);

  // Renders the template with `variables` (a dict) in scope. The runs of the result tell which
  // bytes come from the template.
  // Errors: kInvalidArgument with line and column for mistakes of the template and for
  // raise_exception; kUnsupported; kExhausted beyond the limits.
  [[nodiscard]] Result<Text> Render(const Value& variables,
                                    const RenderOptions& options = {}) const;

 private:
  explicit Template(std::shared_ptr<const Ast> ast) : ast_(std::move(ast)) {}
  std::shared_ptr<const Ast> ast_;
};

}  // namespace latte::jinja
