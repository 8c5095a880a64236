// Special tokens in the bytes: the leftmost match, and of those that begin at one place the longest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "scanner_classes.hpp"

namespace scanner {

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

}  // namespace scanner
