#include "src/tensor/weight_blocks.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/strings.h"

namespace latte::weight_blocks_test {
namespace {

struct BlockType {
  std::string_view name;
  int values;
  int bytes;
  void (*decode)(const uint8_t*, float*);
  float (*value_at)(const uint8_t*, int);
  bool (*is_finite)(const uint8_t*);
};

template <class Block>
BlockType BlockOf(std::string_view name) {
  return {name,
          Block::kValues,
          Block::kBytes,
          blocks::Decode<Block>,
          blocks::ValueAt<Block>,
          blocks::IsFinite<Block>};
}

struct Golden {
  BlockType type;
  std::string_view block;        // hexadecimal
  std::array<uint32_t, 3> some;  // bits of values 0, 17 and the last
  uint64_t hash;                 // FNV-1a of the bytes of all values
};

// From tools/gguf/check_blocks.py --golden, with version 0.19.0 of the Python package gguf.
const Golden kGolden[] = {
    {BlockOf<blocks::Q4_0>("Q4_0"),
     "ffe42279f3bd068366a852c1bb9651f3cd18",
     {0x45efd000, 0x449fe000, 0x460be400},
     0xb925fc803771359a},
    {BlockOf<blocks::Q4_0>("Q4_0"),
     "ec08f6a4e724d26facd2aeb0daf2a972cd3f",
     {0xb99d8000, 0x399d8000, 0xba44e000},
     0x790cdaa10df5c191},
    {BlockOf<blocks::Q4_1>("Q4_1"),
     "a02fd44f487078de451f5f6c246dee453351e4d3",
     {0x42011000, 0x42009600, 0x42037200},
     0x6ecda470f0b55a07},
    {BlockOf<blocks::Q4_1>("Q4_1"),
     "ca3aca414c46c1682afad1a4022cb28c6202f315",
     {0x41514000, 0x40c94000, 0x406f9000},
     0xd1ab0eb1f71dd402},
    {BlockOf<blocks::Q5_0>("Q5_0"),
     "321d0e07353297dd2e3ce6c0a49c7fd69ac2c3894899",
     {0xbd3b0800, 0xbc796000, 0xbd117800},
     0xaf9f382804188259},
    {BlockOf<blocks::Q5_0>("Q5_0"),
     "4ad13a4c69540ad5e273a876d6c94519b91f242d9e4d",
     {0x437de000, 0x42fde000, 0x43fde000},
     0x76c00a8902669f62},
    {BlockOf<blocks::Q5_1>("Q5_1"),
     "2e0cda1f0c7018740b8216fa818e50225db52062a5693267",
     {0x3c2b9a00, 0x3c1f1000, 0x3c16b400},
     0xe8a17ef050ff355e},
    {BlockOf<blocks::Q5_1>("Q5_1"),
     "552564e784a41534ecfd938092f72643f316130531e617c0",
     {0xc4ec7800, 0xc4ec7601, 0xc4ec7800},
     0xe0a8061aed91daaf},
    {BlockOf<blocks::Q8_0>("Q8_0"),
     "4597e00f4ddec84776fc8c7fc779357c4da6ef1dd79711fb0035c5bf742a2ff6de23",
     {0x3d68a000, 0xbd52d100, 0xbd7e6f00},
     0xe8cd65214604e4a2},
    {BlockOf<blocks::Q8_0>("Q8_0"),
     "941764d58bb90aa10b4bdcd78d8ab947c8ec8957e24619f2d2b9737d202902509452",
     {0x3e3d7400, 0x3e24d300, 0x3e1b5a00},
     0x458e319fe36babbf},
    {BlockOf<blocks::Q2_K>("Q2_K"),
     "29084df82e59ce6b21121d84d8fcff4a685ea91d448fb26c4d069d9fa11da2745fb4d4c6d6d0e35c"
     "cac8ed9cb38cd5c5ba05d4eac762646d3ec2220ad56df1b73ea05187e3a541df5209977503723a5e"
     "5b24f60f",
     {0xba7ec000, 0x00000000, 0x3e2c3a80},
     0x2e3639dc5b1a1318},
    {BlockOf<blocks::Q2_K>("Q2_K"),
     "213c097538152ea47a6723c54c2546da2a03003789fbca9727fdefcd0fbf95425f213a58b17902d7"
     "5c05e29474526e82406a76ac2a9dc98276f81efb7296c6c0f27fdb0df237de253ce4898b810ed3d1"
     "b302ab11",
     {0xbaaa9400, 0xbacf4800, 0xbbfe3f00},
     0x94fab18afe687217},
    {BlockOf<blocks::Q3_K>("Q3_K"),
     "03e4ebae3e366ec2662f7fc9809993df5dc30d319ee0268ed7bc67cd2db9a55bd59afa3064c8bf7a"
     "e0a1e01459e15138ad27f0da379ae9aa40137ddc8e0d0bd732bc64e08bb37f4f4b13cf788e290f9e"
     "020928462e3260eb23c5d001906096d6f0f64da55c19dc403afb4bb88cc3",
     {0x80000000, 0xc3790c00, 0x41718000},
     0xa4b21779c4006899},
    {BlockOf<blocks::Q3_K>("Q3_K"),
     "bb693adde7d51cd28cff3125294811175478ad891837c3604ab1a838aba39bae34d8d31218cedbbf"
     "17fa6222b3f6556418e597cb88267010ce0a6545727bb071525847190ce5ca8503ccda2c376c3a20"
     "57936d9be9965c9e10e462054506da845e7dfedd67ac312dfb734b6449eb",
     {0x80000000, 0x489e73c0, 0x47cbfc00},
     0x336de3ea90889bd7},
    {BlockOf<blocks::Q4_K>("Q4_K"),
     "e18956f325d3aad35e29e476c974b1e286b1c212db0c0da91e36a2446d83dc3e5e76f2adb087bdc4"
     "dd2573e3e0503036aaa325df746dced4a0ba835022480e10447e99c5592b53d3c05beb75f1251d2a"
     "27d74c2531a20960216ad5c1a2c0155126301008c576fbb0c27685bef8e2b62d7c34788f390b7165"
     "c1f74f807db87d01eb2975a27eda3243f500ec8db607d36b",
     {0x48dc13ff, 0x48dc13ff, 0x48dc13fe},
     0x23f92bf490465eb2},
    {BlockOf<blocks::Q4_K>("Q4_K"),
     "ee0f1e9c77a71d1bca55385d2dc516a21a0270c4257c6361a253450610ddacb972de35814dc363a7"
     "7353cc284fe0646e2a6828e276b708ded157fb50689bd3a16a6e8a15d3236ecf926ca444e9db7f57"
     "40742ff71ae92d8b8089e1df3d83403284f30dc2e91b03ffacd2be13615e433ec0f19125fb10c241"
     "4b67a24fa795bc12daeed4e59c62ff41a87fd2eb39645cc3",
     {0x3e9ce0a0, 0x3ed364e0, 0x3dede200},
     0xdbac72e84b00839d},
    {BlockOf<blocks::Q5_K>("Q5_K"),
     "75e0282c2e27a9b2489604c646baf0206af034219b2a5160b73997112881c16b7608d67a56683caa"
     "89c17492b1c2b7742f646538a8102696ca7e8374f791f5d6afa9dcb2ad2cfab9efef5b92b31d715d"
     "3ad41a48bc19ca72f0da64921a8f215e46a174252992171cbdbb3d0b49a30734cf5c5a68c48aa748"
     "8fad4d2d38146b5034b7e6b68be723500c9b3debb497a293145e4c239bacc0f8c3f5ade1846350c6"
     "22b4552822c187cadfff50b3a26b5fc2",
     {0xc8c035b1, 0xc866a6e1, 0xc855f0d0},
     0xb48f81fd67cfd9d6},
    {BlockOf<blocks::Q5_K>("Q5_K"),
     "3fbd79b61a30d4982c036c5738e1edeaaa3109fb139a8bb0d8bcaf5bea5b1780a8d3998fb4c3bb13"
     "4fc7bb1630020b7dc558d68f94177c36243984437262f82142359bea83788d81a89a47468859fbc8"
     "4a1381f5cf8a854b7eabf2e5de39cec4c5b640cb0ba88f8676a220e9e10228268b657e16462008f7"
     "004e787daea1d1668e2dedbae078944b66a31ca39de2d4d80230a3cde1a1dc1fe41618f89e95ccbb"
     "a42fc4b246481530f3a949ec4d577a64",
     {0xc318b2c0, 0xc42e92b0, 0xc39f2f10},
     0x2f39095792e00bcd},
    {BlockOf<blocks::Q6_K>("Q6_K"),
     "b260f6f059ca5d3b8b85f117bdb75ad7612a649503eddb63ef2bc6f9da7785f91967e402fb2211a0"
     "8f40cece1e4491b16845e4999fab8285625b9f88368a184f6dd49a24842f436561d439b21b10e1f0"
     "3f6284f68e0d8233cf54a507f6e9fbfcfbb8e6ab3d5520c213fd69d0fafe1a5c2e09bbdd0e3c3aa4"
     "7db5bfa493018861c75af5575585a9613207bdb6ea3af9805d3c520564f24704a0994d31acb45a7e"
     "3d22919972acbaf8c0cd7ac7cd3f14494dfd8f8350368bbf4bd289e2d99c5a71b8fc56b741719335"
     "c3d4b4759c3faee74e8a",
     {0x3e7f5700, 0xbc8ab400, 0xbd450580},
     0x47fa286e10a18e2a},
    {BlockOf<blocks::Q6_K>("Q6_K"),
     "ca61fdca4e04cf7bf9c9d1c2b24df6e458700429c0ff07641e636c0d1c4342aac83b56fb5ad9642b"
     "ed36030d0e9b9d41ba3c2b5b58cec206c6b721815ca19b05ea6c83b3d95cb80e1cf3c40dc3c2cedb"
     "5164ffb0c706cb50f22067556272321ed37570dc315ffd57f0fba385217abc242fcbd2bfab20c519"
     "ec5fc035f638d4e09e24ee9ce28f9056232436d64463906a9baf28fba9ca5835568f443bea9ac312"
     "634b34f97bdcdd16452ff5ff7bbb5ecbc816fa19119a54324b40152da149ea7b345872fd62c8db33"
     "38ca6e125340c80de689",
     {0xbdbfb300, 0xbe81c400, 0x3b995c00},
     0x8d1a20c349e862dd},
    {BlockOf<blocks::IQ4_NL>("IQ4_NL"),
     "11094113ee2cf7e3024b7ef6f9f1e55ca12c",
     {0xbc83ba00, 0xbc83ba00, 0xbc524180},
     0xc6533ca2a5fa117e},
    {BlockOf<blocks::IQ4_NL>("IQ4_NL"),
     "3e8a82a18e89caef1dc6cc9ad7115b257b87",
     {0x3c818680, 0xbb9c0e00, 0xb947c000},
     0xf37daabc762b12f0},
    {BlockOf<blocks::IQ4_XS>("IQ4_XS"),
     "17b9edd73c7d909c2657658e9b29ad08460593ece7b5d12f0397b259b871b8acc5411c7680851092"
     "8e3bcf960d10972803bd8503ae30b8f36fc955cf3bb88327148890abd83ba382b513d9bc565fdd24"
     "36868bb366aca5b7804f74ff1e73bc46aea9376eac9a5622a627de03ddd0c50b60a3e8729505c22c"
     "de9713be7fb819319fde3ea090007789",
     {0xc25ff400, 0xc2b22500, 0xc17e7e00},
     0x8b5d265683e2a0e4},
    {BlockOf<blocks::IQ4_XS>("IQ4_XS"),
     "af979454d14877734599bbff5f3e11f50c7ae346134343f43e12c9372672eacb3d095b58cc2aedab"
     "eed99ea6ee6e53d820429d61320a52f0710a25e18546ca057ab37e19e8243c1e25ee6aa502413a5c"
     "2c594d27d94ef5176e855bea946f7a9948f49908cc3aa742837726a8bbc4ab43124498c3f1dccf49"
     "c3a3d0a1b1e40319b88e7ccf2289aebd",
     {0xc00242cc, 0x3f4187d0, 0x3f243ca0},
     0x63d56fbd0f9eb894},
    {BlockOf<blocks::MXFP4>("MXFP4"),
     "f779138ae57792a6a6c949103e1d449bd7",
     {0xfb000000, 0x7b000000, 0xfc400000},
     0x2135937aaaa66cc0},
    {BlockOf<blocks::MXFP4>("MXFP4"),
     "92d1741636b7081fdd5107b85cf16d131e",
     {0x48800000, 0x4a400000, 0x48800000},
     0x2954e2cd914a6fcf},
};

std::vector<uint8_t> Bytes(std::string_view hex) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<uint8_t>(HexDigit(hex[i]) * 16 + HexDigit(hex[i + 1])));
  return out;
}

