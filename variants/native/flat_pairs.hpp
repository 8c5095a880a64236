// The pairs that are kept: their lists, their queue by (count, tie-break), and table, lists and queue in step.
#pragma once

#include "flat_threshold.hpp"
#include "flat_veto.hpp"

namespace flat {

// Hands out the occurrence lists and takes dead ones back. A list never changes its size: fresh ones are cut from the end of
// the last chunk or from a free extent. Free extents are in bins, one for every power of two; the first bin whose extents are
// all large enough serves a request, and the rest of the extent goes back. Neighbouring extents are not joined.
class ListPool {
  public:
    Position* take(std::size_t entries) {
        entries = rounded(entries);
        if (Position* const list = pop(log2_of(entries - 1) + 1)) {
            const std::size_t left = extent_at(list).entries - entries;
            if (left) push(list + entries, left);
            return list;
        }
        if (static_cast<std::size_t>(end_ - next_) < entries) add_chunk(entries);
        Position* const list = next_;
        next_ += entries;
        return list;
    }

    void give_back(Position* list, std::size_t entries) { push(list, rounded(entries)); }

    // Makes the first chunk as large as is wanted.
    void reserve(std::size_t entries) {
        if (!held_) add_chunk(rounded(entries));
    }

  private:
    // What a free extent holds at its beginning.
    struct Extent {
        Position* next;
        std::size_t entries;
    };
    static constexpr std::size_t granule = sizeof(Extent) / sizeof(Position);
    static constexpr std::size_t first_chunk = std::size_t{1} << 14;
    static std::size_t rounded(std::size_t entries) { return (entries + granule - 1) / granule * granule; }

    static unsigned log2_of(std::size_t value) { return 63u - static_cast<unsigned>(__builtin_clzll(value)); }

    static Extent extent_at(const Position* list) {
        Extent extent;
        std::memcpy(&extent, list, sizeof extent);
        return extent;
    }

    void push(Position* list, std::size_t entries) {
        const unsigned bin = log2_of(entries);
        const Extent extent{bins_[bin], entries};
        std::memcpy(static_cast<void*>(list), &extent, sizeof extent);
        bins_[bin] = list;
        occupied_ |= std::uint64_t{1} << bin;
    }

    // An extent of a bin numbered `from` or higher, which stays readable; null if there is none.
    Position* pop(unsigned from) {
        const std::uint64_t candidates = occupied_ >> from << from;
        if (!candidates) return nullptr;
        const unsigned bin = static_cast<unsigned>(__builtin_ctzll(candidates));
        Position* const list = bins_[bin];
        bins_[bin] = extent_at(list).next;
        if (!bins_[bin]) occupied_ &= ~(std::uint64_t{1} << bin);
        return list;
    }

    void add_chunk(std::size_t entries) {
        std::size_t size = std::max(first_chunk, held_ / 8 / granule * granule);
        size = std::max(size, entries);
        chunks_.emplace_back(size);
        if (next_ != end_) push(next_, static_cast<std::size_t>(end_ - next_));
        next_ = chunks_.back().data();
        end_ = next_ + size;
        held_ += size;
    }

    std::vector<Array<Position>> chunks_;
    Position* next_ = nullptr;
    Position* end_ = nullptr;
    Position* bins_[64] = {};
    std::uint64_t occupied_ = 0;   // a bit for each bin
    std::size_t held_ = 0;
};

// Every kept pair has one entry, at the count it had when it was put there. Counts only fall, and no pair is born above the
// count being merged (claim 3 of the page): the queue is walked down once. Counts below 65,536 have a bucket each; the few
// above are in a binary heap. The pairs that truly have one count are a level: as many as are wanted are sorted by the
// tie-break, and merged from the best down. Pairs born with that count go into a heap beside them.
class Queue {
  public:
    using Slot = PairTable::Slot;

    Queue(PairTable& table, const Tokens& tokens, Tallies& tallies, Progress& progress)
        : table_(table), tokens_(tokens), tallies_(tallies), progress_(progress) {}

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
        large_.clear();
    }

