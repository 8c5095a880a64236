// Strict UTF-8, as Python decodes it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>

#include "scanner_classes.hpp"

namespace scanner {

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

// Steps back from `at` to where a character begins, or stays if none begins in the last four bytes.
inline std::size_t character_start(const byte* text, std::size_t at) {
    for (std::size_t back = 0; back < 4 && back <= at; ++back)
        if (!is_continuation(text[at - back])) return at - back;
    return at;
}

}  // namespace scanner
