// Blocks of quantised weights, as GGUF files store them: a few scales and the codes of 32 or 256
// consecutive values of a row. Each type says where its fields are; one formula holds for all:
//
//   value i = scale(g) · code(i) + offset(g),   group g = i / kGroup
//
// The product is exact in f32: scale and code have at most 23 significant bits together. So the
// result has at most one rounding, with and without a fused multiply-add. A group without an offset
// has −0, which leaves every value as it is, also −0.
//
// Blocks may be unaligned. Everything is constexpr and free of SIMD, and the only other header of
// ours is float_bits.h, so that the compiler of a GPU can read this file too. `Bytes` is a pointer
// to the bytes of a block, or a reader of GPU memory (kernels/cuda/common/weights.cuh): it has
// p[i] and p + i. F32, F16 and BF16 are not here: they are plain numbers (dtype.h).
//
// Source: the definition of the format in ggml; the packing of each type is in its comment.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "src/tensor/float_bits.h"

namespace latte::blocks {

struct GroupScale {
  float scale;
  float offset = -0.0f;
};

template <class Bytes>
constexpr uint16_t U16At(Bytes p) {
  return static_cast<uint16_t>(p[0] | static_cast<unsigned>(p[1]) << 8);
}
template <class Bytes>
constexpr float F16At(Bytes p) {
  return F16ToFloat(U16At(p));
}
template <class Bytes>
constexpr int8_t I8At(Bytes p) {
  return static_cast<int8_t>(p[0]);
}

// The codes of 16 consecutive values, from a multiple of 16 on, lie in consecutive bytes, at the
// same bits, except for fifth bits. So code i + j is read with the position of code i: if j is not
// 0, i is a multiple of 16 and j is below 16. Compilers make vectors of a loop over j.

// Code i + j of consecutive runs of 2·half codes: a run is `half` bytes, whose low four bits come
// first.
template <class Bytes>
constexpr int NibbleAt(Bytes codes, int i, int half, int j = 0) {
  return codes[i / (2 * half) * half + i % half + j] >> (i / half % 2 * 4) & 15;
}

// Code i + j of 256 codes of 2 bits: 128 codes are 32 bytes, whose lowest two bits come first.
template <class Bytes>
constexpr int CrumbAt(Bytes codes, int i, int j = 0) {
  return codes[i / 128 * 32 + i % 32 + j] >> (i / 32 % 4 * 2) & 3;
}

// Bit i + j of 256 bits: 32 bytes, whose lowest bits come first.
template <class Bytes>
constexpr int BitAt(Bytes bits, int i, int j = 0) {
  return bits[i % 32 + j] >> (i / 32) & 1;
}

// d, 16 bytes of codes: d(q − 8).
struct Q4_0 {
  static constexpr int kValues = 32, kBytes = 18, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int) {
    return {F16At(b)};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return NibbleAt(b + 2, i, 16, j) - 8;
  }
};

// d, m, 16 bytes of codes: d·q + m.
struct Q4_1 {
  static constexpr int kValues = 32, kBytes = 20, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int) {
    return {F16At(b), F16At(b + 2)};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return NibbleAt(b + 4, i, 16, j);
  }
};

// Bit i of the fifth bits of 32 codes: 4 bytes, lowest first.
template <class Bytes>
constexpr int FifthBit(Bytes bits, int i) {
  return bits[i / 8] >> (i % 8) & 1;
}

// d, 4 bytes of fifth bits, 16 bytes of codes: d(q − 16).
struct Q5_0 {
  static constexpr int kValues = 32, kBytes = 22, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int) {
    return {F16At(b)};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return (NibbleAt(b + 6, i, 16, j) | FifthBit(b + 2, i + j) << 4) - 16;
  }
};

// d, m, 4 bytes of fifth bits, 16 bytes of codes: d·q + m.
struct Q5_1 {
  static constexpr int kValues = 32, kBytes = 24, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int) {
    return {F16At(b), F16At(b + 2)};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return NibbleAt(b + 8, i, 16, j) | FifthBit(b + 4, i + j) << 4;
  }
};

// d, 32 signed bytes: d·q.
struct Q8_0 {
  static constexpr int kValues = 32, kBytes = 34, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int) {
    return {F16At(b)};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return I8At(b + 2 + i + j);
  }
};

// 16 bytes of scales s (low 4 bits) and minima m, 64 bytes of codes, d, dmin: d·s·q − dmin·m.
struct Q2_K {
  static constexpr int kValues = 256, kBytes = 84, kGroup = 16;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int g) {
    return {F16At(b + 80) * static_cast<float>(b[g] & 15),
            -(F16At(b + 82) * static_cast<float>(b[g] >> 4))};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return CrumbAt(b + 16, i, j);
  }
};

// 32 bytes of third bits, 64 bytes of codes, 16 scales s of 6 bits, d: d(s − 32)(q − 4). A scale
// has its low four bits in the first 8 bytes and its high two in the last 4.
struct Q3_K {
  static constexpr int kValues = 256, kBytes = 110, kGroup = 16;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int g) {
    const Bytes s = b + 96;
    const int scale = NibbleAt(s, g, 8) | (s[8 + g % 4] >> (g / 4 * 2) & 3) << 4;
    return {F16At(b + 108) * static_cast<float>(scale - 32)};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return (CrumbAt(b + 32, i, j) | BitAt(b, i, j) << 2) - 4;
  }
};

