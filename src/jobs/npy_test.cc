#include "src/jobs/npy.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "tests/support/scratch_dir.h"

namespace latte::npy_test {
namespace {

std::string NpyHead(const std::string& dict) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 0xff);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

class NpyTest : public testing::Test {
 protected:
  Status Save(float value) {
    LATTE_ASSIGN_OR_RETURN(NpyWriter writer, NpyWriter::Create(path_, 1, 2));
    std::vector<float> row = {value, value};
    const TensorView view(row.data(), DType::kF32, {1, 2});
    LATTE_RETURN_IF_ERROR(writer.Append(view));
    return writer.Close();
  }
  std::string Text() const { return ReadFile(path_, 1 << 20).value(); }

  testing_support::ScratchDir dir_;
  std::string path_ = dir_.File("logits.npy");
};

TEST_F(NpyTest, AnEarlierMatrixIsReplacedOnceTheNewOneIsWhole) {
  ASSERT_TRUE(Save(1));
  const std::string before = Text();
  EXPECT_EQ(before.size(), 128U + 8U);
  { const NpyWriter torn = NpyWriter::Create(path_, 5, 5).value(); }
  EXPECT_EQ(Text(), before);
  ASSERT_TRUE(Save(2));
  EXPECT_NE(Text(), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 1);
}

TEST_F(NpyTest, OtherFilesStayArraysToo) {
  const std::string f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  for (const std::string& text :
       {std::string("1,2,3\n"),
        NpyHead("{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2)}"),
        NpyHead(f4 + "(3,), }"), NpyHead(f4 + "(3, 2, 1), }"), NpyHead(f4 + "(), }"),
        std::string("\x93NUMPY\x02\x00 much more", 18)}) {
    std::ofstream(path_, std::ios::binary) << text;
    const Status refused = Save(1);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_EQ(Text(), text);
  }
}

}  // namespace
}  // namespace latte::npy_test
