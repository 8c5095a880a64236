// The pairs that may not be merged.
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
    explicit Refusals(const Veto& veto) : veto_(veto), by_halves_(!veto.protected_tokens.empty()), by_rules_(veto.refuses_any()) {}

    // No other pair may make the bytes of an inherited token.
    void inherit(const Spelling& token) { inherited_.insert(std::string(token.begin(), token.end())); }

    bool any() const { return by_rules_ || !inherited_.empty(); }

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
        if (inherited_.count(token)) return true;
        return veto_.own && veto_.own(veto_.context, token.substr(0, left.size()), token.substr(left.size()));
    }

  private:
    // Words are separated by spaces alone.
    static std::size_t words(const std::string& token) {
        std::size_t count = 0;
        for (std::size_t at = token.find_first_not_of(' '); at != std::string::npos;
             at = token.find_first_not_of(' ', token.find(' ', at)))
            ++count;
        return count;
    }
    static std::size_t characters(const std::string& token) {
        std::size_t count = token.size();
        for (const char byte : token) count -= (static_cast<unsigned char>(byte) >> 6) == 2;
        return count;
    }

    // Whether it is neither whole characters nor the beginning of one: the code points are decoded and looked at.
    static bool is_mixed(const std::string& token) {
        for (std::size_t at = 0; at < token.size();) {
            const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(token[index]); };
            const std::uint32_t first = byte(at);
            const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
            if (!length) return true;
            // The least and the greatest code point that these bytes may begin.
            std::uint32_t least = length == 1 ? first : first & (0x7fu >> length), greatest = least;
            for (std::size_t index = at + 1; index < at + length; ++index) {
                const bool there = index < token.size();
                if (there && byte(index) >> 6 != 2) return true;
                least = least << 6 | (there ? byte(index) & 63u : 0);
                greatest = greatest << 6 | (there ? byte(index) & 63u : 63u);
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
    bool by_rules_;
    std::unordered_set<std::string> inherited_;
};

}  // namespace replay
