// The maximum by looking at every pair, in one thread: over the map's iterator, over its buckets, over a copy.
//
// A maximum says how it is found (`find`, called before every merge), where its answer is (`best`), and who calls it
// (`Team`). One that keeps no queue of pairs takes no part in the updates.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "grid_job.hpp"
#include "grid_vocabulary.hpp"

namespace grid {

// A pair and its count; 0 where there is none, since a pair that is counted occurs.
struct Best {
    PairKey pair = 0;
    std::int64_t count = 0;

    void consider(PairKey other, std::int64_t its_count, const Vocabulary& vocabulary) {
        if (its_count < count || (its_count == count && !vocabulary.before(other, pair))) return;
        pair = other;
        count = its_count;
    }
};

// The caller alone does everything.
struct OneThread {
    template <class Work>
    static void together(std::size_t, Work work) { work(); }
    template <class Work>
    static void alone(Work work) { work(); }
};

template <class Counts>
class Scan {
  public:
    using Team = OneThread;
    static constexpr bool keeps_queue = false;
    Scan(const Options& options, const Vocabulary& vocabulary, Tallies& tallies)
        : options_(options), vocabulary_(vocabulary), tallies_(tallies) {}
    void begin(const Counts&, Watch&) {}
    Best best() const { return best_; }

  protected:
    const Options& options_;
    const Vocabulary& vocabulary_;
    Tallies& tallies_;
    Best best_;
};

struct iterator_scan {
    static constexpr const char* name = "iterator_scan";

    template <class Map, class Hash, class Index>
    class maximum : public Scan<typename Map::template map<std::int64_t, Hash>> {
      public:
        using Counts = typename Map::template map<std::int64_t, Hash>;
        using Scan<Counts>::Scan;
        void find(const Counts& counts) {
            Best best;
            for (const auto& entry : counts) best.consider(entry.first, entry.second, this->vocabulary_);
            this->best_ = best;
            this->tallies_.pairs_scanned += counts.size();
        }
    };
};

struct bucket_scan {
    static constexpr const char* name = "bucket_scan";

    template <class Map, class Hash, class Index>
    class maximum : public Scan<typename Map::template map<std::int64_t, Hash>> {
      public:
        using Counts = typename Map::template map<std::int64_t, Hash>;
        using Scan<Counts>::Scan;
        void find(const Counts& counts) {
            Best best;
            const std::size_t cells = Map::cells(counts);
            for (std::size_t cell = 0; cell < cells; ++cell)
                Map::visit(counts, cell, [&](PairKey pair, std::int64_t count) {
                    best.consider(pair, count, this->vocabulary_);
                });
            this->best_ = best;
            this->tallies_.pairs_scanned += counts.size();
        }
    };
};

// Copies all entries to an array before every merge and scans that: the scan is fast, the copy is the old scan again.
struct copied_scan {
    static constexpr const char* name = "copied_scan";

    template <class Map, class Hash, class Index>
    class maximum : public Scan<typename Map::template map<std::int64_t, Hash>> {
      public:
        using Counts = typename Map::template map<std::int64_t, Hash>;
        using Scan<Counts>::Scan;
        void begin(const Counts&, Watch& watch) { watch_ = &watch; }
        void find(const Counts& counts) {
            const std::vector<std::pair<PairKey, std::int64_t>> copy(counts.begin(), counts.end());
            watch_->lap(native::copy);
            Best best;
            for (const auto& [pair, count] : copy) best.consider(pair, count, this->vocabulary_);
            this->best_ = best;
            this->tallies_.pairs_copied += copy.size();
            this->tallies_.pairs_scanned += copy.size();
        }

      private:
        Watch* watch_ = nullptr;
    };
};

}  // namespace grid
