// The pairs that are kept: table, lists and queue in step with each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "flat_histogram.hpp"
#include "flat_job.hpp"
#include "flat_memory.hpp"
#include "flat_pair_table.hpp"
#include "flat_queue.hpp"
#include "flat_refusals.hpp"
#include "flat_tokens.hpp"

namespace flat {

template <class Position>
class KeptPairs {
  public:
    using Table = PairTable<Position>;
    using Slot = typename Table::Slot;

    // A pair that is `refused` is never kept.
    KeptPairs(const Tokens& tokens, const Options& options, Tallies& tallies, Refusals* refused = nullptr)
        : tallies_(tallies), exact_(options.occurrence_lists), refused_(refused) {
        if (options.bucket_queue) {
            queue_ = std::make_unique<BucketQueue<Position>>(table_, tokens, tallies);
        } else {
            queue_ = std::make_unique<HeapQueue<Position>>(table_, tokens, tallies);
        }
    }

    // Gives a new pair a list of just the size it needs, a slot and a place in the queue; null if its count is too low.
    Position* open(PairKey key, std::int64_t count, Position occurrences, std::int64_t lowest) {
        if (count < lowest || is_refused(key)) {
            tallies_.pairs_pruned += count > 0;
            return nullptr;
        }
        Position* const list = lists_.take(room_for(occurrences));
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

    // Room for the lists that are about to be made, in one piece if they are the first.
    void reserve(std::size_t entries) { lists_.reserve(entries); }

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
        reserve(listed);
        return chosen;
    }

    Position* make_list(Slot& slot) { return slot.list = lists_.take(room_for(slot.entries)); }

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
    Slot* best(std::int64_t lowest, std::uint64_t wanted) { return queue_->pop(lowest, wanted); }

    // Takes a pair out of the table. Its list is the caller's, to be given back.
    Slot take(Slot* slot) {
        const Slot taken = *slot;
        kept_.remove(slot->count);
        table_.erase(slot);
        return taken;
    }

    void give_back(Position* list, Position entries) { lists_.give_back(list, room_for(entries)); }

    // ---- for the plainer ways that flat is held against ----

    // A pair that was put into the table while it was counted: takes it out again, or gives it an empty list.
    void settle(PairKey key, std::int64_t lowest) {
        Slot* const slot = table_.find(key);
        if (slot->count < lowest || is_refused(key)) {
            tallies_.pairs_pruned += 1;
            table_.erase(slot);
            return;
        }
        slot->list = lists_.take(room_for(exact_ ? slot->entries : 0));
        slot->entries = 0;
        keep(key, slot->count);
    }

    // Adds to a list that is still being written; one that was not made with its exact size doubles when it is full.
    void append(Slot& slot, Position position) {
        if (!exact_ && room_for(slot.entries) < room_for(slot.entries + 1)) {
            Position* const roomier = lists_.take(room_for(slot.entries + 1));
            std::copy_n(slot.list, slot.entries, roomier);
            give_back(slot.list, slot.entries);
            slot.list = roomier;
        }
        slot.list[slot.entries++] = position;
    }

    void clear() {
        note_memory();
        table_.clear();
        kept_.clear();
        lists_.clear();
        queue_->clear();
    }

    void note_memory() {
        tallies_.list_bytes = std::max<std::uint64_t>(tallies_.list_bytes, lists_.bytes_held());
        tallies_.table_bytes = std::max<std::uint64_t>(tallies_.table_bytes, table_.bytes_held());
    }

    Table& table() { return table_; }
    const CountHistogram& kept() const { return kept_; }
    ListPool<Position>& lists() { return lists_; }
    Queue<Position>& queue() { return *queue_; }

  private:
    bool is_refused(PairKey key) { return refused_ && (*refused_)(key); }

    void keep(PairKey key, std::int64_t count) {
        tallies_.pairs_kept += 1;
        kept_.add(count);
        queue_->push(key, count);
    }

    std::size_t room_for(std::size_t entries) const {
        std::size_t room = smallest_growing;
        if (exact_) return entries;
        while (room < entries) room *= 2;
        return room;
    }

    static constexpr std::size_t smallest_growing = 4;
    static constexpr std::size_t share = 2, smallest_share = 4;   // of all, to be worth a look at the text

    Tallies& tallies_;
    bool exact_;
    Refusals* refused_;
    Table table_;
    CountHistogram kept_;
    ListPool<Position> lists_;
    std::unique_ptr<Queue<Position>> queue_;
};

}  // namespace flat
