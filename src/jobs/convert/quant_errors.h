// The errors of a quantised copy compared with its source, by kind of matrix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_out_fwd.h"

namespace latte {

// Relative error: ‖W − Ŵ‖ / ‖W‖ over all elements.
struct QuantError {
  std::string kind;  // "attention", "experts", …
  int64_t matrices = 0;
  double relative = 0;  // of all matrices of the kind together
  double largest = 0;   // of one matrix
  std::string worst;    // that matrix
};

// Adds up errors, matrix by matrix.
class QuantErrors {
 public:
  // `layers`: of the decoder; those from there on draft.
  explicit QuantErrors(int64_t layers = 0) : layers_(layers) {}

  // Adds the matrix `name` ("….weight") with the sums of (W − Ŵ)² and W² over its elements.
  void Add(std::string_view name, double squared_error, double squared);

  const std::vector<QuantError>& kinds() const { return kinds_; }  // in the order of a token
  // Over all matrices: the mean and the largest of their errors, and the matrix of the largest.
  double mean() const;
  QuantError worst() const;

 private:
  struct Sums {
    double squared_error = 0;
    double squared = 0;
  };
  int64_t layers_;
  std::vector<QuantError> kinds_;
  std::vector<Sums> sums_;  // of each kind
  double total_ = 0;        // of the relative errors of all matrices
  int64_t matrices_ = 0;
};

JsonOut QuantErrorsJson(const QuantErrors& errors);

// A table, one kind per line.
std::string QuantErrorsText(const QuantErrors& errors);

}  // namespace latte
