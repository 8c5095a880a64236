// Which instructions the scanner may use on this machine, and the functions that use them.
#pragma once

#include "scanner_neon.hpp"
#include "scanner_vectors.hpp"

namespace scanner {

// Of those that a machine supports, a later one is faster. `avx512` needs VBMI2 and VAES, which come together.
enum class Path { portable, avx2, avx512, neon };
constexpr int number_of_paths = 4;

// The published family is in vectors; the other patterns take the portable way and the faster validation.
struct Functions {
    FindStarts find_starts;
    std::size_t (*valid_until)(const byte* text, std::size_t start, std::size_t length);
    KeyHash key_hash;
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

inline bool supported(Path path) {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      has_lzcnt() && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("aes");
    const bool avx512 = avx2 && has_vaes() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                        __builtin_cpu_supports("avx512vbmi2");
    switch (path) {
        case Path::portable: return true;
        case Path::avx2: return avx2;
        case Path::avx512: return avx512;
        case Path::neon: break;
    }
    return false;
}

inline Functions functions_of(const Pattern& pattern, Path path) {
    if (path == Path::portable) return {chosen(pattern, find_starts<Family>), valid_until, product_key_hash};
    if (path == Path::avx2) return {chosen(pattern, avx2::find_family_starts), avx2::valid_in_blocks, avx2::key_hash};
    return {chosen(pattern, avx512::find_family_starts), avx512::valid_in_blocks, avx512::key_hash};
}

#elif defined(SCANNER_HAS_NEON)

inline bool supported(Path path) { return path == Path::portable || path == Path::neon; }

inline Functions functions_of(const Pattern& pattern, Path path) {
    if (path == Path::portable) return {chosen(pattern, find_starts<Family>), valid_until, product_key_hash};
    return {chosen(pattern, neon::find_family_starts), neon::valid_in_blocks, product_key_hash};
}

#else

inline bool supported(Path path) { return path == Path::portable; }

inline Functions functions_of(const Pattern& pattern, Path) { return {chosen(pattern, find_starts<Family>), valid_until, product_key_hash}; }

#endif

}  // namespace scanner
