// Byte pairs. All exist before the first merge; they are counted once, and their lists are built lazily, most frequent first.
#pragma once

#include "flat_pairs.hpp"

namespace flat {

// The next pairs are listed when the best pair of all has no list yet, and with the occurrences that are left of them: a pair
// without a list keeps their number up to date. No stage steps from token to token: a cell holds the id of a byte if and only
// if that byte is a token still, since merges write holes and new ids only.
template <class Symbol>
class BytePairs {
  public:
    BytePairs(const Text<Symbol>& text, KeptPairs& pairs, std::size_t parts, Tallies& tallies, Progress& progress)
        : text_(text), pairs_(pairs), parts_(parts), tallies_(tallies), progress_(progress) {}

    // Counts the pairs, puts those that reach `lowest` into table and queue, and makes the first lists. A part's occurrences
    // go behind those of the parts before it.
    void count(std::int64_t lowest) {
        std::vector<Array<Sum>> sums(parts_);
        in_parallel(parts_, [&](std::size_t part) {
            sums[part] = Array<Sum>(side * side);
            count_part(part, sums[part].data());
        });
        for (std::uint32_t left = first_byte; left < first_merge; ++left) {
            for (std::uint32_t right = first_byte; right < first_merge; ++right) {
                Sum sum{};
                for (const Array<Sum>& of_part : sums) {
                    sum.weight += of_part[cell(left, right)].weight;
                    sum.occurrences += of_part[cell(left, right)].occurrences;
                }
                tallies_.pair_updates += sum.occurrences;
                if (!sum.occurrences) continue;
                const PairKey key = key_of(left, right);
                if (pairs_.open_unlisted(key, static_cast<std::int64_t>(sum.weight), static_cast<Position>(sum.occurrences),
                                         lowest))
                    unlisted_.push_back(key);
            }
        }
        list_next(init, [&](std::size_t part, PairKey key) {
            return sums[part][cell(left_of(key), right_of(key))].occurrences;
        });
    }

    // Makes the next lists: those of the best pair and of the most frequent others that have none. Several threads count what
    // is left first, to know where each of them writes.
    void list_more() {
        if (parts_ == 1) return list_next(update, [](std::size_t, PairKey) { return 0; });
        std::vector<Array<Position>> left(parts_);
        in_parallel(parts_, [&](std::size_t part) {
            left[part] = Array<Position>(side * side);
            each_byte(part, update, [&](std::size_t cell, std::size_t) { left[part][cell] += 1; });
        });
        list_next(update, [&](std::size_t part, PairKey key) { return left[part][cell(left_of(key), right_of(key))]; });
    }

  private:
    using Slot = KeptPairs::Slot;
    struct Sum {
        std::uint64_t weight;   // of what is no pair, words' ends, it may pass 63 bits
        std::uint64_t occurrences;
    };
    struct List {
        Position* next;
        std::size_t step;
    };
    struct alignas(64) Discard {   // a cache line each, for the threads write to it all the time
        Position cell;
    };
    static constexpr std::size_t side = first_merge + 1;   // all that is no byte shares the last row and column
    static constexpr std::size_t piece = 16;
    static constexpr std::size_t entries_ahead = 16;   // of a list, to be fetched before they are written

    static std::size_t row(std::uint32_t token) { return std::min(token, first_merge); }
    static std::size_t cell(std::uint32_t left, std::uint32_t right) { return row(left) * side + row(right); }

    void count_part(std::size_t part, Sum* sums) {
        const Symbol* const symbols = text_.symbols.data();
        const std::size_t end = text_.cut(part + 1, parts_), block = std::size_t{1} << text_.shift;
        for (std::size_t begin = text_.cut(part, parts_); begin < end; begin += block) {
            const std::uint64_t weight = static_cast<std::uint64_t>(text_.weight_at(begin));
            for (std::size_t at = begin; at < std::min(begin + block, end); ++at) {
                Sum& sum = sums[symbols[at] * side + symbols[at + 1]];
                sum.weight += weight;
                sum.occurrences += 1;
            }
            if (part + 1 == parts_) progress_.advance(block, init);
        }
        if (part + 1 == parts_) tallies_.positions_visited += text_.size() - text_.begin;
    }

