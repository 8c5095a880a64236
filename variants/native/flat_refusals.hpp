// Which pairs may not be merged when training goes on from inherited merges.
#pragma once

#include <string>
#include <unordered_set>

#include "flat_tokens.hpp"

namespace flat {

// A veto as in variants/vetoes.py, by its name, or one's own, which is asked.
struct Veto {
    enum Kind : int { none, superbpe, longest_in_bytes, longest_in_characters, asked };
    // 1: refuse the pair of these halves, 0: do not, -1: stop.
    using Ask = int (*)(void* context, Bytes left, Bytes right);

    Kind kind = none;
    std::uint64_t longest = 0;
    Ask ask = nullptr;
};

// Pairs under the veto, and pairs that would spell an inherited token anew. It is asked when a pair is about to be kept,
// so seldom: a pair too rare to be kept need not be refused.
class Refusals {
  public:
    Refusals(const Tokens& tokens, const Veto& veto, void* context) : tokens_(tokens), veto_(veto), context_(context) {
        for (std::uint32_t id = first_merge; id < tokens.size(); ++id) {
            const Bytes token = tokens.bytes(id);
            longest_inherited_ = std::max(longest_inherited_, token.size);
            inherited_.emplace(reinterpret_cast<const char*>(token.data), token.size);
        }
    }

    bool operator()(PairKey key) {
        const Bytes left = tokens_.bytes(left_of(key)), right = tokens_.bytes(right_of(key));
        if (veto_.kind == Veto::none && left.size + right.size > longest_inherited_) return false;
        token_.assign(reinterpret_cast<const char*>(left.data), left.size);
        token_.append(reinterpret_cast<const char*>(right.data), right.size);
        return is_vetoed(left, right) || (token_.size() <= longest_inherited_ && inherited_.count(token_));
    }

  private:
    static constexpr std::size_t most_words = 4;

    bool is_vetoed(Bytes left, Bytes right) const {
        switch (veto_.kind) {
            case Veto::none: return false;
            case Veto::superbpe: return token_.find(": ") != std::string::npos || words() > most_words;
            case Veto::longest_in_bytes: return token_.size() > veto_.longest;
            case Veto::longest_in_characters: return characters() > veto_.longest;
            case Veto::asked: break;
        }
        const int answer = veto_.ask(context_, left, right);
        if (answer < 0) throw Stopped{};
        return answer;
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
    std::unordered_set<std::string> inherited_;
    std::size_t longest_inherited_ = 0;
    std::string token_;   // the two halves together
};

}  // namespace flat
