// 64 bytes in the registers of each instruction set, what scanner_blocks.hpp makes of them, and which this machine has.
//
// The functions carry their instruction set as an attribute, so that one build runs everywhere and chooses when it runs.
#pragma once

#include "scanner_patterns.hpp"

// SCANNER_PORTABLE leaves all of it out, as a processor does for which there is none.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(SCANNER_PORTABLE)
#define SCANNER_HAS_VECTORS 1
#include <cpuid.h>
#include <immintrin.h>

#if defined(__clang__)
#define SCANNER_PRAGMA(text) _Pragma(#text)
#define SCANNER_BEGIN(set) SCANNER_PRAGMA(clang attribute push(__attribute__((target(set))), apply_to = function))
#define SCANNER_END _Pragma("clang attribute pop")
#else
#define SCANNER_PRAGMA(text) _Pragma(#text)
// GCC's headers of AVX-512 pass undefined registers around, and it warns of them (bug 105593).
#define SCANNER_BEGIN(set)                                                                 \
    _Pragma("GCC push_options") SCANNER_PRAGMA(GCC target(set)) _Pragma("GCC diagnostic push") \
        _Pragma("GCC diagnostic ignored \"-Wuninitialized\"")                              \
            _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define SCANNER_END _Pragma("GCC diagnostic pop") _Pragma("GCC pop_options")
#endif

SCANNER_BEGIN("avx2,bmi,bmi2,lzcnt,popcnt,aes")
namespace scanner::avx2 {

class Bytes64 {
  public:
    explicit Bytes64(const byte* text)
        : low_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(text))),
          high_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + 32))) {}

    std::uint64_t beyond_ascii() const { return bits(low_, high_); }
    std::uint64_t equal(byte value) const {
        const __m256i wanted = all(value);
        return bits(_mm256_cmpeq_epi8(low_, wanted), _mm256_cmpeq_epi8(high_, wanted));
    }
    std::uint64_t at_least(byte least) const {
        const __m256i wanted = all(least);
        return bits(_mm256_cmpeq_epi8(_mm256_max_epu8(low_, wanted), low_),
                    _mm256_cmpeq_epi8(_mm256_max_epu8(high_, wanted), high_));
    }
    std::uint64_t between(byte first, byte last) const { return between(low_, high_, first, last); }
    std::uint64_t ascii_digits() const { return between('0', '9'); }
    std::uint64_t ascii_letters() const {
        const __m256i lower = all(0x20);
        return between(_mm256_or_si256(low_, lower), _mm256_or_si256(high_, lower), 'a', 'z');
    }
    std::uint64_t continuations() const {
        const __m256i above = all(0xC0);  // as signed numbers, continuation bytes are those below
        return bits(_mm256_cmpgt_epi8(above, low_), _mm256_cmpgt_epi8(above, high_));
    }
    std::uint64_t in(const SettledLeads& leads) const {
        const __m256i by_low = twice(leads.by_nibble), by_high = twice(SettledLeads::bit_of_high_nibble);
        return bits(member(low_, by_low, by_high), member(high_, by_low, by_high));
    }

  private:
    static __m256i all(byte value) { return _mm256_set1_epi8(static_cast<char>(value)); }
    static __m256i twice(const byte* sixteen) {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen)));
    }
    static std::uint64_t bits(__m256i low, __m256i high) {
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
               static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(high))) << 32;
    }
    static std::uint64_t between(__m256i low, __m256i high, byte first, byte last) {
        const __m256i base = all(first), width = all(static_cast<byte>(last - first));
        const __m256i from_low = _mm256_sub_epi8(low, base), from_high = _mm256_sub_epi8(high, base);
        return bits(_mm256_cmpeq_epi8(_mm256_min_epu8(from_low, width), from_low),
                    _mm256_cmpeq_epi8(_mm256_min_epu8(from_high, width), from_high));
    }
    // A set of bytes as a table by the low nibble whose bits stand for high nibbles.
    static __m256i member(__m256i bytes, __m256i by_low, __m256i by_high) {
        const __m256i nibble = all(0x0F);
        const __m256i low = _mm256_shuffle_epi8(by_low, _mm256_and_si256(bytes, nibble));
        const __m256i high = _mm256_shuffle_epi8(by_high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
        return _mm256_cmpeq_epi8(_mm256_and_si256(low, high), high);
    }

    __m256i low_, high_;
};

static inline void put_starts(Starts& starts, std::uint64_t found, std::size_t at) {
    const std::uint32_t base = static_cast<std::uint32_t>(at - starts.origin());
    const std::size_t number = static_cast<std::size_t>(__builtin_popcountll(found));
    std::uint32_t* room = starts.room();
    // Eight at a time, whether there are so many or not: what is too much is written over.
    for (std::size_t done = 0; done < number; done += 8)
        for (std::size_t i = 0; i < 8; ++i) {
            room[done + i] = base + static_cast<std::uint32_t>(_tzcnt_u64(found));
            found = _blsr_u64(found);
        }
    starts.put(number);
}

