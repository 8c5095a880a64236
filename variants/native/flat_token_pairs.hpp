// The pairs of a text of tokens before its first merge: counted as far as they matter, and given their lists in stages.
#pragma once

#include <functional>
#include <limits>

#include "flat_pairs.hpp"

namespace flat {

// Tokens make far more pairs than bytes do, nearly all of them rare. So three passes find those that matter:
//
// 1. An array of sums, in which pairs share cells, gives every pair a sum no smaller than its count; and a sample of all
//    pairs, taken by their hash, is counted exactly.
// 2. From the sample a threshold is guessed (Threshold::begin_at). Pairs whose sum reaches it are counted exactly, and those
//    whose count does are kept, if they are not vetoed.
// 3. The most frequent of them get lists; the others when one of them is the best pair and has none, as in flat_bytes.hpp.
//
// There, a cell that holds a byte's id is that byte. Here the same is true of all tokens the text was laid out with: each has
// one cell, and merges write holes and new ids only.
template <class Symbol>
class TokenPairs {
  public:
    TokenPairs(const Text<Symbol>& text, std::uint32_t first_new, KeptPairs& pairs, std::size_t parts,
               Tallies& tallies, Progress& progress)
        : text_(text), first_new_(first_new), pairs_(pairs), parts_(parts), tallies_(tallies), progress_(progress) {
        while (sums_log_ < most_sums_log && text.size() >> sums_log_ > cells_a_sum) ++sums_log_;
        if (text.size() > many) sampled_ = 8;
        if (text.size() > 16 * many) sampled_ = 64;
    }

    // Guesses the threshold, counts the pairs, puts those that reach it into table and queue, and makes the first lists.
    void count(Threshold& threshold, VetoFilter& filter) {
        {
            std::vector<PairTable> samples(parts_);
            const std::vector<std::uint64_t> reaching = [&] {
                std::vector<Array<std::uint32_t>> sums(parts_);
                in_parallel(parts_, [&](std::size_t part) { add_up(part, sums[part], samples[part]); });
                join(samples);
                threshold.begin_at(guess(samples[0], threshold, filter));
                return those_that_reach(sums, threshold.value());
            }();
            samples.clear();
            std::vector<PairTable> counted(parts_);
            in_parallel(parts_, [&](std::size_t part) { count_part(part, reaching, counted[part]); });
            join(counted);
            counted[0].each([&](const Slot& slot) {
                tallies_.pair_updates += slot.entries;
                if (pairs_.open_unlisted(slot.key, slot.count, slot.entries, threshold.value()))
                    unlisted_.push_back(slot.key);
            });
        }
        list_next(init);
    }

    void list_more() { list_next(update); }

  private:
    using Slot = PairTable::Slot;

    static constexpr unsigned most_sums_log = 22;
    static constexpr std::size_t cells_a_sum = 8;
    static constexpr std::size_t many = std::size_t{1} << 20;   // cells from which a sample says enough
    static constexpr std::size_t block = 512;                   // places whose memory is fetched together
    static constexpr std::uint32_t most_sum = std::numeric_limits<std::uint32_t>::max();   // and whatever is above

    static std::uint64_t hash(PairKey key) { return (key ^ key >> 31) * 0xd6e8feb86659fd93u; }
    std::size_t sum_of(std::uint64_t hash) const { return static_cast<std::size_t>(hash >> (64 - sums_log_)); }
    bool is_sampled(std::uint64_t hash) const { return (hash >> 32 & (sampled_ - 1)) == 0; }

    struct Place {
        std::size_t at;
        PairKey key;
    };

    // Calls visit(places, number) for all pairs of tokens in a part, some hundred at a time, in order.
    template <class Visit>
    void each_block(std::size_t begin, std::size_t end, bool watched, Phase phase, Visit visit) const {
        const Symbol* const symbols = text_.symbols.data();
        const std::uint32_t tokens = first_new_ - first_byte;
        Place places[block];
        for (; begin < end; begin += block) {
            const std::size_t stop = std::min(begin + block, end);
            std::size_t number = 0;
            std::uint32_t left = static_cast<std::uint32_t>(symbols[begin]) - first_byte;
            for (std::size_t at = begin; at < stop; ++at) {
                const std::uint32_t right = static_cast<std::uint32_t>(symbols[at + 1]) - first_byte;
                places[number] = {at, key_of(left + first_byte, right + first_byte)};
                number += (left < tokens) & (right < tokens);
                left = right;
            }
            visit(places, number);
            if (watched) progress_.advance(2 * (stop - begin), phase);
        }
    }