  private:
    struct Ranked {
        std::uint64_t left;    // the order of the pair's tokens, see Tokens::order
        std::uint64_t right;
        PairKey key;
    };
    using Large = std::pair<std::int64_t, PairKey>;   // the count first
    static constexpr std::int64_t small_counts = 65536;                    // each with a level of its own
    static constexpr std::size_t large_level = std::size_t{1} << 18;   // sorted in a tenth of a second

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
        if (count < small_counts) {
            const std::size_t bucket = static_cast<std::size_t>(count);
            if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
            buckets_[bucket].push_back(key);
        } else {
            large_.push_back({count, key});
            std::push_heap(large_.begin(), large_.end());
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
        tallies_.queue_sorted += level_.size();
        sorted_ = std::min<std::size_t>(level_.size(), std::max<std::uint64_t>(wanted, level_.size() / 4 + 1));
        if (level_.size() < large_level) return sort_by(order());
        std::uint64_t steps_left = steps_between_looks;
        sort_by([this, &steps_left](const Ranked& one, const Ranked& other) {
            if (!--steps_left) progress_.advance(steps_left = steps_between_looks, max);
            return behind(one, other);
        });
    }
    template <class Order>
    void sort_by(Order order) {
        const auto from = level_.end() - static_cast<std::ptrdiff_t>(sorted_);
        if (from != level_.begin()) std::nth_element(level_.begin(), from, level_.end(), order);
        std::sort(from, level_.end(), order);
    }

    template <class Entry>
    static Entry pop_back(std::vector<Entry>& entries) {
        const Entry last = entries.back();
        entries.pop_back();
        return last;
    }

