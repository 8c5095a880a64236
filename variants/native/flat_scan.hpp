// Counting the whole text: once at the start, when every token is a byte, and again if the threshold was too high.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_job.hpp"
#include "flat_layout.hpp"
#include "flat_memory.hpp"
#include "flat_pairs.hpp"
#include "flat_parallel.hpp"
#include "flat_tokens.hpp"

namespace flat {

// The square array of all pairs of bytes, and what the first count notes of each pair.
struct ByteSquare {
    static constexpr std::size_t side = first_merge;
    struct Sum {
        std::int64_t weight;
        std::uint64_t occurrences;
    };
    Array<Sum> sums = Array<Sum>::zeros(side * side);
};

// Visits the pairs of bytes that begin in [begin, end), separators too: where, the cell of the square, the weight.
template <class Symbol, class Visit>
void each_byte_pair(const Text<Symbol>& text, std::size_t begin, std::size_t end, Watch* watch, Visit visit) {
    const Symbol* const symbols = text.symbols.data();
    const std::size_t block = std::size_t{1} << text.shift;
    end = std::min(end, text.size() - 1);   // the last position is a separator, with nothing behind it
    for (; begin < end; begin += block) {
        const std::int64_t weight = text.weight_at(begin);
        for (std::size_t at = begin; at < std::min(begin + block, end); ++at)
            visit(at, symbols[at] * ByteSquare::side + symbols[at + 1], weight);
        if (watch) watch->worked(block, init);
    }
}

// Counts the pairs of bytes, in a square array that holds them all, and opens the lists of those that reach `lowest`.
// Every part of the text is counted for itself, and its occurrences go behind those of the parts before it.
template <class Symbol, class Position>
void scan_bytes(const Text<Symbol>& text, KeptPairs<Position>& pairs, std::int64_t lowest, std::size_t parts,
                Tallies& tallies, Watch& watch) {
    constexpr std::size_t side = ByteSquare::side;
    struct List {
        Position* next;
        std::size_t step;
    };
    const std::size_t blocks = (text.size() - text.begin) >> text.shift;
    const auto cut = [&](std::size_t part) { return text.begin + (blocks * part / parts << text.shift); };
    const auto watch_of = [&](std::size_t part) { return part + 1 == parts ? &watch : nullptr; };
    std::vector<ByteSquare> squares(parts);
    in_parallel(parts, [&](std::size_t part) {
        ByteSquare::Sum* const sums = squares[part].sums.data();
        each_byte_pair(text, cut(part), cut(part + 1), watch_of(part),
                       [=](std::size_t, std::size_t pair, std::int64_t weight) {
                           sums[pair].weight += weight;
                           sums[pair].occurrences += 1;
                       });
    });
    const auto total = [&](std::size_t pair) {
        ByteSquare::Sum sum{};
        for (const ByteSquare& square : squares) {
            sum.weight += square.sums[pair].weight;
            sum.occurrences += square.sums[pair].occurrences;
        }
        return sum;
    };
    std::size_t listed = 0;
    for (std::uint32_t left = first_byte; left < side; ++left) {
        for (std::uint32_t right = first_byte; right < side; ++right) {
            const ByteSquare::Sum sum = total(left * side + right);
            tallies.pair_updates += sum.occurrences;
            if (sum.weight >= lowest) listed += sum.occurrences;
        }
    }
    pairs.reserve(listed);
    std::vector<Array<List>> lists;
    struct alignas(64) Idle {   // a cache line each, for the threads write to it all the time
        Position cell;
    };
    std::vector<Idle> nowhere(parts);   // occurrences of pairs that are not kept go here, one over the other
    for (std::size_t part = 0; part < parts; ++part) {
        lists.emplace_back(side * side);
        std::fill_n(lists[part].data(), side * side, List{&nowhere[part].cell, 0});
    }
    for (std::uint32_t left = first_byte; left < side; ++left) {
        for (std::uint32_t right = first_byte; right < side; ++right) {
            const std::size_t pair = left * side + right;
            const ByteSquare::Sum sum = total(pair);
            if (!sum.occurrences) continue;
            const Position occurrences = static_cast<Position>(sum.occurrences);
            Position* list = pairs.open(key_of(left, right), sum.weight, occurrences, lowest);
            for (std::size_t part = 0; list && part < parts; ++part) {
                lists[part][pair] = {list, 1};
                list += squares[part].sums[pair].occurrences;
            }
        }
    }
    in_parallel(parts, [&](std::size_t part) {
        List* const of = lists[part].data();
        each_byte_pair(text, cut(part), cut(part + 1), watch_of(part),
                       [=](std::size_t at, std::size_t pair, std::int64_t) {
                           *of[pair].next = static_cast<Position>(at);
                           of[pair].next += of[pair].step;
                       });
    });
    tallies.positions_visited += 2 * (text.size() - text.begin);
}

// Visits every pair of neighbouring tokens in order: where the left one begins, and the pair.
template <class Symbol, class Visit>
void each_pair(const Text<Symbol>& text, const Tokens& tokens, Tallies& tallies, Watch& watch, Visit visit) {
    const Symbol* const symbols = text.symbols.data();
    std::size_t visited = 0;
    for (std::size_t at = text.begin; at < text.size();) {
        const std::uint32_t left = symbols[at];
        if (left == separator) {
            ++at;
            continue;
        }
        const std::size_t next = at + tokens.length(left);
        if (symbols[next] != separator) visit(at, key_of(left, symbols[next]));
        at = next;
        ++visited;
        watch.worked(4, update);
    }
    tallies.positions_visited += visited;
}

// Counts all pairs of the text as it stands, and keeps anew those that reach `lowest`. A pair is counted exactly only
// if it can reach it: an array of sums, in which pairs share cells, gives every pair a sum no smaller than its count.
template <class Symbol, class Position>
void scan_tokens(const Text<Symbol>& text, const Tokens& tokens, KeptPairs<Position>& pairs,
                 std::int64_t lowest, Tallies& tallies, Watch& watch) {
    pairs.clear();
    unsigned shared_log = 8;
    while (shared_log < 20 && text.size() >> shared_log > 8) ++shared_log;
    const auto cell = [=](PairKey key) {
        return static_cast<std::size_t>(((key ^ key >> 31) * 0xd6e8feb86659fd93u) >> (64 - shared_log));
    };
    auto shared = Array<std::int64_t>::zeros(std::size_t{1} << shared_log);
    each_pair(text, tokens, tallies, watch,
              [&](std::size_t at, PairKey key) { shared[cell(key)] += text.weight_at(at); });
    PairTable<Position> counted;
    each_pair(text, tokens, tallies, watch, [&](std::size_t at, PairKey key) {
        if (shared[cell(key)] < lowest) return;
        auto* slot = counted.find(key);
        if (!slot) slot = counted.insert(key, 0, nullptr, 0);
        slot->count += text.weight_at(at);
        slot->entries += 1;
        tallies.pair_updates += 1;
    });
    counted.each([&](auto& slot) {
        slot.list = pairs.open(slot.key, slot.count, slot.entries, lowest);
    });
    each_pair(text, tokens, tallies, watch, [&](std::size_t at, PairKey key) {
        auto* slot = counted.find(key);
        if (slot && slot->list) *slot->list++ = static_cast<Position>(at);
    });
}

}  // namespace flat
