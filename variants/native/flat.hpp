// flat: exact byte-level BPE training at the speed of what must change.
//
// Input: distinct words with weights. Output: merges. Before every merge the pair of neighbouring tokens with the
// greatest (count, tie-break) is chosen, where the count of a pair is the sum of the weights of the places it stands
// at, overlaps included; then its occurrences are replaced from left to right. The names below: (A, B) is merged to
// C, x and y stand before and after an occurrence.
//
// docs/explanation/flat.md says what makes it fast and proves that the merges are exact. Layout: flat_text.hpp. Lists of
// the pairs of bytes, in stages: flat_bytes.hpp. Merging, and sums by neighbour: flat_merge.hpp. Queue: flat_pairs.hpp.
// Pruning: flat_threshold.hpp. A stale list entry needs no removal: p was listed for (A, B), and the pair stands there now
// if and only if the cell at p holds A and the cell at p + |A| holds B. Ids are never used twice.
//
// Threads lay out, count and list in parts; every part knows beforehand where it writes, so the result is the same at every
// width. Merges are made by one thread.
// Memory: two bytes a position (four above 65,278 merges) and four for every listed occurrence, both reported. The words
// may be given back when they are laid out.
#pragma once

#include "flat_bytes.hpp"
#include "flat_merge.hpp"

namespace flat {

// A thread costs more than it saves where a text is short.
inline std::size_t parts_of(std::uint64_t positions, const Options& options) {
    return std::min<std::size_t>(options.threads, 1 + positions / options.part);
}

// A merge takes at least one position away, so no more can be made; and ids have to be found for all.
inline void limit_merges(Options& options, std::uint64_t positions) {
    options.num_merges = std::min(options.num_merges, positions);
    if (first_merge + options.num_merges > most_ids)
        throw Refused("2**31 tokens are the most that can be numbered; ask for fewer merges");
}

// Makes the merges, from a text whose first pairs are counted.
template <class Symbol, class FirstPairs>
void make_merges(Text<Symbol>& text, Tokens& tokens, Threshold& threshold, KeptPairs& pairs, FirstPairs& first_pairs,
                 const Options& options, Answer& answer, Progress& progress) {
    Tallies& tallies = answer.tallies;
    Merger<Symbol> merger(text, tokens, pairs, options, tallies, progress);
    progress.lap(init);

    while (answer.merges.size() < options.num_merges) {
        const bool timed = pairs.queue().between_levels();
        if (timed) progress.lap(update);
        auto* slot = pairs.queue().pop(threshold.value(), options.num_merges - answer.merges.size());
        if (timed) progress.lap(max);
        if (slot) {
            if (!slot->list) first_pairs.list_more();
            const auto best = pairs.take(slot);
            merger.prefetch(pairs.queue());
            const std::uint64_t finished = merger.merge(best, threshold.value());
            answer.merges.push_back({left_of(best.key), right_of(best.key)});
            threshold.merged(best.count, finished, pairs.kept());
            progress.advance(64, update);
        } else if (threshold.lossless()) {
            break;
        } else {
            threshold.lower();
            tallies.rescans += 1;
            scan_tokens(text, tokens, pairs, threshold.value(), tallies, progress);
        }
    }
    pairs.note_memory();
    progress.lap(update);
}

template <class Symbol>
void train_in(const Words& words, const WeightClasses& classes, unsigned shift, const Options& options, Answer& answer,
              Progress& progress, WordsRead words_read, void* context, const Veto& veto) {
    Tallies& tallies = answer.tallies;
    const std::size_t parts = parts_of(classes.positions(), options);
    Text<Symbol> text = options.has(layout) ? lay_out<Symbol>(words, classes, shift, parts, progress)
                                       : lay_out_as_given<Symbol>(words, classes, progress);
    if (words_read) words_read(context);
    tallies.text_bytes = text.bytes();
    tallies.positions_visited += classes.positions();
    progress.lap(convert);

    Tokens tokens(options.tie_break, veto.refuses_any());
    VetoFilter filter(tokens, veto, context);
    Threshold threshold(options, options.num_merges, &classes);
    KeptPairs pairs(tokens, tallies, veto.refuses_any() ? &filter : nullptr);
    BytePairs<Symbol> bytes(text, pairs, parts, tallies, progress);
    bytes.count(threshold.value());
    make_merges(text, tokens, threshold, pairs, bytes, options, answer, progress);
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
    Progress progress(answer, report, context);
    try {
        const WeightClasses classes(words, progress);
        limit_merges(options, classes.positions());
        const bool narrow = has_narrow_ids(options.num_merges) && !options.wide_symbols;
        const unsigned shift = options.has(layout) ? best_shift(classes.classes(), narrow ? 2 : 4) : 0;
        const auto train = narrow ? train_in<std::uint16_t> : train_in<std::uint32_t>;
        train(words, classes, shift, options, answer, progress, words_read, context, veto);
    } catch (const Stopped&) {
    }
    answer.work = answer.tallies.listed();
    return answer;
}

}  // namespace flat
