// Which pairs may not be merged when training goes on from inherited merges.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "flat_tokens.hpp"
#include "scanner_classes.hpp"

namespace flat {

// A veto as in vetoes.Limits, rule by rule; one of its own is called.
struct Veto {
    // 1: refuse the pair of these halves, 0: do not, -1: stop.
    using Ask = int (*)(void* context, Bytes left, Bytes right);
    static constexpr std::uint64_t any = INT64_MAX;

    bool superbpe = false;
    bool whole_characters = false;
    std::uint64_t most_bytes = any;
    std::uint64_t most_characters = any;
    std::unordered_set<std::string> protected_tokens;
    Ask ask = nullptr;

    bool refuses_more_than_parts_of_characters() const {
        return superbpe || most_bytes < any || most_characters < any || !protected_tokens.empty() || ask;
    }
    bool refuses_any() const { return whole_characters || refuses_more_than_parts_of_characters(); }
};

inline bool is_whole(const std::uint8_t* text, std::size_t size) { return scanner::valid_until(text, 0, size) == size; }

// Tells the pairs under the veto, and those that would spell an inherited token again. It is called when a pair is about to be
// kept, so seldom.
class VetoFilter {
  public:
    VetoFilter(const Tokens& tokens, const Veto& veto, void* context)
        : tokens_(tokens), veto_(veto), context_(context), learned_from_(tokens.size()) {
        for (std::uint32_t id = first_merge; id < tokens.size(); ++id) {
            const Bytes token = tokens.bytes(id);
            longest_inherited_ = std::max(longest_inherited_, token.size);
            inherited_.emplace(text_of(token));
        }
    }

    bool operator()(PairKey key) {
        const Bytes left = tokens_.bytes(left_of(key)), right = tokens_.bytes(right_of(key));
        if (veto_.whole_characters && is_mixed(key, left, right)) return true;
        const bool may_be_inherited = left.size + right.size <= longest_inherited_;
        if (!may_be_inherited && !more_) return false;
        token_.assign(text_of(left)).append(text_of(right));
        return (more_ && is_vetoed(left, right)) || (may_be_inherited && inherited_.count(token_));
    }

  private:
    static std::string_view text_of(Bytes token) { return {reinterpret_cast<const char*>(token.data), token.size}; }

    static constexpr std::size_t most_words = 4, longest_character = 4;

    bool is_vetoed(Bytes left, Bytes right) const {
        if (veto_.superbpe && (token_.find(": ") != std::string::npos || words() > most_words)) return true;
        if (token_.size() > veto_.most_bytes) return true;
        if (veto_.most_characters < Veto::any && characters() > veto_.most_characters) return true;
        if (!veto_.protected_tokens.empty() && (is_protected(left) || is_protected(right))) return true;
        if (!veto_.ask) return false;
        const int answer = veto_.ask(context_, left, right);
        if (answer < 0) throw Stopped{};
        return answer;
    }

    bool is_protected(Bytes token) const {
        return veto_.protected_tokens.count(std::string(text_of(token)));
    }

    // Neither whole characters nor the beginning of one. A whole half goes with a whole one only; two that are not are short,
    // unless they were inherited.
    bool is_mixed(PairKey key, Bytes left, Bytes right) {
        const bool whole = is_whole_token(left_of(key), left);
        if (whole || is_whole_token(right_of(key), right)) return !whole || !is_whole_token(right_of(key), right);
        token_.assign(text_of(left)).append(text_of(right));
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(token_.data());
        constexpr int ends_within = -1;
        return !is_whole(bytes, token_.size()) && scanner::length_of_character(bytes, token_.size()) != ends_within;
    }

    // What was learned under the veto and has more bytes than a character is whole.
    bool is_whole_token(std::uint32_t id, Bytes token) const {
        return (token.size > longest_character && id >= learned_from_) || is_whole(token.data, token.size);
    }

    // Parts between blanks that are not empty.
    std::size_t words() const {
        std::size_t words = 0;
        char before = ' ';
        for (const char byte : token_) {
            words += before == ' ' && byte != ' ';
            before = byte;
        }
        return words;
    }

    // Each counted where it begins.
    std::size_t characters() const {
        const auto begins = [](char byte) { return (static_cast<std::uint8_t>(byte) & 0xc0) != 0x80; };
        return static_cast<std::size_t>(std::count_if(token_.begin(), token_.end(), begins));
    }

    const Tokens& tokens_;
    const Veto veto_;
    void* const context_;
    const std::uint32_t learned_from_;
    const bool more_ = veto_.refuses_more_than_parts_of_characters();
    std::unordered_set<std::string> inherited_;
    std::size_t longest_inherited_ = 0;
    std::string token_;   // the two halves together
};

}  // namespace flat
