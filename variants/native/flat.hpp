// flat: exact byte-level BPE training at the speed of what must change.
//
// Input: distinct words with weights. Output: merges. Before every merge the pair of neighbouring tokens with the
// greatest (count, tie-break) is chosen, where the count of a pair is the sum of the weights of the places it stands
// at, overlaps included; then its occurrences are replaced from left to right. The names below: (A, B) is merged to
// C, x and y stand before and after an occurrence.
//
// What makes it fast, and where; docs/explanation/flat.md proves that the merges are exact.
//
// 1. Layout (flat_text.hpp): one array of token ids, words of one weight in whole blocks.
// 2. Occurrence lists (flat_merge.hpp, flat_memory.hpp): complete when they are made, so each has its exact size. The pairs of
//    bytes get theirs in stages (flat_bytes.hpp).
// 3. Stale entries need no removal: p was listed for (A, B), and the pair stands there now if and only if the cell at p
//    holds A and the cell at p + |A| holds B. Ids are never used twice.
// 4. Counts never rise after a pair is born, so a bucket for every count is walked down once (flat_queue.hpp).
// 5. Accumulators (flat_merge.hpp): the changes of a merge are summed by neighbour, and the pair table hears the sums.
// 6. Pruning (flat_threshold.hpp): a pair born below the count of the last merge is not kept. A wrong guess of that count
//    costs time only: the pairs are counted again (flat_scan.hpp).
// 7. No branches to mispredict, and memory asked for early (flat_merge.hpp).
//
// Work: one pass over the text to lay it out, one to count it and two or three to list the pairs of bytes, then a few
// nanoseconds for every occurrence merged and every stale entry met, and some hundred for every merge; it does not
// depend on the length of words.
// Threads lay out, count and list in parts; every part knows beforehand where it writes, so the result is the same at every
// width. Merges are made by one thread.
// Memory: two bytes a position (four above 65,278 merges), four for every listed occurrence (eight above 2**32
// positions), both reported. The words may be given back when they are laid out. What is touched for the first time
// can cost more than what is done with it, where a virtual machine has to get every page from its host.
#pragma once

#include "flat_bytes.hpp"
#include "flat_merge.hpp"
#include "flat_refusals.hpp"
#include "flat_scan.hpp"

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
              Watch& watch, WordsRead words_read, void* context, const Veto& veto) {
    Tallies& tallies = answer.tallies;
    const std::size_t parts = parts_of(classes.positions(), options);
    Text<Symbol> text = options.layout ? lay_out<Symbol>(words, classes, shift, options, parts, watch)
                                       : lay_out_as_given<Symbol>(words, classes, watch);
    if (words_read) words_read(context);
    tallies.text_bytes = text.bytes();
    tallies.positions_visited += classes.positions();
    watch.lap(convert);

    Tokens tokens(options.tie_break, veto.refuses_any());
    Refusals refused(tokens, veto, context);
    Threshold threshold(options, options.num_merges, &classes);
    KeptPairs<Position> pairs(tokens, tallies, veto.refuses_any() ? &refused : nullptr);
    BytePairs<Symbol, Position> bytes(text, pairs, parts, tallies, watch);
    bytes.count(threshold.value());
    make_merges(text, tokens, threshold, pairs, bytes, options, answer, watch);
}

inline bool are_whole(const Words& words) {
    for (std::size_t word = 0; word < words.number; ++word) {
        const std::int64_t begin = words.offsets[word], end = words.offsets[word + 1];
        if (!is_whole(words.bytes + begin, static_cast<std::size_t>(end - begin))) return false;
    }
    return true;
}

// Learns up to `options.num_merges` merges. Throws Refused for a table that cannot be trained on and std::bad_alloc
// when memory runs out; `report` may end it early, then the merges are those made so far.
//
// Under a veto the certain bound on the last count does not hold, so it goes the way of flat_extending.hpp, but for one case:
// if only mixed parts of characters are refused and every word is valid UTF-8, each word that is not one token holds a pair
// that may be merged. For either a character's beginning stands before its next byte, or all its tokens are whole.
inline Answer train(const Words& words, Options options, Report report, void* context, WordsRead words_read = nullptr,
                    const Veto& veto = {}) {
    Answer answer;
    Watch watch(answer, report, context);
    try {
        const WeightClasses classes(words, watch);
        // A merge takes at least one position away, so no more merges than positions can be made.
        options.num_merges = std::min(options.num_merges, classes.positions());
        const std::uint64_t ids = first_merge + options.num_merges;
        if (ids > most_ids) throw Refused("2**31 tokens are the most that can be numbered; ask for fewer merges");
        const bool narrow = has_narrow_ids(options.num_merges) && !options.wide_symbols;
        const unsigned shift = options.layout ? best_shift(classes.classes(), narrow ? 2 : 4) : 0;
        const std::uint64_t positions = positions_needed(classes.classes(), shift);
        if (options.wide_positions || positions > UINT32_MAX) {
            train_in<std::uint32_t, std::uint64_t>(words, classes, shift, options, answer, watch, words_read, context, veto);
        } else if (narrow) {
            train_in<std::uint16_t, std::uint32_t>(words, classes, shift, options, answer, watch, words_read, context, veto);
        } else {
            train_in<std::uint32_t, std::uint32_t>(words, classes, shift, options, answer, watch, words_read, context, veto);
        }
    } catch (const Stopped&) {
    }
    answer.work = answer.tallies.listed();
    return answer;
}

}  // namespace flat
