#include "src/checkpoint/quant_tensors.h"

#include <algorithm>
#include <utility>

#include "src/base/math.h"

namespace latte {
namespace {

using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;
using DTypes = std::vector<std::string_view>;

const DTypes& PlainDTypes() {
  static const DTypes types = {"F32", "F16", "BF16"};
  return types;
}

// The data that all storage forms are built from.
struct Wanted {
  const std::string& name;
  const std::vector<int64_t>& shape;

  int64_t rows() const { return shape.end()[-2]; }
  int64_t columns() const { return shape.end()[-1]; }
  // [N', K'], after the number of matrices of a stack.
  std::vector<int64_t> Shape(int64_t n, int64_t k) const {
    std::vector<int64_t> out(shape.begin(), shape.end() - 2);
    out.insert(out.end(), {n, k});
    return out;
  }
};

StoredMatrix Plain(const Wanted& w) { return {.tensors = {{w.name, w.shape, PlainDTypes()}}}; }

StoredMatrix F8(const Wanted& w, const QuantConfig& quant) {
  return {.form = MatrixForm::kF8,
          .block_rows = quant.block_rows,
          .block_columns = quant.block_columns,
          .tensors = {{w.name, w.shape, {"F8_E4M3", "F8_E4M3FNUZ"}},
                      {w.name + "_scale_inv",
                       w.Shape(CeilDiv(w.rows(), quant.block_rows),
                               CeilDiv(w.columns(), quant.block_columns)),
                       {"F32", "BF16", "F16", "F8_E8M0"}}}};
}

// The number of columns that share a scale.
int64_t GroupOf(const IntScheme& scheme, int64_t columns) {
  return scheme.group > 0 ? std::min(scheme.group, columns) : columns;
}

StoredMatrix Int8(const Wanted& w, const IntScheme& scheme) {
  const bool one = scheme.group == IntScheme::kWholeMatrix;
  const int64_t group = GroupOf(scheme, w.columns());
  const std::vector<int64_t> scales =
      one ? std::vector<int64_t>{1} : w.Shape(w.rows(), CeilDiv(w.columns(), group));
  return {.form = MatrixForm::kI8,
          .block_rows = one ? w.rows() : 1,
          .block_columns = group,
          .tensors = {{w.name, w.shape, {"I8"}},
                      {w.name + "_scale", scales, PlainDTypes()},
                      {w.name + "_zero_point", scales, {"I8"}, false}}};
}

StoredMatrix Packed(const Wanted& w, const IntScheme& scheme) {
  const int64_t group = GroupOf(scheme, w.columns());
  const int64_t groups = CeilDiv(w.columns(), group);
  return {
      .form = scheme.bits == 4 ? MatrixForm::kPacked4 : MatrixForm::kPacked8,
      .block_columns = group,
      .tensors = {
          {w.name + "_packed", w.Shape(w.rows(), CeilDiv(w.columns() * scheme.bits, 32)), {"I32"}},
          {w.name + "_scale", w.Shape(w.rows(), groups), PlainDTypes()},
          {w.name + "_zero_point",
           w.Shape(CeilDiv(w.rows() * scheme.bits, 32), groups),
           {"I32"},
           false},
          {w.name + "_g_idx", {w.columns()}, {"I32"}, false},
          {w.name + "_shape", {2}, {"I64", "I32"}, false}}};
}

std::string Module(const std::string& name) { return name.substr(0, name.rfind('.')); }

StoredMatrix Awq(const Wanted& w, const IntScheme& scheme) {
  const int64_t group = GroupOf(scheme, w.columns());
  const int64_t groups = CeilDiv(w.columns(), group);
  const int64_t words = CeilDiv(w.rows(), 8);
  const std::string module = Module(w.name);
  return {.form = MatrixForm::kAwq,
          .block_columns = group,
          .tensors = {{module + ".qweight", w.Shape(w.columns(), words), {"I32"}},
                      {module + ".scales", w.Shape(groups, w.rows()), PlainDTypes()},
                      {module + ".qzeros", w.Shape(groups, words), {"I32"}}}};
}

StoredMatrix Gptq(const Wanted& w, const IntScheme& scheme) {
  const int64_t group = GroupOf(scheme, w.columns());
  const int64_t groups = CeilDiv(w.columns(), group);
  const std::string module = Module(w.name);
  return {.form = MatrixForm::kGptq,
          .block_columns = group,
          .tensors = {{module + ".qweight", w.Shape(CeilDiv(w.columns(), 8), w.rows()), {"I32"}},
                      {module + ".scales", w.Shape(groups, w.rows()), PlainDTypes()},
                      {module + ".qzeros", w.Shape(groups, CeilDiv(w.rows(), 8)), {"I32"}},
                      {module + ".g_idx", {w.columns()}, {"I32"}, false}}};
}

// Whether values and scales of `matrix` exist with these shapes.
bool Fits(const StoredMatrix& matrix, const StoredTensors& tensors) {
  return std::all_of(matrix.tensors.begin(), matrix.tensors.begin() + 2,
                     [&](const MatrixTensor& tensor) {
                       const auto found = tensors.find(tensor.name);
                       return found != tensors.end() && found->second.shape == tensor.shape;
                     });
}

// The scheme that the shapes fit, if the config has several; the first of its kind if none fits.
StoredMatrix Compressed(const Wanted& w, bool packed, const QuantConfig& quant,
                        const StoredTensors& tensors) {
  std::vector<StoredMatrix> found;
  for (const IntScheme& scheme : quant.schemes)
    if (scheme.packed == packed) found.push_back(packed ? Packed(w, scheme) : Int8(w, scheme));
  if (found.empty()) return Plain(w);
  const auto fitting = std::find_if(found.begin(), found.end(),
                                    [&](const StoredMatrix& m) { return Fits(m, tensors); });
  return fitting != found.end() ? *fitting : found.front();
}

}  // namespace

StoredMatrix FindMatrix(const QuantConfig& quant, const std::string& name,
                        const std::vector<int64_t>& shape, const StoredTensors& tensors) {
  const Wanted w{name, shape};
  const auto has = [&](const std::string& tensor) { return tensors.contains(tensor); };
  const auto plain = tensors.find(name);
  const std::string dtype = plain == tensors.end() ? "" : plain->second.dtype_name;
  switch (quant.method) {
    case QuantMethod::kNone:
      break;
    case QuantMethod::kF8:
      if (dtype == "F8_E4M3" || dtype == "F8_E4M3FNUZ") return F8(w, quant);
      break;
    case QuantMethod::kCompressedTensors:
      if (has(name + "_packed")) return Compressed(w, true, quant, tensors);
      if (dtype == "I8") return Compressed(w, false, quant, tensors);
      break;
    case QuantMethod::kAwq:
      if (has(Module(name) + ".qweight")) return Awq(w, quant.schemes.front());
      break;
    case QuantMethod::kGptq:
      if (has(Module(name) + ".qweight")) return Gptq(w, quant.schemes.front());
      break;
  }
  return Plain(w);
}

}  // namespace latte
