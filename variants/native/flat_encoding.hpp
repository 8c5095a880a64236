// Pieces of text to tokens: every inherited merge in its turn, everywhere, from left to right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <queue>
#include <vector>

#include "flat_inherited.hpp"
#include "flat_job.hpp"
#include "flat_memory.hpp"

namespace flat {

// One merge after the other over all pieces is, piece by piece, the merge of least rank until there is none: what a merge
// brings are pairs with its own token, and these have greater ranks, for the halves of every merge are made before it.
//
// A piece is first cut where no merge can join (InheritedMerges::cuts), mostly at blanks. What stands between two cuts, a
// unit, is encoded once and then mostly known.
//
// Noted is which merges were met: whose pair stood somewhere, at the beginning or after some merge had been made
// everywhere. So pairs are looked up only when all places of a rank are merged, for between two places of one merge there
// may stand, for a moment, what never stands after it.
class Encoder {
  public:
    explicit Encoder(const InheritedMerges& merges) : merges_(merges), met_(merges.size()) {}

    // Writes the tokens of a piece of one byte or more, one cell each, and returns where they end. There must be room for
    // as many as there are bytes. `readable` is where the memory ends that may be looked at.
    template <class Symbol>
    Symbol* encode(const std::uint8_t* piece, std::size_t length, const std::uint8_t* readable, Symbol* to) {
        const std::uint8_t* const end = piece + length;
        const std::uint8_t* begin = piece;
        for (const std::uint8_t* at = piece + 1; at < end; ++at) {
            if (!merges_.cuts(piece, at, end)) continue;
            to = encode_unit(begin, at, readable, to);
            begin = at;
        }
        return encode_unit(begin, end, readable, to);
    }

    // By rank: whether its pair ever stood anywhere.
    const std::vector<std::uint8_t>& met() const { return met_; }

  private:
    // What a unit of up to 23 bytes is encoded to, if these are few tokens.
    struct alignas(64) Known {
        std::uint64_t bytes[3];   // filled up with zeros; the last byte is the length
        std::uint32_t number;     // of tokens; 0: nothing is known
        std::uint32_t tokens[9];
    };
    static_assert(sizeof(Known) == 64, "a line of the cache");
    static constexpr std::size_t longest_known = 23, most_known_tokens = 9;
    static constexpr unsigned known_log = 16;
    static constexpr std::size_t few = 40;   // tokens in which the next merge is found by looking at all of them

    template <class Symbol>
    Symbol* encode_unit(const std::uint8_t* begin, const std::uint8_t* end, const std::uint8_t* readable, Symbol* to) {
        const std::size_t length = static_cast<std::size_t>(end - begin);
        if (length == 1) {
            *to = static_cast<Symbol>(first_byte + *begin);
            return to + 1;
        }
        if (length > longest_known) return write(encode_anew(begin, length), to);
        std::uint64_t bytes[3] = {};
        if (static_cast<std::size_t>(readable - begin) >= sizeof bytes) {
            std::memcpy(bytes, begin, sizeof bytes);
            for (std::size_t place = 0; place < 3; ++place) {
                const std::size_t left = length > 8 * place ? length - 8 * place : 0;
                if (left < 8) bytes[place] &= (std::uint64_t{1} << 8 * left) - 1;
            }
        } else {
            std::memcpy(bytes, begin, length);
        }
        bytes[2] |= std::uint64_t{length} << 56;
        std::uint64_t hash = (bytes[0] ^ bytes[0] >> 32) * 0x9e3779b97f4a7c15u;
        hash = (hash ^ hash >> 29 ^ bytes[1]) * 0xd6e8feb86659fd93u;
        hash = (hash ^ hash >> 32 ^ bytes[2]) * 0x9e3779b97f4a7c15u;
        Known& known = known_[hash >> (64 - known_log)];
        if (known.number && known.bytes[0] == bytes[0] && known.bytes[1] == bytes[1] && known.bytes[2] == bytes[2]) {
            for (std::uint32_t place = 0; place < known.number; ++place) to[place] = static_cast<Symbol>(known.tokens[place]);
            return to + known.number;
        }
        const std::size_t number = encode_anew(begin, length);
        if (number <= most_known_tokens) {
            std::copy_n(bytes, 3, known.bytes);
            known.number = static_cast<std::uint32_t>(number);
            std::copy_n(tokens_.data(), number, known.tokens);
        }
        return write(number, to);
    }

