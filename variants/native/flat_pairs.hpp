// The pairs that are kept: table, lists and queue in step with each other.
#pragma once

#include "flat_queue.hpp"
#include "flat_refusals.hpp"
#include "flat_threshold.hpp"

namespace flat {

template <class Position>
class KeptPairs {
  public:
    using Table = PairTable<Position>;
    using Slot = typename Table::Slot;

    // A pair that is `refused` is never kept.
    KeptPairs(const Tokens& tokens, Tallies& tallies, Refusals* refused = nullptr)
        : tallies_(tallies), refused_(refused), queue_(table_, tokens, tallies) {}

    // Gives a new pair a list of just the size it needs, a slot and a place in the queue; null if its count is too low.
    Position* open(PairKey key, std::int64_t count, Position occurrences, std::int64_t lowest) {
        if (count < lowest || is_refused(key)) {
            tallies_.pairs_pruned += count > 0;
            return nullptr;
        }
        Position* const list = lists_.take(occurrences);
        table_.insert(key, count, list, occurrences);
        keep(key, count);
        return list;
    }

    // The same for a pair whose list is to be made later; until then `entries` are its occurrences. True if it is kept.
    bool open_unlisted(PairKey key, std::int64_t count, Position occurrences, std::int64_t lowest) {
        if (count < lowest || is_refused(key)) {
            tallies_.pairs_pruned += 1;
            return false;
        }
        table_.insert(key, count, nullptr, occurrences);
        keep(key, count);
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

    // The best pair, out of the queue; null if no pair reaches `lowest`. At most `wanted` are still to be merged.
    Slot* best(std::int64_t lowest, std::uint64_t wanted) { return queue_.pop(lowest, wanted); }

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
        if (slot->count < lowest || is_refused(key)) {
            tallies_.pairs_pruned += 1;
            table_.erase(slot);
            return;
        }
        slot->list = lists_.take(slot->entries);
        slot->entries = 0;
        keep(key, slot->count);
    }

    void clear() {
        note_memory();
        table_.clear();
        kept_.clear();
        lists_.clear();
        queue_.clear();
    }

    void note_memory() {
        tallies_.list_bytes = std::max<std::uint64_t>(tallies_.list_bytes, lists_.bytes_held());
        tallies_.table_bytes = std::max<std::uint64_t>(tallies_.table_bytes, table_.bytes_held());
    }

    Table& table() { return table_; }
    const CountHistogram& kept() const { return kept_; }
    Queue<Position>& queue() { return queue_; }

  private:
    bool is_refused(PairKey key) { return refused_ && (*refused_)(key); }

    void keep(PairKey key, std::int64_t count) {
        tallies_.pairs_kept += 1;
        kept_.add(count);
        queue_.push(key, count);
    }

    static constexpr std::size_t share = 2, smallest_share = 4;   // of all, to be worth a look at the text

    Tallies& tallies_;
    Refusals* refused_;
    Table table_;
    CountHistogram kept_;
    ListPool<Position> lists_;
    Queue<Position> queue_;
};

}  // namespace flat
