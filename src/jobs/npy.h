// Writes arrays in NumPy's .npy format, version 1.0: "\x93NUMPY" · 1 · 0 · u16 header length ·
// header · data.
#pragma once

#include <string>

#include "latte/status.h"

#include "src/base/files/output_file.h"
#include "src/tensor/tensor.h"

namespace latte {

// The files that NpyWriter writes and may replace: float32 matrices.
FileKind NpyMatrix();

// Writes the rows of a float32 matrix as they are computed. The file appears when Close succeeds;
// until then, and after a failure, an existing file stays unchanged.
class NpyWriter {
 public:
  // Errors: of OutputFile::Create for an NpyMatrix.
  [[nodiscard]] static Result<NpyWriter> Create(const std::string& path, int64_t rows,
                                                int64_t columns);

  // rows: [M, columns] f32, contiguous. Errors: kUnavailable if the disk is full.
  [[nodiscard]] Status Append(const TensorView& rows);
  [[nodiscard]] Status Close();

 private:
  explicit NpyWriter(OutputFile file) : file_(std::move(file)) {}
  OutputFile file_;
};

}  // namespace latte