    void add_up(std::size_t part, Array<std::uint32_t>& sums, PairTable& sample) const {
        sums = Array<std::uint32_t>(std::size_t{1} << sums_log_);
        each_block(text_.cut(part, parts_), text_.cut(part + 1, parts_), part + 1 == parts_, init, [&](const Place* places, std::size_t number) {
            std::uint64_t hashes[block];
            for (std::size_t place = 0; place < number; ++place) {
                hashes[place] = hash(places[place].key);
                __builtin_prefetch(sums.data() + sum_of(hashes[place]), 1);
            }
            for (std::size_t place = 0; place < number; ++place) {
                const std::uint64_t weight = static_cast<std::uint64_t>(text_.weight_at(places[place].at));
                std::uint32_t& sum = sums[sum_of(hashes[place])];
                sum = static_cast<std::uint32_t>(std::min<std::uint64_t>(most_sum, sum + weight));
                if (is_sampled(hashes[place])) add(sample, places[place]);
            }
        });
    }

    void add(PairTable& table, const Place& place) const {
        Slot* slot = table.find(place.key);
        if (!slot) slot = table.insert(place.key, 0, nullptr, 0);
        slot->count += text_.weight_at(place.at);
        slot->entries += 1;
    }

    // Adds all to the first.
    void join(std::vector<PairTable>& tables) {
        for (std::size_t part = 1; part < tables.size(); ++part) {
            tables[part].each([&](const Slot& other) {
                Slot* slot = tables[0].find(other.key);
                if (!slot) slot = tables[0].insert(other.key, 0, nullptr, 0);
                slot->count += other.count;
                slot->entries += other.entries;
            });
            tallies_.probes += tables[part].probes();
            tables[part] = PairTable();
        }
        tallies_.probes += tables[0].probes();
    }

    // The count that so many pairs reach as the threshold wants to know, refused ones not among them; 0 if there are fewer.
    std::int64_t guess(PairTable& sample, const Threshold& threshold, VetoFilter& filter) const {
        std::uint64_t wanted = threshold.pairs_to_begin_with() / sampled_;
        if (!wanted) return 0;
        std::vector<std::pair<std::int64_t, PairKey>> counts;
        sample.each([&](const Slot& slot) { counts.emplace_back(slot.count, slot.key); });
        std::sort(counts.begin(), counts.end(), std::greater<>());
        for (const auto& [count, key] : counts) {
            if (filter(key)) continue;
            if (!--wanted) return count;
        }
        return 0;
    }

    // A bit for each sum.
    std::vector<std::uint64_t> those_that_reach(const std::vector<Array<std::uint32_t>>& sums, std::int64_t lowest) const {
        const std::size_t number = std::size_t{1} << sums_log_;
        std::vector<std::uint64_t> bits((number + 63) / 64);
        for (std::size_t cell = 0; cell < number; ++cell) {
            std::uint64_t sum = 0;
            bool beyond = false;
            for (const Array<std::uint32_t>& of_part : sums) {
                sum += of_part[cell];
                beyond |= of_part[cell] == most_sum;
            }
            if (beyond || sum >= static_cast<std::uint64_t>(lowest)) bits[cell >> 6] |= std::uint64_t{1} << (cell & 63);
        }
        return bits;
    }

    void count_part(std::size_t part, const std::vector<std::uint64_t>& reaching, PairTable& counted) {
        const std::size_t end = text_.cut(part + 1, parts_);
        each_block(text_.cut(part, parts_), end, part + 1 == parts_, init, [&](Place* places, std::size_t number) {
            std::size_t reach = 0;
            for (std::size_t place = 0; place < number; ++place) {
                const std::size_t cell = sum_of(hash(places[place].key));
                places[reach] = places[place];
                const bool reaches = reaching[cell >> 6] >> (cell & 63) & 1;
                if (reaches) counted.prefetch(places[reach].key);
                reach += reaches;
            }
            for (std::size_t place = 0; place < reach; ++place) add(counted, places[place]);
        });
        if (part + 1 == parts_) tallies_.positions_visited += 2 * (text_.size() - text_.begin);
    }

