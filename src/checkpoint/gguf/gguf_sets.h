// The GGUF models among the files of a repository or a folder, identified by the names of the
// files.
//
//   X-Q4_K_M.gguf, X.Q4_K_M.gguf          one file, the word of its type at the end
//   X-UD-Q4_K_XL-00001-of-00003.gguf      parts, often in a folder UD-Q4_K_XL or X-UD-Q4_K_XL
//   mmproj-X-F16.gguf, X.imatrix.gguf     not models: companion files
//   X.Q8_0.gguf.part1of2                  not a model: a file that was cut at arbitrary bytes
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

// A file of a repository or of a folder.
struct SizedFile {
  std::string path;  // from the top folder
  int64_t bytes = 0;
};

// A model in one GGUF file or in the parts of a split one.
struct GgufSet {
  std::string stem;  // the file's name without part and ending: "X-UD-Q4_K_XL"
  std::string
      quant;         // its end, from the word that names a type: "UD-Q4_K_XL"; empty: there is none
  std::string name;  // what users write: the quant, or the stem if the quant tells nothing
  std::vector<std::string> files;  // paths, in the order of the parts
  int64_t bytes = 0;               // of all files
  std::string missing;             // the name of the first part that is not there, or empty
  bool cut = false;                // cut without regard to its content
};

// Whether a file of this name goes with a model and is none: the encoder of its images, its layers
// for drafts in a separate file, the statistics of its quantisation.
bool IsGgufCompanion(std::string_view file_name);

// The models among `files`, smallest first. Other files are ignored.
std::vector<GgufSet> GgufSetsOf(const std::vector<SizedFile>& files);

// The model that `quant` names, whatever the case of its letters: the one of this quant or in a
// folder of this name, or else the one whose stem ends with it as a whole word. "Q4_K_M" is no word
// of UD-Q4_K_M. An empty `quant` means the only model. `repo` is for examples in messages. Errors:
// kInvalidArgument if several are meant, and kNotFound if none is, listing all with their bytes;
// kNotFound for a model without all parts; kUnsupported for one that was cut.
[[nodiscard]] Result<GgufSet> ChooseGgufSet(const std::vector<GgufSet>& sets,
                                            std::string_view quant, const std::string& repo);

}  // namespace latte
