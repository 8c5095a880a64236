// What is kept from merge to merge: the words as ids, the count of every pair, and the words that hold each pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "grid_index.hpp"
#include "grid_job.hpp"

namespace grid {

template <class Map, class Hash, class Sets>
struct State {
    using Counts = typename Map::template map<std::int64_t, Hash>;
    using PairSet = typename Sets::template set<PairKey, Hash>;
    using HashMap = Map;
    using HashOfPairs = Hash;

    State(Table& table, const Options& options, Tallies& tallies, Watch& watch)
        : words(std::move(table.words)),
          weights(std::move(table.weights)),
          options(options),
          tallies(tallies),
          watch(watch) {
        if (table.indexed) {
            for (const auto& [pair, count] : table.pair_counts) counts[pair] = count;
            for (const auto& [pair, holders] : table.holders)
                for (const WordNumber word : holders) index.add(pair, word);
        }
        for (std::size_t word = 0; word < words.size(); ++word) {
            if (!table.indexed) {
                for (std::size_t at = 0; at + 1 < words[word].size(); ++at) {
                    const PairKey pair = pair_at(words[word], at);
                    counts[pair] += weights[word];
                    index.add(pair, static_cast<WordNumber>(word));
                }
            }
            tallies.positions_visited += words[word].size();
            tallies.pair_updates += words[word].size() - 1;
            watch.worked(words[word].size(), init);
        }
    }

    static PairKey pair_at(const std::vector<Token>& word, std::size_t at) { return key_of(word[at], word[at + 1]); }

    // Adds to a pair's count; a pair that then occurs nowhere is forgotten. Returns whether it was.
    bool change(PairKey pair, std::int64_t amount) {
        if (options.reuse_returned) {
            if ((counts[pair] += amount) != 0) return false;
        } else {
            counts[pair] += amount;
            if (counts[pair] != 0) return false;
        }
        counts.erase(pair);
        index.forget(pair);
        return true;
    }

    std::vector<std::vector<Token>> words;
    std::vector<std::int64_t> weights;
    Counts counts;
    typename Sets::template index<Hash> index;
    const Options& options;
    Tallies& tallies;
    Watch& watch;
};

// Writes [begin, end) of a word to `rewritten`, with every occurrence of `pair` replaced, left to right.
inline void replace_pair(const std::vector<Token>& word, std::size_t begin, std::size_t end, PairKey pair, Token token,
                         std::vector<Token>& rewritten) {
    rewritten.clear();
    for (std::size_t at = begin; at < end; ++at) {
        if (at + 1 < end && key_of(word[at], word[at + 1]) == pair) {
            rewritten.push_back(token);
            ++at;
        } else {
            rewritten.push_back(word[at]);
        }
    }
}

}  // namespace grid