    // The pairs of one stage, each with the place where its next occurrence is written.
    struct Stage {
        explicit Stage(std::size_t pairs) {
            while (std::size_t{1} << log < 32 * pairs) ++log;
            maybe.resize((std::size_t{1} << log) / 64);
        }
        std::size_t bit(PairKey key) const { return static_cast<std::size_t>(hash(key) >> (64 - log)); }
        bool may_hold(PairKey key) const { return maybe[bit(key) >> 6] >> (bit(key) & 63) & 1; }
        void insert(PairKey key, Position* list) {
            next.insert(key, 0, list, 0);
            maybe[bit(key) >> 6] |= std::uint64_t{1} << (bit(key) & 63);
        }
        PairTable next;
        unsigned log = 6;
        std::vector<std::uint64_t> maybe;   // a filter, by hash: most pairs are not in the table
    };

    // Lists the most frequent pairs until they hold a good part of all occurrences. Two threads write each list from its
    // two ends, one going through the text forwards, one backwards, until they meet: so its size is all they have to know.
    void list_next(Phase phase) {
        const std::vector<Slot*> chosen = pairs_.next_to_list(unlisted_, text_.size());
        const std::size_t parts = std::min<std::size_t>(parts_, 2);
        std::vector<Stage> stages;
        for (std::size_t part = 0; part < parts; ++part) stages.emplace_back(chosen.size());
        for (Slot* const slot : chosen) {
            Position* const list = pairs_.make_list(*slot);
            stages[0].insert(slot->key, list);
            if (parts > 1) stages[1].insert(slot->key, list + slot->entries);
        }
        in_parallel(parts, [&](std::size_t part) {
            if (part) {
                write_backwards(stages[part], text_.cut(1, parts), phase);
            } else {
                write(stages[part], text_.cut(0, parts), text_.cut(1, parts), parts == 1, phase);
            }
        });
        for (const Stage& stage : stages) tallies_.probes += stage.next.probes();
        tallies_.positions_visited += text_.size() - text_.begin;
    }

    void write(Stage& stage, std::size_t begin, std::size_t end, bool watched, Phase phase) const {
        each_block(begin, end, watched, phase, [&](Place* places, std::size_t number) {
            number = those_listed(stage, places, number);
            for (std::size_t place = 0; place < number; ++place) {
                if (Slot* const slot = stage.next.find(places[place].key))
                    *slot->list++ = static_cast<Position>(places[place].at);
            }
        });
    }

    void write_backwards(Stage& stage, std::size_t begin, Phase phase) const {
        for (std::size_t end = text_.size() - 1; end > begin;) {
            const std::size_t from = end - begin > block ? end - block : begin;
            each_block(from, end, true, phase, [&](Place* places, std::size_t number) {
                number = those_listed(stage, places, number);
                while (number-- > 0) {
                    if (Slot* const slot = stage.next.find(places[number].key))
                        *--slot->list = static_cast<Position>(places[number].at);
                }
            });
            end = from;
        }
    }

    // Moves the places whose pair is likely of this stage to the front and asks for where they are written.
    std::size_t those_listed(const Stage& stage, Place* places, std::size_t number) const {
        std::size_t listed = 0;
        for (std::size_t place = 0; place < number; ++place) {
            places[listed] = places[place];
            const bool likely = stage.may_hold(places[place].key);
            if (likely) stage.next.prefetch(places[place].key);
            listed += likely;
        }
        return listed;
    }

    const Text<Symbol>& text_;
    std::uint32_t first_new_;   // the first id that the text was not laid out with
    KeptPairs& pairs_;
    std::size_t parts_;
    Tallies& tallies_;
    Progress& progress_;
    unsigned sums_log_ = 8;
    std::uint64_t sampled_ = 1;   // one pair of so many is in the sample
    std::vector<PairKey> unlisted_;
};

}  // namespace flat