// Three rounds of AES under a secret key.
static inline std::uint64_t aes_hash(__m128i key, __m128i first, __m128i second) {
    const __m128i mixed = _mm_aesenc_si128(_mm_aesenc_si128(_mm_xor_si128(key, first), second), first);
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_aesenc_si128(mixed, second)));
}
static inline __m128i halves(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }

static std::uint64_t aes_hash_of_key(const Seed& seed, Key key) {
    return aes_hash(halves(&key), halves(seed.values), halves(seed.values + 2));
}

// A batch being filled, word by word: `shorts` of them are keys, the others long.
struct Filling {
    const __m128i first, second;
    const Home home;
    Batch& batch;
    std::size_t shorts = 0;

    Filling(const Seed& seed, Home home, Batch& batch)
        : first(halves(seed.values)), second(halves(seed.values + 2)), home(home), batch(batch) {}

    void prefetch(std::uint64_t index) const {
        _mm_prefetch(reinterpret_cast<const char*>(home.slots + 32 * index), _MM_HINT_T0);
    }
    void take(const byte* word, std::size_t length, std::size_t i) {
        const KeyMask& mask = key_masks.masks[length % 16];
        const __m128i key = _mm_or_si128(_mm_and_si128(halves(word), halves(&mask.low)), halves(&mask.unused));
        const std::uint64_t index = aes_hash(key, first, second) >> home.shift;
        prefetch(index);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(&batch.keys[shorts]), key);
        batch.homes[shorts] = index;
        batch.longs[i - shorts] = static_cast<std::uint16_t>(i);
        shorts += length <= longest_short;
    }
};

// As product_hash_of_batch.
static std::size_t aes_hash_of_batch(const Seed& seed, const WordBatch& words, Home home, Batch& batch) {
    Filling filling(seed, home, batch);
    filling.take(words.text + words.open, words.length(0), 0);
    const byte* const base = words.text + words.origin;
    std::uint32_t start = words.starts[0];
    for (std::size_t i = 1; i < words.number; ++i) {
        const std::uint32_t stop = words.starts[i];
        filling.take(base + start, stop - start, i);
        start = stop;
    }
    return filling.shorts;
}

inline constexpr KeyHash key_hash{aes_hash_of_key, aes_hash_of_batch};

#include "scanner_blocks.hpp"

}  // namespace scanner::avx2
SCANNER_END

SCANNER_BEGIN("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,lzcnt,popcnt,aes,vaes")
namespace scanner::avx512 {

class Bytes64 {
  public:
    explicit Bytes64(const byte* text) : bytes_(_mm512_loadu_si512(text)) {}

    std::uint64_t beyond_ascii() const { return _mm512_movepi8_mask(bytes_); }
    std::uint64_t equal(byte value) const { return _mm512_cmpeq_epi8_mask(bytes_, all(value)); }
    std::uint64_t at_least(byte least) const { return _mm512_cmpge_epu8_mask(bytes_, all(least)); }
    std::uint64_t between(byte first, byte last) const { return between(bytes_, first, last); }
    std::uint64_t ascii_digits() const { return between('0', '9'); }
    std::uint64_t ascii_letters() const { return between(_mm512_or_si512(bytes_, all(0x20)), 'a', 'z'); }
    std::uint64_t continuations() const { return _mm512_cmplt_epi8_mask(bytes_, all(0xC0)); }
    std::uint64_t in(const SettledLeads& leads) const {
        const __m512i member = _mm512_permutexvar_epi8(bytes_, _mm512_loadu_si512(leads.from_c0));
        return _mm512_mask_test_epi8_mask(at_least(0xC0), member, member);
    }

  private:
    static __m512i all(byte value) { return _mm512_set1_epi8(static_cast<char>(value)); }
    static std::uint64_t between(__m512i bytes, byte first, byte last) {
        return _mm512_cmple_epu8_mask(_mm512_sub_epi8(bytes, all(first)), all(static_cast<byte>(last - first)));
    }

    __m512i bytes_;
};

// The numbers 0 to 63, of which compressing keeps those of the set bits.
alignas(64) inline constexpr byte ascending[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

static inline void put_starts(Starts& starts, std::uint64_t found, std::size_t at) {
    const __m512i base = _mm512_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(at - starts.origin())));
    const std::size_t number = static_cast<std::size_t>(__builtin_popcountll(found));
    const __m512i places = _mm512_maskz_compress_epi8(found, _mm512_load_si512(ascending));
    std::uint32_t* room = starts.room();
    _mm512_storeu_si512(room, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places))));
    if (number > 16) {
        _mm512_storeu_si512(room + 16, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 1))));
        _mm512_storeu_si512(room + 32, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 2))));
        _mm512_storeu_si512(room + 48, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 3))));
    }
    starts.put(number);
}

constexpr std::uint64_t last_bytes = 0x8000800080008000u;   // of the four lanes

