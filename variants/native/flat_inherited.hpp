// The merges that training goes on from: looked up by their pair, and where a text can be cut between them.
#pragma once

#include <string>

#include "flat_tokens.hpp"

namespace flat {

// The rank of a merge is its place in the list; the token it makes is first_merge + rank. Of a pair that is in it twice the
// first counts.
class InheritedMerges {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    InheritedMerges(const Merge* merges, std::size_t number) : merges_(merges, merges + number) {
        while (std::size_t{1} << log_ < 2 * number) ++log_;
        while (std::size_t{1} << seams_log_ < bits_a_merge * number) ++seams_log_;
        seams_.resize((std::size_t{1} << seams_log_) / 64);
        slots_ = Array<Slot>::zeros(std::size_t{1} << log_);
        starts_.resize(first_byte);
        for (unsigned byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
        for (std::uint32_t rank = 0; rank < number; ++rank) {
            const Merge& merge = merges_[rank];
            Slot& slot = slots_[place(key_of(merge.left, merge.right))];
            slot = {key_of(merge.left, merge.right), rank};
            const std::string left = spelled(merge.left), right = spelled(merge.right);
            note_seam(left, right);
            add(left + right);
        }
        starts_.push_back(bytes_.size());
        bytes_.resize(bytes_.size() + slack);
    }

    std::size_t size() const { return merges_.size(); }
    const Merge& operator[](std::size_t rank) const { return merges_[rank]; }
    // What a token spells; so many more bytes may be looked at behind it.
    static constexpr std::size_t slack = 16;
    Bytes bytes(std::uint32_t id) const {
        return {bytes_.data() + starts_[id], static_cast<std::size_t>(starts_[id + 1] - starts_[id])};
    }

    std::uint32_t rank(std::uint32_t left, std::uint32_t right) const {
        const PairKey key = key_of(left, right);
        for (std::size_t at = home(key);; at = (at + 1) & (slots_.size() - 1)) {
            if (slots_[at].key == key) return slots_[at].rank;
            if (!slots_[at].key) return none;
        }
    }

    // What may join what ends before `at` to what begins there, two characters of so many bytes. A merge that joins them
    // would need its left half's last bytes before `at` and its right half's first bytes behind it; of each up to three are
    // looked for.
    enum class Seam : std::uint8_t { none, whole, broken };
    // none: no merge, so what is on either side is encoded by itself as it is together. whole: merges of halves that are
    // no shorter than the characters, so tokens hold whole characters or parts of one. broken: others too.
    Seam seam(const std::uint8_t* begin, const std::uint8_t* at, const std::uint8_t* end, std::size_t length_before,
              std::size_t length_behind) const {
        Seam found = Seam::none;
        const std::size_t before = std::min<std::size_t>(seam_bytes, static_cast<std::size_t>(at - begin));
        const std::size_t behind = std::min<std::size_t>(seam_bytes, static_cast<std::size_t>(end - at));
        for (std::size_t left = 1; left <= before; ++left)
            for (std::size_t right = 1; right <= behind; ++right)
                if (has_seam(seam_of(at, left, right))) {
                    if (left < length_before || right < length_behind) return Seam::broken;
                    found = Seam::whole;
                }
        return found;
    }
    // Whether any merge has these two bytes where its halves meet: the first look, and the only one between single bytes, where
    // most such seams are real.
    bool may_join(std::uint8_t before, std::uint8_t behind) const {
        const unsigned pair = before << 8u | behind;
        return seams_of_bytes_[pair >> 6] >> (pair & 63) & 1;
    }
    static constexpr std::size_t seam_bytes = 3;

  private:
    struct Slot {
        PairKey key;   // 0: empty
        std::uint32_t rank;
    };
    static constexpr std::size_t bits_a_merge = 256;   // of nine that are looked for, hardly one is found by mistake

    void add(const std::string& token) {
        starts_.push_back(bytes_.size());
        bytes_.insert(bytes_.end(), token.begin(), token.end());
    }
    // While tokens are added, the last one's end is the end of all.
    std::string spelled(std::uint32_t id) const {
        const std::size_t end = id + 1 < starts_.size() ? starts_[id + 1] : bytes_.size();
        return {bytes_.begin() + static_cast<std::ptrdiff_t>(starts_[id]), bytes_.begin() + static_cast<std::ptrdiff_t>(end)};
    }

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
    std::size_t bit_of(std::uint64_t seam) const {
        return static_cast<std::size_t>((seam * 0xd6e8feb86659fd93u) >> (64 - seams_log_));
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
    std::vector<std::uint8_t> bytes_;   // of all tokens end to end
    std::vector<std::size_t> starts_;   // of each, and where the last one ends
    std::vector<std::uint64_t> seams_of_bytes_ = std::vector<std::uint64_t>(65536 / 64);
    unsigned seams_log_ = 10;
    std::vector<std::uint64_t> seams_;
};

}  // namespace flat
