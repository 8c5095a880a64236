// The tokens learned so far, as byte strings, and which of two equally frequent pairs goes first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grid_job.hpp"

namespace grid {

class Vocabulary {
  public:
    explicit Vocabulary(TieBreak tie_break) : tie_break_(tie_break) {
        Token shown = 0, hidden = 188;
        for (unsigned byte = 0; byte < first_merge; ++byte) {
            tokens_.push_back(std::string(1, static_cast<char>(byte)));
            const bool shows = (byte >= 33 && byte < 127) || (byte >= 161 && byte < 173) || byte >= 174;
            const Token place = shows ? shown++ : hidden++;   // in GPT-2's alphabet, which Hugging Face numbers by
            numbers_.push_back(tie_break == TieBreak::huggingface ? place : byte);
        }
    }

    // Learns the merge of a pair and returns the new token's id.
    Token add(PairKey pair) {
        const Token id = static_cast<Token>(tokens_.size());
        numbers_.push_back(id);
        tokens_.push_back(tokens_[left_of(pair)] + tokens_[right_of(pair)]);
        return id;
    }

    // Whether `one` is merged before `other` if both are equally frequent: a strict order.
    bool before(PairKey one, PairKey other) const {
        const int left = preference(left_of(one), left_of(other));
        return left ? left > 0 : preference(right_of(one), right_of(other)) > 0;
    }

  private:
    // Positive if the pair with `one` goes first. std::string compares its characters as unsigned.
    int preference(Token one, Token other) const {
        if (one == other) return 0;
        switch (tie_break_) {
            case TieBreak::greatest_bytes: return tokens_[one].compare(tokens_[other]);
            case TieBreak::smallest_bytes: return tokens_[other].compare(tokens_[one]);
            default: return numbers_[one] < numbers_[other] ? 1 : -1;
        }
    }

    TieBreak tie_break_;
    std::vector<std::string> tokens_;
    std::vector<Token> numbers_;
};

}  // namespace grid
