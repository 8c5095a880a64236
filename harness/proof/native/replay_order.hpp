// Which of two pairs of one count the tie-break takes first, and which claims of one count it takes last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "replay_job.hpp"
#include "replay_text.hpp"

namespace replay {

using PairKey = std::uint64_t;

inline PairKey key_of(std::uint32_t left, std::uint32_t right) { return PairKey{left} << 32 | right; }
inline std::uint32_t left_of(PairKey key) { return static_cast<std::uint32_t>(key >> 32); }
inline std::uint32_t right_of(PairKey key) { return static_cast<std::uint32_t>(key); }

using Spelling = std::basic_string<unsigned char>;

class Tokens {
  public:
    explicit Tokens(TieBreak tie_break) : tie_break_(tie_break), pairs_(first_merged), lengths_(first_merged, 1) {
        starts_.resize(first_merged);
        for (std::uint64_t byte = 0; byte < 256; ++byte) starts_[first_byte + byte] = byte << 56;
    }

    void merge(std::uint32_t left, std::uint32_t right) {
        const std::uint64_t length = lengths_[left];
        pairs_.push_back(key_of(left, right));
        lengths_.push_back(length + lengths_[right]);
        starts_.push_back(starts_[left] | (length < 8 ? starts_[right] >> 8 * length : 0));
    }

    std::uint64_t length(std::uint32_t token) const { return lengths_[token]; }
    std::uint64_t comparisons() const { return comparisons_; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(lengths_.size()); }

    Spelling bytes(std::uint32_t token) const {
        Spelling bytes_of_token;
        std::vector<std::uint32_t> pending{token};
        while (!pending.empty()) {
            const std::uint32_t next = pending.back();
            pending.pop_back();
            if (next < first_merged) {
                bytes_of_token.push_back(static_cast<unsigned char>(next - first_byte));
            } else {
                pending.push_back(right_of(pairs_[next]));
                pending.push_back(left_of(pairs_[next]));
            }
        }
        return bytes_of_token;
    }

    // Whether the tie-break takes the one pair before the other.
    bool before(PairKey one, PairKey other) const {
        const int left = compare(left_of(one), left_of(other));
        return left ? left > 0 : compare(right_of(one), right_of(other)) > 0;
    }

  private:
    // Positive if `one` is taken first.
    int compare(std::uint32_t one, std::uint32_t other) const {
        if (one == other) return 0;
        switch (tie_break_) {
            case TieBreak::greatest_bytes: return by_bytes(one, other);
            case TieBreak::smallest_bytes: return -by_bytes(one, other);
            case TieBreak::huggingface: return huggingface_id(one) < huggingface_id(other) ? 1 : -1;
            case TieBreak::raw_bytes: break;
        }
        return one < other ? 1 : -1;
    }
    // Positive if the bytes of `one` are greater. The first eight mostly decide. Otherwise both tokens are taken apart from the
    // left, the longer part first, until two parts differ in their first bytes; equal parts are skipped whole.
    int by_bytes(std::uint32_t one, std::uint32_t other) const {
        if (starts_[one] != starts_[other]) return starts_[one] > starts_[other] ? 1 : -1;
        mine_.assign(1, one);
        theirs_.assign(1, other);
        while (!mine_.empty() && !theirs_.empty()) {
            ++comparisons_;
            const std::uint32_t left = mine_.back(), right = theirs_.back();
            const std::uint64_t common = std::min({lengths_[left], lengths_[right], std::uint64_t{8}});
            const std::uint64_t mine = starts_[left] >> (64 - 8 * common), theirs = starts_[right] >> (64 - 8 * common);
            if (mine != theirs) return mine > theirs ? 1 : -1;
            if (left == right || (lengths_[left] == common && lengths_[right] == common)) {
                mine_.pop_back();
                theirs_.pop_back();
            } else {
                take_apart(lengths_[left] > lengths_[right] ? mine_ : theirs_);
            }
        }
        return theirs_.empty() ? 1 : -1;
    }
    void take_apart(std::vector<std::uint32_t>& parts) const {
        const PairKey pair = pairs_[parts.back()];
        parts.back() = right_of(pair);
        parts.push_back(left_of(pair));
    }
    // GPT-2 shows 188 bytes as themselves; Hugging Face numbers those first, then the other 68, then the merged tokens.
    static std::uint32_t huggingface_id(std::uint32_t token) {
        if (token >= first_merged) return token;
        const auto shown = [](std::uint32_t byte) {
            return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        };
        const std::uint32_t byte = token - first_byte;
        std::uint32_t smaller = 0;
        for (std::uint32_t other = 0; other < byte; ++other) smaller += shown(other) == shown(byte);
        return shown(byte) ? smaller : 188 + smaller;
    }

    TieBreak tie_break_;
    std::vector<PairKey> pairs_;
    std::vector<std::uint64_t> lengths_;
    std::vector<std::uint64_t> starts_;   // the first eight bytes, zeros behind a shorter token
    mutable std::vector<std::uint32_t> mine_, theirs_;   // the parts of two tokens that are still to be compared
    mutable std::uint64_t comparisons_ = 0;
};

// The claims of the present count: of those since any step, the one that the tie-break takes last.
class TiedClaims {
  public:
    explicit TiedClaims(const Tokens& tokens) : tokens_(tokens) {}

    void add(std::uint64_t step, PairKey pair) {
        while (!last_taken_.empty() && !tokens_.before(pair, last_taken_.back().pair)) last_taken_.pop_back();
        last_taken_.push_back({step, pair});
    }
    void clear() { last_taken_.clear(); }

    // Whether a claim since step `since` has a later place in the tie-break than this pair of the same count.
    bool passed_over(PairKey pair, std::uint64_t since) const {
        const auto earlier = [](std::uint64_t than, const Taken& taken) { return than < taken.step; };
        const auto found = std::upper_bound(last_taken_.begin(), last_taken_.end(), since, earlier);
        return found != last_taken_.end() && tokens_.before(pair, found->pair);
    }

  private:
    struct Taken {
        std::uint64_t step;
        PairKey pair;
    };
    const Tokens& tokens_;
    std::vector<Taken> last_taken_;   // by step; the tie-break takes each after those behind it
};

}  // namespace replay
