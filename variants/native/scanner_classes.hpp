// The classes of every character, in the two levels that variants/counting/character_classes.py makes of `regex`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace scanner {

using byte = std::uint8_t;

// Readers may look this many bytes past the end of a text; what lies there never changes a result.
constexpr std::size_t padding = 192;

enum : byte {
    letter = 1,
    number = 2,
    space = 4,
    upper_like = 8,   // o200k's [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
    lower_like = 16,  // o200k's [\p{Ll}\p{Lm}\p{Lo}\p{M}]
};

inline bool is_continuation(byte value) { return (value & 0xC0) == 0x80; }

// The length of a character of valid UTF-8 by its first byte.
inline unsigned length_by_lead(byte lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

inline std::uint32_t decode(const byte* at) {
    if (at[0] < 0x80) return at[0];
    if (at[0] < 0xE0) return (at[0] & 0x1Fu) << 6 | (at[1] & 0x3Fu);
    if (at[0] < 0xF0) return (at[0] & 0x0Fu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
    return (at[0] & 0x07u) << 18 | (at[1] & 0x3Fu) << 12 | (at[2] & 0x3Fu) << 6 | (at[3] & 0x3Fu);
}

// The first bytes of which every character has some classes, but for those of the excepted lead with the excepted second
// byte. As a table from C0 on, and as one by the low nibble with a bit for each high one.
struct SettledLeads {
    byte from_c0[64] = {}, by_nibble[16] = {};
    byte excepted_lead = 0, excepted_second = 0;   // 0: there is none
    static constexpr byte bit_of_high_nibble[16] = {16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 1, 2, 4, 8};

    void add(std::uint32_t lead) {
        from_c0[lead - 0xC0] = 1;
        by_nibble[lead & 0x0F] = byte(by_nibble[lead & 0x0F] | 1u << (lead / 16 - 12));
    }
};

// The second bytes from `first` to `last`, or none.
struct Seconds {
    byte first = 0xFF, last = 0xFF;
};

class Classes {
  public:
    static constexpr std::size_t page_size = 128, number_of_pages = 0x110000 / page_size;

    Classes(const std::string& numbers, const std::string& pages)
        : numbers_(number_of_pages), pages_(pages.begin(), pages.end()) {
        if (numbers.size() != 2 * number_of_pages) throw std::invalid_argument("the table of character classes is cut off");
        std::memcpy(numbers_.data(), numbers.data(), numbers.size());
        for (std::uint16_t page : numbers_)
            if ((page + 1u) * page_size > pages.size()) throw std::invalid_argument("a page of character classes is missing");
        letters_ = settled(letter);
        caseless_ = settled(letter | upper_like | lower_like);
        for (std::uint32_t lead = 0; lead < 32; ++lead) {
            uppers_[lead] = longest_run(lead << 6, letter | upper_like);
            lowers_[lead] = longest_run(lead << 6, letter | lower_like);
        }
    }

    // At most 0x1FFFFF can be decoded from four bytes, so that this is safe in text not yet known to be valid.
    byte of(std::uint32_t character) const {
        return character > 0x10FFFF ? byte(0) : pages_[numbers_[character / page_size] * page_size + character % page_size];
    }
    byte at(const byte* text) const { return *text < 0x80 ? pages_[numbers_[0] * page_size + *text] : of(decode(text)); }

    const SettledLeads& letters() const { return letters_; }
    const SettledLeads& caseless() const { return caseless_; }   // letters of both of o200k's classes
    // Behind a lead of two bytes, the longest runs of seconds with letters of only one of these.
    const Seconds& uppers(byte lead) const { return uppers_[lead & 0x1F]; }
    const Seconds& lowers(byte lead) const { return lowers_[lead & 0x1F]; }

  private:
    bool all_are(byte kinds, std::uint32_t first, std::uint32_t count) const {
        for (std::uint32_t character = first; character < first + count; ++character)
            if ((of(character) & kinds) != kinds) return false;
        return true;
    }
    // Most characters of most scripts are settled by their first byte. E4 is so but for one row of hexagrams, and holds
    // the commonest Chinese characters; hence the exception.
    SettledLeads settled(byte kinds) const {
        SettledLeads leads;
        for (std::uint32_t lead = 0xC2; lead < 0xE0; ++lead)
            if (all_are(kinds, (lead & 0x1F) << 6, 64)) leads.add(lead);
        for (std::uint32_t lead = 0xE1; lead < 0xF0; ++lead) {
            unsigned others = 0, other = 0;
            for (std::uint32_t second = 0; second < 64; ++second)
                if (!all_are(kinds, (lead & 0x0F) << 12 | second << 6, 64)) ++others, other = second;
            if (others == 1 && !leads.excepted_lead) {
                leads.excepted_lead = byte(lead);
                leads.excepted_second = byte(0x80 | other);
                others = 0;
            }
            if (others == 0) leads.add(lead);
        }
        return leads;
    }

    Seconds longest_run(std::uint32_t first, byte kinds) const {
        Seconds longest;
        unsigned most = 0, length = 0;
        for (std::uint32_t second = 0; second < 64; ++second) {
            length = of(first + second) == kinds ? length + 1 : 0;
            if (length > most) most = length, longest = {byte(0x81 + second - length), byte(0x80 + second)};
        }
        return longest;
    }

    std::vector<std::uint16_t> numbers_;
    std::vector<byte> pages_;
    SettledLeads letters_, caseless_;
    Seconds uppers_[32], lowers_[32];
};

// Strict UTF-8, as Python decodes it: no overlong forms, no surrogates, nothing above U+10FFFF.
// The length of the character that begins `text`; 0 if it is no valid one, -1 if the text ends within it.
inline int length_of_character(const byte* text, std::size_t length) {
    const byte lead = text[0];
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    if (length < 2) return -1;
    const byte lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const byte highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (text[1] < lowest || text[1] > highest) return 0;
    const int expected = static_cast<int>(length_by_lead(lead));
    for (int i = 2; i < expected; ++i) {
        if (static_cast<std::size_t>(i) == length) return -1;
        if (!is_continuation(text[i])) return 0;
    }
    return expected;
}

// How many bytes from `start`, where a character begins, are whole valid characters.
inline std::size_t valid_until(const byte* text, std::size_t start, std::size_t length) {
    std::size_t at = start;
    while (at < length) {
        if (at + 8 <= length) {
            std::uint64_t eight;
            std::memcpy(&eight, text + at, 8);
            if ((eight & 0x8080808080808080u) == 0) {
                at += 8;
                continue;
            }
        }
        const int step = length_of_character(text + at, length - at);
        if (step <= 0) break;
        at += static_cast<std::size_t>(step);
    }
    return at;
}

// ---- words as keys of 16 bytes, a batch at a time: hashed, and their slots prefetched, before the first is looked up ----
//
// The hash is seeded anew for every run: nobody can write a text whose words collide.

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
struct WordBatch {
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
    std::size_t (*of_batch)(const Seed&, const WordBatch&, Home, Batch&);
};

inline std::uint64_t product_hash(const Seed& seed, Key key) {
    return folded_product(key.low ^ seed.values[0], key.high ^ seed.values[1]);
}

inline std::size_t product_hash_of_batch(const Seed& seed_given, const WordBatch& words, Home home, Batch& batch) {
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
