// The sums of tensor cores against recordings of an A100, L40S, H100 and H200 (tests/cuda/data).
#include "tests/cuda/emulator/tensor_core.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cuda/rules/rules.h"

namespace latte::cuda::tensor_core_test {
namespace {

using namespace emulator;

// One recorded sum: d = c + Σ a·b.
struct Recording {
  std::string card, type;
  std::vector<float> a, b;
  float c, d;
};

uint32_t Hex(const std::string& digits) {
  return static_cast<uint32_t>(std::stoul(digits, nullptr, 16));
}

// Operands of f16 are given as the bits of f32, others as the upper 16 of them.
std::vector<float> Operands(const std::string& digits, const std::string& type) {
  const size_t width = type == "fp16" ? 8 : 4;
  std::vector<float> out;
  for (size_t i = 0; i < digits.size(); i += width) {
    const uint32_t bits = Hex(digits.substr(i, width));
    out.push_back(std::bit_cast<float>(width == 8 ? bits : bits << 16));
  }
  return out;
}

const std::vector<Recording>& Recordings() {
  static const std::vector<Recording> all = [] {
    std::vector<Recording> out;
    std::ifstream file(LATTE_SOURCE_DIR "/tests/cuda/data/tensor_core_sums.txt");
    std::string card, type, a, b, c, d;
    while (file >> card >> type >> a >> b >> c >> d)
      out.push_back({card, type, Operands(a, type), Operands(b, type), std::bit_cast<float>(Hex(c)),
                     std::bit_cast<float>(Hex(d))});
    return out;
  }();
  return all;
}

TensorCore CoreOf(const Recording& r) {
  const bool hopper = r.card == "H100" || r.card == "H200";
  if (r.type == "E4M3") return hopper ? kSm90Fp8 : kSm89Fp8;
  return TensorCoreOf(hopper ? 90 : 80);
}

int LeastOf(const std::string& type) {
  return type == "bf16" ? kLeastBf16 : type == "fp16" ? kLeastF16 : kLeastE4m3;
}

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

float SumInDouble(const Recording& r) {
  double sum = double{r.c};
  for (size_t i = 0; i < r.a.size(); ++i) sum += double{r.a[i]} * double{r.b[i]};
  return static_cast<float>(sum);
}

TEST(TensorCore, SumsAreRecordedSums) {
  int hard = 0;
  for (const Recording& r : Recordings()) {
    float d = r.c;
    AddProducts(CoreOf(r), r.a.data(), r.b.data(), &d, 1, 1, static_cast<int>(r.a.size()),
                LeastOf(r.type));
    ASSERT_EQ(Bits(d), Bits(r.d)) << r.card << " " << r.type;
    hard += Bits(SumInDouble(r)) != Bits(r.d);
  }
  EXPECT_EQ(Recordings().size(), 1000u);
  EXPECT_GE(hard, 300);  // which sums in double miss
}

// A core with another width or another guard bit is not that card.
TEST(TensorCore, OtherParametersMissRecordings) {
  int wrong = 0;
  for (const Recording& r : Recordings()) {
    if (r.type != "bf16" || r.card == "A100" || r.card == "L40S") continue;
    float d = r.c;
    AddProducts(kSm80Half, r.a.data(), r.b.data(), &d, 1, 1, 16);
    wrong += Bits(d) != Bits(r.d);
  }
  EXPECT_GT(wrong, 20);
}

TEST(TensorCore, ANanSpoilsOnlyItsRowAndColumn) {
  float a[2 * 16], b[16 * 2], d[4] = {1, 1, 1, 1};
  std::fill_n(a, 32, 1.0f);
  std::fill_n(b, 32, 1.0f);
  a[16] = std::numeric_limits<float>::quiet_NaN();
  b[1] = std::numeric_limits<float>::infinity();
  AddProducts(kSm90Half, a, b, d, 2, 2, 16);
  EXPECT_EQ(d[0], 17);
  EXPECT_EQ(d[1], std::numeric_limits<float>::infinity());
  EXPECT_NE(d[2], d[2]);
  EXPECT_NE(d[3], d[3]);
}

// Eight recordings on the diagonal of one 16×8×16 product; those with 8 products get 8 zeros more.
void RunOnWord(const std::vector<const Recording*>& rows, int capability) {
  const auto at = [&](int row, int k, bool left) {
    if (row >= static_cast<int>(rows.size())) return 0.0f;
    const std::vector<float>& v =
        left ? rows[static_cast<size_t>(row)]->a : rows[static_cast<size_t>(row)]->b;
    return k < static_cast<int>(v.size()) ? v[static_cast<size_t>(k)] : 0.0f;
  };
  Options options;
  options.capability = capability;
  ExpectSilent(RunBlock(
      32,
      [&] {
        const int g = cuda::Thread() / 4, t = cuda::Thread() % 4;
        const auto pair = [&](int row, int k, bool left) {
          return cuda::PackBf16(at(row, k, left), at(row, k + 1, left));
        };
        const uint32_t a[4] = {pair(g, 2 * t, true), 0, pair(g, 2 * t + 8, true), 0};
        float d[4] = {};
        if (g / 2 == t) d[g % 2] = rows[static_cast<size_t>(g)]->c;
        cuda::Mma16x8x16(d, a, pair(g, 2 * t, false), pair(g, 2 * t + 8, false));
        if (g / 2 != t) return;
        EXPECT_EQ(Bits(d[g % 2]), Bits(rows[static_cast<size_t>(g)]->d));
      },
      options));
}

TEST(TensorCore, TheWordOfAWarpGivesRecordedSums) {
  for (const char* card : {"A100", "L40S", "H100", "H200"}) {
    std::vector<const Recording*> rows;
    for (const Recording& r : Recordings())
      if (r.card == card && r.type == "bf16" && rows.size() < 8) rows.push_back(&r);
    ASSERT_EQ(rows.size(), 8u);
    const std::string name = card;
    RunOnWord(rows, name == "A100" ? 80 : name == "L40S" ? 89 : 90);
  }
}

}  // namespace
}  // namespace latte::cuda::tensor_core_test
