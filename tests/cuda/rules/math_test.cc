// The functions of src/kernels/cuda/common against libm in higher precision. Both readings of the
// words compute the same bits, so a bound that holds here holds on a GPU.
#include "src/kernels/cuda/common/math.cuh"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "src/kernels/cuda/common/log.cuh"
#include "src/kernels/cuda/common/sin_cos.cuh"

namespace latte::cuda::math_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The distance of a result from the exact one, in units of the last place of f32.
double Ulps(float result, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(double{result} - exact) / std::ldexp(1.0, exponent - 24);
}

// The worst of every 1,009th float from `first` to `last`, both as bits.
template <class F, class G>
double Worst(uint32_t first, uint32_t last, const F& f, const G& exact) {
  double worst = 0;
  for (uint64_t u = first; u <= last; u += 1009) {
    const float x = BitsFloat(static_cast<uint32_t>(u));
    worst = std::max(worst, Ulps(f(x), exact(double{x})));
  }
  return worst;
}

TEST(Math, ExpIsCloseWhereItsResultIsNormal) {
  const auto f = [](float x) { return Exp(x); };
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LT(Worst(0, FloatBits(88.72283f), f, exact), 1.02);
  EXPECT_LT(Worst(FloatBits(-0.0f), FloatBits(-87.3365f), f, exact), 1.02);
}

TEST(Math, ExpOfSpecialNumbers) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(-88.0f), 0.0f);  // subnormal results are 0
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(89.0f), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(std::nanf(""))));
}

TEST(Math, LogIsCloseForAllNormalNumbers) {
  const auto f = [](float x) { return Log(x); };
  const auto exact = [](double x) { return std::log(x); };
  EXPECT_LT(Worst(0x00800000, 0x7f7fffff, f, exact), 0.82);
  EXPECT_EQ(Log(1.0f), 0.0f);
}

TEST(Math, SinCosIsCloseForAnglesOfRope) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> angles(-0x1p20, 0x1p20), small(-4, 4);
  for (int i = 0; i < 100'000; ++i) {
    const double angle = i % 2 == 0 ? angles(random) : small(random);
    double sine = 0, cosine = 0;
    SinCos(angle, &sine, &cosine);
    ASSERT_LT(std::fabs(static_cast<double>(sine - std::sin(static_cast<long double>(angle)))),
              0x1p-52)
        << angle;
    ASSERT_LT(std::fabs(static_cast<double>(cosine - std::cos(static_cast<long double>(angle)))),
              0x1p-52)
        << angle;
  }
}

TEST(Math, LogOfDoublesIsCloseFromOneOn) {
  std::mt19937_64 random(4);
  for (int i = 1; i < 200'000; ++i) {
    // Whole numbers of periods, and numbers between 1 and 4, around √2 and 2.
    const double x =
        i % 2 == 0 ? i
                   : std::bit_cast<double>(0x3ff0000000000000u + random() % (uint64_t{1} << 53));
    const long double exact = std::log(static_cast<long double>(x));
    int exponent = 0;
    std::frexp(static_cast<double>(exact), &exponent);
    ASSERT_LE(std::fabs(static_cast<double>(LogOf(x) - exact)), std::ldexp(1.0, exponent - 53))
        << x;
  }
  EXPECT_EQ(LogOf(1.0), 0.0);
}

}  // namespace
}  // namespace latte::cuda::math_test