    template <class Symbol>
    Symbol* write(std::size_t number, Symbol* to) const {
        for (std::size_t place = 0; place < number; ++place) to[place] = static_cast<Symbol>(tokens_[place]);
        return to + number;
    }

    // Leaves the tokens in tokens_ and tells how many they are.
    std::size_t encode_anew(const std::uint8_t* bytes, std::size_t length) {
        if (length > UINT32_MAX - 1) throw Refused("a piece has 2**32 bytes or more that no merge divides; cut the text");
        if (tokens_.size() < length) tokens_.resize(length);
        for (std::size_t place = 0; place < length; ++place) tokens_[place] = first_byte + bytes[place];
        return length <= few ? merge_few(length) : merge_many(length);
    }

    std::uint32_t rank_met(std::uint32_t left, std::uint32_t right) {
        const std::uint32_t rank = merges_.rank(left, right);
        if (rank != InheritedMerges::none) met_[rank] = 1;
        return rank;
    }

    // Looks at all pairs for each merge.
    std::size_t merge_few(std::size_t number) {
        std::uint32_t ranks[few];
        for (std::size_t place = 0; place + 1 < number; ++place) ranks[place] = rank_met(tokens_[place], tokens_[place + 1]);
        while (number > 1) {
            const std::uint32_t least = *std::min_element(ranks, ranks + number - 1);
            if (least == InheritedMerges::none) break;
            const std::uint32_t merged = first_merge + least;
            std::size_t kept = 0;
            for (std::size_t place = 0; place < number; ++kept) {
                const bool here = place + 1 < number && ranks[place] == least;
                tokens_[kept] = here ? merged : tokens_[place];
                const std::size_t next = place + 1 + here;
                if (next < number) ranks[kept] = ranks[next - 1];   // of what it holds with the one behind it
                place = next;
            }
            number = kept;
            for (std::size_t place = 0; place + 1 < number; ++place)
                if (tokens_[place] == merged || tokens_[place + 1] == merged)
                    ranks[place] = rank_met(tokens_[place], tokens_[place + 1]);
        }
        return number;
    }

    // The same by a queue of places: as many steps as there are merges, and not times the length.
    std::size_t merge_many(std::size_t number) {
        constexpr std::uint32_t end = UINT32_MAX;
        before_.resize(number);
        behind_.resize(number);
        for (std::size_t place = 0; place < number; ++place) {
            before_[place] = place ? static_cast<std::uint32_t>(place - 1) : end;
            behind_[place] = place + 1 < number ? static_cast<std::uint32_t>(place + 1) : end;
        }
        std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;
        const auto put = [&](std::uint32_t at) {
            const std::uint32_t rank = rank_met(tokens_[at], tokens_[behind_[at]]);
            if (rank != InheritedMerges::none) queue.push(std::uint64_t{rank} << 32 | at);
        };
        for (std::size_t place = 0; place + 1 < number; ++place) put(static_cast<std::uint32_t>(place));
        while (!queue.empty()) {
            const std::uint32_t rank = static_cast<std::uint32_t>(queue.top() >> 32);
            merged_.clear();
            while (!queue.empty() && queue.top() >> 32 == rank) {
                const std::uint32_t at = static_cast<std::uint32_t>(queue.top());
                queue.pop();
                const std::uint32_t next = behind_[at];
                if (tokens_[at] != merges_[rank].left || next == end || tokens_[next] != merges_[rank].right) continue;
                tokens_[at] = first_merge + rank;
                tokens_[next] = hole;
                behind_[at] = behind_[next];
                if (behind_[at] != end) before_[behind_[at]] = at;
                merged_.push_back(at);
            }
            for (const std::uint32_t at : merged_) {
                if (before_[at] != end) put(before_[at]);
                if (behind_[at] != end) put(at);
            }
        }
        std::size_t kept = 0;
        for (std::uint32_t at = 0; at != end; at = behind_[at]) tokens_[kept++] = tokens_[at];
        return kept;
    }

    const InheritedMerges& merges_;
    std::vector<std::uint8_t> met_;
    std::vector<Known> known_ = std::vector<Known>(std::size_t{1} << known_log);
    std::vector<std::uint32_t> tokens_, before_, behind_, merged_;
};

}  // namespace flat
