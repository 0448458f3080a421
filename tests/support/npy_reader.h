// Reads float32 matrices written by NumPy (.npy version 1.0, C order). For goldens only: the input
// is trusted.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "src/base/check.h"
#include "src/base/file.h"

namespace latte::testing_support {

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values;
};

inline Matrix ReadNpy(const std::string& path) {
  const auto bytes = ReadFile(path, 1 << 30);
  LATTE_CHECK(bytes && bytes->compare(0, 6, "\x93NUMPY") == 0, "{}", path);
  const size_t header =
      static_cast<unsigned char>((*bytes)[8]) + 256u * static_cast<unsigned char>((*bytes)[9]);
  const std::string dict = bytes->substr(10, header);
  Matrix m;
  long rows = 0;
  long columns = 0;
  const size_t shape = dict.find("'shape': (");
  LATTE_CHECK(dict.find("'<f4'") != std::string::npos &&
                  std::sscanf(dict.c_str() + shape, "'shape': (%ld, %ld)", &rows, &columns) == 2,
              "{}", dict);
  m.rows = rows;
  m.columns = columns;
  m.values.resize(static_cast<size_t>(rows * columns));
  LATTE_CHECK(bytes->size() == 10 + header + m.values.size() * sizeof(float), "{}", path);
  std::copy_n(bytes->data() + 10 + header, m.values.size() * sizeof(float),
              reinterpret_cast<char*>(m.values.data()));
  return m;
}

}  // namespace latte::testing_support
