// Going on from merges that are already made: the pieces are encoded by them, and then merged as ever.
//
// What flat.hpp says of bytes holds of tokens: all occurrences of a pair come into being at one merge, or stand in the text at
// the beginning, and ids are never used twice. A token that was inherited takes one cell, and one that is merged from here
// on those of its parts. A veto sees bytes alone, so a pair is refused when it would first be kept, or never.
//
// What does not hold is the certain bound on the last count: a word may hold no pair that may be merged. So the threshold is
// guessed from the first, and a wrong guess is noticed and mended as ever. (Of whole characters it holds: see `train`.)
#pragma once

#include "flat_pieces.hpp"
#include "flat_token_pairs.hpp"
#include "flat.hpp"

namespace flat {

// How to go on from the merges that the pieces are encoded by.
struct Extension {
    bool met = false;   // drop those whose pair was never met
    Veto veto;
};

// The final ids by those that pieces were encoded with, and the merges that stay, in final ids.
class RetainedMerges {
  public:
    RetainedMerges(const InheritedMerges& merges, const std::vector<std::uint8_t>& met, bool drop) {
        for (std::uint32_t id = 0; id < first_merge; ++id) ids_.push_back(id);
        for (std::size_t rank = 0; rank < merges.size(); ++rank) {
            const bool stays = !drop || met[rank];
            dropped_ |= !stays;
            ids_.push_back(static_cast<std::uint32_t>(first_merge + merges_.size()));
            if (stays) merges_.push_back({ids_[merges[rank].left], ids_[merges[rank].right]});
        }
    }
    const std::vector<Merge>& merges() const { return merges_; }
    // Empty where none changes.
    std::vector<std::uint32_t> changed_ids() const { return dropped_ ? ids_ : std::vector<std::uint32_t>{}; }

  private:
    std::vector<std::uint32_t> ids_;
    std::vector<Merge> merges_;
    bool dropped_ = false;
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
    KeptPairs pairs(tokens, tallies, &filter);
    TokenPairs<Symbol> first_pairs(text, tokens.size(), pairs, parts, tallies, progress);
    first_pairs.count(threshold, filter);
    make_merges(text, tokens, threshold, pairs, first_pairs, options, answer, progress);
}

// Makes all pieces of these words, each of `parts` threads those of as many bytes.
inline void take_all(Pieces& pieces, const Words& words, std::size_t parts, Progress& progress) {
    pieces.begin(parts);
    const std::vector<std::size_t> cuts =
        equal_shares(words.number, parts, [&](std::size_t word) { return words.offsets[word + 1] - words.offsets[word]; });
    in_parallel(parts, [&](std::size_t part) {
        for (std::size_t begin = cuts[part], end; begin < cuts[part + 1]; begin = end) {
            end = std::min(begin + pieces_together, cuts[part + 1]);
            pieces.take(part, {words.bytes, words.size, words.offsets + begin, words.counts + begin, end - begin});
            if (part + 1 == parts)
                progress.advance(static_cast<std::uint64_t>(words.offsets[end] - words.offsets[begin]), convert);
        }
    });
}

// Goes on from merges up to `options.num_merges`, those inherited among them, which come first in the answer unless they
// were dropped. `pieces` are encoded by these merges, and used up. With `words` they are made of these first, which
// may be given back then.
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
            const RetainedMerges kept(pieces.merges(), table.met(), extension.met);
            const std::size_t parts = parts_of(positions, options);
            const auto extend = [&](auto text) {
                extend_text(std::move(text), kept.merges(), extension, options, parts, answer, progress, context);
            };
            if (has_narrow_ids(options.num_merges) && !options.wide_symbols)
                extend(table.template finish<std::uint16_t>(kept.changed_ids()));
            else
                extend(table.template finish<std::uint32_t>(kept.changed_ids()));
        });
    } catch (const Stopped&) {
    }
    answer.work = answer.tallies.listed();
    return answer;
}

}  // namespace flat
