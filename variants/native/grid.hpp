// The C++ grid: the series' parts 5 to 9 and 11 as the points of a product, made by the compiler.
//
// The loop is written once (grid_point.hpp); what it is made of is chosen per point:
//
//   hash map   std, absl, boost, dense                       grid_containers.hpp, grid_absl.cpp, grid_boost.cpp
//   hash       weak, boost, strong, absl                     grid_containers.hpp
//   index      node_set, dense_set, inline_set               grid_containers.hpp
//   maximum    iterator_scan, bucket_scan, copied_scan, heap
//              openmp_lock, _critical, _slots, _region       grid_openmp.hpp
//   update     coarse, fine_grained                          grid_point.hpp
//
// A policy is a struct with a name and a template in it. Compiled are the points listed in grid_std.cpp, grid_dense.cpp,
// grid_openmp.cpp, grid_boost.cpp and grid_absl.cpp, a module each, of which those without their library are left out. Another
// point is another line there.
//
// Counts are 64 bits wide. Bytes are their own ids, and an id is never used as a truth value: the published
// fine-grained programs did that, and are wrong on words with a NUL.
#pragma once

#include <algorithm>
#include <string>

#include "grid_containers.hpp"
#include "job.hpp"

namespace grid {

using namespace native;

constexpr Token first_byte = 0;    // bytes are their own ids, NUL is 0, and no id means "none"
constexpr Token first_merge = 256;

enum class Schedule : int { fixed, dynamic, guided, automatic };
constexpr int schedules = 4;

struct Options {
    std::uint64_t num_merges = 0;
    std::int64_t min_count = 1;
    TieBreak tie_break = TieBreak::greatest_bytes;
    bool reuse_returned = false;       // decide by what `-=` returns, instead of looking the pair up again
    bool push_grown = false;           // the heap gets only pairs whose count grew, instead of all in a rewritten window
    std::size_t threads = 1;
    Schedule schedule = Schedule::dynamic;
    int chunk = 1000;
};

// The words on which a point trains, its own copy: as ids, each with its weight; from columns, or as Python's objects arrive.
struct Table {
    std::vector<std::vector<Token>> words;
    std::vector<std::int64_t> weights;
    // If whoever passes the words has counted and indexed the pairs as well.
    bool indexed = false;
    std::vector<std::pair<PairKey, std::int64_t>> pair_counts;
    std::vector<std::pair<PairKey, std::vector<std::uint32_t>>> holders;
};

struct Tallies {
    std::uint64_t pair_updates = 0, positions_visited = 0, words_rewritten = 0;
    std::uint64_t pairs_scanned = 0;                                // by scans
    std::uint64_t heap_pushes = 0, heap_pops = 0, stale_pops = 0;   // by heaps
};

struct Answer : Training {
    Tallies tallies;
};

// What can be called: the names of the five policies, and the loop with them in it.
struct Member {
    const char* hash_map;
    const char* hash;
    const char* index;
    const char* maximum;
    const char* update;
    void (*learn)(Table&, const Options&, Answer&, Progress&);
};

// What a module's points are handed over under: another name if it was compiled with other types than those here. So a module
// that may be absent, and whose last build failed, is refused and not called. Count `version` up if only a meaning changes.
inline const char* capsule_name() {
    constexpr int version = 2;
    static const std::string name = "variants.native.grid.members " + std::to_string(version) + " " +
                                    std::to_string(sizeof(Options)) + " " + std::to_string(sizeof(Answer)) + " " +
                                    std::to_string(sizeof(Table)) + " " + std::to_string(sizeof(Progress));
    return name.c_str();
}

// The tokens learned so far, as byte strings, and which of two equally frequent pairs goes first.
class Vocabulary {
  public:
    explicit Vocabulary(TieBreak tie_break) : tie_break_(tie_break) {
        for (unsigned byte = 0; byte < first_merge; ++byte) {
            tokens_.push_back(std::string(1, static_cast<char>(byte)));
            numbers_.push_back(byte_number(byte, tie_break));
        }
    }

    Token add(PairKey pair) {
        const Token id = static_cast<Token>(tokens_.size());
        numbers_.push_back(id);
        tokens_.push_back(tokens_[left_of(pair)] + tokens_[right_of(pair)]);
        return id;
    }

    // Whether `one` is merged before `other` if both are equally frequent: a strict order.
    bool before(PairKey one, PairKey other) const {
        const int left = preference(left_of(one), left_of(other));
        return left ? left > 0 : preference(right_of(one), right_of(other)) > 0;
    }

  private:
    // Positive if the pair with `one` goes first. std::string compares its characters as unsigned.
    int preference(Token one, Token other) const {
        if (one == other) return 0;
        switch (tie_break_) {
            case TieBreak::greatest_bytes: return tokens_[one].compare(tokens_[other]);
            case TieBreak::smallest_bytes: return tokens_[other].compare(tokens_[one]);
            default: return numbers_[one] < numbers_[other] ? 1 : -1;
        }
    }

    TieBreak tie_break_;
    std::vector<std::string> tokens_;
    std::vector<Token> numbers_;
};

constexpr std::size_t most_words = UINT32_MAX;

// From the columns of WordCounts, which are checked. Words of no bytes or no weight are left out.
inline Table table_of_columns(const Words& columns, Progress& progress) {
    Table table;
    if (columns.number > most_words) throw Refused("2**32 - 1 words are the most that can be numbered");
    table.words.reserve(columns.number);
    table.weights.reserve(columns.number);
    for (std::size_t word = 0; word < columns.number; ++word) {
        const std::int64_t begin = columns.offsets[word], end = columns.offsets[word + 1];
        if (begin == end || !columns.counts[word]) continue;
        table.words.emplace_back(columns.bytes + begin, columns.bytes + end);
        table.weights.push_back(static_cast<std::int64_t>(columns.counts[word]));
        progress.advance(static_cast<std::uint64_t>(end - begin), convert);
    }
    return table;
}

// Trains a point on words in columns, or on a table that is there already, until `report` says stop.
inline Answer train(const Member& member, const Words* columns, Table& table, const Options& options, Report report,
                    void* context) {
    Answer answer;
    Progress progress(answer, report, context);
    try {
        if (columns) {
            table = table_of_columns(*columns, progress);
            progress.lap(convert);
        }
        member.learn(table, options, answer, progress);
    } catch (const Stopped&) {
    }
    return answer;
}

// ---- the maximum: a scan of every pair by one thread, or the top of a heap that is corrected lazily
//
// It has `find`, called before every merge, `best`, the answer, and `Team`, the threads that call it. One that keeps no queue
// of pairs takes no part in the updates.

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