// Scale and minimum of group g of 8, of 6 bits each in 12 bytes. Groups 0 to 3 are the low bits of
// bytes 0 to 3 (scales) and 4 to 7 (minima), whose high two bits belong to groups 4 to 7; the low
// four bits of those are in bytes 8 to 11.
template <class Bytes>
constexpr int PackedScale(Bytes p, int g) {
  return g < 4 ? p[g] & 63 : (p[g + 4] & 15) | p[g - 4] >> 6 << 4;
}
template <class Bytes>
constexpr int PackedMin(Bytes p, int g) {
  return g < 4 ? p[g + 4] & 63 : p[g + 4] >> 4 | p[g] >> 6 << 4;
}
template <class Bytes>
constexpr GroupScale PackedGroup(Bytes b, int g) {
  return {F16At(b) * static_cast<float>(PackedScale(b + 4, g)),
          -(F16At(b + 2) * static_cast<float>(PackedMin(b + 4, g)))};
}

// d, dmin, 12 bytes of scales s and minima m, 128 bytes of codes: d·s·q − dmin·m.
struct Q4_K {
  static constexpr int kValues = 256, kBytes = 144, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int g) {
    return PackedGroup(b, g);
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return NibbleAt(b + 16, i, 32, j);
  }
};

// d, dmin, 12 bytes of scales s and minima m, 32 bytes of fifth bits, 128 bytes of codes:
// d·s·q − dmin·m.
struct Q5_K {
  static constexpr int kValues = 256, kBytes = 176, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int g) {
    return PackedGroup(b, g);
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return NibbleAt(b + 48, i, 32, j) | BitAt(b + 16, i, j) << 4;
  }
};

// 128 bytes of low four bits, 64 bytes of high two bits, 16 signed bytes of scales s, d:
// d·s(q − 32).
struct Q6_K {
  static constexpr int kValues = 256, kBytes = 210, kGroup = 16;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int g) {
    return {F16At(b + 208) * static_cast<float>(I8At(b + 192 + g))};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return (NibbleAt(b, i, 64, j) | CrumbAt(b + 128, i, j) << 4) - 32;
  }
};

// Number q of a table of 16. A processor reads an array; a GPU, which would keep the array in
// memory of each lane, shifts the right half of it.
template <class Bytes, int8_t... kNumbers>
constexpr int TableAt(int q) {
  constexpr int8_t numbers[] = {kNumbers...};
  static_assert(sizeof(numbers) == 16);
  if constexpr (std::is_pointer_v<Bytes>) {
    return numbers[q];
  } else {
    constexpr auto half = [](int begin) {
      constexpr int8_t all[] = {kNumbers...};
      uint64_t bits = 0;
      for (int i = 8; i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(all[begin + i]);
      return bits;
    };
    constexpr uint64_t low = half(0), high = half(8);
    return static_cast<int8_t>((q < 8 ? low : high) >> q % 8 * 8);
  }
}
// The values of the codes of IQ4_NL and IQ4_XS.
template <class Bytes>
constexpr int Iq4Value(int q) {
  return TableAt<Bytes, -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113>(
      q);
}
// Twice the numbers of the codes of E2M1.
template <class Bytes>
constexpr int TwiceE2M1(int q) {
  return TableAt<Bytes, 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12>(q);
}

// d, 16 bytes of codes: d·table[q].
struct IQ4_NL {
  static constexpr int kValues = 32, kBytes = 18, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int) {
    return {F16At(b)};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return Iq4Value<Bytes>(NibbleAt(b + 2, i, 16, j));
  }
};

// d, 8 scales s of 6 bits (2 bytes of high two bits, 4 bytes of low four), 128 bytes of codes:
// d(s − 32)·table[q].
struct IQ4_XS {
  static constexpr int kValues = 256, kBytes = 136, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int g) {
    const int scale = (b[4 + g / 2] >> (g % 2 * 4) & 15) | (U16At(b + 2) >> (2 * g) & 3) << 4;
    return {F16At(b) * static_cast<float>(scale - 32)};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return Iq4Value<Bytes>(NibbleAt(b + 8, i, 16, j));
  }
};

// An exponent e, 16 bytes of codes: 2^(e − 128) times twice the E2M1 number of the code (Open
// Compute Project microscaling formats 1.0; e = 255 is NaN there).
struct MXFP4 {
  static constexpr int kValues = 32, kBytes = 17, kGroup = 32;
  template <class Bytes>
  static constexpr GroupScale Scale(Bytes b, int) {
    return {F8E8M0ToFloat(b[0]) * 0.5f};
  }
  template <class Bytes>
  static constexpr int Code(Bytes b, int i, int j = 0) {
    return TwiceE2M1<Bytes>(NibbleAt(b + 1, i, 16, j));
  }
};

// Value i of a block.
template <class Block, class Bytes>
constexpr float ValueAt(Bytes block, int i) {
  const GroupScale group = Block::Scale(block, i / Block::kGroup);
  return group.scale * static_cast<float>(Block::Code(block, i)) + group.offset;
}

// All values of a block: out[kValues].
template <class Block>
constexpr void Decode(const uint8_t* block, float* out) {
  for (int g = 0; g < Block::kValues / Block::kGroup; ++g) {
    const GroupScale group = Block::Scale(block, g);
    for (int i = g * Block::kGroup; i < (g + 1) * Block::kGroup; ++i)
      out[i] = group.scale * static_cast<float>(Block::Code(block, i)) + group.offset;
  }
}

// Whether no code of the block can stand for a NaN or an infinity.
template <class Block>
constexpr bool IsFinite(const uint8_t* block) {
  // The largest code of MXFP4. The scales of the other types are far too small to overflow.
  constexpr float kLargestCode = 12.0f;
  const auto finite = [](float x) {
    return (std::bit_cast<uint32_t>(x) & 0x7f800000u) != 0x7f800000u;
  };
  for (int g = 0; g < Block::kValues / Block::kGroup; ++g) {
    const GroupScale group = Block::Scale(block, g);
    if (!finite(group.scale * kLargestCode) || !finite(group.offset)) return false;
  }
  return true;
}

}  // namespace latte::blocks
