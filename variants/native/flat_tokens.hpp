// The tokens learned so far: their bytes, their lengths, and which of two equally frequent pairs goes first.
#pragma once

#include "flat_job.hpp"
#include "flat_memory.hpp"

namespace flat {

using PairKey = std::uint64_t;

inline PairKey key_of(std::uint32_t left, std::uint32_t right) { return PairKey{left} << 32 | right; }
inline std::uint32_t left_of(PairKey key) { return static_cast<std::uint32_t>(key >> 32); }
inline std::uint32_t right_of(PairKey key) { return static_cast<std::uint32_t>(key); }

struct Bytes {
    const std::uint8_t* data;
    std::size_t size;
};

// The bytes of all tokens, in one buffer that grows at both ends; a token is a stretch of it. Bytes are added at the ends and
// never changed, so a stretch spells the same for good. If the left half ends where the buffer ends, the token is that half
// and what is added behind it: the right half. Likewise at the front. So a token that grows to the end of a long word, one
// neighbour at a time, is spelled once and not at every stage, which would take memory quadratic in its length.
class TokenBytes {
  public:
    const std::uint8_t* at(std::int64_t place) const { return bytes_.data() + (origin_ + place); }

    std::int64_t add(const std::uint8_t* bytes, std::int64_t length) {
        make_room(length);
        std::copy_n(bytes, length, to(end_));
        end_ += length;
        return end_ - length;
    }

    // Where the token of two halves is. If neither is at an end, it is spelled at the end at which the longer half can grow on.
    std::int64_t join(std::int64_t left, std::int64_t left_length, std::int64_t right, std::int64_t right_length) {
        const bool behind = left + left_length == end_, before = !behind && right == begin_;
        const bool in_front = before || (!behind && left_length < right_length);
        const std::int64_t written = (behind ? 0 : left_length) + (before ? 0 : right_length);
        make_room(written);
        (in_front ? begin_ : end_) += in_front ? -written : written;
        const std::int64_t start = in_front ? begin_ : end_ - left_length - right_length;
        if (!behind) std::copy_n(at(left), left_length, to(start));
        if (!before) std::copy_n(at(right), right_length, to(start + left_length));
        return start;
    }

  private:
    std::uint8_t* to(std::int64_t place) { return bytes_.data() + (origin_ + place); }

    void make_room(std::int64_t written) {
        const std::int64_t size = static_cast<std::int64_t>(bytes_.size());
        if (written <= origin_ + begin_ && written <= size - (origin_ + end_)) return;
        const std::int64_t roomier = 2 * (size + written) + smallest, origin = (roomier - begin_ - end_) / 2;
        Array<std::uint8_t> bytes(static_cast<std::size_t>(roomier));
        if (size) std::copy_n(at(begin_), end_ - begin_, bytes.data() + (origin + begin_));
        bytes_ = std::move(bytes);
        origin_ = origin;
    }

    static constexpr std::int64_t smallest = 4096;
    Array<std::uint8_t> bytes_;
    std::int64_t origin_ = 0;               // where the place 0 is in the buffer
    std::int64_t begin_ = 0, end_ = 0;
};

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
        const std::int64_t start =
            with_bytes_ ? bytes_.join(starts_[left], static_cast<std::int64_t>(lengths_[left]), starts_[right],
                                      static_cast<std::int64_t>(lengths_[right]))
                        : 0;
        append(by_bytes_ ? prefix(bytes_.at(start), length) : id - first_byte, length, cells, start);
        return id;
    }

    // Positive if `one` is preferred.
    int compare(std::uint32_t one, std::uint32_t other) const {
        if (one == other) return 0;
        if (order_[one] != order_[other]) return order_[one] > order_[other] ? 1 : -1;
        // Where both begin at one place, the shorter is a prefix of the other.
        const bool one_stretch = starts_[one] == starts_[other];
        const std::uint64_t common = one_stretch ? 0 : std::min(lengths_[one], lengths_[other]);
        const int bytes = std::memcmp(bytes_of(one), bytes_of(other), common);
        const int greater = bytes ? bytes : (lengths_[one] > lengths_[other] ? 1 : -1);
        return tie_break_ == TieBreak::greatest_bytes ? greater : -greater;
    }

    void add(std::uint64_t number, std::uint64_t length, const std::uint8_t* bytes) {
        const std::int64_t start = bytes_.add(bytes, static_cast<std::int64_t>(length));
        append(by_bytes_ ? prefix(bytes, length) : number, length, length, start);
    }

    // Smaller is preferred by every rule but the first, so theirs is stored upside down.
    void append(std::uint64_t ascending, std::uint64_t length, std::uint64_t cells, std::int64_t start) {
        order_.push_back(tie_break_ == TieBreak::greatest_bytes ? ascending : ~ascending);
        lengths_.push_back(length);
        cells_.push_back(cells);
        starts_.push_back(start);
    }

    const std::uint8_t* bytes_of(std::uint32_t id) const { return bytes_.at(starts_[id]); }

    bool by_bytes_, with_bytes_;
    TieBreak tie_break_;
    TokenBytes bytes_;   // of bytes alone where ids decide and nobody asks
    std::vector<std::int64_t> starts_;
    std::vector<std::uint64_t> lengths_;   // in bytes
    std::vector<std::uint64_t> cells_;     // the same, but 1 for what was inherited
    std::vector<std::uint64_t> order_;
};

}  // namespace flat
