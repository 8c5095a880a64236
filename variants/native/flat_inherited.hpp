// Inherited merges: the rank of every pair, and where none of them can join two characters.
#pragma once

#include "flat_tokens.hpp"

namespace flat {

// The ranks of pairs, in a table that is made once. Most pairs that are looked up are no merge, which a set of bits says that
// the nearest cache holds; of two bytes, which are looked up most, the ranks lie side by side.
class PairRanks {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    PairRanks(const Merge* merges, std::size_t number) : packs_(first_merge + number < std::size_t{1} << id_bits) {
        while (std::size_t{1} << log_ < 2 * number) ++log_;
        if (packs_) slots_ = Array<std::uint64_t>(std::size_t{1} << log_);
        maybe_.resize((std::size_t{1} << (log_ + maybe_log)) / 64);
        for (std::uint32_t rank = 0; rank < number; ++rank) {
            const std::uint64_t mixed = mixed_of(merges[rank].left, merges[rank].right);
            const std::size_t bit = mixed >> (64 - log_ - maybe_log);
            maybe_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
            if (!packs_) {
                wide_.insert(key_of(merges[rank].left, merges[rank].right), 0, nullptr, rank);
                continue;
            }
            std::size_t at = mixed >> (64 - log_);
            while (slots_[at]) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = packed(merges[rank].left, merges[rank].right) << id_bits | rank;
        }
        for (std::uint32_t left = 0; left < 256; ++left)
            for (std::uint32_t right = 0; right < 256; ++right)
                of_bytes_[left << 8 | right] = of(first_byte + left, first_byte + right);
    }

    std::uint32_t of(std::uint32_t left, std::uint32_t right) const {
        const std::uint64_t mixed = mixed_of(left, right);
        const std::size_t bit = mixed >> (64 - log_ - maybe_log);
        if (!(maybe_[bit >> 6] >> (bit & 63) & 1)) return none;
        if (!packs_) {
            const PairTable::Slot* const found = wide_.find(key_of(left, right));
            return found ? found->entries : none;
        }
        const std::uint64_t pair = packed(left, right);
        for (std::size_t at = mixed >> (64 - log_);; at = (at + 1) & (slots_.size() - 1)) {
            const std::uint64_t slot = slots_[at];
            if (slot >> id_bits == pair) return static_cast<std::uint32_t>(slot & ((std::uint64_t{1} << id_bits) - 1));
            if (!slot) return none;
        }
    }
    std::uint32_t of_bytes(std::uint8_t left, std::uint8_t right) const { return of_bytes_[left << 8 | right]; }

  private:
    static constexpr unsigned id_bits = 21, maybe_log = 2;   // two ids and a rank fill a slot; four bits for each slot

    static std::uint64_t packed(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << id_bits | right; }
    static std::uint64_t mixed_of(std::uint32_t left, std::uint32_t right) {
        const std::uint64_t key = key_of(left, right);
        return (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    }

    const bool packs_;
    unsigned log_ = 4;
    Array<std::uint64_t> slots_;          // 0 is a free one; no id is
    PairTable wide_;                      // of more ids than a slot has bits for
    std::vector<std::uint64_t> maybe_;
    std::vector<std::uint32_t> of_bytes_ = std::vector<std::uint32_t>(65536);
};

// The rank of a merge is its place in the list; the token it makes is first_merge + rank. No pair is in the list twice.
class InheritedMerges {
  public:
    static constexpr std::uint32_t none = PairRanks::none;

    InheritedMerges(const Merge* merges, std::size_t number) : merges_(merges, merges + number), ranks_(merges, number) {
        while (std::size_t{1} << boundaries_log_ < bits_a_merge * number) ++boundaries_log_;
        boundaries_.resize((std::size_t{1} << boundaries_log_) / 64);
        for (std::uint32_t id = 0; id < first_merge; ++id) {
            const std::uint8_t byte = static_cast<std::uint8_t>(id - first_byte);   // separator and hole have no bytes
            add(bytes_.add(&byte, id >= first_byte), id >= first_byte);
        }
        for (std::uint32_t rank = 0; rank < number; ++rank) {
            const auto [left, right] = merges_[rank];
            add(bytes_.join(starts_[left], length(left), starts_[right], length(right)), length(left) + length(right));
            note_boundary(bytes(first_merge + rank).data + length(left), length(left), length(right));
            if (crosses_ == rank && !is_border(bytes(first_merge + rank).data + length(left))) ++crosses_;
        }
    }

