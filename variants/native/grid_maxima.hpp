// The maximum: by looking at every pair, in one thread, or from the top of a heap that is corrected lazily.
//
// A maximum says how it is found (`find`, called before every merge), where its answer is (`best`), and who calls it
// (`Team`). One that keeps no queue of pairs takes no part in the updates.
#pragma once

#include <algorithm>

#include "grid.hpp"

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

template <class Map, class Hash>
class Maximum {
  public:
    using Team = OneThread;
    static constexpr bool keeps_queue = false;

    Maximum(const Options& options, const Vocabulary& vocabulary, Tallies& tallies)
        : options_(options), vocabulary_(vocabulary), tallies_(tallies) {}
    void begin(const Counts<Map, Hash>&, Progress&) {}
    Best best() const { return best_; }
    void publish(std::vector<Tally>& work) const { work.push_back({"pairs_scanned", tallies_.pairs_scanned}); }

  protected:
    const Options& options_;
    const Vocabulary& vocabulary_;
    Tallies& tallies_;
    Best best_;
};

// A scan by one thread; `Way` gives all pairs and counts to what it is given.
template <class Map, class Hash, class Way>
class Scan : public Maximum<Map, Hash> {
  public:
    static constexpr const char* name = Way::name;
    using Maximum<Map, Hash>::Maximum;

    void begin(const Counts<Map, Hash>&, Progress& progress) { progress_ = &progress; }
    void find(const Counts<Map, Hash>& counts) {
        Best best;
        Way::template visit<Map>(counts, *progress_, [&](PairKey pair, std::int64_t count) {
            best.consider(pair, count, this->vocabulary_);
        });
        this->best_ = best;
        this->tallies_.pairs_scanned += counts.size();
    }
    void publish(std::vector<Tally>& work) const {
        Maximum<Map, Hash>::publish(work);
        if (Way::copies) work.push_back({"pairs_copied", this->tallies_.pairs_scanned});
    }

  private:
    Progress* progress_ = nullptr;
};

struct by_iterator {
    static constexpr const char* name = "iterator_scan";
    static constexpr bool copies = false;
    template <class Map, class Counts, class Consider>
    static void visit(const Counts& counts, Progress&, Consider consider) {
        for (const auto& entry : counts) consider(entry.first, entry.second);
    }
};
struct by_bucket {
    static constexpr const char* name = "bucket_scan";
    static constexpr bool copies = false;
    template <class Map, class Counts, class Consider>
    static void visit(const Counts& counts, Progress&, Consider consider) {
        const std::size_t cells = Map::cells(counts);
        for (std::size_t cell = 0; cell < cells; ++cell) Map::visit(counts, cell, consider);
    }
};
// Copies all entries to an array before every merge and scans that: the scan is fast, the copy is the old scan again.
struct by_copy {
    static constexpr const char* name = "copied_scan";
    static constexpr bool copies = true;
    template <class Map, class Counts, class Consider>
    static void visit(const Counts& counts, Progress& progress, Consider consider) {
        const std::vector<std::pair<PairKey, std::int64_t>> copy(counts.begin(), counts.end());
        progress.lap(native::copy);
        for (const auto& [pair, count] : copy) consider(pair, count);
    }
};
template <class Map, class Hash, class Sets>
using iterator_scan = Scan<Map, Hash, by_iterator>;
template <class Map, class Hash, class Sets>
using bucket_scan = Scan<Map, Hash, by_bucket>;
template <class Map, class Hash, class Sets>
using copied_scan = Scan<Map, Hash, by_copy>;

// Counts never rise after the merge that created their pair, so an entry that is out of date claims too much: it comes
// up no later than it should, is found stale, and goes back with the true count.
template <class Map, class Hash, class Sets>
class heap : public Maximum<Map, Hash> {
  public:
    static constexpr const char* name = "heap";
    static constexpr bool keeps_queue = true;
    using Maximum<Map, Hash>::Maximum;

    void begin(const Counts<Map, Hash>& counts, Progress&) {
        entries_.reserve(counts.size());
        for (const auto& entry : counts) entries_.push_back({entry.first, entry.second});
        std::make_heap(entries_.begin(), entries_.end(), order());
        this->tallies_.heap_pushes += entries_.size();
    }

    void find(const Counts<Map, Hash>& counts) {
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

    // A pair in a word after the merge, to be pushed once when the counts are settled.
    void note(PairKey pair) { noted_.insert(pair); }

    void push_noted(const Counts<Map, Hash>& counts) {
        for (const PairKey pair : noted_) {
            const auto found = counts.find(pair);
            if (found != counts.end()) push(pair, found->second);
        }
        noted_ = Noted();
    }

    void publish(std::vector<Tally>& work) const {
        const Tallies& of = this->tallies_;
        work.insert(work.end(), {{"heap_pushes", of.heap_pushes}, {"heap_pops", of.heap_pops}, {"stale_pops", of.stale_pops}});
    }

  private:
    using Noted = typename Sets::template set<PairKey, Hash>;

    auto order() const {
        return [this](const Best& one, const Best& other) {
            return one.count != other.count ? one.count < other.count : this->vocabulary_.before(other.pair, one.pair);
        };
    }

    std::vector<Best> entries_;
    Noted noted_;
};

}  // namespace grid
