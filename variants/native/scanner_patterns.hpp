// The patterns a character at a time: what every machine can run, and what the vector paths are compared with.
//
// Each function pushes the starts of the pre-tokens of text[from:to], a text of its own: nothing precedes or follows it.
#pragma once

#include <string_view>

#include "scanner_words.hpp"

namespace scanner {

enum class Split : byte { family, line, document, bytes, superbpe };
enum Contraction : byte { no_contraction, exact, folded, ascii_folded };   // folded: also U+017F for s
enum Trail : byte { no_trail, newlines_trail, slashes_trail };

// How a text is split. The slots say which member of the published family; variants/counting/patterns.py reads them
// from a regular expression and explains each.
struct Pattern {
    Split split;
    byte contraction;     // a Contraction
    bool behind;          // ... right behind a word, instead of before all
    bool prefix;          // any character but newline, letter or number may begin a word; else a blank may
    bool cased;           // a word is UPPER*LOWER+ or UPPER+LOWER*; else letters
    bool marks;           // a mark is a letter where words are letters, and never another sign
    byte digits;          // at most so many numbers in a word; 0: any
    bool blank_numbers;   // a blank may begin a word of numbers
    bool numbers_apart;   // spaces before a number end as at the end of the text
    byte trail;           // a Trail: what may follow other signs
    bool newlines;        // spaces up to the last newline among them are one word
    bool whole_tail;      // and so are all at the end of the text
    bool lines;           // no word goes on over the end of a line

