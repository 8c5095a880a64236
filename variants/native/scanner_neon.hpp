// 64 bytes in the registers of 64-bit Arm, all of which have them, and what scanner_blocks.hpp makes of them.
#pragma once

#include "scanner_patterns.hpp"

#if defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !defined(SCANNER_PORTABLE)
#define SCANNER_HAS_NEON 1
#include <arm_neon.h>

namespace scanner::neon {

// The bytes are dealt out to four registers, as to four players: byte 4 * i + j is the i-th of register j. Then the top
// bits of all 64 are brought together by five instructions, where bytes side by side would take eight.
class Bytes64 {
  public:
    explicit Bytes64(const byte* text) : bytes_(vld4q_u8(text)) {}

    std::uint64_t beyond_ascii() const { return top_bits([](uint8x16_t each) { return each; }); }
    std::uint64_t equal(byte value) const {
        return top_bits([=](uint8x16_t each) { return vceqq_u8(each, vdupq_n_u8(value)); });
    }
    std::uint64_t at_least(byte least) const {
        return top_bits([=](uint8x16_t each) { return vcgeq_u8(each, vdupq_n_u8(least)); });
    }
    std::uint64_t between(byte first, byte last) const {
        return top_bits([=](uint8x16_t each) { return within(each, first, last); });
    }
    std::uint64_t ascii_digits() const { return between('0', '9'); }
    std::uint64_t ascii_letters() const {
        return top_bits([](uint8x16_t each) { return within(vorrq_u8(each, vdupq_n_u8(0x20)), 'a', 'z'); });
    }
    std::uint64_t continuations() const {
        // As signed numbers, continuation bytes are those below C0.
        return top_bits([](uint8x16_t each) { return vcltq_s8(vreinterpretq_s8_u8(each), vdupq_n_s8(-0x40)); });
    }
    std::uint64_t in(const SettledLeads& leads) const {
        const uint8x16_t by_low = vld1q_u8(leads.by_nibble), by_high = vld1q_u8(SettledLeads::bit_of_high_nibble);
        return top_bits([=](uint8x16_t each) {
            const uint8x16_t low = vqtbl1q_u8(by_low, vandq_u8(each, vdupq_n_u8(0x0F)));
            return vtstq_u8(low, vqtbl1q_u8(by_high, vshrq_n_u8(each, 4)));
        });
    }

  private:
    static uint8x16_t within(uint8x16_t bytes, byte first, byte last) {
        return vcleq_u8(vsubq_u8(bytes, vdupq_n_u8(first)), vdupq_n_u8(static_cast<byte>(last - first)));
    }
    template <class Of>
    std::uint64_t top_bits(Of of) const {
        const uint8x16_t two = vsriq_n_u8(of(bytes_.val[1]), of(bytes_.val[0]), 1);
        const uint8x16_t two_more = vsriq_n_u8(of(bytes_.val[3]), of(bytes_.val[2]), 1);
        const uint8x16_t four = vsriq_n_u8(two_more, two, 2);
        const uint8x16_t twice = vsriq_n_u8(four, four, 4);   // the same four bits in both halves of each byte
        return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(twice), 4)), 0);
    }

    uint8x16x4_t bytes_;
};

static inline void put_starts(Starts& starts, std::uint64_t found, std::size_t at) {
    const std::uint32_t base = static_cast<std::uint32_t>(at - starts.origin());
    const std::size_t number = static_cast<std::size_t>(__builtin_popcountll(found));
    std::uint32_t* room = starts.room();
    for (std::size_t i = 0; i < number; ++i, found &= found - 1)
        room[i] = base + static_cast<std::uint32_t>(__builtin_ctzll(found));
    starts.put(number);
}

#include "scanner_blocks.hpp"

}  // namespace scanner::neon

#endif
