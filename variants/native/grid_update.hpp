// What a merge changes: every pair of an affected word, or only those next to the merge.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid_state.hpp"

namespace grid {

// Subtracts all old pairs of an affected word, rewrites it, and adds all its new pairs.
struct coarse {
    static constexpr const char* name = "coarse";

    template <class State, class Maximum>
    static void merge(State& state, PairKey pair, Token token, Maximum& maximum) {
        std::vector<Token> rewritten;
        std::uint64_t visited = 0, affected = 0;
        for (const WordNumber number : state.index.take(pair)) {
            std::vector<Token>& word = state.words[number];
            const std::int64_t weight = state.weights[number];
            for (std::size_t at = 0; at + 1 < word.size(); ++at) {
                const PairKey old_pair = state.pair_at(word, at);
                if (!state.change(old_pair, -weight)) state.index.remove(old_pair, number);
            }
            visited += word.size();
            replace_pair(word, 0, word.size(), pair, token, rewritten);
            word = rewritten;
            for (std::size_t at = 0; at + 1 < word.size(); ++at) {
                const PairKey new_pair = state.pair_at(word, at);
                state.change(new_pair, weight);
                state.index.add(new_pair, number);
                if constexpr (Maximum::keeps_queue) {
                    const bool grown = left_of(new_pair) == token || right_of(new_pair) == token;
                    if (grown || !state.options.push_grown) maximum.note(new_pair);
                }
            }
            visited += word.size();
            ++affected;
            state.watch.worked(word.size(), update);
        }
        if constexpr (Maximum::keeps_queue) maximum.push_noted(state.counts);
        state.tallies.words_rewritten += affected;
        state.tallies.positions_visited += visited;
        state.tallies.pair_updates += visited - 2 * affected;
    }
};

// Compares old and new pairs in a window only, from one token before the first occurrence in a word to one after the
// last, and sums the changes of a merge before they are made.
//
// A pair that vanishes from the window may stand in the word outside it; then the word must stay in its index.
struct fine_grained {
    static constexpr const char* name = "fine_grained";

    template <class State, class Maximum>
    static void merge(State& state, PairKey pair, Token token, Maximum& maximum) {
        using Changes = typename State::HashMap::template map<std::int64_t, typename State::HashOfPairs>;
        Changes changes;
        std::vector<Token> rewritten;
        std::uint64_t visited = 0, updates = 0, affected = 0;
        for (const WordNumber number : state.index.take(pair)) {
            std::vector<Token>& word = state.words[number];
            const std::int64_t weight = state.weights[number];
            std::size_t first = 0, last = word.size() - 2;
            while (state.pair_at(word, first) != pair) ++first;
            while (state.pair_at(word, last) != pair) --last;
            const std::size_t begin = first ? first - 1 : 0, end = std::min(last + 3, word.size());
            visited += word.size() + (end - begin);

            typename State::PairSet outside;
            for (std::size_t at = 0; at < begin; ++at) outside.insert(state.pair_at(word, at));
            for (std::size_t at = end - 1; at + 1 < word.size(); ++at) outside.insert(state.pair_at(word, at));
            for (std::size_t at = begin; at + 1 < end; ++at) {
                const PairKey old_pair = state.pair_at(word, at);
                changes[old_pair] -= weight;
                if (!outside.count(old_pair)) state.index.remove(old_pair, number);
            }
            replace_pair(word, begin, end, pair, token, rewritten);
            for (std::size_t at = 0; at + 1 < rewritten.size(); ++at) {
                const PairKey new_pair = state.pair_at(rewritten, at);
                changes[new_pair] += weight;
                state.index.add(new_pair, number);
                if constexpr (Maximum::keeps_queue) {
                    if (!state.options.push_grown) maximum.note(new_pair);
                }
            }
            updates += (end - begin - 1) + (rewritten.size() - 1);
            const auto where = word.begin() + static_cast<std::ptrdiff_t>(begin);
            const auto rest = std::copy(rewritten.begin(), rewritten.end(), where);
            word.erase(rest, word.begin() + static_cast<std::ptrdiff_t>(end));
            ++affected;
            state.watch.worked(word.size(), update);
        }
        for (const auto& [changed, amount] : changes) {
            state.change(changed, amount);
            if constexpr (Maximum::keeps_queue) {
                if (state.options.push_grown && amount > 0) maximum.push(changed, state.counts.find(changed)->second);
            }
        }
        if constexpr (Maximum::keeps_queue) maximum.push_noted(state.counts);
        state.tallies.words_rewritten += affected;
        state.tallies.positions_visited += visited;
        state.tallies.pair_updates += updates;
    }
};

}  // namespace grid
