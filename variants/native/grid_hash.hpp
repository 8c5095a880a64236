// The hashes of a pair: one that is bad on purpose, one as Boost combines hashes, one whose every bit depends on all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace grid {

using Token = std::uint32_t;
using PairKey = std::uint64_t;   // the left token in the upper half

inline PairKey key_of(Token left, Token right) { return PairKey{left} << 32 | right; }
inline Token left_of(PairKey pair) { return static_cast<Token>(pair >> 32); }
inline Token right_of(PairKey pair) { return static_cast<Token>(pair); }

// h1 ^ (h2 << 1), where the hash of an integer is the integer: a few tens of thousands of values for millions of pairs.
struct weak_hash {
    static constexpr const char* name = "weak";
    std::size_t operator()(PairKey pair) const noexcept {
        return std::size_t{left_of(pair)} ^ std::size_t{right_of(pair)} << 1;
    }
};

// The step of boost::hash_combine as it was for long, from the left token to the right one: it spreads neighbouring ids,
// though not over all bits.
struct boost_hash {
    static constexpr const char* name = "boost";
    std::size_t operator()(PairKey pair) const noexcept {
        const std::size_t left = left_of(pair);
        return left ^ (right_of(pair) + std::size_t{0x9e3779b9} + (left << 6) + (left >> 2));
    }
};

// Two rounds of multiplying and folding: every bit of the pair moves every bit of the hash.
struct strong_hash {
    static constexpr const char* name = "strong";
    using is_avalanching = void;   // what boost::unordered_flat_map asks, so that it does not mix once more
    std::size_t operator()(PairKey pair) const noexcept {
        pair = (pair ^ pair >> 32) * 0xd6e8feb86659fd93;
        pair = (pair ^ pair >> 32) * 0xd6e8feb86659fd93;
        return static_cast<std::size_t>(pair ^ pair >> 32);
    }
};

}  // namespace grid
