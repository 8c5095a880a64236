// Where a text may be cut without changing a word: both sides give the words they give together.
//
// A word that ends before the cut must end there whatever follows, and \s+(?!\S) must not look across it. Cutting
// behind a newline is wrong: the spaces on its left would then end their text.
#pragma once

#include <cstddef>

#include "scanner_classes.hpp"
#include "scanner_patterns.hpp"
#include "scanner_specials.hpp"
#include "scanner_utf8.hpp"

namespace scanner {

// Whether a cut is safe before the character at `at`; both neighbours are whole characters.
inline bool safe_cut(const Classes& classes, const Pattern& pattern, const byte* text, std::size_t before, std::size_t at) {
    if (pattern.of_lines()) return text[at - 1] == '\n';
    if (pattern.of_documents()) return false;
    const byte left = classes.at(text + before), right = classes.at(text + at);
    if (left & space) return false;
    // Spaces never continue a word, but newlines may trail behind other signs.
    if (right & space) return !pattern.trail || (left & (letter | number)) || (text[at] != '\n' && text[at] != '\r');
    // A run of letters or of numbers ends where the class changes, unless a contraction or a mark is added.
    const bool mark = (right & upper_like) && !(right & letter);
    return (left & (letter | number)) && ((left ^ right) & (letter | number)) && text[at] != '\'' && !mark;
}

// The last safe cut in text[from+1 : limit], or `from`. The text is valid and has a character at the cut.
inline std::size_t last_cut(const Classes& classes, const Pattern& pattern, const byte* text, std::size_t from, std::size_t limit) {
    if (pattern.of_documents()) return from;
    std::size_t at = limit;
    while (at > from && is_continuation(text[at])) --at;
    while (at > from) {
        std::size_t before = at - 1;
        while (before > from && is_continuation(text[before])) --before;
        if (safe_cut(classes, pattern, text, before, at)) return at;
        at = before;
    }
    return from;
}

// The first cut from `from` on that is safe without knowing what stands before text[0:stop], or `stop`.
inline std::size_t first_cut(const Classes& classes, const Pattern& pattern, const SpecialTokens& specials, const byte* text,
                             std::size_t from, std::size_t stop) {
    if (pattern.of_documents()) return stop;
    for (std::size_t at = from; at + specials.longest() < stop; ++at) {
        if (is_continuation(text[at]) || at < specials.longest() || at < 4) continue;
        const std::size_t before = character_start(text, at - 1);
        // What is not valid is refused in the end, but not by reading past it here.
        if (length_of_character(text + before, at - before) != static_cast<int>(at - before)) continue;
        if (length_of_character(text + at, stop - at) <= 0) continue;
        if (safe_cut(classes, pattern, text, before, at) && !specials.straddled(text, 0, at, stop)) return at;
    }
    return stop;
}

}  // namespace scanner
