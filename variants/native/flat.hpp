// flat: exact byte-level BPE training at the speed of what must change. Input: distinct words with weights. Output: merges.
//
// docs/explanation/flat.md says what makes it fast and proves that the merges are exact; its names are used here: (A, B) is
// merged to C, x and y are the tokens before and after an occurrence.
//
// Threads lay out, count and list in parts; each part knows beforehand where it writes, so the result is the same at every
// width. One thread makes the merges.
// Memory: two bytes a position (four above 65,278 merges), four for every listed occurrence, and some 64 for every kept pair,
// most of it in tables of ties. The words may be freed once they are laid out.
#pragma once

#include "flat_bytes.hpp"
#include "flat_merge.hpp"
#include "flat_pieces.hpp"
#include "flat_token_pairs.hpp"

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
            tallies.rescans += 1;
            scan_tokens(text, tokens, pairs, threshold, tallies, progress);
        }
    }
    tallies.probes += pairs.table().probes();
    tallies.token_bytes = tokens.bytes_written();
    progress.lap(update);
}

template <class Symbol>
void train_in(const Words& words, const WeightClasses& classes, const Options& options, Answer& answer,
              Progress& progress, WordsRead words_read, void* context, const Veto& veto) {
    Tallies& tallies = answer.tallies;
    const std::size_t parts = parts_of(classes.positions(), options);
    Text<Symbol> text = options.has(layout) ? lay_out<Symbol>(words, classes, parts, progress)
                                            : lay_out_as_given<Symbol>(words, classes, progress);
    if (words_read) words_read(context);
    tallies.text_bytes = text.bytes();
    tallies.positions_visited += classes.positions();
    progress.lap(convert);

    Tokens tokens(options.tie_break, veto.refuses_any());
    VetoFilter filter(tokens, veto, context);
    Threshold threshold(options, options.num_merges, &classes);
    KeptPairs pairs(tokens, tallies, progress, veto.refuses_any() ? &filter : nullptr);
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
// A veto must leave a pair to merge in every word that is not one token, for the certain bound on the last count to hold: so
// it may refuse mixed parts of characters alone, and the words must be valid UTF-8. Then either a character's beginning is
// before its next byte, or all tokens of the word are whole. Any other veto needs `extend`.
inline Answer train(const Words& words, Options options, Report report, void* context, WordsRead words_read = nullptr,
                    const Veto& veto = {}) {
    Answer answer;
    Progress progress(answer, report, context);
    try {
        const WeightClasses classes(words, progress);
        limit_merges(options, classes.positions());
        const auto train = options.narrow() ? train_in<std::uint16_t> : train_in<std::uint32_t>;
        train(words, classes, options, answer, progress, words_read, context, veto);
    } catch (const Stopped&) {
    }
    answer.work = answer.tallies.listed();
    return answer;
}

// ---- extending inherited merges: the pieces are encoded by them, and then merged as before
//
// What the page says of bytes holds of tokens: all occurrences of a pair appear at one merge, or are in the text at the
// start, and ids are never used twice. An inherited token takes one cell, a new one those of its parts. A veto sees bytes
// alone, so a pair is refused when it would first be kept, or never.
//
// The certain bound on the last count does not hold, since a word may hold no pair that may be merged: it is guessed.

struct Extension {
    bool drops = false;   // inherited merges whose pair was never met
    Veto veto;
};

// The final ids by those that pieces were encoded with, and the merges that stay, in final ids.
class RetainedMerges {
  public:
    RetainedMerges(const InheritedMerges& merges, const std::vector<std::uint8_t>& met, bool drop) {
        for (std::uint32_t id = 0; id < first_merge; ++id) ids_.push_back(id);
        for (std::size_t rank = 0; rank < merges.size(); ++rank) {
            const bool stays = !drop || met[rank];
            ids_.push_back(static_cast<std::uint32_t>(first_merge + merges_.size()));
            if (stays) merges_.push_back({ids_[merges[rank].left], ids_[merges[rank].right]});
        }
    }
    const std::vector<Merge>& merges() const { return merges_; }
    const std::vector<std::uint32_t>& ids() const { return ids_; }

  private:
    std::vector<std::uint32_t> ids_;
    std::vector<Merge> merges_;
};

// From the encoded text on; `kept` are the merges that it was encoded by and that stay.
template <class Symbol>
void extend_text(Text<Symbol> text, const std::vector<Merge>& kept, const Extension& extension, const Options& options,
                 std::size_t parts, Answer& answer, Progress& progress, void* context) {
    Tallies& tallies = answer.tallies;
    answer.merges = kept;
    tallies.text_bytes = text.bytes();
    progress.lap(convert);
    Tokens tokens(options.tie_break, true);
    for (const Merge& merge : kept) tokens.inherit(merge.left, merge.right);
    VetoFilter filter(tokens, extension.veto, context);
    Threshold threshold(options, options.num_merges - std::min<std::uint64_t>(options.num_merges, kept.size()), nullptr);
    KeptPairs pairs(tokens, tallies, progress, &filter);
    TokenPairs<Symbol> first_pairs(text, tokens.size(), pairs, parts, tallies, progress);
    first_pairs.count(threshold, filter);
    make_merges(text, tokens, threshold, pairs, first_pairs, options, answer, progress);
}

// Makes the pieces of these words in so many threads, each of about as many bytes.
inline void take_all(Pieces& pieces, const Words& words, std::size_t parts, Progress& progress) {
    pieces.begin(parts);
    const std::vector<std::size_t> cuts =
        equal_shares(words.number, parts, [&](std::size_t word) { return words.offsets[word + 1] - words.offsets[word]; });
    const auto look = [&progress] { progress.look(convert); };
    const auto take = [&](std::size_t part) {
        for (std::size_t begin = cuts[part], end; begin < cuts[part + 1]; begin = end) {
            end = std::min(begin + pieces_together, cuts[part + 1]);
            pieces.take(part, {words.bytes, words.size, words.offsets + begin, words.counts + begin, end - begin});
            if (part + 1 == parts)
                progress.advance(static_cast<std::uint64_t>(words.offsets[end] - words.offsets[begin]), convert);
        }
    };
    pieces.watched(look, [&] { in_parallel(parts, take, look); });
}

// Learns up to `options.num_merges` merges, the inherited ones included; those that stay come first in the answer. `pieces`,
// encoded by them, are used up. With `words` they are first made of these, which may be freed then.
inline Answer extend(Pieces& pieces, Options options, const Extension& extension, Report report, void* context,
                     const Words* words = nullptr, WordsRead words_read = nullptr) {
    Answer answer;
    Progress progress(answer, report, context);
    try {
        if (words) {
            take_all(pieces, *words, parts_of(words->size + words->number, options), progress);
            if (words_read) words_read(context);
        }
        pieces.table([&](auto& table) {
            const std::uint64_t positions = table.positions();
            limit_merges(options, pieces.merges().size() + positions);
            answer.tallies.positions_visited += positions;
            const RetainedMerges kept(pieces.merges(), table.met(), extension.drops);
            const std::size_t parts = parts_of(positions, options);
            const auto extend = [&](auto text) {
                extend_text(std::move(text), kept.merges(), extension, options, parts, answer, progress, context);
            };
            if (options.narrow())
                extend(table.template finish<std::uint16_t>(kept.ids(), progress));
            else
                extend(table.template finish<std::uint32_t>(kept.ids(), progress));
        });
    } catch (const Stopped&) {
    }
    answer.work = answer.tallies.listed();
    return answer;
}

}  // namespace flat
