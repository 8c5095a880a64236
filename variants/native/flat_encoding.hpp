// Pieces of text encoded by inherited merges.
#pragma once

#include "flat_rows.hpp"

namespace flat {

// One merge after the other over all pieces is, piece by piece, the merge of least rank until there is none: a merge brings
// pairs with its own token only, and these have greater ranks, since the halves of every merge are made before it.
//
// A piece is first cut where no merge can join, mostly at blanks. The unit between two cuts is encoded once and then cached.
//
// If no merge can join a part of a character to either neighbour (Boundary::whole on both sides), the merges inside the
// character do not depend on its neighbours, and any other merge needs all of it: so the unit may begin from this character
// as it is encoded alone, which is mostly cached. A character beside a broken boundary begins as bytes.
//
// A unit that begins from characters may show pairs that never occur if it begins from bytes, but none is missed: if a merge
// seems to be met for the first time, the unit is encoded again, from its bytes.
class Encoder {
  public:
    explicit Encoder(const InheritedMerges& merges, bool asks_met = true, const std::function<void()>* look = nullptr)
        : merges_(merges), merger_(merges, asks_met, look) {}

    // Writes the tokens of a piece of one byte or more, one cell each, as `symbol_of` gives them, and returns where they end.
    // There must be room for as many as there are bytes. `readable` is where the memory ends that may be looked at.
    template <class Symbol, class SymbolOf>
    Symbol* encode(const std::uint8_t* piece, std::size_t length, const std::uint8_t* readable, Symbol* to,
                   SymbolOf symbol_of) {
        const std::uint8_t* const end = piece + length;
        const std::uint8_t* begin = piece;
        std::size_t of_this = character_at(piece, end);
        bool long_ones = of_this > 1;
        broken_.clear();
        for (const std::uint8_t* at = piece + of_this; at < end; at += of_this) {
            const std::size_t of_last = std::exchange(of_this, character_at(at, end));
            const Boundary boundary = boundary_at(piece, at, end, of_last, of_this);
            if (boundary == Boundary::none) {
                to = encode_unit(begin, at, long_ones, readable, to, symbol_of);
                begin = at;
                long_ones = false;
                broken_.clear();
            }
            long_ones |= of_this > 1;
            if (boundary == Boundary::broken) broken_.push_back(at);
        }
        // Whoever encodes distinct pieces meets a whole one only once.
        to = begin == piece ? write(encode_anew(piece, length, long_ones), to, symbol_of)
                            : encode_unit(begin, end, long_ones, readable, to, symbol_of);
        if (tokens_.size() > roomy) tokens_ = Array<std::uint32_t>();
        return to;
    }

    // By rank: whether its pair ever occurred.
    const std::vector<std::uint8_t>& met() const { return merger_.met(); }

  private:
    // What a unit of up to 23 bytes is encoded to, if these are few tokens.
    struct alignas(64) Known {
        std::uint64_t bytes[3];   // filled up with zeros; the last byte is the length
        std::uint32_t number;     // of tokens; 0: nothing is known
        std::uint32_t tokens[9];
    };
    static_assert(sizeof(Known) == 64, "a line of the cache");
    static constexpr std::size_t longest_known = 23, most_known_tokens = 9;
    static constexpr unsigned known_log = 16;   // 4 MB
    // A character of two or three bytes, alone.
    struct Character {
        std::uint32_t number;   // of tokens; 0: nothing is known
        std::uint32_t tokens[3];
    };
    static constexpr std::size_t of_three_bytes = 1 << 16, of_two_bytes = 1 << 11;
    using Boundary = InheritedMerges::Boundary;

    // The length of the character that begins here. Whatever has neither two nor three bytes counts as bytes.
    static std::size_t character_at(const std::uint8_t* at, const std::uint8_t* end) {
        if (*at < 0xc0 || *at >= 0xf0) return 1;
        const auto goes_on = [&](std::ptrdiff_t place) { return end - at > place && (at[place] & 0xc0) == 0x80; };
        if (!goes_on(1)) return 1;
        if (*at < 0xe0) return 2;
        return goes_on(2) ? 3 : 1;
    }

