// The tokens learned so far: their bytes, their lengths, and which of two equally frequent pairs goes first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "flat_job.hpp"

namespace flat {

using PairKey = std::uint64_t;

inline PairKey key_of(std::uint32_t left, std::uint32_t right) { return PairKey{left} << 32 | right; }
inline std::uint32_t left_of(PairKey key) { return static_cast<std::uint32_t>(key >> 32); }
inline std::uint32_t right_of(PairKey key) { return static_cast<std::uint32_t>(key); }

struct Bytes {
    const std::uint8_t* data;
    std::size_t size;
};

// GPT-2 shows 188 bytes as themselves, and Hugging Face numbers those first, then the other 68.
inline bool shown_as_itself(unsigned byte) {
    return (byte >= 33 && byte < 127) || (byte >= 161 && byte < 173) || byte >= 174;
}

class Tokens {
  public:
    // Bytes are kept where the order needs them, or where somebody asks for them (`with_bytes`).
    explicit Tokens(TieBreak tie_break, bool with_bytes = false)
        : by_bytes_(tie_break <= TieBreak::smallest_bytes), with_bytes_(by_bytes_ || with_bytes), tie_break_(tie_break) {
        add(0, 0, nullptr);
        add(0, 0, nullptr);
        unsigned shown = 0, remapped = 188;
        for (unsigned byte = 0; byte < 256; ++byte) {
            const unsigned place = shown_as_itself(byte) ? shown++ : remapped++;
            const std::uint8_t value = static_cast<std::uint8_t>(byte);
            add(tie_break == TieBreak::huggingface ? place : byte, 1, &value);
        }
    }

    // Learns the merge of two tokens and returns the new one's id.
    std::uint32_t merge(std::uint32_t left, std::uint32_t right) { return join(left, right, cells_[left] + cells_[right]); }
    // The same for a merge that was made before the text was laid out: its token takes one cell.
    std::uint32_t inherit(std::uint32_t left, std::uint32_t right) { return join(left, right, 1); }

    std::uint32_t size() const { return static_cast<std::uint32_t>(lengths_.size()); }
    // In cells of the text.
    std::uint64_t length(std::uint32_t id) const { return cells_[id]; }
    // Where bytes are kept.
    Bytes bytes(std::uint32_t id) const { return {bytes_of(id), static_cast<std::size_t>(lengths_[id])}; }
    // Among equal counts the pair with the greater (order of left, order of right) goes first. Two tokens with the same
    // order may still differ in their later bytes; `before` knows.
    std::uint64_t order(std::uint32_t id) const { return order_[id]; }

    bool before(PairKey one, PairKey other) const {
        const int left = compare(left_of(one), left_of(other));
        return left ? left > 0 : compare(right_of(one), right_of(other)) > 0;
    }

  private:
    std::uint32_t join(std::uint32_t left, std::uint32_t right, std::uint64_t cells) {
        const std::uint64_t length = lengths_[left] + lengths_[right];
        const std::uint32_t id = size();
        const std::size_t start = bytes_.size();
        if (with_bytes_) {
            bytes_.resize(start + length);
            std::memcpy(bytes_.data() + start, bytes_of(left), lengths_[left]);
            std::memcpy(bytes_.data() + start + lengths_[left], bytes_of(right), lengths_[right]);
        }
        append(by_bytes_ ? prefix(bytes_.data() + start, length) : id - first_byte, length, cells, start);
        return id;
    }

    // Positive if `one` is preferred.
    int compare(std::uint32_t one, std::uint32_t other) const {
        if (one == other) return 0;
        if (order_[one] != order_[other]) return order_[one] > order_[other] ? 1 : -1;
        const std::uint64_t common = std::min(lengths_[one], lengths_[other]);
        const int bytes = std::memcmp(bytes_of(one), bytes_of(other), common);
        const int greater = bytes ? bytes : (lengths_[one] > lengths_[other] ? 1 : -1);
        return tie_break_ == TieBreak::greatest_bytes ? greater : -greater;
    }

    void add(std::uint64_t number, std::uint64_t length, const std::uint8_t* bytes) {
        const std::size_t start = bytes_.size();
        bytes_.insert(bytes_.end(), bytes, bytes + length);
        append(by_bytes_ ? prefix(bytes, length) : number, length, length, start);
    }

    // Smaller is preferred by every rule but the first, so theirs is stored upside down.
    void append(std::uint64_t ascending, std::uint64_t length, std::uint64_t cells, std::size_t start) {
        order_.push_back(tie_break_ == TieBreak::greatest_bytes ? ascending : ~ascending);
        lengths_.push_back(length);
        cells_.push_back(cells);
        starts_.push_back(start);
    }

    const std::uint8_t* bytes_of(std::uint32_t id) const { return bytes_.data() + starts_[id]; }

    bool by_bytes_, with_bytes_;
    TieBreak tie_break_;
    std::vector<std::uint8_t> bytes_;   // of all tokens end to end; left out where ids decide and nobody asks
    std::vector<std::size_t> starts_;
    std::vector<std::uint64_t> lengths_;   // in bytes
    std::vector<std::uint64_t> cells_;     // the same, but 1 for what was inherited
    std::vector<std::uint64_t> order_;
};

}  // namespace flat
