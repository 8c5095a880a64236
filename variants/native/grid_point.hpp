// The training loop, as a template over five policies: map, hash, index, maximum, update.
#pragma once

#include <exception>

#include "grid.hpp"

namespace grid {

template <class Map, class Hash, class Sets>
struct State {
    using PairSet = typename Sets::template set<PairKey, Hash>;

    State(Table& table, const Options& options, Tallies& tallies, Progress& progress)
        : words(std::move(table.words)),
          weights(std::move(table.weights)),
          options(options),
          tallies(tallies),
          progress(progress) {
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
            progress.advance(words[word].size(), init);
        }
    }

    static PairKey pair_at(const std::vector<Token>& word, std::size_t at) { return key_of(word[at], word[at + 1]); }

    // Adds to a pair's count; a pair that then occurs nowhere is forgotten. Returns whether it was.
    bool change(PairKey pair, std::int64_t amount) {
        const std::int64_t returned = counts[pair] += amount;
        if ((options.reuse_returned ? returned : counts[pair]) != 0) return false;
        counts.erase(pair);
        index.forget(pair);
        return true;
    }

    std::vector<std::vector<Token>> words;
    std::vector<std::int64_t> weights;
    Counts<Map, Hash> counts;
    typename Sets::template index<Hash> index;
    const Options& options;
    Tallies& tallies;
    Progress& progress;
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
            state.progress.advance(word.size(), update);
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
// A pair that vanishes from the window may occur in the word outside it; then the word must stay in its index.
struct fine_grained {
    static constexpr const char* name = "fine_grained";

    template <class State, class Maximum>
    static void merge(State& state, PairKey pair, Token token, Maximum& maximum) {
        decltype(state.counts) changes;
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
            state.progress.advance(word.size(), update);
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

// Learns merges into `answer`. Empties the table.
template <class Map, class Hash, class Sets, class Maximum, class Update>
void learn(Table& table, const Options& options, Answer& answer, Progress& progress) {
    Vocabulary vocabulary(options.tie_break);
    State<Map, Hash, Sets> state(table, options, answer.tallies, progress);
    Maximum maximum(options, vocabulary, answer.tallies);
    maximum.begin(state.counts, progress);
    progress.lap(init);

    const auto merge_best = [&] {
        const Best best = maximum.best();
        progress.lap(max);
        progress.advance(state.counts.size(), max);
        if (!best.count || best.count < options.min_count) return false;
        const Token token = vocabulary.add(best.pair);
        answer.merges.push_back({left_of(best.pair), right_of(best.pair)});
        Update::merge(state, best.pair, token, maximum);
        progress.lap(update);
        return answer.merges.size() < options.num_merges;
    };
    bool finished = options.num_merges == 0;
    std::exception_ptr thrown;   // nothing may be thrown out of a team of threads
    Maximum::Team::together(options.threads, [&] {
        while (!finished) {
            maximum.find(state.counts);
            Maximum::Team::alone([&] {
                try {
                    finished = !merge_best();
                } catch (...) {
                    thrown = std::current_exception();
                    finished = true;
                }
            });
        }
    });
    const Tallies& of = answer.tallies;
    answer.work = {{"words_rewritten", of.words_rewritten}, {"positions_visited", of.positions_visited},
                   {"pair_updates", of.pair_updates}};
    maximum.publish(answer.work);
    if (thrown) std::rethrow_exception(thrown);
}

template <class Map, class Hash, class Sets, template <class, class, class> class Maximum, class Update>
struct Point {
    static Member member() {
        using Found = Maximum<Map, Hash, Sets>;
        return {Map::name, Hash::name, Sets::name, Found::name, Update::name, learn<Map, Hash, Sets, Found, Update>};
    }
};

template <class... Points>
struct Grid {
    static const std::vector<Member>& members() {
        static const std::vector<Member> listed{Points::member()...};
        return listed;
    }
};

}  // namespace grid