    // What is beside a place says what its boundary is, and much of it comes again.
    Boundary boundary_at(const std::uint8_t* piece, const std::uint8_t* at, const std::uint8_t* end, std::size_t length_before,
                 std::size_t length_behind) {
        if (!merges_.may_join(at[-1], at[0])) return Boundary::none;
        if (length_before == 1 && length_behind == 1) return Boundary::whole;
        constexpr std::size_t most = InheritedMerges::boundary_bytes;
        if (static_cast<std::size_t>(at - piece) < most || static_cast<std::size_t>(end - at) < most)
            return merges_.boundary(piece, at, end, length_before, length_behind);
        std::uint64_t around = length_before * 4 + length_behind;
        for (const std::uint8_t* byte = at - most; byte < at + most; ++byte) around = around << 8 | *byte;
        std::uint64_t& known = boundaries_[(around * 0x9e3779b97f4a7c15u) >> (64 - boundaries_log)];
        if (known >> 2 != around)
            known = around << 2 | static_cast<std::uint64_t>(merges_.boundary(piece, at, end, length_before, length_behind));
        return static_cast<Boundary>(known & 3);
    }
    static constexpr unsigned boundaries_log = 16;   // 512 kB

    template <class Symbol, class SymbolOf>
    Symbol* encode_unit(const std::uint8_t* begin, const std::uint8_t* end, bool by_characters, const std::uint8_t* readable,
                        Symbol* to, SymbolOf symbol_of) {
        const std::size_t length = static_cast<std::size_t>(end - begin);
        if (length == 1) {
            *to = symbol_of(first_byte + *begin);
            return to + 1;
        }
        if (length > longest_known) return write(encode_anew(begin, length, by_characters), to, symbol_of);
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
            for (std::uint32_t place = 0; place < known.number; ++place) to[place] = symbol_of(known.tokens[place]);
            return to + known.number;
        }
        const std::size_t number = encode_anew(begin, length, by_characters);
        if (number <= most_known_tokens) {
            std::copy_n(bytes, 3, known.bytes);
            known.number = static_cast<std::uint32_t>(number);
            std::copy_n(tokens_.data(), most_known_tokens, known.tokens);
        }
        return write(number, to, symbol_of);
    }

    template <class Symbol, class SymbolOf>
    Symbol* write(std::size_t number, Symbol* to, SymbolOf symbol_of) const {
        for (std::size_t place = 0; place < number; ++place) to[place] = symbol_of(tokens_[place]);
        return to + number;
    }

    // Leaves the tokens in tokens_ and returns their number.
    std::size_t encode_anew(const std::uint8_t* bytes, std::size_t length, bool by_characters) {
        tokens_.reach(length + most_known_tokens);   // copied as a whole
        merger_.notes = true;   // whatever ended the last unit
        // In a long row the same token must not come from a character here and from bytes there: its lists are in order.
        if (by_characters && (broken_.empty() || RankMerger::is_few(length))) {
            const std::size_t number = begin_from_characters(bytes, length);
            merger_.certain = true;
            merger_.notes = false;
            const std::size_t left = merger_.merge(tokens_.data(), number);
            merger_.notes = true;
            if (merger_.certain) return left;
        }
        return merger_.merge_bytes(bytes, length, tokens_.data());
    }

    std::size_t begin_from_characters(const std::uint8_t* bytes, std::size_t length) {
        const std::uint8_t* const end = bytes + length;
        broken_.push_back(end);
        const std::uint8_t* const* broken = broken_.data();   // the next one
        bool broken_before = false;
        std::size_t number = 0;
        while (bytes < end) {
            const std::size_t size = character_at(bytes, end);
            const bool broken_behind = bytes + size == *broken && bytes + size != end;
            broken += broken_behind;
            const bool apart = !(std::exchange(broken_before, broken_behind) | broken_behind);
            if (size == 1 || !apart) {
                for (const std::uint8_t* const stop = bytes + size; bytes < stop; ++bytes) tokens_[number++] = first_byte + *bytes;
                continue;
            }
            Character& known = characters_[size == 3 ? (bytes[0] & 15u) << 12 | (bytes[1] & 63u) << 6 | (bytes[2] & 63u)
                                                     : of_three_bytes + ((bytes[0] & 31u) << 6 | (bytes[1] & 63u))];
            if (!known.number) {
                std::uint32_t* const tokens = tokens_.data() + number;
                known.number = static_cast<std::uint32_t>(merger_.merge_bytes(bytes, size, tokens));
                std::copy_n(tokens, known.number, known.tokens);
            }
            std::copy_n(known.tokens, std::size(known.tokens), tokens_.data() + number);
            number += known.number;
            bytes += size;
        }
        return number;
    }

    const InheritedMerges& merges_;
    RankMerger merger_;
    Array<Known> known_ = Array<Known>(std::size_t{1} << known_log);
    Array<std::uint64_t> boundaries_ = Array<std::uint64_t>(std::size_t{1} << boundaries_log);
    Array<Character> characters_ = Array<Character>(of_three_bytes + of_two_bytes);
    std::vector<const std::uint8_t*> broken_;   // the broken boundaries of the unit at work
    Array<std::uint32_t> tokens_;
    static constexpr std::size_t roomy = std::size_t{1} << 16;   // tokens above which memory is given back
};

}  // namespace flat
