// Writes a Hugging Face checkpoint folder: what is to be written is planned first, room for it is
// reserved, then bytes of tensors come in any order and from any thread. Everything goes into a
// temporary folder beside the wanted one, which takes its place in one step at the end
// (staging_folder.h); a failure leaves nothing behind. checkpoint_folder.h says what is replaced.
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
  std::string dtype_name;  // as safetensors spells it: "BF16"
  std::vector<int64_t> shape;

  int64_t bytes() const;
};

struct WriterOptions {
  bool force = false;                 // replace the checkpoint that a folder holds
  int64_t shard_bytes = 5LL << 30;    // a file takes tensors up to this size, or one larger tensor
  std::string source;                 // the folder that is copied; it is never written to
  bool lasting = true;                // forced to the disk, so that a power failure leaves it whole
  std::function<bool()> interrupted;  // asked between writes, by any thread: true ends the work
};

class CheckpointWriter {
 public:
  // Lays out the files, makes the temporary folder and checks the disk.
  // Errors: of FindCheckpointFolder; kExhausted when the disk has too little room, saying how much
  // there is; kUnavailable when it cannot be written.
  [[nodiscard]] static Result<CheckpointWriter> Begin(const std::string& dir,
                                                      std::vector<TensorPlan> plan,
                                                      const WriterOptions& options = {});
  CheckpointWriter(CheckpointWriter&& other) noexcept;
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  ~CheckpointWriter();  // removes what Commit did not put in place

  // Writes bytes of tensor `i` of the plan, `offset` bytes into it. Thread-safe.
  // Errors: kUnavailable with the system's reason; kCancelled once `interrupted` said so.
  [[nodiscard]] Status Write(size_t i, int64_t offset, std::span<const std::byte> bytes) const;

  // Writes a small file of the folder. Errors: as Write.
  [[nodiscard]] Status AddFile(const std::string& name, const std::string& text) const;

  // Puts the folder in its place. Nothing may be written afterwards. Errors: as Write.
  [[nodiscard]] Status Commit();

  int64_t bytes() const { return bytes_; }  // of all tensors
  // What a user should know of leftovers beside the folder.
  const std::vector<std::string>& notes() const { return staging_->notes(); }

 private:
  // Where a tensor lies.
  struct Place {
    size_t file = 0;
    int64_t begin = 0;  // bytes from the start of the file
  };
  struct File {
    std::string name;
    std::vector<size_t> tensors;  // in the order of their data
    std::string head;             // length and header
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

  std::string dir_;  // as the caller calls it
  WriterOptions options_;
  CheckpointFolder folder_;
  std::optional<StagingFolder> staging_;  // there from Begin on
  std::vector<TensorPlan> plan_;
  std::vector<Place> places_;
  std::vector<File> files_;
  int64_t bytes_ = 0;
  mutable std::atomic<bool> interrupted_ = false;
};

}  // namespace latte
