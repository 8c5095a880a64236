// The pairs whose counts are kept, the claims by their pair, and the memory of the claims' places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "replay_order.hpp"
#include "replay_text.hpp"

namespace replay {

inline std::size_t home_of(PairKey key, unsigned shift) {
    return static_cast<std::size_t>((key ^ key >> 31) * 0xd6e8feb86659fd93u >> shift);
}

// A pair, its count, and the step at which it was born: 0 if it was there from the beginning.
struct Watched {
    PairKey key;   // 0: a free place
    std::int64_t count;
    std::uint64_t born;
};

// Open addressing. Nothing is taken out; what has fallen below what matters is left behind when the table grows.
class WatchTable {
  public:
    Watched* find(PairKey key) {
        for (std::size_t at = home_of(key, shift_);; at = (at + 1) & (places_.size() - 1)) {
            if (places_[at].key == key) return &places_[at];
            if (!places_[at].key) return nullptr;
        }
    }
    // `key` must not be there. Those that count less than `matters` may be forgotten.
    void add(const Watched& pair, std::int64_t matters) {
        if (2 * (number_ + 1) > places_.size()) grow(matters);
        put(pair);
    }
    void call_for(PairKey key) const { __builtin_prefetch(places_.data() + home_of(key, shift_)); }
    const std::vector<Watched>& all() const { return places_; }
    std::size_t number() const { return number_; }

  private:
    void put(const Watched& pair) {
        std::size_t at = home_of(pair.key, shift_);
        while (places_[at].key) at = (at + 1) & (places_.size() - 1);
        places_[at] = pair;
        ++number_;
    }
    void grow(std::int64_t matters) {
        const std::vector<Watched> old = std::move(places_);
        const auto stays = [=](const Watched& pair) { return pair.key && pair.count >= matters; };
        const auto staying = static_cast<std::size_t>(std::count_if(old.begin(), old.end(), stays));
        while (std::size_t{1} << (64 - shift_) < 4 * staying) --shift_;
        places_.assign(std::size_t{1} << (64 - shift_), Watched{});
        number_ = 0;
        for (const Watched& pair : old)
            if (stays(pair)) put(pair);
    }

    unsigned shift_ = 64 - 12;
    std::vector<Watched> places_{std::size_t{1} << 12};
    std::size_t number_ = 0;
};

// Which claim a pair is.
class ClaimTable {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    explicit ClaimTable(const std::vector<PairKey>& pairs) {
        while (std::size_t{1} << (64 - shift_) < 2 * pairs.size()) --shift_;
        places_.resize(std::size_t{1} << (64 - shift_), {0, none});
        for (std::size_t claim = 0; claim < pairs.size(); ++claim) {
            std::size_t at = home_of(pairs[claim], shift_);
            while (places_[at].first && places_[at].first != pairs[claim]) at = (at + 1) & (places_.size() - 1);
            // Of a pair that is claimed twice the first counts; at the second it does not stand any more.
            if (!places_[at].first) places_[at] = {pairs[claim], static_cast<std::uint32_t>(claim)};
        }
    }
    std::uint32_t of(PairKey key) const {
        std::size_t at = home_of(key, shift_);
        while (places_[at].first && places_[at].first != key) at = (at + 1) & (places_.size() - 1);
        return places_[at].second;
    }

  private:
    unsigned shift_ = 64 - 4;
    std::vector<std::pair<PairKey, std::uint32_t>> places_;
};

// Lists of places, given back when their claim is made. What is free is kept by powers of two and cut to what is wanted.
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
    std::vector<Plain<Position>> chunks_;
    std::vector<std::vector<Position*>> free_ = std::vector<std::vector<Position*>>(64);
};

}  // namespace replay