    static Pattern of(const std::string& bytes) {
        Pattern pattern;
        static_assert(sizeof pattern == 13, "one byte a slot, as Python packs them");
        if (bytes.size() != sizeof pattern) throw std::invalid_argument("a pattern has one byte for each slot");
        std::memcpy(static_cast<void*>(&pattern), bytes.data(), sizeof pattern);
        return pattern;
    }
    // Whether a text is a line with its end, or all of a document, so that no pre-token goes on beyond it.
    bool of_lines() const { return lines || split == Split::line || split == Split::superbpe; }
    bool of_documents() const { return split == Split::document || split == Split::bytes; }
    byte letters() const { return marks || cased ? letter | upper_like | lower_like : letter; }
    byte no_others() const { return letter | number | space | (marks ? upper_like | lower_like : 0); }
};

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
    std::size_t run_without(std::size_t at, byte unwanted) const {
        while (more(at) && !(class_at(at) & unwanted)) at = after(at);
        return at;
    }
    // The end of at most so many numbers; 0: of all.
    std::size_t numbers(std::size_t at, unsigned most) const {
        if (!most) return run(at, number);
        for (unsigned i = 0; i < most && more(at) && (class_at(at) & number); ++i) at = after(at);
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
    std::size_t trail(std::size_t at, const Pattern& pattern) const {
        if (pattern.trail == no_trail) return at;
        if (pattern.lines) return newlines_and_slashes_in_line(at);
        while (more(at) && (is_newline(at) || (pattern.trail == slashes_trail && text[at] == '/'))) ++at;
        return at;
    }

    // The length of '(?:[sdmt]|ll|ve|re) at an apostrophe, in either case unless it is exact; 0 if it is not one.
    std::size_t contraction(std::size_t at, byte kind) const {
        return more(at) && text[at] == '\'' ? contraction_in(text + at, stop - at, kind) : 0;
    }
    static std::size_t contraction_in(const byte* apostrophe, std::size_t length, byte kind) {
        const byte lower = kind == exact ? 0 : 0x20;
        if (kind == no_contraction || length < 2) return 0;
        const byte first = apostrophe[1] < 0x80 ? apostrophe[1] | lower : 0;
        if (first == 's' || first == 'd' || first == 'm' || first == 't') return 2;
        if (length < 3) return 0;
        if (kind == folded && apostrophe[1] == 0xC5 && apostrophe[2] == 0xBF) return 3;  // U+017F, an s in its other shape
        const byte second = apostrophe[2] < 0x80 ? apostrophe[2] | lower : 0;
        return ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e')) ? 3 : 0;
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

// A member of the published family.
struct Family {
    // With all that it calls in it: what a compiler puts in by itself depends on what else is in the file.
    __attribute__((flatten)) static std::size_t end_of_word(const Reader& reader, const Pattern& pattern, std::size_t at) {
        if (!pattern.behind)
            if (const std::size_t length = reader.contraction(at, pattern.contraction)) return at + length;
        const std::size_t word = pattern.cased ? cased_word(reader, pattern, at) : word_of_letters(reader, pattern, at);
        if (word) return pattern.behind ? word + reader.contraction(word, pattern.contraction) : word;
        const byte kind = reader.class_at(at);
        if (kind & number) return reader.numbers(at, pattern.digits);
        const bool blank = reader.text[at] == ' ';
        const std::size_t next = reader.after(at);
        if (blank && pattern.blank_numbers && reader.more(next) && (reader.class_at(next) & number))
            return reader.numbers(next, pattern.digits);
        const std::size_t others = reader.run_without(blank ? next : at, pattern.no_others());
        if (others > next || !(kind & space)) return reader.trail(others, pattern);
        return spaces(reader, pattern, at);
    }

  private:
    // Whether the character may begin a word that goes on with letters.
    static bool may_precede(const Reader& reader, const Pattern& pattern, std::size_t at) {
        if (!pattern.prefix) return reader.text[at] == ' ';
        return !(reader.class_at(at) & (letter | number)) && !reader.is_newline(at);
    }
    // Where the word ends that begins here; 0 if none does.
    static std::size_t word_of_letters(const Reader& reader, const Pattern& pattern, std::size_t at) {
        const byte letters = pattern.letters();
        if (reader.class_at(at) & letters) return reader.run(at, letters);
        if (!may_precede(reader, pattern, at)) return 0;
        const std::size_t next = reader.after(at), end = reader.run(next, letters);
        return end > next ? end : 0;
    }
    // The optional first character is taken if it can be, and given back if no word follows it. A mark can be both that
    // and the first of the word.
    static std::size_t cased_word(const Reader& reader, const Pattern& pattern, std::size_t at) {
        const std::size_t next = reader.after(at);
        const bool optional = may_precede(reader, pattern, at);
        std::size_t word = optional ? lower_word(reader, next) : 0;
        if (!word) word = lower_word(reader, at);
        if (!word && optional && reader.run(next, upper_like) > next) word = reader.run(next, upper_like);
        if (!word && (reader.class_at(at) & upper_like)) word = reader.run(at, upper_like);
        return word;
    }
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
    // Up to the last newline if there is one and the pattern says so; else all but the last if something follows.
    static std::size_t spaces(const Reader& reader, const Pattern& pattern, std::size_t at) {
        const std::size_t end = pattern.lines ? reader.spaces_in_line(at) : reader.run(at, space);
        if (pattern.whole_tail && !reader.more(end)) return end;
        if (pattern.lines && reader.text[end - 1] == '\n') return end;
        if (pattern.newlines)
            if (const std::size_t newline = reader.through_last_newline(at, end); newline > at) return newline;
        if (!reader.more(end) || (pattern.numbers_apart && (reader.class_at(end) & number))) return end;
        const std::size_t last = reader.last_character(end);
        return last > at ? last : end;
    }
};

// SuperBPE's second stage, on every line by itself. \p{N}{1,3}, two or more signs with what may surround them, and
// \x20+(?!\S) are pieces, and so is all between two of these or the end of the line.
struct SuperBpe {
    static std::size_t end_of_word(const Reader& reader, const Pattern&, std::size_t at) {
        if (stands_alone(reader, at)) return end_of_alone(reader, at);
        do {
            if (reader.text[at] == '\n') return at + 1;
            at = reader.after(at);
            while (begins_letters(reader, at)) ++at;   // most of a text, which needs no classes
        } while (reader.more(at) && !stands_alone(reader, at));
        return at;
    }

  private:
    // Whether a letter of ASCII is here, or behind a blank.
    static bool begins_letters(const Reader& reader, std::size_t at) {
        const std::size_t letter_at = at + (reader.more(at) && reader.text[at] == ' ');
        return reader.more(letter_at) && static_cast<byte>((reader.text[letter_at] | 0x20) - 'a') < 26;
    }
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
        if (reader.class_at(at) & number) return reader.numbers(at, 3);
        const bool blank = reader.text[at] == ' ';
        if (!blank || is_sign(reader, at + 1))
            return reader.newlines_and_slashes_in_line(reader.run_without(blank ? at + 1 : at, letter | number | space));
        std::size_t end = at;
        while (reader.more(end) && reader.text[end] == ' ') ++end;
        return reader.more(end) && !(reader.class_at(end) & space) ? end - 1 : end;
    }
};

struct Line {
    static std::size_t end_of_word(const Reader& reader, const Pattern&, std::size_t at) {
        const void* newline = std::memchr(reader.text + at, '\n', reader.stop - at);
        return newline ? static_cast<std::size_t>(static_cast<const byte*>(newline) - reader.text) + 1 : reader.stop;
    }
};

// Not a pattern: what is between two borders of words.
struct Separated {
    static std::size_t end_of_word(const Reader& reader, const Pattern&, std::size_t at) {
        do ++at;
        while (reader.more(at) && !is_border(reader.text + at));
        return at;
    }
};

struct Document {
    static std::size_t end_of_word(const Reader& reader, const Pattern&, std::size_t) { return reader.stop; }
};

template <class Matcher>
void find_starts(const Classes& classes, const Pattern& pattern, const byte* text, std::size_t from, std::size_t to,
                 Starts& starts) {
    const Reader reader{classes, text, to};
    for (std::size_t at = from; at < to; at = Matcher::end_of_word(reader, pattern, at)) starts.push(at);
}

using FindStarts = void (*)(const Classes&, const Pattern&, const byte* text, std::size_t from, std::size_t to, Starts&);

// `family` finds the starts of members of the family.
inline FindStarts chosen(const Pattern& pattern, FindStarts family) {
    switch (pattern.split) {
        case Split::family: return family;
        case Split::line: return find_starts<Line>;
        case Split::superbpe: return find_starts<SuperBpe>;
        case Split::document:
        case Split::bytes: break;
    }
    return find_starts<Document>;
}

// ---- special tokens in the bytes, and where a text may be cut ----

// The leftmost match, and of those that begin at one place the longest.
class SpecialTokens {
  public:
    explicit SpecialTokens(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
        std::stable_sort(tokens_.begin(), tokens_.end(),
                         [](const std::string& one, const std::string& other) { return one.size() > other.size(); });
        sorted_ = tokens_;
        std::sort(sorted_.begin(), sorted_.end());
        for (std::size_t number = 0; number < sorted_.size(); ++number) {
            const std::string& token = sorted_[number];
            Group& group = by_first_[byte(token[0])];
            if (group.begin == group.end) {
                firsts_.push_back(byte(token[0]));
                group.begin = number;
            }
            group.end = number + 1;

            // The tokens that it begins with are a chain from the one before it.
            std::size_t shorter = number > group.begin ? number - 1 : none;
            while (shorter != none && token.compare(0, sorted_[shorter].size(), sorted_[shorter]) != 0) shorter = prefixes_[shorter];
            prefixes_.push_back(shorter);
        }
    }

    const std::vector<std::string>& tokens() const { return tokens_; }
    std::size_t longest() const { return tokens_.empty() ? 0 : tokens_[0].size(); }

    // The length of the longest token that matches at `at`, 0 if none does. Tokens end before `stop`.
    //
    // Any token that the text begins with is, in the order of bytes, not behind the text; the last token that is not behind
    // it lies between the two, so it begins with that token as well. All matches are therefore among this last token's prefixes.
    std::size_t match(const byte* text, std::size_t at, std::size_t stop) const {
        const Group group = by_first_[text[at]];
        if (group.begin == group.end) return 0;
        if (group.end - group.begin == 1) {   // as most have: nothing to search
            const std::string& token = sorted_[group.begin];
            return token.size() <= stop - at && std::memcmp(text + at, token.data(), token.size()) == 0 ? token.size() : 0;
        }
        const std::string_view rest(reinterpret_cast<const char*>(text + at), std::min(stop - at, longest()));
        const std::string* const first = sorted_.data();
        const std::size_t behind = static_cast<std::size_t>(std::upper_bound(first + group.begin, first + group.end, rest) - first);
        std::size_t number = behind > group.begin ? behind - 1 : none;
        while (number != none && rest.compare(0, sorted_[number].size(), sorted_[number]) != 0) number = prefixes_[number];
        return number == none ? 0 : sorted_[number].size();
    }

    // Whether `place` is inside some token in text[begin:stop], matched or not.
    bool straddled(const byte* text, std::size_t begin, std::size_t place, std::size_t stop) const {
        const std::size_t back = std::min(place - begin, longest() ? longest() - 1 : 0);
        for (std::size_t at = place - back; at < place; ++at)
            if (match(text, at, stop) > place - at) return true;
        return false;
    }

    // Finds the tokens of one text from left to right. What begins before `limit` and ends before `stop` is found.
    class Search {
      public:
        explicit Search(const SpecialTokens& tokens) : tokens_(tokens), next_(tokens.firsts_.size(), 0) {}

        // Forget where the next first bytes are: the text has moved.
        void restart() { std::fill(next_.begin(), next_.end(), 0); }

        struct Found {
            std::size_t place, length;  // length 0: none before the limit
        };
        Found next(const byte* text, std::size_t from, std::size_t limit, std::size_t stop) {
            while (from < limit) {
                const std::size_t at = nearest(text, from, limit);
                if (at >= limit) break;
                if (const std::size_t length = tokens_.match(text, at, stop)) return {at, length};
                from = at + 1;
            }
            return {limit, 0};
        }

      private:
        // Every first byte's next place is looked up once and used until it has been passed.
        std::size_t nearest(const byte* text, std::size_t from, std::size_t limit) {
            std::size_t least = limit;
            for (std::size_t i = 0; i < next_.size(); ++i) {
                if (next_[i] < from || next_[i] == 0) {
                    const void* found = std::memchr(text + from, tokens_.firsts_[i], limit - from);
                    next_[i] = found ? static_cast<std::size_t>(static_cast<const byte*>(found) - text) : limit;
                }
                least = std::min(least, next_[i]);
            }
            return least;
        }

        const SpecialTokens& tokens_;
        std::vector<std::size_t> next_;
    };

  private:
    static constexpr std::size_t none = SIZE_MAX;
    struct Group {
        std::size_t begin = 0, end = 0;   // of the sorted tokens with one first byte
    };
    std::vector<std::string> tokens_;   // the longest first
    std::vector<std::string> sorted_;   // by their bytes
    std::vector<std::size_t> prefixes_;   // of each sorted token, the longest other one that it begins with
    Group by_first_[256];
    std::vector<byte> firsts_;
};

// Where a text may be cut without changing a word: both sides give the words they give together.
//
// A word that ends before the cut must end there whatever follows, and \s+(?!\S) must not look across it. Cutting
// behind a newline is wrong: the spaces on its left would then end their text.
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

// Whether a cut at `at` is safe without knowing what is before or behind text[0:stop].
inline bool is_cut(const Classes& classes, const Pattern& pattern, const SpecialTokens& specials, const byte* text,
                   std::size_t at, std::size_t stop) {
    if (is_continuation(text[at]) || at < specials.longest() || at < 4) return false;
    std::size_t before = at - 1;
    while (before > at - 4 && is_continuation(text[before])) --before;
    // What is not valid may be refused in the end, but not by reading past it here.
    if (length_of_character(text + before, at - before) != static_cast<int>(at - before)) return false;
    if (length_of_character(text + at, stop - at) <= 0) return false;
    return safe_cut(classes, pattern, text, before, at) && !specials.straddled(text, 0, at, stop);
}

// The first such cut from `from` on, or `stop`.
inline std::size_t first_cut(const Classes& classes, const Pattern& pattern, const SpecialTokens& specials, const byte* text,
                             std::size_t from, std::size_t stop) {
    if (pattern.of_documents()) return stop;
    for (std::size_t at = from; at + specials.longest() < stop; ++at)
        if (is_cut(classes, pattern, specials, text, at, stop)) return at;
    return stop;
}

}  // namespace scanner
