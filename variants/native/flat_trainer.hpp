// The trainer: lay out, count, and merge the best pair until nothing is left to do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_bytes.hpp"
#include "flat_job.hpp"
#include "flat_layout.hpp"
#include "flat_merge.hpp"
#include "flat_pairs.hpp"
#include "flat_scan.hpp"
#include "flat_threshold.hpp"
#include "flat_tokens.hpp"

namespace flat {

// A thread costs more than it saves where a text is short.
inline std::size_t parts_of(std::uint64_t positions, const Options& options) {
    return std::min<std::size_t>(options.threads, 1 + positions / options.part);
}

// Makes the merges, from a text whose first pairs are counted.
template <class Symbol, class Position, class FirstPairs>
void make_merges(Text<Symbol>& text, Tokens& tokens, Threshold& threshold, KeptPairs<Position>& pairs, FirstPairs& first_pairs,
                 const Options& options, Answer& answer, Watch& watch) {
    Tallies& tallies = answer.tallies;
    Merger<Symbol, Position> merger(text, tokens, pairs, options, tallies, watch);
    watch.lap(init);

    while (answer.merges.size() < options.num_merges) {
        const bool timed = pairs.queue().between_levels();
        if (timed) watch.lap(update);
        auto* slot = pairs.best(threshold.value(), options.num_merges - answer.merges.size());
        if (timed) watch.lap(max);
        if (slot) {
            if (!slot->list) first_pairs.list_more();
            const auto best = pairs.take(slot);
            merger.prefetch(pairs.queue());
            const std::uint64_t finished = merger.merge(best, threshold.value());
            answer.merges.push_back({left_of(best.key), right_of(best.key)});
            threshold.merged(best.count, finished, pairs.kept());
            watch.worked(64, update);
        } else if (threshold.lossless()) {
            break;
        } else {
            threshold.lower();
            tallies.rescans += 1;
            scan_tokens(text, tokens, pairs, threshold.value(), tallies, watch);
        }
    }
    pairs.note_memory();
    watch.lap(update);
}

template <class Symbol, class Position>
void train_in(const Words& words, const WeightClasses& classes, unsigned shift, const Options& options, Answer& answer,
              Watch& watch, WordsRead words_read, void* context) {
    Tallies& tallies = answer.tallies;
    const std::size_t parts = parts_of(classes.positions(), options);
    Text<Symbol> text = options.layout ? lay_out<Symbol>(words, classes, shift, options, parts, watch)
                                       : lay_out_as_given<Symbol>(words, classes, watch);
    if (words_read) words_read(context);
    tallies.text_bytes = text.bytes();
    tallies.positions_visited += classes.positions();
    watch.lap(convert);

    Tokens tokens(options.tie_break);
    Threshold threshold(options, options.num_merges, &classes);
    KeptPairs<Position> pairs(tokens, options, tallies);
    BytePairs<Symbol, Position> bytes(text, pairs, parts, tallies, watch);
    bytes.count(threshold.value());
    make_merges(text, tokens, threshold, pairs, bytes, options, answer, watch);
}

}  // namespace flat
