// One merge: replaces the pair wherever it occurs, and updates the counts and lists of all pairs beside it.
#pragma once

#include "flat_pairs.hpp"

namespace flat {

template <class Symbol>
struct Occurrence {
    Position position;
    Symbol before;   // the neighbours when it was replaced
    Symbol after;
};

// A neighbour of occurrences, x or y. First it holds the sums of its changes, then where its new occurrences are written; a
// pair that is not kept writes them all to one unused cell.
union Neighbour {
    struct {
        std::int64_t weight;
        Position occurrences;
    } sum;
    struct {
        Position* next;
        Position length;   // from the neighbour's beginning to the occurrence
        Position step;
    } list;
};

// Per-merge sums, indexed by the token on one side of each occurrence; all zero between two merges.
template <class Symbol>
struct NeighbourSums {
    Array<Neighbour> of;
    Array<Symbol> touched;        // those whose sums are not zero
    std::size_t number = 0;   // of them

    void reach(std::uint32_t token) {
        of.reach(token);
        touched.reach(token + std::size_t{1});
    }
    void forget() {
        for (std::size_t place = 0; place < number; ++place) of[touched[place]] = Neighbour{};
        of[separator] = Neighbour{};
        number = 0;
    }
};

// The same while it is added to, copied out of the class so that the compiler may keep it in registers.
template <class Symbol>
struct Adding {
    explicit Adding(NeighbourSums<Symbol>& side)
        : of(side.of.data()), touched(side.touched.data()), number(side.number) {}

    void add(std::uint32_t token, std::int64_t weight) {
        Neighbour& neighbour = of[token];
        touched[number] = static_cast<Symbol>(token);
        number += neighbour.sum.occurrences == 0;
        neighbour.sum.weight += weight;
        neighbour.sum.occurrences += 1;
    }

    Neighbour* const of;
    Symbol* const touched;
    std::size_t number;
};

template <class Symbol>
class Merger {
  public:
    using Slot = PairTable::Slot;

    Merger(Text<Symbol>& text, Tokens& tokens, KeptPairs& pairs, const Options& options,
           Tallies& tallies, Progress& progress)
        : text_(text), tokens_(tokens), pairs_(pairs), options_(options), tallies_(tallies), progress_(progress) {}

    // Merges a pair taken from the queue; new pairs below `lowest` are not kept. Returns the weight of the word that
    // has become one token, 0 if none has.
    std::uint64_t merge(const Slot& best, std::int64_t lowest) {
        left_ = left_of(best.key);
        right_ = right_of(best.key);
        merged_ = tokens_.merge(left_, right_);
        left_length_ = tokens_.length(left_);
        length_ = tokens_.length(merged_);
        finished_ = 0;
        live_count_ = 0;
        if (occurrences_.size() < best.entries) occurrences_ = Array<Occurrence>(best.entries);
        before_.reach(merged_);
        after_.reach(merged_);
        replace(best.list, best.entries);
        pairs_.give_back(best.list, best.entries);
        tallies_.positions_visited += best.entries;
        tallies_.occurrences_merged += live_count_;
        tallies_.stale_positions += best.entries - live_count_;
        options_.has(accumulators) ? update_summed(lowest) : update_singly(lowest);
        return finished_;
    }

    // Asks for the beginning of what a later merge will read, in three steps.
    void prefetch(const Queue& queue) const {
        if (const PairKey third = queue.upcoming(2)) pairs_.table().prefetch(third);
        if (const PairKey second = queue.upcoming(1)) {
            if (const Slot* const slot = pairs_.table().find(second)) __builtin_prefetch(slot->list);
        }
        if (const PairKey first = queue.upcoming(0)) {
            const Slot* const slot = pairs_.table().find(first);
            if (!slot || !slot->list) return;
            const std::size_t some = std::min<std::size_t>(slot->entries, first_asked_for);
            for (std::size_t place = 0; place < some; ++place)
                Text<Symbol>::prefetch(text_.symbols.data() + slot->list[place]);
        }
    }

  private:
    using Occurrence = flat::Occurrence<Symbol>;

    static constexpr std::size_t chunk = 256;
    static constexpr std::size_t distance = 96;   // list entries between a prefetch and its use
    static constexpr std::size_t first_asked_for = 64;   // of the next merge's list

