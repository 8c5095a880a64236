// The queue of pairs by (count, tie-break).
#pragma once

#include "flat_pair_table.hpp"

namespace flat {

// Every kept pair has one entry, at the count it had when it was put there. Counts only fall, so an entry claims too
// much or the truth, never too little, and no pair is ever born above the count being merged: the queue is walked down
// once. Counts below 65,536 have a bucket each; the few above are in a binary heap. The pairs of one count are a level:
// those still true are sorted by the tie-break, as many as are wanted, and merged from the best down. What is born with just
// that count goes into a heap beside them, and the better of both comes out: to insert it would move all behind it.
template <class Position>
class Queue {
  public:
    using Table = PairTable<Position>;
    using Slot = typename Table::Slot;

    Queue(Table& table, const Tokens& tokens, Tallies& tallies)
        : table_(table), tokens_(tokens), tallies_(tallies) {}

    void push(PairKey key, std::int64_t count) {
        tallies_.queue_pushes += 1;
        place(key, count);
    }

    // Takes out the best pair; null if its count would be below `lowest`. At most `wanted` are still to be merged.
    Slot* pop(std::int64_t lowest, std::uint64_t wanted) {
        for (;;) {
            if (level_count_ >= lowest) {
                while (!level_.empty() || !born_.empty()) {
                    const PairKey key = next_in_level(wanted);
                    Slot* slot = table_.find(key);
                    if (!slot) continue;
                    if (slot->count == level_count_) return slot;
                    move(key, slot->count);
                }
            } else if (!level_.empty() || !born_.empty()) {
                return nullptr;
            }
            if (!form_level(lowest)) return nullptr;
        }
    }

    // True if the next pop has to look for a level or sort, which is what finding the maximum costs.
    bool between_levels() const { return !sorted_ && (born_.empty() || !level_.empty()); }
    // The pair that will come out `ahead` pops from now if it does not fall behind; 0 if that is not known.
    PairKey upcoming(std::size_t ahead) const {
        return ahead < level_.size() ? level_[level_.size() - 1 - ahead].key : 0;
    }

    void clear() {
        level_.clear();
        sorted_ = 0;
        born_.clear();
        level_count_ = 0;
        buckets_.clear();
        heavy_.clear();
    }

  private:
    struct Ranked {
        std::uint64_t left;    // the order of the pair's tokens, see Tokens::order
        std::uint64_t right;
        PairKey key;
    };
    struct Heavy {
        std::int64_t count;
        PairKey key;
        bool operator<(const Heavy& other) const { return count < other.count; }
    };
    static constexpr std::int64_t light_counts = 65536;

    bool behind(const Ranked& one, const Ranked& other) const {
        if (one.left != other.left) return one.left < other.left;
        if (left_of(one.key) == left_of(other.key) && one.right != other.right) return one.right < other.right;
        return tokens_.before(other.key, one.key);
    }
    auto order() const {
        return [this](const Ranked& one, const Ranked& other) { return behind(one, other); };
    }
    Ranked ranked(PairKey key) const { return {tokens_.order(left_of(key)), tokens_.order(right_of(key)), key}; }

    void move(PairKey key, std::int64_t count) {
        tallies_.queue_moves += 1;
        place(key, count);
    }

    void place(PairKey key, std::int64_t count) {
        if (count == level_count_) {
            born_.push_back(ranked(key));
            std::push_heap(born_.begin(), born_.end(), order());
            return;
        }
        if (count < light_counts) {
            const std::size_t bucket = static_cast<std::size_t>(count);
            if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
            buckets_[bucket].push_back(key);
        } else {
            heavy_.push_back({count, key});
            std::push_heap(heavy_.begin(), heavy_.end());
        }
    }

    PairKey next_in_level(std::uint64_t wanted) {
        if (!sorted_ && !level_.empty()) sort_some(wanted);
        if (born_.empty() || (sorted_ && behind(born_.front(), level_.back()))) {
            sorted_ -= 1;
            return pop_back(level_).key;
        }
        std::pop_heap(born_.begin(), born_.end(), order());
        return pop_back(born_).key;
    }

    // Sorts the best of the level: all that are wanted, and at least a quarter of it, so that a level whose pairs are gone is
    // not looked through for every merge. What stays in front is behind all that is sorted.
    void sort_some(std::uint64_t wanted) {
        sorted_ = std::min<std::size_t>(level_.size(), std::max<std::uint64_t>(wanted, level_.size() / 4 + 1));
        const auto from = level_.end() - static_cast<std::ptrdiff_t>(sorted_);
        if (from != level_.begin()) std::nth_element(level_.begin(), from, level_.end(), order());
        std::sort(from, level_.end(), order());
    }

    template <class Entry>
    static Entry pop_back(std::vector<Entry>& entries) {
        const Entry last = entries.back();
        entries.pop_back();
        return last;
    }

    Heavy pop_heavy() {
        std::pop_heap(heavy_.begin(), heavy_.end());
        return pop_back(heavy_);
    }

    // Finds the highest count at which a pair truly stands; those pairs are the level.
    bool form_level(std::int64_t lowest) {
        level_count_ = 0;
        while (level_.empty() && !heavy_.empty()) {
            const std::int64_t count = heavy_.front().count;
            if (count < lowest) return false;
            level_count_ = count;
            while (!heavy_.empty() && heavy_.front().count == count) admit(pop_heavy().key, count);
        }
        while (level_.empty() && !buckets_.empty() && static_cast<std::int64_t>(buckets_.size()) > lowest) {
            const std::int64_t count = static_cast<std::int64_t>(buckets_.size()) - 1;
            const std::vector<PairKey> bucket = std::move(buckets_.back());
            buckets_.pop_back();
            level_count_ = count;
            for (std::size_t place = 0; place < bucket.size(); ++place) {
                if (place + 8 < bucket.size()) table_.prefetch(bucket[place + 8]);
                admit(bucket[place], count);
            }
        }
        if (level_.empty()) {
            level_count_ = 0;
            return false;
        }
        tallies_.levels += 1;
        return true;
    }

    void admit(PairKey key, std::int64_t count) {
        const Slot* slot = table_.find(key);
        if (!slot) return;
        if (slot->count == count) {
            level_.push_back(ranked(key));
        } else {
            move(key, slot->count);
        }
    }

    Table& table_;
    const Tokens& tokens_;
    Tallies& tallies_;
    std::vector<Ranked> level_;
    std::size_t sorted_ = 0;      // so many at its back are, the best last
    std::vector<Ranked> born_;    // a heap of what was born into the level, the best in front
    std::int64_t level_count_ = 0;
    std::vector<std::vector<PairKey>> buckets_;   // none at or above the level being merged
    std::vector<Heavy> heavy_;
};

}  // namespace flat
