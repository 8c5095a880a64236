// A point of the grid: the loop, written once, with a map, a hash, an index, a maximum and an update put in.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "grid_job.hpp"
#include "grid_scan.hpp"
#include "grid_state.hpp"
#include "grid_update.hpp"
#include "grid_vocabulary.hpp"

namespace grid {

// Learns merges into `answer`. Empties the table.
template <class Map, class Hash, class Sets, class Maximum, class Update>
void learn(Table& table, const Options& options, Answer& answer, Watch& watch) {
    using maximum_type = typename Maximum::template maximum<Map, Hash, Sets>;
    Vocabulary vocabulary(options.tie_break);
    State<Map, Hash, Sets> state(table, options, answer.tallies, watch);
    maximum_type maximum(options, vocabulary, answer.tallies);
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
    maximum_type::Team::together(options.threads, [&] {
        while (!finished) {
            maximum.find(state.counts);
            maximum_type::Team::alone([&] {
                try {
                    finished = !merge_best();
                } catch (...) {
                    thrown = std::current_exception();
                    finished = true;
                }
            });
        }
    });
    if (thrown) std::rethrow_exception(thrown);
}

// What can be called: the names of the five policies, and the loop with them in it.
struct Member {
    const char* hash_map;
    const char* hash;
    const char* index;
    const char* maximum;
    const char* update;
    void (*learn)(Table&, const Options&, Answer&, Watch&);
};

template <class Map, class Hash, class Sets, class Maximum, class Update>
struct Point {
    static Member member() {
        return {Map::name, Hash::name, Sets::name, Maximum::name, Update::name, learn<Map, Hash, Sets, Maximum, Update>};
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
