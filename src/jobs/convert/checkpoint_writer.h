// Writes a Hugging Face checkpoint folder. The tensors are planned first and disk space is
// reserved; then bytes of tensors may come in any order and from any thread. Everything goes into a
// temporary folder next to the target, which replaces the target in one step at the end
// (staging_folder.h). A failure leaves no files. checkpoint_folder.h defines what may be replaced.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/jobs/convert/checkpoint_folder.h"
#include "src/jobs/convert/staging_folder.h"

namespace latte {

// One tensor of the folder to be written.
struct TensorPlan {
  std::string name;        // "model.norm.weight"
  std::string dtype_name;  // with the spelling of safetensors: "BF16"
  std::vector<int64_t> shape;

  int64_t bytes() const;
};

struct WriterOptions {
  bool force = false;                 // replace an earlier checkpoint in the folder
  int64_t shard_bytes = 5LL << 30;    // the tensors of a file have at most this size, or the file
                                      // has one larger tensor
  std::string source;                 // the folder that is copied; never written to
  bool lasting = true;                // flush to the disk, so that the folder survives a power
                                      // failure
  std::function<bool()> interrupted;  // called between writes from any thread; true ends the work
};

class CheckpointWriter {
 public:
  // Assigns tensors to files, makes the temporary folder and checks the free disk space.
  // Errors: of FindCheckpointFolder; kExhausted if the disk has too little room, with the free
  // space; kUnavailable if it cannot be written.
  [[nodiscard]] static Result<CheckpointWriter> Begin(const std::string& dir,
                                                      std::vector<TensorPlan> plan,
                                                      const WriterOptions& options = {});
  CheckpointWriter(CheckpointWriter&& other) noexcept;
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  ~CheckpointWriter();  // removes the temporary folder, unless Commit succeeded

  // Writes bytes of tensor `i` of the plan at byte `offset`. Thread-safe.
  // Errors: kUnavailable with the system's reason; kCancelled if `interrupted` returned true.
  [[nodiscard]] Status Write(size_t i, int64_t offset, std::span<const std::byte> bytes) const;

  // Writes a small file of the folder. Errors: as Write.
  [[nodiscard]] Status AddFile(const std::string& name, const std::string& text) const;

  // Moves the folder to its place. Nothing may be written afterwards. Errors: as Write.
  [[nodiscard]] Status Commit();

  int64_t bytes() const { return bytes_; }  // size of all tensors
  // Notes for the user about leftovers next to the folder.
  const std::vector<std::string>& notes() const { return staging_->notes(); }

 private:
  // The place of a tensor.
  struct Place {
    size_t file = 0;
    int64_t begin = 0;  // bytes from the start of the file
  };
  struct File {
    std::string name;
    std::vector<size_t> tensors;  // in the order of their data
    std::string head;             // length field and header
    int64_t bytes = 0;            // of the whole file
    int fd = -1;
  };

  CheckpointWriter() = default;
  void PlaceTensors(int64_t shard_bytes);
  [[nodiscard]] Status CheckRoom() const;
  [[nodiscard]] Status OpenFiles();
  [[nodiscard]] Status WriteIndex() const;
  [[nodiscard]] Status CloseFiles();
  [[nodiscard]] Status CheckInterrupted() const;
  int Settle(int fd) const;

  std::string dir_;  // as given by the caller
  WriterOptions options_;
  CheckpointFolder folder_;
  std::optional<StagingFolder> staging_;  // set by Begin
  std::vector<TensorPlan> plan_;
  std::vector<Place> places_;
  std::vector<File> files_;
  int64_t bytes_ = 0;
  mutable std::atomic<bool> interrupted_ = false;
};

}  // namespace latte