uint64_t Fnv1a(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values)
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (std::bit_cast<uint32_t>(value) >> shift & 255u)) * 0x100000001b3u;
  return hash;
}

TEST(WeightBlocks, ValuesAreThoseOfTheFormat) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.type.name);
    const std::vector<uint8_t> block = Bytes(golden.block);
    ASSERT_EQ(static_cast<int>(block.size()), golden.type.bytes);
    std::vector<float> values(static_cast<size_t>(golden.type.values));
    golden.type.decode(block.data(), values.data());
    EXPECT_EQ(std::bit_cast<uint32_t>(values[0]), golden.some[0]);
    EXPECT_EQ(std::bit_cast<uint32_t>(values[17]), golden.some[1]);
    EXPECT_EQ(std::bit_cast<uint32_t>(values.back()), golden.some[2]);
    EXPECT_EQ(Fnv1a(values), golden.hash);
    for (int i = 0; i < golden.type.values; ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(golden.type.value_at(block.data(), i)),
                std::bit_cast<uint32_t>(values[static_cast<size_t>(i)]))
          << i;
    EXPECT_TRUE(golden.type.is_finite(block.data()));
  }
}

// Every byte of every type in turn is set to all ones: an infinite or NaN scale is seen where it
// makes a value infinite or NaN, and nowhere else.
TEST(WeightBlocks, BlocksWithoutFiniteValuesAreToldApart) {
  int not_finite = 0;
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.type.name);
    for (size_t at = 0; at < golden.block.size() / 2; ++at) {
      std::vector<uint8_t> block = Bytes(golden.block);
      block[at] = 0xff;
      std::vector<float> values(static_cast<size_t>(golden.type.values));
      golden.type.decode(block.data(), values.data());
      bool finite = true;
      for (const float value : values) finite = finite && std::isfinite(value);
      EXPECT_EQ(golden.type.is_finite(block.data()), finite) << "byte " << at;
      not_finite += finite ? 0 : 1;
    }
  }
  EXPECT_GT(not_finite, 20);
}

