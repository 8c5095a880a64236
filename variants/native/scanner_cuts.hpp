// Special tokens in the bytes, and where a text may be cut.
#pragma once

#include "scanner_patterns.hpp"

namespace scanner {

// The leftmost match, and of those that begin at one place the longest.
class SpecialTokens {
  public:
    explicit SpecialTokens(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
        std::stable_sort(tokens_.begin(), tokens_.end(), [](const std::string& one, const std::string& other) {
            return byte(one[0]) != byte(other[0]) ? byte(one[0]) < byte(other[0]) : one.size() > other.size();
        });
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            longest_ = std::max(longest_, tokens_[i].size());
            const byte first = byte(tokens_[i][0]);
            if (i == 0 || byte(tokens_[i - 1][0]) != first) {
                firsts_.push_back(first);
                group_[first] = i;
            }
            is_first_[first] = true;
        }
    }

    const std::vector<std::string>& tokens() const { return tokens_; }
    std::size_t longest() const { return longest_; }

    // The length of the token that matches at `at`, 0 if none does. Tokens end before `stop`.
    std::size_t match(const byte* text, std::size_t at, std::size_t stop) const {
        const byte first = text[at];
        if (!is_first_[first]) return 0;
        for (std::size_t i = group_[first]; i < tokens_.size() && byte(tokens_[i][0]) == first; ++i)
            if (tokens_[i].size() <= stop - at && std::memcmp(text + at, tokens_[i].data(), tokens_[i].size()) == 0)
                return tokens_[i].size();
        return 0;
    }

    // Whether some token stands so that `place` lies inside it, matched or not. Neither end of the text is near enough
    // to matter only if `begin` and `stop` are the ends of what can be read.
    bool straddled(const byte* text, std::size_t begin, std::size_t place, std::size_t stop) const {
        const std::size_t back = std::min(place - begin, longest_ ? longest_ - 1 : 0);
        for (std::size_t at = place - back; at < place; ++at) {
            if (!is_first_[text[at]]) continue;
            for (std::size_t i = group_[text[at]]; i < tokens_.size() && byte(tokens_[i][0]) == text[at]; ++i)
                if (tokens_[i].size() > place - at && tokens_[i].size() <= stop - at &&
                    std::memcmp(text + at, tokens_[i].data(), tokens_[i].size()) == 0)
                    return true;
        }
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
                const std::size_t at = next_ .size() > few ? scan(text, from, limit) : nearest(text, from, limit);
                if (at >= limit) break;
                if (const std::size_t length = tokens_.match(text, at, stop)) return {at, length};
                from = at + 1;
            }
            return {limit, 0};
        }

      private:
        static constexpr std::size_t few = 4;

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
        std::size_t scan(const byte* text, std::size_t from, std::size_t limit) const {
            while (from < limit && !tokens_.is_first_[text[from]]) ++from;
            return from;
        }

        const SpecialTokens& tokens_;
        std::vector<std::size_t> next_;
    };

  private:
    std::vector<std::string> tokens_;  // by first byte, the longest first
    std::vector<byte> firsts_;
    std::size_t group_[256] = {};
    bool is_first_[256] = {};
    std::size_t longest_ = 0;
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
