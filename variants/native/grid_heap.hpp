// The maximum from the top of a heap that is corrected lazily.
//
// Counts never rise after the merge that created their pair, so an entry that is out of date claims too much: it comes
// up no later than it should, is found stale, and goes back with the true count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "grid_scan.hpp"

namespace grid {

struct heap {
    static constexpr const char* name = "heap";

    template <class Map, class Hash, class Index>
    class maximum : public Scan<typename Map::template map<std::int64_t, Hash>> {
      public:
        using Counts = typename Map::template map<std::int64_t, Hash>;
        static constexpr bool keeps_queue = true;
        using Scan<Counts>::Scan;

        void begin(const Counts& counts, Watch&) {
            entries_.reserve(counts.size());
            for (const auto& entry : counts) entries_.push_back({entry.first, entry.second});
            std::make_heap(entries_.begin(), entries_.end(), order());
            this->tallies_.heap_pushes += entries_.size();
        }

        void find(const Counts& counts) {
            this->best_ = Best();
            while (!entries_.empty()) {
                std::pop_heap(entries_.begin(), entries_.end(), order());
                const Best claimed = entries_.back();
                entries_.pop_back();
                ++this->tallies_.heap_pops;
                const auto found = counts.find(claimed.pair);
                const std::int64_t count = found == counts.end() ? 0 : found->second;
                if (count == claimed.count) {
                    this->best_ = claimed;
                    return;
                }
                ++this->tallies_.stale_pops;
                if (count) push(claimed.pair, count);
            }
        }

        void push(PairKey pair, std::int64_t count) {
            entries_.push_back({pair, count});
            std::push_heap(entries_.begin(), entries_.end(), order());
            ++this->tallies_.heap_pushes;
        }

        // A pair that stands in a word after the merge, to be pushed when the counts are settled; once, however often
        // it is noted.
        void note(PairKey pair) { noted_.insert(pair); }

        void push_noted(const Counts& counts) {
            for (const PairKey pair : noted_) {
                const auto found = counts.find(pair);
                if (found != counts.end()) push(pair, found->second);
            }
            noted_ = Noted();
        }

      private:
        using Noted = typename Index::template set<PairKey, Hash>;

        auto order() const {
            return [this](const Best& one, const Best& other) {
                return one.count != other.count ? one.count < other.count
                                                : this->vocabulary_.before(other.pair, one.pair);
            };
        }

        std::vector<Best> entries_;
        Noted noted_;
    };
};

}  // namespace grid
