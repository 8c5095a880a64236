// Which instructions the scanner may use on this machine, and the functions that use them.
#pragma once

#include "scanner_patterns.hpp"
#include "scanner_utf8.hpp"
#include "scanner_vectors.hpp"

namespace scanner {

enum class Path { portable, avx2, avx512 };

// Only GPT-2's pattern is in vectors; the other patterns take the portable way and the faster validation.
struct Functions {
    FindStarts find_starts;
    std::size_t (*valid_until)(const byte* text, std::size_t start, std::size_t length);
    KeyHash key_hash;
};

#if defined(SCANNER_HAS_VECTORS)

inline bool supported(Path path) {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("aes");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                        __builtin_cpu_supports("avx512vbmi2");
    return path == Path::portable || (path == Path::avx2 ? avx2 : avx512);
}

inline Functions functions_of(Pattern pattern, Path path) {
    const bool gpt2 = pattern == Pattern::gpt2;
    if (path == Path::avx512) return {gpt2 ? avx512::find_gpt2_starts : portable(pattern), avx512::valid_in_blocks, avx2::key_hash};
    if (path == Path::avx2) return {gpt2 ? avx2::find_gpt2_starts : portable(pattern), avx2::valid_in_blocks, avx2::key_hash};
    return {portable(pattern), valid_until, product_key_hash};
}

#else

inline bool supported(Path path) { return path == Path::portable; }

inline Functions functions_of(Pattern pattern, Path) { return {portable(pattern), valid_until, product_key_hash}; }

#endif

}  // namespace scanner