    // The list says where the pair was born. It is still at such a place if and only if both ids are (claim 2 of the page), so
    // the places are filtered first, without a branch to mispredict, and then replaced from left to right.
    void replace(const Position* list, std::size_t entries) {
        const Symbol* const symbols = text_.symbols.data();
        const std::uint32_t left = left_, right = right_;
        const std::size_t left_length = left_length_, length = length_;
        Position live[chunk];
        std::size_t found = 0;
        const auto test = [&](std::size_t place) {
            const Position at = list[place];
            live[found] = at;
            found += (symbols[at] == left) & (symbols[at + left_length] == right);
        };
        for (std::size_t place = 0; place < std::min(entries, distance); ++place)
            Text<Symbol>::prefetch(symbols + list[place]);
        for (std::size_t begin = 0; begin < entries; begin += chunk) {
            const std::size_t end = std::min(begin + chunk, entries);
            const std::size_t last_ahead = std::max(begin, std::min(end, entries - std::min(entries, distance)));
            found = 0;
            for (std::size_t place = begin; place < last_ahead; ++place) {
                Text<Symbol>::prefetch(symbols + list[place + distance] - 1);
                Text<Symbol>::prefetch(symbols + list[place + distance] + length);
                test(place);
            }
            for (std::size_t place = last_ahead; place < end; ++place) test(place);
            replace_live(live, found);
            progress_.advance(end - begin, update);
        }
    }

    // Weights fall along the text, so places have all the same weight if the first and the last have. Most have: few
    // words are heavy. Then no look at the weights, which are far apart, holds up the replacing.
    void replace_live(const Position* live, std::size_t number) {
        if (!number) return;
        if (!options_.has(accumulators)) return replace_each<false>(live, number, [](std::size_t) { return 0; });
        const std::int64_t first = text_.weight_at(live[0]), last = text_.weight_at(live[number - 1]);
        if (options_.has(layout) && first == last) {
            replace_each<true>(live, number, [=](std::size_t) { return first; });
        } else {
            for (std::size_t place = 0; place < number; ++place) text_.prefetch_weight(live[place]);
            replace_each<true>(live, number, [this](std::size_t at) { return text_.weight_at(at); });
        }
    }

    template <bool accumulators, class WeightAt>
    void replace_each(const Position* live, std::size_t number, WeightAt weight_at) {
        Symbol* const symbols = text_.symbols.data();
        const std::uint32_t left = left_, right = right_, merged = merged_;
        const std::size_t left_length = left_length_, length = length_;
        Occurrence* occurrence = occurrences_.data() + live_count_;
        Adding<Symbol> befores(before_), afters(after_);
        for (std::size_t place = 0; place < number; ++place) {
            const std::size_t at = live[place];
            // In a run of equal tokens a replacement undoes the next candidate, which was tested before it.
            if (left == right && (symbols[at] != left || symbols[at + left_length] != right)) continue;
            const std::uint32_t before = symbols[at - 1], after = symbols[at + length];
            const std::int64_t weight = weight_at(at);
            symbols[at + left_length] = static_cast<Symbol>(hole);
            symbols[at] = static_cast<Symbol>(merged);
            symbols[at + length - 1] = static_cast<Symbol>(merged);
            if constexpr (accumulators) {
                befores.add(before, weight);
                afters.add(after, weight);
            }
            // Then the occurrence just noted took this left half for its right neighbour.
            if (before == merged) occurrence[-1].after = static_cast<Symbol>(separator);
            if (!(before | after)) finished_ = static_cast<std::uint64_t>(text_.weight_at(at));
            *occurrence++ = {static_cast<Position>(at), static_cast<Symbol>(before), static_cast<Symbol>(after)};
        }
        before_.number = befores.number;
        after_.number = afters.number;
        live_count_ = static_cast<std::size_t>(occurrence - occurrences_.data());
    }

    void update_summed(std::int64_t lowest) {
        // ABAB: before the second is C already. The first saw A behind it, so (B, A) is rightly lost, but (C, A) is born only
        // where no second followed, and (C, C) where one did.
        const auto twice = before_.of[merged_].sum;
        // Every occurrence takes away (A, B), and two pairs more and brings two unless a word begins or ends there;
        // two that follow each other share one lost and one new pair.
        const std::uint64_t edges = before_.of[separator].sum.occurrences + after_.of[separator].sum.occurrences;
        tallies_.pair_updates += live_count_ + 2 * (2 * std::uint64_t{live_count_} - edges - twice.occurrences);
        std::size_t kept = 0;
        for (std::size_t place = 0; place < before_.number; ++place) {
            if (place + 8 < before_.number) pairs_.table().prefetch(key_of(before_.touched[place + 8], left_));
            const std::uint32_t token = before_.touched[place];
            Neighbour& neighbour = before_.of[token];
            if (token != separator && token != merged_) lose(neighbour, key_of(token, left_), lowest);
            kept += open(neighbour, token, key_of(token, merged_), tokens_.length(token), lowest);
        }
        for (std::size_t place = 0; place < after_.number; ++place) {
            if (place + 8 < after_.number) pairs_.table().prefetch(key_of(right_, after_.touched[place + 8]));
            const std::uint32_t token = after_.touched[place];
            Neighbour& neighbour = after_.of[token];
            if (token != separator) lose(neighbour, key_of(right_, token), lowest);
            if (token == left_) {
                neighbour.sum.weight -= twice.weight;
                neighbour.sum.occurrences -= twice.occurrences;
            }
            kept += open(neighbour, token, key_of(merged_, token), 0, lowest);
        }
        if (kept) fill();
        before_.forget();
        after_.forget();
    }

