// The pairs that may not be merged, where claims go on from merges that were inherited.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>

#include "replay_job.hpp"
#include "replay_order.hpp"

namespace replay {

class Refusals {
  public:
    explicit Refusals(const Veto& veto) : veto_(veto), by_halves_(!veto.protected_tokens.empty()) {}

    // A token that was inherited; no pair may spell it anew.
    void inherit(const Spelling& token) { inherited_.insert(std::string(token.begin(), token.end())); }

    bool refuses(const Spelling& left, const Spelling& right) const {
        std::string token(left.begin(), left.end());
        if (by_halves_ && (veto_.protected_tokens.count(token) ||
                           veto_.protected_tokens.count(std::string(right.begin(), right.end()))))
            return true;
        token.append(right.begin(), right.end());
        if (veto_.superbpe && (token.find(": ") != std::string::npos || words(token) > 4)) return true;
        if (token.size() > veto_.most_bytes) return true;
        if (veto_.most_characters < Veto::any && characters(token) > veto_.most_characters) return true;
        if (veto_.whole_characters && is_mixed(token)) return true;
        return inherited_.count(token) > 0;
    }

  private:
    // Blanks part words, and nothing else does.
    static std::size_t words(const std::string& token) {
        std::size_t number = 0;
        for (std::size_t at = token.find_first_not_of(' '); at != std::string::npos;
             at = token.find_first_not_of(' ', token.find(' ', at)))
            ++number;
        return number;
    }
    static std::size_t characters(const std::string& token) {
        std::size_t number = token.size();
        for (const char byte : token) number -= (static_cast<unsigned char>(byte) >> 6) == 2;
        return number;
    }

    // Neither whole characters nor a part of one that begins it: the code points are put together and looked at.
    static bool is_mixed(const std::string& token) {
        for (std::size_t at = 0; at < token.size();) {
            const auto byte = [&](std::size_t place) { return static_cast<unsigned char>(token[place]); };
            const std::uint32_t first = byte(at);
            const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
            if (!length) return true;
            // The least and the greatest code point that may come of what is there.
            std::uint32_t least = length == 1 ? first : first & (0x7fu >> length), greatest = least;
            for (std::size_t place = at + 1; place < at + length; ++place) {
                const bool there = place < token.size();
                if (there && byte(place) >> 6 != 2) return true;
                least = least << 6 | (there ? byte(place) & 63u : 0);
                greatest = greatest << 6 | (there ? byte(place) & 63u : 63u);
            }
            const std::uint32_t lowest = length == 1 ? 0 : length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
            if (greatest < lowest || least > 0x10ffff || (least >= 0xd800 && greatest < 0xe000)) return true;
            if (at + length > token.size()) return at > 0;
            at += length;
        }
        return false;
    }

    const Veto& veto_;
    bool by_halves_;
    std::unordered_set<std::string> inherited_;
};

}  // namespace replay
