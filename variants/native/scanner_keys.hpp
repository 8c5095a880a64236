// Words as keys of 16 bytes, a batch at a time: hashed, and their slots called for, before the first is looked up.
//
// The hash is seeded anew for every run: nobody can write a text whose words collide.
#pragma once

#include "scanner_classes.hpp"

namespace scanner {

struct Seed {
    std::uint64_t values[4];
};

// A word of up to 15 bytes, zeros behind it and its length in the last byte.
struct Key {
    std::uint64_t low, high;
};

constexpr std::size_t longest_short = 15;

inline std::uint64_t load64(const byte* at) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

inline std::uint64_t folded_product(std::uint64_t left, std::uint64_t right) {
    const unsigned __int128 product = static_cast<unsigned __int128>(left) * right;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// At least 16 bytes.
inline std::uint64_t hash_of_long(const Seed& seed, const byte* word, std::size_t length) {
    std::uint64_t state = seed.values[2] ^ length;
    for (std::size_t at = 0; at + 16 < length; at += 16)
        state = folded_product(load64(word + at) ^ seed.values[0], load64(word + at + 8) ^ state);
    state = folded_product(load64(word + length - 16) ^ seed.values[1], load64(word + length - 8) ^ state);
    return folded_product(state ^ seed.values[3], length ^ seed.values[2]);
}

// Keeps the first bytes of a key, as many as its index says, and puts that number in the last.
struct alignas(32) KeyMask {
    std::uint64_t low, high, unused, length;
};
struct KeyMasks {
    KeyMask masks[16];
    constexpr KeyMasks() : masks() {
        for (unsigned length = 0; length < 16; ++length)
            masks[length] = {length >= 8 ? ~std::uint64_t(0) : (std::uint64_t(1) << 8 * length) - 1,
                             length <= 8 ? 0 : (std::uint64_t(1) << 8 * (length - 8)) - 1, 0, std::uint64_t(length) << 56};
    }
};
inline constexpr KeyMasks key_masks{};

// Neighbouring starts as words: word 0 from `open` to origin + starts[0], word i from origin + starts[i - 1].
struct Words {
    const byte* text;
    std::size_t open, origin;
    const std::uint32_t* starts;
    std::size_t number;

    std::size_t start(std::size_t i) const { return i ? origin + starts[i - 1] : open; }
    std::size_t length(std::size_t i) const { return origin + starts[i] - start(i); }
};

// Where the slot of a hash is: at its top bits in a table of slots of 32 bytes.
struct Home {
    const byte* slots;
    unsigned shift;
};

struct Batch {
    static constexpr std::size_t size = 1024;
    Key keys[size];              // of the short words
    std::uint64_t homes[size];   // where to look for them
    std::uint16_t longs[size];   // which words are long
};

// How keys are hashed: one at a time, and a batch of them, which gives the number of short words.
struct KeyHash {
    std::uint64_t (*of_key)(const Seed&, Key);
    std::size_t (*of_batch)(const Seed&, const Words&, Home, Batch&);
};

inline std::uint64_t product_hash(const Seed& seed, Key key) {
    return folded_product(key.low ^ seed.values[0], key.high ^ seed.values[1]);
}

inline std::size_t product_hash_of_batch(const Seed& seed_given, const Words& words, Home home, Batch& batch) {
    const Seed seed = seed_given;  // a copy that no store below can change, for all the compiler knows
    std::size_t shorts = 0, start = words.open;
    for (std::size_t i = 0; i < words.number; ++i) {
        const std::size_t stop = words.origin + words.starts[i], length = stop - start;
        const byte* word = words.text + start;
        const KeyMask& mask = key_masks.masks[length % 16];
        const Key key{load64(word) & mask.low, (load64(word + 8) & mask.high) | mask.length};
        const std::uint64_t index = product_hash(seed, key) >> home.shift;
        __builtin_prefetch(home.slots + 32 * index, 1);
        batch.keys[shorts] = key;
        batch.homes[shorts] = index;
        // Either way one more is kept, without a branch to be guessed.
        batch.longs[i - shorts] = static_cast<std::uint16_t>(i);
        shorts += length <= longest_short;
        start = stop;
    }
    return shorts;
}

inline constexpr KeyHash product_key_hash{product_hash, product_hash_of_batch};

}  // namespace scanner
