// Writes arrays in NumPy's .npy format, version 1.0: "\x93NUMPY" · 1 · 0 · u16 header length ·
// header · data.
#pragma once

#include <string>

#include "latte/status.h"

#include "src/tensor/tensor.h"

namespace latte {

// Rows of a float32 matrix, written as they come; the file is complete when Close succeeds.
class NpyWriter {
 public:
  // Errors: kUnavailable when the file cannot be created.
  [[nodiscard]] static Result<NpyWriter> Create(const std::string& path, int64_t rows,
                                                int64_t columns);
  NpyWriter(NpyWriter&& other) noexcept;
  NpyWriter& operator=(NpyWriter&&) = delete;
  ~NpyWriter();

  // rows: [M, columns] f32, contiguous. Errors: kUnavailable when the disk is full.
  [[nodiscard]] Status Append(const TensorView& rows);
  [[nodiscard]] Status Close();

 private:
  NpyWriter(std::string path, void* file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  void* file_;  // FILE*
};

}  // namespace latte
