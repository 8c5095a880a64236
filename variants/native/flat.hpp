// flat: exact byte-level BPE training at the speed of what must change.
//
// Input: distinct words with weights. Output: merges. Before every merge the pair of neighbouring tokens with the
// greatest (count, tie-break) is chosen, where the count of a pair is the sum of the weights of the places it stands
// at, overlaps included; then its occurrences are replaced from left to right. The names below: (A, B) is merged to
// C, x and y stand before and after an occurrence.
//
// What makes it fast, and why the merges are exact:
//
// 1. Layout (flat_layout.hpp). Words of two bytes or more stand end to end in one array of token ids, a separator
//    between two. A token keeps the cells of its bytes; its id stands in the first and the last of them. So the token
//    before cell p is read at p - 1, the token after one of length n at p + n, and there are no links, word numbers
//    or lengths to keep. Words of one weight stand together and are filled up to whole blocks, so the weight at p is
//    one look into a small array by p >> shift. Inside a weight many short words are sorted, so that words that begin
//    alike share cache lines.
//
// 2. Occurrence lists (flat_merge.hpp, flat_memory.hpp). Every occurrence of a pair (x, y) comes into being at the
//    one merge that makes the newer of x and y, for before it one of them stood nowhere; later it can only vanish. So
//    a list is complete when it is made, and its size is known before it is written: all occurrences of the merge are
//    noted, counted by neighbour, and written to slices of a pool. They are written from left to right, so lists are
//    sorted. The pairs of bytes, which are all there from the beginning, get their lists in stages (flat_bytes.hpp):
//    the most frequent first, the others when one of them is the best, and then only of what is left of them.
//
// 3. Stale entries need no removal. Claim: if p was listed for (A, B), the pair stands at p now if and only if the
//    cell at p holds A and the cell at p + |A| holds B. When the token listed at p is merged as a left half, its cell
//    gets the new id; as a right half, a hole, or the new id if that token also ends there. Ids are never used twice,
//    and every later write to the cell is a hole or a still newer id. So once that token is gone, the cell at p holds
//    something else for ever; and while A stands at p, the cell at p + |A| is the first cell of the token that
//    follows, or a separator.
//
// 4. Counts never rise after a pair is born (2.), and no pair is born above the count being merged: occurrences of
//    (x, C) have different Cs, and each C is one occurrence of (A, B). So a queue of possibly outdated counts is
//    exact if it corrects what comes out (flat_queue.hpp), and can be walked down once: a bucket for every count,
//    whose true pairs are sorted by the tie-break; pairs born with the very count being merged wait in a heap beside
//    them, and the better of both is merged.
//
// 5. Accumulators (flat_merge.hpp). The pairs that a merge changes are (x, A), (x, C), (B, y) and (C, y), each told
//    by one token. So the changes are summed in two arrays over tokens, and the pair table is asked once for every
//    distinct neighbour. Two occurrences side by side, ABAB, need care: the first sees A after it, which the second
//    then takes. Hence (B, A) loses both sums rightly, (C, A) is born with what the first sum says less what stood
//    before a C, and (C, C) with the latter. For A = B the candidates of a run overlap; going from left to right and
//    testing each again replaces every second one, as the definition says.
//
// 6. Pruning (flat_threshold.hpp). A pair that is born below the count of the last merge will never be merged (4.),
//    so it needs neither table entry nor list. A lower bound on that count is known from the words: while more
//    unfinished words of weight w or more are left than merges to come can finish, some word of weight w holds a
//    pair. Where words are long and rare, so that this says little, the last count is guessed, from the present count
//    and from how many pairs reach which count. A wrong guess costs time only: when no kept pair reaches the
//    threshold, all pairs are counted again with a lower one (flat_scan.hpp).
//
// 7. No branches to mispredict, and memory asked for early (flat_merge.hpp). Which list entries are stale is as good
//    as random, so all are copied and the cursor moves by the outcome of the test; new occurrences of pairs that are
//    not kept are written to an idle cell. What the next three merges will read is asked for before each, and text only into the second
//    cache: of misses that end in the first too few can be under way.
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

#include <algorithm>
#include <cstdint>

#include "flat_extending.hpp"
#include "flat_job.hpp"
#include "flat_layout.hpp"
#include "flat_trainer.hpp"

namespace flat {

// Learns up to `options.num_merges` merges. Throws Refused for a table that cannot be trained on and std::bad_alloc
// when memory runs out; `report` may end it early, then the merges are those made so far.
inline Answer train(const Words& words, Options options, Report report, void* context,
                    WordsRead words_read = nullptr) {
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
            train_in<std::uint32_t, std::uint64_t>(words, classes, shift, options, answer, watch, words_read, context);
        } else if (narrow) {
            train_in<std::uint16_t, std::uint32_t>(words, classes, shift, options, answer, watch, words_read, context);
        } else {
            train_in<std::uint32_t, std::uint32_t>(words, classes, shift, options, answer, watch, words_read, context);
        }
    } catch (const Stopped&) {
    }
    return answer;
}

}  // namespace flat