    void lose(const Neighbour& neighbour, PairKey key, std::int64_t lowest) {
        pairs_.lose(key, neighbour.sum.weight, neighbour.sum.occurrences, lowest);
    }

    // Turns a neighbour's sums into a place to write to. True if the pair is kept.
    bool open(Neighbour& neighbour, std::uint32_t token, PairKey key, std::uint64_t length, std::int64_t lowest) {
        const auto sum = neighbour.sum;
        neighbour.list = {&discard_, 0, 0};
        if (token == separator) return false;
        Position* const list = pairs_.open(key, sum.weight, sum.occurrences, lowest);
        if (list) neighbour.list = {list, static_cast<Position>(length), 1};
        return list;
    }

    void fill() {
        // No neighbour at all, or one that has become part of the next occurrence.
        before_.of[separator].list = after_.of[separator].list = {&discard_, 0, 0};
        Neighbour* const befores = before_.of.data();
        Neighbour* const afters = after_.of.data();
        const auto write = [](Neighbour& neighbour, Position position) {
            *neighbour.list.next = position - neighbour.list.length;
            neighbour.list.next += neighbour.list.step;
        };
        for (std::size_t begin = 0; begin < live_count_; begin += steps_between_looks) {
            const Occurrence* const end = occurrences_.data() + std::min<std::size_t>(begin + steps_between_looks, live_count_);
            for (const Occurrence* occurrence = occurrences_.data() + begin; occurrence != end; ++occurrence) {
                const Occurrence noted = *occurrence;
                write(befores[noted.before], noted.position);
                write(afters[noted.after], noted.position);
            }
            if (end != occurrences_.data() + live_count_) progress_.advance(steps_between_looks, update);
        }
    }

    // ---- the same without sums: the pair table is looked up for every occurrence ----

    void update_singly(std::int64_t lowest) {
        born_.clear();
        for (std::size_t place = 0; place < live_count_; ++place) {
            const auto [position, before, after] = occurrences_[place];
            const std::int64_t weight = text_.weight_at(position);
            tallies_.pair_updates += 1;
            if (before != separator) {
                pairs_.lose(before == merged_ ? key_of(right_, left_) : key_of(before, left_), weight, 1, lowest);
                gain(key_of(before, merged_), weight);
            }
            if (after != separator) {
                pairs_.lose(key_of(right_, after), weight, 1, lowest);
                gain(key_of(merged_, after), weight);
            }
        }
        for (const PairKey key : born_) pairs_.settle(key, lowest);
        for (std::size_t place = 0; place < live_count_; ++place) {
            const auto [position, before, after] = occurrences_[place];
            const Position begin = position - static_cast<Position>(tokens_.length(before));
            if (Slot* const slot = pairs_.table().find(key_of(before, merged_))) slot->list[slot->entries++] = begin;
            if (Slot* const slot = pairs_.table().find(key_of(merged_, after))) slot->list[slot->entries++] = position;
        }
    }

    void gain(PairKey key, std::int64_t weight) {
        tallies_.table_updates += 1;
        tallies_.pair_updates += 2;
        Slot* slot = pairs_.table().find(key);
        if (!slot) {
            slot = pairs_.table().insert(key, 0, nullptr, 0);
            born_.push_back(key);
        }
        slot->count += weight;
        slot->entries += 1;
    }

    Text<Symbol>& text_;
    Tokens& tokens_;
    KeptPairs& pairs_;
    const Options& options_;
    Tallies& tallies_;
    Progress& progress_;

    // Of the merge at work.
    std::uint32_t left_ = 0, right_ = 0, merged_ = 0;
    std::size_t left_length_ = 0, length_ = 0;
    std::uint64_t finished_ = 0;   // weight of the word that it makes one token
    NeighbourSums<Symbol> before_, after_;
    Array<Occurrence> occurrences_;
    std::size_t live_count_ = 0;
    Position discard_ = 0;
    std::vector<PairKey> born_;    // without accumulators
};

}  // namespace flat
