// The small files of a model for programs that embed Latte: its tokenizer, its chat format and its
// defaults, without weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"
#include "latte/status.h"

#include "src/api/common/request.h"
#include "src/checkpoint/model_files.h"

namespace latte {

// Immutable, thread-safe.
class EmbeddedModel {
 public:
  // Errors: of ModelFiles::Load and ApiModel::Create.
  [[nodiscard]] static Result<std::shared_ptr<const EmbeddedModel>> Open(const std::string& model);

  const ModelFiles& files() const { return files_; }
  // Requests that give no seed get another one each.
  const ApiModel& api() const { return api_; }

  // add_bos: puts the BOS id first if the model wants one there. Errors: of Tokenizer::Encode.
  [[nodiscard]] Result<std::vector<int32_t>> Encode(std::string_view text, bool add_bos,
                                                    bool parse_special) const;
  // The text may be invalid UTF-8. Errors: of Tokenizer::Decode.
  [[nodiscard]] Result<std::string> Decode(std::span<const int32_t> tokens,
                                           bool skip_special) const;
  // The prompt that a body of /v1/chat/completions makes. Errors: of ParseApiBody.
  [[nodiscard]] Result<std::vector<int32_t>> ChatPrompt(std::string_view body) const;

  // A request with the sampling parameters of generation_config.json.
  Request DefaultRequest() const;

  // Sizes, token ids and formats as a JSON object.
  std::string InfoJson() const;

 private:
  EmbeddedModel(ModelFiles files, ApiModel api) : files_(std::move(files)), api_(std::move(api)) {}

  ModelFiles files_;
  ApiModel api_;
};

}  // namespace latte