    // Finds the highest count that a pair truly has; those pairs are the level.
    bool form_level(std::int64_t lowest) {
        level_count_ = 0;
        while (level_.empty() && !large_.empty()) {
            const std::int64_t count = large_.front().first;
            if (count < lowest) return false;
            level_count_ = count;
            while (!large_.empty() && large_.front().first == count) {
                std::pop_heap(large_.begin(), large_.end());
                admit(pop_back(large_).second, count);
            }
        }
        while (level_.empty() && !buckets_.empty() && static_cast<std::int64_t>(buckets_.size()) > lowest) {
            const std::int64_t count = static_cast<std::int64_t>(buckets_.size()) - 1;
            const std::vector<PairKey> bucket = std::move(buckets_.back());
            buckets_.pop_back();
            level_count_ = count;
            for (std::size_t place = 0; place < bucket.size(); ++place) {
                if (place % steps_between_looks == steps_between_looks - 1) progress_.advance(steps_between_looks, max);
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

    PairTable& table_;
    const Tokens& tokens_;
    Tallies& tallies_;
    Progress& progress_;
    std::vector<Ranked> level_;
    std::size_t sorted_ = 0;      // so many at its back are, the best last
    std::vector<Ranked> born_;    // a heap of what was born into the level, the best in front
    std::int64_t level_count_ = 0;
    std::vector<std::vector<PairKey>> buckets_;   // none at or above the level being merged
    std::vector<Large> large_;
};

class KeptPairs {
  public:
    using Slot = PairTable::Slot;

    // A pair that the filter refuses is never kept.
    KeptPairs(const Tokens& tokens, Tallies& tallies, Progress& progress, VetoFilter* filter = nullptr)
        : tallies_(tallies), filter_(filter), queue_(table_, tokens, tallies, progress) {}

    // Gives a new pair a list of just the size it needs, a slot and a place in the queue; null if its count is too low.
    Position* open(PairKey key, std::int64_t count, Position occurrences, std::int64_t lowest) {
        if (!may_be_kept(key, count, lowest)) return nullptr;
        Position* const list = lists_.take(occurrences);
        keep(*table_.insert(key, count, list, occurrences));
        return list;
    }

    // The same for a pair whose list is to be made later; until then `entries` are its occurrences. True if it is kept.
    bool open_unlisted(PairKey key, std::int64_t count, Position occurrences, std::int64_t lowest) {
        if (!may_be_kept(key, count, lowest)) return false;
        keep(*table_.insert(key, count, nullptr, occurrences));
        return true;
    }

    // Takes the most frequent pairs that have no list yet out of `unlisted`, until they hold a good part of all
    // occurrences in a text of so many positions, and makes room for their lists. Those that are gone it forgets.
    std::vector<Slot*> next_to_list(std::vector<PairKey>& unlisted, std::uint64_t positions) {
        struct Candidate {
            Slot* slot;
            std::int64_t count;
        };
        std::vector<Candidate> candidates;
        std::uint64_t occurrences = 0;
        for (const PairKey key : unlisted) {
            Slot* const slot = table_.find(key);
            if (!slot || slot->list) continue;
            candidates.push_back({slot, slot->count});
            occurrences += slot->entries;
        }
        std::sort(candidates.begin(), candidates.end(), [](auto& one, auto& other) { return one.count > other.count; });
        const std::uint64_t wanted = std::max<std::uint64_t>({1, occurrences / share, positions / smallest_share});
        std::vector<Slot*> chosen;
        std::uint64_t listed = 0;
        unlisted.clear();
        for (const Candidate& one : candidates) {
            if (listed < wanted || one.count == chosen.back()->count) {
                chosen.push_back(one.slot);
                listed += one.slot->entries;
            } else {
                unlisted.push_back(one.slot->key);
            }
        }
        lists_.reserve(listed);   // in one piece if they are the first
        return chosen;
    }

    Position* make_list(Slot& slot) { return slot.list = lists_.take(slot.entries); }

    // Some occurrences of a pair are gone; one that falls below the threshold is not needed any more.
    void lose(PairKey key, std::int64_t weight, Position occurrences, std::int64_t lowest) {
        tallies_.table_updates += 1;
        Slot* const slot = table_.find(key);
        if (!slot) return;
        kept_.remove(slot->count);
        slot->count -= weight;
        slot->entries -= slot->list ? 0 : occurrences;
        if (slot->count >= lowest) return kept_.add(slot->count);
        if (slot->list) give_back(slot->list, slot->entries);
        table_.erase(slot);
    }

    // Takes a pair out of the table. Its list is the caller's, to be given back.
    Slot take(Slot* slot) {
        const Slot taken = *slot;
        kept_.remove(slot->count);
        table_.erase(slot);
        return taken;
    }

    void give_back(Position* list, Position entries) { lists_.give_back(list, entries); }

    // Without accumulators: a pair that was put into the table while it was counted is taken out again, or gets an empty
    // list of the size it needs.
    void settle(PairKey key, std::int64_t lowest) {
        Slot* const slot = table_.find(key);
        if (!may_be_kept(key, slot->count, lowest)) return table_.erase(slot);
        slot->list = lists_.take(slot->entries);
        slot->entries = 0;
        keep(*slot);
    }

    void clear() {
        tallies_.probes += table_.probes();
        table_ = PairTable();
        kept_ = CountHistogram();
        lists_ = ListPool();
        queue_.clear();
    }

    PairTable& table() { return table_; }
    const CountHistogram& kept() const { return kept_; }
    Queue& queue() { return queue_; }

  private:
    bool may_be_kept(PairKey key, std::int64_t count, std::int64_t lowest) {
        const bool kept = count >= lowest && !(filter_ && (*filter_)(key));
        tallies_.pairs_pruned += !kept && count > 0;
        return kept;
    }

    void keep(const Slot& slot) {
        tallies_.pairs_kept += 1;
        kept_.add(slot.count);
        queue_.push(slot.key, slot.count);
    }

    // One part in so many of all occurrences, or of the text, to be worth a look at the text.
    static constexpr std::size_t share = 2, smallest_share = 4;

    Tallies& tallies_;
    VetoFilter* filter_;
    PairTable table_;
    CountHistogram kept_;
    ListPool lists_;
    Queue queue_;
};

}  // namespace flat
