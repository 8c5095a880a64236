// A point of the grid: the loop, written once, with a map, a hash, an index, a maximum and an update put in.
#pragma once

#include <exception>

#include "grid_maxima.hpp"
#include "grid_updates.hpp"

namespace grid {

// Learns merges into `answer`. Empties the table.
template <class Map, class Hash, class Sets, class Maximum, class Update>
void learn(Table& table, const Options& options, Answer& answer, Watch& watch) {
    Vocabulary vocabulary(options.tie_break);
    State<Map, Hash, Sets> state(table, options, answer.tallies, watch);
    Maximum maximum(options, vocabulary, answer.tallies);
    maximum.begin(state.counts, watch);
    watch.lap(init);

    const auto merge_best = [&] {
        const Best best = maximum.best();
        watch.lap(max);
        watch.worked(state.counts.size(), max);
        if (!best.count || best.count < options.min_count) return false;
        const Token token = vocabulary.add(best.pair);
        answer.merges.push_back({left_of(best.pair), right_of(best.pair)});
        Update::merge(state, best.pair, token, maximum);
        watch.lap(update);
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
    maximum.tell(answer.work);
    if (thrown) std::rethrow_exception(thrown);
}

template <class Map, class Hash, class Sets, template <class, class, class> class Maximum, class Update>
struct Point {
    static Member member() {
        using Found = Maximum<Map, Hash, Sets>;
        return {Map::name, Hash::name, Sets::name, Found::name, Update::name, learn<Map, Hash, Sets, Found, Update>};
    }
};

// The list of what is compiled into one module.
template <class... Points>
struct Grid {
    static const std::vector<Member>& members() {
        static const std::vector<Member> listed{Points::member()...};
        return listed;
    }
};

}  // namespace grid
