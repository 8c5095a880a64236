// The maximum by several threads, each scanning a part of the map; they differ in how the parts' answers are combined.
#pragma once

#include <omp.h>

#include <mutex>

#include "grid.hpp"

namespace grid {

// A best of its own for each thread, on cache lines of its own.
struct alignas(128) Slot {
    Best best;
};

template <class Map, class Hash>
class ParallelScan : public Maximum<Map, Hash> {
  public:
    ParallelScan(const Options& options, const Vocabulary& vocabulary, Tallies& tallies)
        : Maximum<Map, Hash>(options, vocabulary, tallies),
          threads_(static_cast<int>(options.threads)) {
        constexpr omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided, omp_sched_auto};
        omp_set_schedule(kinds[static_cast<int>(options.schedule)], options.chunk);   // what schedule(runtime) means
    }

  protected:
    void begin_scan(const Counts<Map, Hash>& counts) {
        this->best_ = Best();
        this->tallies_.pairs_scanned += counts.size();
    }
    void look(const Counts<Map, Hash>& counts, std::size_t cell, Best& best) const {
        Map::visit(counts, cell,
                   [&](PairKey pair, std::int64_t count) { best.consider(pair, count, this->vocabulary_); });
    }
    void meet(const Best& other) {
        if (other.count) this->best_.consider(other.pair, other.count, this->vocabulary_);
    }

    int threads_;
};

// Every thread has an equal share, and adds its answer under a lock.
template <class Map, class Hash, class Sets>
class openmp_lock : public ParallelScan<Map, Hash> {
  public:
    static constexpr const char* name = "openmp_lock";
    using ParallelScan<Map, Hash>::ParallelScan;

    void find(const Counts<Map, Hash>& counts) {
        this->begin_scan(counts);
        const std::size_t cells = Map::cells(counts);
#pragma omp parallel num_threads(this->threads_)
        {
            Best best;
#pragma omp for schedule(static) nowait
            for (std::size_t cell = 0; cell < cells; ++cell) this->look(counts, cell, best);
            const std::lock_guard<std::mutex> lock(mutex_);
            this->meet(best);
        }
    }

  private:
    std::mutex mutex_;
};

// Shares follow the schedule, and answers are added in a critical section.
template <class Map, class Hash, class Sets>
class openmp_critical : public ParallelScan<Map, Hash> {
  public:
    static constexpr const char* name = "openmp_critical";
    using ParallelScan<Map, Hash>::ParallelScan;

    void find(const Counts<Map, Hash>& counts) {
        this->begin_scan(counts);
        const std::size_t cells = Map::cells(counts);
#pragma omp parallel num_threads(this->threads_)
        {
            Best best;
#pragma omp for schedule(runtime) nowait
            for (std::size_t cell = 0; cell < cells; ++cell) this->look(counts, cell, best);
#pragma omp critical(grid_maximum)
            this->meet(best);
        }
    }
};

// A padded slot for each thread, and nobody waits for a turn: what all threads found is compared by one.
template <class Map, class Hash, class Sets>
class openmp_slots : public ParallelScan<Map, Hash> {
  public:
    static constexpr const char* name = "openmp_slots";
    openmp_slots(const Options& options, const Vocabulary& vocabulary, Tallies& tallies)
        : ParallelScan<Map, Hash>(options, vocabulary, tallies), slots_(options.threads) {}

    void find(const Counts<Map, Hash>& counts) {
#pragma omp parallel num_threads(this->threads_)
        this->look_at_share(counts);
        this->compare_slots(counts);
    }

  protected:
    // Called by every thread of a team; returns when all have looked.
    void look_at_share(const Counts<Map, Hash>& counts) {
        Best best;
        const std::size_t cells = Map::cells(counts);
#pragma omp for schedule(runtime) nowait
        for (std::size_t cell = 0; cell < cells; ++cell) this->look(counts, cell, best);
        slots_[static_cast<std::size_t>(omp_get_thread_num())].best = best;
#pragma omp barrier
    }

    void compare_slots(const Counts<Map, Hash>& counts) {
        this->begin_scan(counts);
        for (Slot& slot : slots_) {
            this->meet(slot.best);
            slot.best = Best();   // the next team may be smaller
        }
    }

  private:
    std::vector<Slot> slots_;
};

// One team for the whole training; what is not scanning is done by the thread that called.
struct StandingTeam {
    template <class Work>
    static void together(std::size_t threads, Work work) {
#pragma omp parallel num_threads(static_cast<int>(threads))
        work();
    }
    template <class Work>
    static void alone(Work work) {
#pragma omp master
        work();
#pragma omp barrier
    }
};

// Slots, with the parallel region round the whole loop, so that no team is gathered for each merge.
template <class Map, class Hash, class Sets>
class openmp_region : public openmp_slots<Map, Hash, Sets> {
  public:
    static constexpr const char* name = "openmp_region";
    using Team = StandingTeam;
    using openmp_slots<Map, Hash, Sets>::openmp_slots;

    void find(const Counts<Map, Hash>& counts) {
        this->look_at_share(counts);
        Team::alone([&] { this->compare_slots(counts); });
    }
};

}  // namespace grid
