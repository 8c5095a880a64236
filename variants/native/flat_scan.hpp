// Counting the whole text again, if the threshold was too high.
#pragma once

#include "flat_pairs.hpp"

namespace flat {

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
