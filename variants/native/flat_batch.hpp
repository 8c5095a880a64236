// Which of the next best pairs can be merged together, in one pass, as if one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "flat_memory.hpp"
#include "flat_tokens.hpp"

namespace flat {

// After merging (A, B), the next best pair (C, D) stays the next best with its count and its places if A != B, C != B,
// D != A, and no other pair (x, A) or (B, y) has the count of (C, D).
//
// For then the merge takes away no occurrence of (C, D): one that shares a token with an occurrence of (A, B) would share
// it as C = B or D = A, or be the same place, and then the same pair. And it brings nothing better: a new pair stands
// at places where (x, A) or (B, y) stood, so its count is at most theirs; these were no better than (C, D), so a new pair
// is below it, unless theirs equals it.
class Batch {
  public:
    void clear() {
        ++number_;
        closed_ = false;
    }
    void add(PairKey key) {
        const std::uint32_t left = left_of(key), right = right_of(key);
        as_left_.reach(left);
        as_right_.reach(right);
        as_left_[left] = as_right_[right] = number_;
        closed_ |= left == right;
    }
    // Whether a pair can come next, as far as this pair is concerned.
    bool allows(PairKey key) const { return !closed_ && !touches(key); }
    // Whether a pair may give rise to new ones of its own count.
    bool touches(PairKey key) const {
        return stamp(as_right_, left_of(key)) == number_ || stamp(as_left_, right_of(key)) == number_;
    }

  private:
    static std::uint32_t stamp(const Array<std::uint32_t>& stamps, std::uint32_t token) {
        return token < stamps.size() ? stamps[token] : 0;
    }
    // By token, the number of the last batch that took it on this side.
    Array<std::uint32_t> as_left_, as_right_;
    std::uint32_t number_ = 0;
    bool closed_ = false;   // nothing can follow
};

}  // namespace flat
