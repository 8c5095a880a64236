// Patterns to try the scanner with: one byte a slot, as Python packs them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scanner_patterns.hpp"

namespace members {

inline std::string packed(std::initializer_list<int> slots) { return std::string(slots.begin(), slots.end()); }

// gpt2, gpt4, o200k, line, document, bytes, superbpe, superbpe_words, gpt2_lines, starcoder2, and cl100k with a whole tail
// and marks as letters.
inline const std::vector<std::string> named = {
    packed({0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}), packed({0, 2, 0, 1, 0, 0, 3, 0, 0, 1, 1, 0, 0}),
    packed({0, 2, 1, 1, 1, 0, 3, 0, 0, 2, 1, 0, 0}), packed({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
    packed({2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), packed({3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
    packed({4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), packed({0, 0, 0, 1, 1, 0, 3, 0, 0, 2, 1, 0, 1}),
    packed({0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}), packed({0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0}),
    packed({0, 2, 0, 1, 0, 1, 3, 0, 0, 1, 1, 1, 0})};

// Some member of the family, by 16 bits.
inline std::string member(std::uint32_t bits) {
    const auto take = [&bits](std::uint32_t values) {
        const std::uint32_t value = bits % values;
        bits /= values;
        return static_cast<char>(value);
    };
    std::string slots(13, '\0');
    slots[1] = take(4), slots[2] = slots[1] ? take(2) : 0, slots[3] = take(2), slots[4] = take(2), slots[5] = take(2);
    slots[6] = std::string("\0\1\2\3\5", 5)[static_cast<std::size_t>(take(5))], slots[9] = take(3), slots[10] = take(2);
    slots[7] = take(2), slots[11] = slots[10] ? take(2) : 0;
    slots[8] = slots[7] || slots[11] ? 0 : take(2);
    return slots;
}

}  // namespace members