    std::size_t size() const { return merges_.size(); }
    const Merge* data() const { return merges_.data(); }
    const Merge& operator[](std::size_t rank) const { return merges_[rank]; }
    Bytes bytes(std::uint32_t id) const { return {bytes_.at(starts_[id]), lengths_[id]}; }
    std::uint32_t length(std::uint32_t id) const { return lengths_[id]; }

    // The first rank whose token has a blank behind what is none: below it words are apart.
    std::size_t first_across_words() const { return crosses_; }

    const PairRanks& ranks() const { return ranks_; }

    // Which merges may join the characters before and behind `at`, of so many bytes. A merge that joins them has its left half's
    // last bytes before `at` and its right half's first bytes behind it; of each up to three are looked for.
    // none: no merge, so either side is encoded by itself as it is together. whole: merges of halves that are no shorter than
    // the characters, so tokens hold whole characters or parts of one. broken: others too.
    enum class Boundary : std::uint8_t { none, whole, broken };
    Boundary boundary(const std::uint8_t* begin, const std::uint8_t* at, const std::uint8_t* end, std::size_t length_before,
              std::size_t length_behind) const {
        Boundary found = Boundary::none;
        const std::size_t before = std::min<std::size_t>(boundary_bytes, static_cast<std::size_t>(at - begin));
        const std::size_t behind = std::min<std::size_t>(boundary_bytes, static_cast<std::size_t>(end - at));
        for (std::size_t left = 1; left <= before; ++left)
            for (std::size_t right = 1; right <= behind; ++right)
                if (has_boundary(boundary_of(at, left, right))) {
                    if (left < length_before || right < length_behind) return Boundary::broken;
                    found = Boundary::whole;
                }
        return found;
    }
    // Whether any merge has these two bytes where its halves meet: the first test, and the only one between single bytes.
    bool may_join(std::uint8_t before, std::uint8_t behind) const {
        const unsigned pair = before << 8u | behind;
        return boundaries_of_bytes_[pair >> 6] >> (pair & 63) & 1;
    }
    static constexpr std::size_t boundary_bytes = 3;

  private:
    static constexpr std::size_t bits_a_merge = 256;   // of nine that are looked for, hardly one is found by mistake

    // So many bytes before `at` and behind it, as a number that no others have.
    static std::uint64_t boundary_of(const std::uint8_t* at, std::size_t left, std::size_t right) {
        std::uint64_t boundary = left * 4 + right;
        for (std::size_t place = 1; place <= left; ++place) boundary = boundary << 8 | at[-static_cast<std::ptrdiff_t>(place)];
        for (std::size_t place = 0; place < right; ++place) boundary = boundary << 8 | at[place];
        return boundary;
    }
    // Several boundaries share a bit: one that is found by mistake costs a cut and nothing else.
    std::size_t bit_of(std::uint64_t boundary) const {
        return static_cast<std::size_t>((boundary * 0xd6e8feb86659fd93u) >> (64 - boundaries_log_));
    }
    bool has_boundary(std::uint64_t boundary) const {
        const std::size_t bit = bit_of(boundary);
        return boundaries_[bit >> 6] >> (bit & 63) & 1;
    }
    void add(std::int64_t start, std::uint32_t length) {
        starts_.push_back(start);
        lengths_.push_back(length);
    }
    // Halves of so many bytes meet at `at`.
    void note_boundary(const std::uint8_t* at, std::size_t left, std::size_t right) {
        const std::size_t bit = bit_of(boundary_of(at, std::min(boundary_bytes, left), std::min(boundary_bytes, right)));
        boundaries_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
        const unsigned pair = at[-1] << 8u | at[0];
        boundaries_of_bytes_[pair >> 6] |= std::uint64_t{1} << (pair & 63);
    }

    std::vector<Merge> merges_;
    PairRanks ranks_;
    TokenBytes bytes_;                     // of every token, by id
    std::vector<std::int64_t> starts_;
    std::vector<std::uint32_t> lengths_;
    std::size_t crosses_ = 0;
    std::vector<std::uint64_t> boundaries_of_bytes_ = std::vector<std::uint64_t>(65536 / 64);
    unsigned boundaries_log_ = 10;
    std::vector<std::uint64_t> boundaries_;
};

}  // namespace flat