    // Lists the most frequent pairs until they hold a good part of all occurrences. `in_part` counts a pair's occurrences in a
    // part.
    template <class InPart>
    void list_next(Phase phase, InPart in_part) {
        const std::vector<Slot*> chosen = pairs_.next_to_list(unlisted_, text_.size());
        std::vector<std::vector<List>> lists;
        std::vector<Discard> discard(parts_);   // occurrences of all other pairs go here, one over the other
        for (std::size_t part = 0; part < parts_; ++part) lists.emplace_back(side * side, List{&discard[part].cell, 0});
        for (Slot* const slot : chosen) {
            Position* list = pairs_.make_list(*slot);
            for (std::size_t part = 0; part < parts_; ++part) {
                lists[part][cell(left_of(slot->key), right_of(slot->key))] = {list, 1};
                list += in_part(part, slot->key);
            }
        }
        in_parallel(parts_, [&](std::size_t part) {
            List* const lists_of_part = lists[part].data();
            each_byte(part, phase, [=](std::size_t cell, std::size_t at) {
                List& list = lists_of_part[cell];
                __builtin_prefetch(list.next + entries_ahead, 1);
                *list.next = static_cast<Position>(at);
                list.next += list.step;
            });
        });
        tallies_.positions_visited += text_.size() - text_.begin;
    }

    // Calls visit(cell, position) for all positions of a part but stretches that hold no byte.
    template <class Visit>
    void each_byte(std::size_t part, Phase phase, Visit visit) const {
        const Symbol* const symbols = text_.symbols.data();
        const std::size_t end = text_.cut(part + 1, parts_);
        for (std::size_t begin = text_.cut(part, parts_); begin < end;) {
            const std::size_t stop = std::min(begin + piece, end);
            bool any = false;
            for (std::size_t at = begin; at < stop; ++at)
                any |= static_cast<std::uint32_t>(symbols[at] - first_byte) < 256;
            std::size_t left = row(symbols[begin]);
            for (std::size_t at = begin; any && at < stop; ++at) {
                const std::size_t right = row(symbols[at + 1]);
                visit(left * side + right, at);
                left = right;
            }
            begin = stop;
            if (part + 1 == parts_) progress_.advance(piece, phase);
        }
    }

    const Text<Symbol>& text_;
    KeptPairs& pairs_;
    std::size_t parts_;
    Tallies& tallies_;
    Progress& progress_;
    std::vector<PairKey> unlisted_;
};

// ---- counting the whole text again, if the threshold was too high ----

// Visits every pair of neighbouring tokens in order: where the left one begins, and the pair.
template <class Symbol, class Visit>
void each_pair(const Text<Symbol>& text, const Tokens& tokens, Tallies& tallies, Progress& progress, Visit visit) {
    const Symbol* const symbols = text.symbols.data();
    std::size_t visited = 0;
    for (std::size_t at = text.begin; at < text.size();) {
        const std::uint32_t left = symbols[at];
        if (left == separator) {
            ++at;
            continue;
        }
        const std::size_t next = at + tokens.length(left);
        if (symbols[next] != separator) visit(at, key_of(left, symbols[next]));
        at = next;
        ++visited;
        progress.advance(4, update);
    }
    tallies.positions_visited += visited;
}

// Lowers the threshold, counts all pairs of the text again, and keeps those that reach it. A pair is counted exactly only if
// it can: an array of sums, in which pairs share cells, gives every pair a sum no smaller than its count.
template <class Symbol>
void scan_tokens(const Text<Symbol>& text, const Tokens& tokens, KeptPairs& pairs, Threshold& threshold, Tallies& tallies,
                 Progress& progress) {
    pairs.clear();
    unsigned shared_log = 8;
    while (shared_log < 20 && text.size() >> shared_log > 8) ++shared_log;
    const auto cell = [=](PairKey key) {
        return static_cast<std::size_t>(((key ^ key >> 31) * 0xd6e8feb86659fd93u) >> (64 - shared_log));
    };
    auto shared = Array<std::int64_t>(std::size_t{1} << shared_log);
    each_pair(text, tokens, tallies, progress,
              [&](std::size_t at, PairKey key) { shared[cell(key)] += text.weight_at(at); });
    CountHistogram sums;
    for (const std::int64_t sum : shared)
        if (sum) sums.add(sum);
    threshold.lower(sums);
    const std::int64_t lowest = threshold.value();
    PairTable counted;
    each_pair(text, tokens, tallies, progress, [&](std::size_t at, PairKey key) {
        if (shared[cell(key)] < lowest) return;
        auto* slot = counted.find(key);
        if (!slot) slot = counted.insert(key, 0, nullptr, 0);
        slot->count += text.weight_at(at);
        slot->entries += 1;
        tallies.pair_updates += 1;
    });
    counted.each([&](auto& slot) {
        slot.list = pairs.open(slot.key, slot.count, slot.entries, lowest);
    });
    each_pair(text, tokens, tallies, progress, [&](std::size_t at, PairKey key) {
        auto* slot = counted.find(key);
        if (slot && slot->list) *slot->list++ = static_cast<Position>(at);
    });
    tallies.probes += counted.probes();
}

}  // namespace flat
