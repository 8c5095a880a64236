// The words on their way in and the merges on their way out: by columns, or as Python's objects arrive in C++.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "grid_job.hpp"

namespace grid {

constexpr std::size_t most_words = UINT32_MAX;

// The largest any sum of weights can become, kept within 63 bits.
inline void refuse_overflow(std::uint64_t weight, std::uint64_t positions, std::uint64_t& total) {
    std::uint64_t added = 0;
    if (weight > INT64_MAX || __builtin_mul_overflow(weight, positions, &added) ||
        __builtin_add_overflow(total, added, &total) || total > INT64_MAX)
        throw Refused("the words hold more than 2**63 - 1 adjacent positions by weight; divide the counts");
}

// From the columns of WordCounts, which columns.hpp has checked. Words of no bytes or no weight are left out.
inline Table table_of_columns(const Words& columns, Watch& watch) {
    Table table;
    if (columns.number > most_words) throw Refused("2**32 - 1 words are the most that can be numbered");
    table.words.reserve(columns.number);
    table.weights.reserve(columns.number);
    for (std::size_t word = 0; word < columns.number; ++word) {
        const std::int64_t begin = columns.offsets[word], end = columns.offsets[word + 1];
        if (begin == end || !columns.counts[word]) continue;
        table.words.emplace_back(columns.bytes + begin, columns.bytes + end);
        table.weights.push_back(static_cast<std::int64_t>(columns.counts[word]));
        watch.worked(static_cast<std::uint64_t>(end - begin), convert);
    }
    return table;
}

// What Cython makes of dictionaries of lists and numbers, by number of the word.
using WordObjects = std::unordered_map<int, std::vector<int>>;
using WeightObjects = std::unordered_map<int, std::int64_t>;
using CountObjects = std::map<std::pair<int, int>, std::int64_t>;
using HolderObjects = std::map<std::pair<int, int>, std::unordered_set<int>>;

inline Table table_of_objects(const WordObjects& words, const WeightObjects& weights) {
    Table table;
    table.words.resize(words.size());
    table.weights.resize(words.size());
    std::uint64_t total = 0;
    for (const auto& [number, word] : words) {
        const std::int64_t weight = weights.at(number);
        refuse_overflow(static_cast<std::uint64_t>(weight), word.size() - 1, total);
        table.words.at(static_cast<std::size_t>(number)).assign(word.begin(), word.end());
        table.weights[static_cast<std::size_t>(number)] = weight;
    }
    return table;
}

// Adds the pairs that Python has counted and indexed.
inline void add_pairs(Table& table, const CountObjects& counts, const HolderObjects& holders) {
    table.indexed = true;
    for (const auto& [pair, count] : counts) table.pair_counts.push_back({key_of(pair.first, pair.second), count});
    for (const auto& [pair, words] : holders)
        table.holders.push_back({key_of(pair.first, pair.second), {words.begin(), words.end()}});
}

// The merges as lists of the numbers of their bytes, which is how part 11's tokens came back.
using IntegerMerges = std::vector<std::pair<std::vector<int>, std::vector<int>>>;

inline IntegerMerges merges_as_integers(const std::vector<Merge>& merges) {
    std::vector<std::vector<int>> tokens;
    for (int byte = 0; byte < static_cast<int>(first_merge); ++byte) tokens.push_back({byte});
    IntegerMerges answer;
    for (const Merge& merge : merges) {
        const std::vector<int>& left = tokens[merge.left];
        const std::vector<int>& right = tokens[merge.right];
        answer.push_back({left, right});
        std::vector<int> token = left;
        token.insert(token.end(), right.begin(), right.end());
        tokens.push_back(std::move(token));
    }
    return answer;
}

}  // namespace grid
