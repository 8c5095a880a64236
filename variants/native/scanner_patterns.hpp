// The patterns a character at a time: what every machine can run, and what the vector paths are held against.
//
// Each function pushes the starts of the pre-tokens of text[from:to], a text of its own: nothing precedes or follows it.
#pragma once

#include <cstddef>
#include <cstring>

#include "scanner_classes.hpp"
#include "scanner_starts.hpp"

namespace scanner {

// A text being read: the class of the character at a place, and the end of a run of characters.
struct Reader {
    const Classes& classes;
    const byte* text;
    std::size_t stop;

    bool more(std::size_t at) const { return at < stop; }
    byte class_at(std::size_t at) const { return classes.at(text + at); }
    std::size_t after(std::size_t at) const { return at + length_by_lead(text[at]); }
    bool is_newline(std::size_t at) const { return text[at] == '\n' || text[at] == '\r'; }

    // The first place from `at` whose character has none of the classes in `wanted`.
    std::size_t run(std::size_t at, byte wanted) const {
        while (more(at) && (class_at(at) & wanted)) at = after(at);
        return at;
    }
    // [^\s\p{L}\p{N}]*
    std::size_t run_of_others(std::size_t at) const {
        while (more(at) && !(class_at(at) & (letter | number | space))) at = after(at);
        return at;
    }
    std::size_t up_to_three_numbers(std::size_t at) const {
        for (int i = 0; i < 3 && more(at) && (class_at(at) & number); ++i) at = after(at);
        return at;
    }

    // [\r\n/]* and \s* where the text ends behind the first \n.
    std::size_t newlines_and_slashes_in_line(std::size_t at) const {
        while (more(at) && (text[at] == '\r' || text[at] == '/')) ++at;
        return more(at) && text[at] == '\n' ? at + 1 : at;
    }
    std::size_t spaces_in_line(std::size_t at) const {
        while (more(at) && text[at] != '\n' && (class_at(at) & space)) at = after(at);
        return more(at) && text[at] == '\n' ? at + 1 : at;
    }

    // The length of '(?:[sdmt]|ll|ve|re), or of '(?i:[sdmt]|ll|ve|re), at an apostrophe; 0 if it is not one.
    std::size_t contraction(std::size_t at, bool either_case) const {
        return more(at) && text[at] == '\'' ? contraction_in(text + at, stop - at, either_case) : 0;
    }
    static std::size_t contraction_in(const byte* apostrophe, std::size_t length, bool either_case) {
        const byte folded = either_case ? 0x20 : 0;
        if (length < 2) return 0;
        const byte first = apostrophe[1] < 0x80 ? apostrophe[1] | folded : 0;
        if (first == 's' || first == 'd' || first == 'm' || first == 't') return 2;
        if (length < 3) return 0;
        if (either_case && apostrophe[1] == 0xC5 && apostrophe[2] == 0xBF) return 3;  // U+017F, an s in its other shape
        const byte second = apostrophe[2] < 0x80 ? apostrophe[2] | folded : 0;
        return ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e')) ? 3 : 0;
    }

    // \s+(?!\S)|\s+ where a run of spaces from `at` ends at `end`: all but the last if something follows.
    std::size_t spaces(std::size_t at, std::size_t end) const {
        if (!more(end)) return end;
        const std::size_t last = last_character(end);
        return last > at ? last : end;
    }
    // \s*[\r\n]: the end of the last newline in the run, or `at` if it has none.
    std::size_t through_last_newline(std::size_t at, std::size_t end) const {
        while (end > at && !is_newline(end - 1)) --end;
        return end;
    }
    std::size_t last_character(std::size_t end) const {
        do --end;
        while (is_continuation(text[end]));
        return end;
    }
};

// GPT-2's, on the whole text or on every line by itself.
template <bool lines>
struct Gpt2Like {
    static std::size_t end_of_word(const Reader& reader, std::size_t at) {
        if (const std::size_t length = reader.contraction(at, false)) return at + length;
        const bool blank = reader.text[at] == ' ' && reader.more(at + 1);
        const byte leading = reader.class_at(at) & (letter | number | space);
        const std::size_t begin = blank && !(reader.class_at(at + 1) & space) ? at + 1 : at;
        const byte kind = begin > at ? reader.class_at(begin) & (letter | number | space) : leading;
        if (kind & space) {
            const std::size_t end = lines ? reader.spaces_in_line(at) : reader.run(at, space);
            return lines && reader.text[end - 1] == '\n' ? end : reader.spaces(at, end);
        }
        return kind ? reader.run(begin, kind) : reader.run_of_others(begin);
    }
};

using Gpt2 = Gpt2Like<false>;
using Gpt2Lines = Gpt2Like<true>;

struct Gpt4 {
    static std::size_t end_of_word(const Reader& reader, std::size_t at) {
        if (const std::size_t length = reader.contraction(at, true)) return at + length;
        const byte kind = reader.class_at(at);
        if (kind & letter) return reader.run(at, letter);
        if (kind & number) return reader.up_to_three_numbers(at);
        const std::size_t next = reader.after(at);
        if (!reader.is_newline(at) && reader.more(next) && (reader.class_at(next) & letter)) return reader.run(next, letter);
        const std::size_t others = reader.run_of_others(reader.text[at] == ' ' ? next : at);
        if (others > next || !(kind & space)) {
            std::size_t end = others;
            while (reader.more(end) && reader.is_newline(end)) ++end;
            return end;
        }
        const std::size_t end = reader.run(at, space), newline = reader.through_last_newline(at, end);
        return newline > at ? newline : reader.spaces(at, end);
    }
};

// o200k's, or SuperBPE's first stage: the same without contractions, on every line by itself.
template <bool superbpe>
struct O200kLike {
    static std::size_t end_of_word(const Reader& reader, std::size_t at) {
        const byte kind = reader.class_at(at);
        if (kind & number) return reader.up_to_three_numbers(at);
        // The optional first character is taken if it can be, and given back if no word follows it. A mark can be both
        // that and the first of the word.
        const std::size_t next = reader.after(at);
        const bool optional = !(kind & letter) && !reader.is_newline(at);
        std::size_t word = optional ? lower_word(reader, next) : 0;
        if (!word) word = lower_word(reader, at);
        if (!word && optional) word = reader.run(next, upper_like) > next ? reader.run(next, upper_like) : 0;
        if (!word && (kind & upper_like)) word = reader.run(at, upper_like);
        if (word) return superbpe ? word : word + reader.contraction(word, true);
        const std::size_t others = reader.run_of_others(reader.text[at] == ' ' ? next : at);
        if (others > next || !(kind & space)) {
            std::size_t end = others;
            if (superbpe) return reader.newlines_and_slashes_in_line(end);
            while (reader.more(end) && (reader.is_newline(end) || reader.text[end] == '/')) ++end;
            return end;
        }
        const std::size_t end = superbpe ? reader.spaces_in_line(at) : reader.run(at, space);
        const std::size_t newline = reader.through_last_newline(at, end);
        return newline > at ? newline : reader.spaces(at, end);
    }

