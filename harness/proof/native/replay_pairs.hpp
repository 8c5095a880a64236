// The pairs whose counts are kept, the claims by their pair, and the memory of the claims' lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay_order.hpp"
#include "replay_text.hpp"

namespace replay {

inline std::size_t home_of(PairKey key, unsigned shift) {
    return static_cast<std::size_t>((key ^ key >> 31) * 0xd6e8feb86659fd93u >> shift);
}

// A pair, its count, and the step in which it first occurred: 0 for a pair of the words as given.
struct KeptPair {
    PairKey key;   // 0 in a free slot
    std::int64_t count;
    std::uint64_t since;
};

// Open addressing. Nothing is removed; pairs that are too rare to matter are dropped when the table grows.
class KeptPairs {
  public:
    // If `counts_sharing`, it says how many pairs have a count.
    explicit KeptPairs(bool counts_sharing) : counts_sharing_(counts_sharing) {}

    KeptPair* find(PairKey key) {
        for (std::size_t slot = home_of(key, shift_);; slot = (slot + 1) & (slots_.size() - 1)) {
            if (slots_[slot].key == key) return &slots_[slot];
            if (!slots_[slot].key) return nullptr;
        }
    }
    // The pair must be new. Pairs with a count below `matters` may be dropped.
    void add(const KeptPair& pair, std::int64_t matters) {
        if (2 * (size_ + 1) > slots_.size()) grow(matters);
        put(pair);
        if (counts_sharing_) ++sharing_[pair.count];
    }
    void change(KeptPair& pair, std::int64_t weight) {
        if (counts_sharing_) --sharing_[pair.count];
        pair.count += weight;
        if (counts_sharing_) ++sharing_[pair.count];
    }
    void prefetch(PairKey key) const { __builtin_prefetch(slots_.data() + home_of(key, shift_)); }
    const std::vector<KeptPair>& all() const { return slots_; }
    std::uint64_t sharing(std::int64_t count) const {
        const auto found = sharing_.find(count);
        return found == sharing_.end() ? 0 : found->second;
    }
    std::int64_t count_of(PairKey key) {
        const KeptPair* const found = find(key);
        return found ? found->count : 0;
    }
    // The pairs of the highest count; none if no pair occurs.
    std::vector<PairKey> best() const {
        std::int64_t highest = 1;
        std::vector<PairKey> pairs;
        for (const KeptPair& pair : slots_) {
            if (!pair.key || pair.count < highest) continue;
            if (pair.count > highest) pairs.clear();
            highest = pair.count;
            pairs.push_back(pair.key);
        }
        return pairs;
    }

  private:
    void put(const KeptPair& pair) {
        std::size_t slot = home_of(pair.key, shift_);
        while (slots_[slot].key) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = pair;
        ++size_;
    }
    void grow(std::int64_t matters) {
        const std::vector<KeptPair> old = std::move(slots_);
        const auto keeps = [=](const KeptPair& pair) { return pair.key && pair.count >= matters; };
        const auto kept = static_cast<std::size_t>(std::count_if(old.begin(), old.end(), keeps));
        while (std::size_t{1} << (64 - shift_) < 4 * kept) --shift_;
        slots_.assign(std::size_t{1} << (64 - shift_), KeptPair{});
        size_ = 0;
        for (const KeptPair& pair : old)
            if (keeps(pair)) put(pair);
    }

    unsigned shift_ = 64 - 12;
    std::vector<KeptPair> slots_{std::size_t{1} << 12};
    std::size_t size_ = 0;
    bool counts_sharing_;
    std::unordered_map<std::int64_t, std::uint64_t> sharing_;   // by count
};

// The first claim of each pair.
class ClaimTable {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    explicit ClaimTable(const std::vector<PairKey>& pairs) {
        while (std::size_t{1} << (64 - shift_) < 2 * pairs.size()) --shift_;
        slots_.resize(std::size_t{1} << (64 - shift_), {0, none});
        for (std::size_t claim = 0; claim < pairs.size(); ++claim) {
            std::size_t slot = home_of(pairs[claim], shift_);
            while (slots_[slot].first && slots_[slot].first != pairs[claim]) slot = (slot + 1) & (slots_.size() - 1);
            // A pair that is claimed twice no longer occurs at the second claim.
            if (!slots_[slot].first) slots_[slot] = {pairs[claim], static_cast<std::uint32_t>(claim)};
        }
    }
    std::uint32_t of(PairKey key) const {
        std::size_t slot = home_of(key, shift_);
        while (slots_[slot].first && slots_[slot].first != key) slot = (slot + 1) & (slots_.size() - 1);
        return slots_[slot].second;
    }

  private:
    unsigned shift_ = 64 - 4;
    std::vector<std::pair<PairKey, std::uint32_t>> slots_;
};

// Memory of the lists, given back when their claim has been replayed: free pieces by powers of two, split as needed.
template <class Position>
class Lists {
  public:
    Position* take(std::size_t size) {
        const unsigned wanted = power_above(size);
        for (unsigned power = wanted; power < free_.size(); ++power) {
            if (free_[power].empty()) continue;
            Position* const list = free_[power].back();
            free_[power].pop_back();
            for (; power > wanted; --power) free_[power - 1].push_back(list + (std::size_t{1} << (power - 1)));
            return list;
        }
        const unsigned power = std::max(wanted, smallest_chunk);
        chunks_.emplace_back(std::size_t{1} << power);
        free_[power].push_back(chunks_.back().data());
        return take(size);
    }
    void give_back(Position* list, std::size_t size) { free_[power_above(size)].push_back(list); }

  private:
    static constexpr unsigned smallest_chunk = 16;

    static unsigned power_above(std::size_t size) {
        unsigned power = 0;
        while (std::size_t{1} << power < size) ++power;
        return power;
    }
    std::vector<RawArray<Position>> chunks_;
    std::vector<std::vector<Position*>> free_ = std::vector<std::vector<Position*>>(64);
};

}  // namespace replay