// As avx2's, four short words at a time with the same values; where one of four is long, one at a time.
static std::size_t aes_hash_of_batch(const Seed& seed, const WordBatch& words, Home home, Batch& batch) {
    using avx2::halves;
    avx2::Filling filling(seed, home, batch);
    const __m512i first = _mm512_broadcast_i32x4(filling.first), second = _mm512_broadcast_i32x4(filling.second);
    // The numbers 0 to 15 four times, and for each of four lanes where its length lies among four lengths of 32 bits.
    const __m512i all_places = _mm512_broadcast_i32x4(avx2::halves(ascending));
    constexpr long long fours = 0x0404040404040404, eights = 2 * fours, twelves = 3 * fours;
    const __m512i all_lanes = _mm512_set_epi64(twelves, twelves, eights, eights, fours, fours, 0, 0);
    const __m512i lows = _mm512_setr_epi64(0, 2, 4, 6, 0, 0, 0, 0);
    const __m128i shift = _mm_cvtsi64_si128(home.shift), longest = _mm_set1_epi32(longest_short);
    filling.take(words.text + words.open, words.length(0), 0);
    const byte* const base = words.text + words.origin;
    const std::uint32_t* start = words.starts;
    std::size_t i = 1;
    for (; i + 4 <= words.number; i += 4, start += 4) {
        const __m128i lengths = _mm_sub_epi32(halves(start + 1), halves(start));
        if (__builtin_expect(_mm_cmpgt_epu32_mask(lengths, longest), 0)) {
            for (std::size_t j = 0; j < 4; ++j) filling.take(base + start[j], start[j + 1] - start[j], i + j);
            continue;
        }
        const __m256i two = _mm256_setr_m128i(halves(base + start[0]), halves(base + start[1]));
        const __m256i two_more = _mm256_setr_m128i(halves(base + start[2]), halves(base + start[3]));
        const __m512i bytes = _mm512_inserti64x4(_mm512_castsi256_si512(two), two_more, 1);
        const __m512i length = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(lengths), all_lanes);
        const __m512i cut = _mm512_maskz_mov_epi8(_mm512_cmplt_epu8_mask(all_places, length), bytes);
        const __m512i keys = _mm512_mask_mov_epi8(cut, last_bytes, length);
        const __m512i once = _mm512_aesenc_epi128(_mm512_xor_si512(keys, first), second);
        const __m512i hashes = _mm512_aesenc_epi128(_mm512_aesenc_epi128(once, first), second);
        const __m512i homes = _mm512_permutexvar_epi64(lows, _mm512_srl_epi64(hashes, shift));
        _mm512_storeu_si512(&batch.keys[filling.shorts], keys);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(&batch.homes[filling.shorts]), _mm512_castsi512_si256(homes));
        for (std::size_t j = 0; j < 4; ++j) filling.prefetch(batch.homes[filling.shorts + j]);
        filling.shorts += 4;
    }
    for (; i < words.number; ++i, ++start) filling.take(base + start[0], start[1] - start[0], i);
    return filling.shorts;
}

inline constexpr KeyHash key_hash{avx2::aes_hash_of_key, aes_hash_of_batch};

#include "scanner_blocks.hpp"

}  // namespace scanner::avx512
SCANNER_END

// On 64-bit Arm, all of which have these registers.
#elif defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !defined(SCANNER_PORTABLE)
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

// ---- which of them this machine can run ----

namespace scanner {

// Of those that a machine supports, a later one is faster. `avx512` needs VBMI2 and VAES, which come together.
enum class Path { portable, avx2, avx512, neon };
constexpr int number_of_paths = 4;

// The published family is in vectors; the other patterns take the portable way and the faster validation.
struct Functions {
    FindStarts find_starts;
    std::size_t (*valid_until)(const byte* text, std::size_t start, std::size_t length);
    KeyHash key_hash;
    FindStarts find_words;
};

#if defined(SCANNER_HAS_VECTORS)

// Not every compiler's __builtin_cpu_supports knows these two by name.
inline bool has_vaes() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 9 & 1);
}
inline bool has_lzcnt() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c >> 5 & 1);
}

#endif

inline bool supported(Path path) {
#if defined(SCANNER_HAS_VECTORS)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      has_lzcnt() && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("aes");
    if (path == Path::avx2) return avx2;
    if (path == Path::avx512)
        return avx2 && has_vaes() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
               __builtin_cpu_supports("avx512vbmi2");
#elif defined(SCANNER_HAS_NEON)
    if (path == Path::neon) return true;
#endif
    return path == Path::portable;
}

inline Functions functions_of(const Pattern& pattern, Path path) {
#if defined(SCANNER_HAS_VECTORS)
    if (path == Path::avx2) return {chosen(pattern, avx2::find_family_starts), avx2::valid_in_blocks, avx2::key_hash, avx2::find_words_in_blocks};
    if (path == Path::avx512) return {chosen(pattern, avx512::find_family_starts), avx512::valid_in_blocks, avx512::key_hash, avx512::find_words_in_blocks};
#elif defined(SCANNER_HAS_NEON)
    if (path == Path::neon) return {chosen(pattern, neon::find_family_starts), neon::valid_in_blocks, product_key_hash, neon::find_words_in_blocks};
#endif
    return {chosen(pattern, find_starts<Family>), valid_until, product_key_hash, find_starts<Separated>};
}

}  // namespace scanner