  private:
    // UPPER*LOWER+, 0 if it does not match. Where it does not, LOWER* matches nothing behind UPPER+ either.
    static std::size_t lower_word(const Reader& reader, std::size_t at) {
        std::size_t end = at, both = 0;  // both: the end of the last character of the run that LOWER takes as well
        while (reader.more(end)) {
            const byte kind = reader.class_at(end);
            if (!(kind & upper_like)) break;
            end = reader.after(end);
            if (kind & lower_like) both = end;
        }
        const std::size_t lower = reader.run(end, lower_like);
        return lower > end ? lower : both;  // UPPER* gives back what LOWER+ needs
    }
};

using O200k = O200kLike<false>;
using SuperBpeWords = O200kLike<true>;

// SuperBPE's second stage, on every line by itself. \p{N}{1,3}, two or more signs with what may stand around them, and
// \x20+(?!\S) stand alone, and all between two of these, or to the end of the line, is one piece.
struct SuperBpe {
    static std::size_t end_of_word(const Reader& reader, std::size_t at) {
        if (stands_alone(reader, at)) return end_of_alone(reader, at);
        do {
            if (reader.text[at] == '\n') return at + 1;
            at = reader.after(at);
        } while (reader.more(at) && !stands_alone(reader, at));
        return at;
    }

  private:
    static bool is_sign(const Reader& reader, std::size_t at) {
        return reader.more(at) && !(reader.class_at(at) & (letter | number | space));
    }
    static bool stands_alone(const Reader& reader, std::size_t at) {
        if (reader.class_at(at) & number) return true;
        const bool blank = reader.text[at] == ' ';
        const std::size_t next = blank ? at + 1 : at;
        if (blank && (!reader.more(next) || (reader.class_at(next) & space))) return true;
        return is_sign(reader, next) && is_sign(reader, reader.after(next));
    }
    static std::size_t end_of_alone(const Reader& reader, std::size_t at) {
        if (reader.class_at(at) & number) return reader.up_to_three_numbers(at);
        const bool blank = reader.text[at] == ' ';
        if (!blank || is_sign(reader, at + 1))
            return reader.newlines_and_slashes_in_line(reader.run_of_others(blank ? at + 1 : at));
        std::size_t end = at;
        while (reader.more(end) && reader.text[end] == ' ') ++end;
        return reader.more(end) && !(reader.class_at(end) & space) ? end - 1 : end;
    }
};

struct Line {
    static std::size_t end_of_word(const Reader& reader, std::size_t at) {
        const void* newline = std::memchr(reader.text + at, '\n', reader.stop - at);
        return newline ? static_cast<std::size_t>(static_cast<const byte*>(newline) - reader.text) + 1 : reader.stop;
    }
};

struct Document {
    static std::size_t end_of_word(const Reader& reader, std::size_t) { return reader.stop; }
};

template <class Pattern>
void find_starts(const Classes& classes, const byte* text, std::size_t from, std::size_t to, Starts& starts) {
    const Reader reader{classes, text, to};
    for (std::size_t at = from; at < to; at = Pattern::end_of_word(reader, at)) starts.push(at);
}

using FindStarts = void (*)(const Classes&, const byte* text, std::size_t from, std::size_t to, Starts&);

enum class Pattern { gpt2, gpt4, o200k, line, document, bytes, superbpe, superbpe_words, gpt2_lines };

// Whether a text is a line with its end, so that no pre-token goes on over one.
inline bool of_lines(Pattern pattern) {
    return pattern == Pattern::line || pattern == Pattern::gpt2_lines || pattern == Pattern::superbpe ||
           pattern == Pattern::superbpe_words;
}

inline FindStarts portable(Pattern pattern) {
    switch (pattern) {
        case Pattern::gpt2: return find_starts<Gpt2>;
        case Pattern::gpt2_lines: return find_starts<Gpt2Lines>;
        case Pattern::gpt4: return find_starts<Gpt4>;
        case Pattern::o200k: return find_starts<O200k>;
        case Pattern::line: return find_starts<Line>;
        case Pattern::superbpe: return find_starts<SuperBpe>;
        case Pattern::superbpe_words: return find_starts<SuperBpeWords>;
        case Pattern::document:
        case Pattern::bytes: break;
    }
    return find_starts<Document>;
}

}  // namespace scanner