TEST(WeightBlocks, TheExponentOfMxfp4IsThatOfTheSpecification) {
  std::array<uint8_t, 17> block = {};
  block[1] = 0x01;  // twice 0.5
  EXPECT_EQ(blocks::ValueAt<blocks::MXFP4>(block.data(), 0), 0x1p-128f);
  block[0] = 252;
  block[1] = 0x07;  // twice 6
  EXPECT_EQ(blocks::ValueAt<blocks::MXFP4>(block.data(), 0), 12 * 0x1p124f);
  EXPECT_TRUE(blocks::IsFinite<blocks::MXFP4>(block.data()));
  block[0] = 253;  // 12 · 2^125 is above the largest float
  EXPECT_FALSE(blocks::IsFinite<blocks::MXFP4>(block.data()));
  block[0] = 255;
  EXPECT_TRUE(std::isnan(blocks::ValueAt<blocks::MXFP4>(block.data(), 0)));
  EXPECT_FALSE(blocks::IsFinite<blocks::MXFP4>(block.data()));
}

TEST(WeightBlocks, DecodersAreConstantExpressions) {
  constexpr std::array<uint8_t, 18> block = {0x00, 0x3c, 0xf8};  // d = 1, codes 8 and 15
  static_assert(blocks::ValueAt<blocks::Q4_0>(block.data(), 0) == 0.0f);
  static_assert(blocks::ValueAt<blocks::Q4_0>(block.data(), 16) == 7.0f);
  static_assert(blocks::IsFinite<blocks::Q4_0>(block.data()));
}

}  // namespace
}  // namespace latte::weight_blocks_test
