// Pairs by their tokens: for each its count and the list of the positions where it was born.
#pragma once

#include "flat_tokens.hpp"

namespace flat {

// Open addressing with linear probing; a pair that is taken out leaves no trace, for the pairs behind it move up. So
// the table holds the live pairs only, however many have come and gone, and a slot is found again by its pair alone.
template <class Position>
class PairTable {
  public:
    struct Slot {
        PairKey key;          // 0: empty (a separator pairs with nothing)
        std::int64_t count;
        Position* list;       // ascending, some entries perhaps stale
        Position entries;
    };

    Slot* find(PairKey key) {
        for (std::size_t at = home(key);; at = (at + 1) & mask()) {
            if (slots_[at].key == key) return &slots_[at];
            if (!slots_[at].key) return nullptr;
        }
    }

    // `key` must not be in the table.
    Slot* insert(PairKey key, std::int64_t count, Position* list, Position entries) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        ++size_;
        Slot& slot = slots_[free_place(key)];
        slot = {key, count, list, entries};
        return &slot;
    }

    void erase(Slot* slot) {
        --size_;
        std::size_t gap = static_cast<std::size_t>(slot - slots_.data());
        for (std::size_t at = (gap + 1) & mask(); slots_[at].key; at = (at + 1) & mask()) {
            // What probes for this pair starts at its home and must not meet the gap: it may stay only if its home
            // lies behind the gap.
            if (((at - home(slots_[at].key)) & mask()) >= ((at - gap) & mask())) {
                slots_[gap] = slots_[at];
                gap = at;
            }
        }
        slots_[gap].key = 0;
    }

    void prefetch(PairKey key) const { __builtin_prefetch(slots_.data() + home(key)); }

    std::size_t bytes_held() const { return slots_.size() * sizeof(Slot); }

    template <class Visit>
    void each(Visit visit) {
        for (std::size_t at = 0; at < slots_.size(); ++at)
            if (slots_[at].key) visit(slots_[at]);
    }

    void clear() {
        log_ = first_log;
        size_ = 0;
        slots_ = Array<Slot>::zeros(std::size_t{1} << log_);
    }

  private:
    static constexpr unsigned first_log = 10;

    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t home(PairKey key) const {
        key ^= key >> 29;
        return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> (64 - log_));
    }
    std::size_t free_place(PairKey key) const {
        std::size_t at = home(key);
        while (slots_[at].key) at = (at + 1) & mask();
        return at;
    }
    void grow() {
        ++log_;
        const Array<Slot> old = std::exchange(slots_, Array<Slot>::zeros(std::size_t{1} << log_));
        for (std::size_t at = 0; at < old.size(); ++at)
            if (old[at].key) slots_[free_place(old[at].key)] = old[at];
    }

    unsigned log_ = first_log;
    Array<Slot> slots_ = Array<Slot>::zeros(std::size_t{1} << first_log);
    std::size_t size_ = 0;
};

}  // namespace flat
