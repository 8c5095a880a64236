// The merges that training goes on from: looked up by their pair, and where a text can be cut between them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "flat_job.hpp"
#include "flat_memory.hpp"
#include "flat_tokens.hpp"

namespace flat {

// The rank of a merge is its place in the list; the token it makes is first_merge + rank. Of a pair that is in it twice the
// first counts.
class InheritedMerges {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    InheritedMerges(const Merge* merges, std::size_t number) : merges_(merges, merges + number) {
        while (std::size_t{1} << log_ < 2 * number) ++log_;
        slots_ = Array<Slot>::zeros(std::size_t{1} << log_);
        std::vector<std::string> tokens(first_merge);
        for (std::uint32_t byte = 0; byte < 256; ++byte)
            tokens[first_byte + byte] = std::string(1, static_cast<char>(byte));
        for (std::uint32_t rank = 0; rank < number; ++rank) {
            const Merge& merge = merges_[rank];
            Slot& slot = slots_[place(key_of(merge.left, merge.right))];
            slot = {key_of(merge.left, merge.right), rank};
            note_seam(tokens[merge.left], tokens[merge.right]);
            tokens.push_back(tokens[merge.left] + tokens[merge.right]);
        }
    }

    std::size_t size() const { return merges_.size(); }
    const Merge& operator[](std::size_t rank) const { return merges_[rank]; }

    std::uint32_t rank(std::uint32_t left, std::uint32_t right) const {
        const PairKey key = key_of(left, right);
        for (std::size_t at = home(key);; at = (at + 1) & (slots_.size() - 1)) {
            if (slots_[at].key == key) return slots_[at].rank;
            if (!slots_[at].key) return none;
        }
    }

    // Whether `text` can be cut before `at`: no merge joins what ends there to what begins there. A merge across the cut
    // would need its left half's last bytes before it and its right half's first bytes behind it; of each up to three
    // are looked for. So the parts are encoded by themselves as they are together.
    bool cuts(const std::uint8_t* begin, const std::uint8_t* at, const std::uint8_t* end) const {
        const unsigned pair = at[-1] << 8u | at[0];
        if (!(seams_of_bytes_[pair >> 6] >> (pair & 63) & 1)) return true;
        // Within ASCII most are real, and to look closer is in vain.
        if (at[0] < 0xc0) return false;
        const std::size_t before = std::min<std::size_t>(seam_bytes, static_cast<std::size_t>(at - begin));
        const std::size_t behind = std::min<std::size_t>(seam_bytes, static_cast<std::size_t>(end - at));
        for (std::size_t left = 1; left <= before; ++left)
            for (std::size_t right = 1; right <= behind; ++right)
                if (has_seam(seam_of(at, left, right))) return false;
        return true;
    }

  private:
    struct Slot {
        PairKey key;   // 0: empty
        std::uint32_t rank;
    };
    static constexpr std::size_t seam_bytes = 3;
    static constexpr unsigned seam_log = 20;

    std::size_t home(PairKey key) const {
        key ^= key >> 29;
        return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> (64 - log_));
    }
    std::size_t place(PairKey key) const {
        std::size_t at = home(key);
        while (slots_[at].key) at = (at + 1) & (slots_.size() - 1);
        return at;
    }

    // So many bytes before `at` and behind it, in a number of its own for all that are different.
    static std::uint64_t seam_of(const std::uint8_t* at, std::size_t left, std::size_t right) {
        std::uint64_t seam = left * 4 + right;
        for (std::size_t place = 1; place <= left; ++place) seam = seam << 8 | at[-static_cast<std::ptrdiff_t>(place)];
        for (std::size_t place = 0; place < right; ++place) seam = seam << 8 | at[place];
        return seam;
    }
    // One bit for several seams: there may seem to be one where is none, which costs a cut and nothing else.
    static std::size_t bit_of(std::uint64_t seam) {
        return static_cast<std::size_t>((seam * 0xd6e8feb86659fd93u) >> (64 - seam_log));
    }
    bool has_seam(std::uint64_t seam) const {
        const std::size_t bit = bit_of(seam);
        return seams_[bit >> 6] >> (bit & 63) & 1;
    }
    void note_seam(const std::string& left, const std::string& right) {
        const std::size_t before = std::min(seam_bytes, left.size()), behind = std::min(seam_bytes, right.size());
        const std::string around = left.substr(left.size() - before) + right.substr(0, behind);
        const std::uint8_t* const at = reinterpret_cast<const std::uint8_t*>(around.data()) + before;
        const std::size_t bit = bit_of(seam_of(at, before, behind));
        seams_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
        const unsigned pair = at[-1] << 8u | at[0];
        seams_of_bytes_[pair >> 6] |= std::uint64_t{1} << (pair & 63);
    }

    std::vector<Merge> merges_;
    unsigned log_ = 10;
    Array<Slot> slots_;
    std::vector<std::uint64_t> seams_of_bytes_ = std::vector<std::uint64_t>(65536 / 64);
    std::vector<std::uint64_t> seams_ = std::vector<std::uint64_t>((std::size_t{1} << seam_log) / 64);
};

}  // namespace flat
