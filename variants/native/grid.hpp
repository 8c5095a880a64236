// The C++ grid: the series' parts 5 to 9 and 11 as the points of a product, made by the compiler.
//
// The loop is written once (grid_point.hpp); what it is made of is chosen per point:
//
//   hash map   std, absl, boost, dense                       grid_containers.hpp, grid_absl.cpp, grid_boost.cpp
//   hash       weak, boost, strong, absl                     grid_containers.hpp
//   index      node_set, dense_set, inline_set               grid_containers.hpp
//   maximum    iterator_scan, bucket_scan, copied_scan,      grid_maxima.hpp
//              heap, openmp_lock, _critical, _slots, _region grid_openmp.hpp
//   update     coarse, fine_grained                          grid_updates.hpp
//
// A policy is a struct with a name and a template in it. The full product is some hundreds of instantiations; compiled
// are the points listed in grid_std.cpp, grid_dense.cpp, grid_openmp.cpp, grid_boost.cpp and grid_absl.cpp, a module
// each, so that the ones without a library are built where it is absent. Another point is another line there.
//
// Counts are 64 bits wide. Bytes are their own ids, and an id is never used as a truth value: the published
// fine-grained programs did that, and are wrong on words with a NUL.
#pragma once

#include <map>

#include "grid_job.hpp"

namespace grid {

// ---- the words on their way in and the merges on their way out: by columns, or as Python's objects arrive in C++ ----

constexpr std::size_t most_words = UINT32_MAX;

// From the columns of WordCounts, which are checked. Words of no bytes or no weight are left out.
inline Table table_of_columns(const Words& columns, Progress& progress) {
    Table table;
    if (columns.number > most_words) throw Refused("2**32 - 1 words are the most that can be numbered");
    table.words.reserve(columns.number);
    table.weights.reserve(columns.number);
    for (std::size_t word = 0; word < columns.number; ++word) {
        const std::int64_t begin = columns.offsets[word], end = columns.offsets[word + 1];
        if (begin == end || !columns.counts[word]) continue;
        table.words.emplace_back(columns.bytes + begin, columns.bytes + end);
        table.weights.push_back(static_cast<std::int64_t>(columns.counts[word]));
        progress.advance(static_cast<std::uint64_t>(end - begin), convert);
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
    for (const auto& [number, word] : words) {
        table.words.at(static_cast<std::size_t>(number)).assign(word.begin(), word.end());
        table.weights[static_cast<std::size_t>(number)] = weights.at(number);
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

// ---- training ----

// Trains a point on words in columns, or on a table that is there already; the merges are those made so far if `report` says
// stop.
inline Answer train(const Member& member, const Words* columns, Table& table, const Options& options, Report report,
                    void* context) {
    Answer answer;
    Progress progress(answer, report, context);
    try {
        if (columns) {
            table = table_of_columns(*columns, progress);
            progress.lap(convert);
        }
        member.learn(table, options, answer, progress);
    } catch (const Stopped&) {
    }
    return answer;
}

}  // namespace grid
