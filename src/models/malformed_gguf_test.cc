// Models in GGUF files with one bad tensor each: every tensor of every architecture.
#include <cctype>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/models/registry.h"
#include "tests/support/checkpoint/gguf_copy.h"
#include "tests/support/scratch_dir.h"

namespace latte::malformed_gguf_test {
namespace {

using testing_support::GgufCopy;
using testing_support::ScratchDir;

struct Change {
  const char* what;
  // Breaks tensor `name`; false: it has no effect on this tensor.
  std::function<bool(GgufCopy&, const std::string& name)> apply;
};

bool Rename(GgufCopy& file, const std::string& name, const std::string& to) {
  auto item = file.tensors.extract(name);
  item.key() = to;
  file.tensors.insert(std::move(item));
  return true;
}

const Change kChanges[] = {
    {"missing",
     [](GgufCopy& file, const std::string& name) { return file.tensors.erase(name) == 1; }},
    {"one dimension more",
     [](GgufCopy& file, const std::string& name) {
       auto& shape = file.tensors.at(name).shape;
       shape.insert(shape.begin(), 1);
       return true;
     }},
    {"one row less",
     [](GgufCopy& file, const std::string& name) { return --file.tensors.at(name).shape[0] > 0; }},
    {"rows and columns exchanged",
     [](GgufCopy& file, const std::string& name) {
       auto& item = file.tensors.at(name);
       const size_t rank = item.shape.size();
       if (rank < 2 || item.shape[rank - 1] == item.shape[rank - 2]) return false;
       std::swap(item.shape[rank - 1], item.shape[rank - 2]);
       return item.shape[rank - 1] % 32 == 0;
     }},
    {"one row",
     [](GgufCopy& file, const std::string& name) {
       auto& shape = file.tensors.at(name).shape;
       if (shape.size() < 2) return false;
       int64_t values = 1;
       for (const int64_t size : shape) values *= size;
       shape = {values};
       return true;
     }},
    {"blocks in a vector",
     [](GgufCopy& file, const std::string& name) {
       auto& item = file.tensors.at(name);
       if (item.shape.size() > 1 || item.shape[0] % 32 != 0) return false;
       item.type = 8;  // Q8_0, which takes fewer bytes
       return true;
     }},
    {"an unknown name",
     [](GgufCopy& file, const std::string& name) { return Rename(file, name, name + ".x"); }},
    {"of layer 77",
     [](GgufCopy& file, const std::string& name) {
       if (!name.starts_with("blk.")) return false;
       return Rename(file, name, "blk.77" + name.substr(name.find('.', 4)));
     }},
    {"of layer 2^64",
     [](GgufCopy& file, const std::string& name) {
       if (!name.starts_with("blk.")) return false;
       return Rename(file, name, "blk.18446744073709551616" + name.substr(name.find('.', 4)));
     }},
};

// "blk.output.weight" of "blk.7.output.weight".
std::string WithoutLayer(const std::string& name) {
  std::string out;
  for (const char c : name)
    if (!std::isdigit(static_cast<unsigned char>(c))) out += c;
  return out;
}

// A file without it is a model all the same: with a tied head; without the embedding or head of
// drafts, whose place the model's take.
bool MayBeMissing(const std::string& name) {
  return name == "output.weight" || name.ends_with("nextn.embed_tokens.weight") ||
         name.ends_with("nextn.shared_head_head.weight");
}

class MalformedGgufModel : public testing::TestWithParam<const char*> {
 protected:
  Result<std::unique_ptr<Model>> Load(const GgufCopy& file) const {
    const std::string path = dir_.File("m.gguf");
    std::ofstream(path, std::ios::binary) << file.Bytes();
    return LoadModel(path, {.mtp = drafts_});
  }

  ScratchDir dir_;
  bool drafts_ = false;  // load the drafting layer too
};

TEST_P(MalformedGgufModel, EveryTensorIsChecked) {
  const GgufCopy good = GgufCopy::Of(
      ReadFile(fmt::format("{}/tests/goldens/{}/model.gguf", LATTE_SOURCE_DIR, GetParam()), 1 << 20)
          .value());
  for (const auto& [name, item] : good.tensors)
    drafts_ |= name.find(".nextn.") != std::string::npos;
  ASSERT_TRUE(Load(good).has_value());
  const bool shares_keys = std::string_view(GetParam()) == "gguf_glm52";
  std::set<std::string> seen;
  int refused = 0;
  for (const auto& [name, item] : good.tensors) {
    if (shares_keys && name.starts_with("blk.1.indexer")) continue;  // not read
    if (!seen.insert(WithoutLayer(name)).second) continue;
    for (const Change& change : kChanges) {
      SCOPED_TRACE(fmt::format("{}: {}", name, change.what));
      GgufCopy file = good;
      if (!change.apply(file, name)) continue;
      if (!file.tensors.contains(name) && MayBeMissing(name)) continue;
      const auto model = Load(file);
      if (model) {
        ADD_FAILURE() << "accepted";
        continue;
      }
      const std::string& message = model.error().message;
      EXPECT_NE(message.find("m.gguf"), std::string::npos) << message;
      EXPECT_LT(message.size(), 4000u) << message;
      ++refused;
    }
  }
  EXPECT_GT(refused, 80);
}

INSTANTIATE_TEST_SUITE_P(Architectures, MalformedGgufModel,
                         testing::Values("gguf_v2", "gguf_k2", "gguf_v32", "gguf_glm52",
                                         "gguf_mistral4", "gguf_minicpm3"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace latte::malformed_gguf_test
