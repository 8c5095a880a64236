// The scanner: ranges of a file counted by threads of their own, and their tables joined in the order of the file.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scanner_join.hpp"
#include "scanner_range.hpp"

namespace scanner {

class Scan {
  public:
    Scan(int file, const std::string& pattern, int path, const std::vector<std::int64_t>& bounds, const std::vector<std::string>& specials,
         const std::string& numbers, const std::string& pages, const std::string& seed, std::size_t buffer,
         std::size_t table_bytes = 0, const std::string& spill_folder = "", HandOver hand_over = nullptr,
         void* context = nullptr)
        : job_{file,
               Pattern::of(pattern),
               functions_of(Pattern::of(pattern), static_cast<Path>(path)),
               Classes(bytes_of(numbers), numbers.size(), bytes_of(pages), pages.size()),
               SpecialTokens(specials),
               Seed{},
               buffer,
               table_bytes,
               spill_folder,
               hand_over,
               context} {
        if (seed.size() != sizeof job_.seed) throw std::invalid_argument("the hash wants a seed of 32 bytes");
        std::memcpy(&job_.seed, seed.data(), sizeof job_.seed);
        for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
            ranges_.push_back(std::make_unique<Range>(job_, static_cast<std::int64_t>(i), bounds[i], bounds[i + 1]));
        failures_.resize(ranges_.size());
    }
    ~Scan() {
        stop();
        join();
    }

    void start() {
        working_ = ranges_.size();
        for (std::size_t i = 0; i < ranges_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
    }
    // Whether all threads have finished, waiting for that at most so long.
    bool wait(double seconds) {
        std::unique_lock<std::mutex> lock(mutex_);
        return finished_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return working_ == 0; });
    }
    void stop() { job_.stopped = true; }
    std::int64_t done() const { return job_.done; }

    // Joins the tables, unless they were handed over. Of several failures the first in the file is the one told.
    void finish() {
        join();
        for (const std::exception_ptr& failure : failures_)
            if (failure) std::rethrow_exception(failure);
        for (const auto& range : ranges_)
            if ((spill_error = range->spill_error)) return;
        std::vector<WordTable*> tables;
        bool spilled = false;
        bool open = false;  // whether the document that goes on into the next range holds more than blanks
        for (const auto& range : ranges_) {
            error = range->error;
            cut_off = range->cut_off;
            invalid_at = range->invalid_at;
            if (error || cut_off || invalid_at >= 0) return;
            documents += range->documents;
            if (range->any_special) documents += open || !range->blank_head;
            open = range->any_special ? !range->blank_tail : open || !range->blank_head;
            tables.push_back(range->table.get());
            spilled = spilled || !range->runs.empty();
        }
        documents += open;
        if (job_.hand_over) return;
        if (spilled) return hand_over_runs();
        if (tables.size() > 1)
            Join(tables, tables.size()).run();
        else
            tables.front()->settle();
        columns = tables.front()->release();
    }

    // The parts of the threads' time that went into reading, and into handing tables over.
    double part_reading() const { return part_of(&Range::seconds_reading); }
    double part_handing_over() const { return part_of(&Range::seconds_handing_over); }

    int error = 0;
    int spill_error = 0;
    bool cut_off = false;
    std::int64_t invalid_at = -1;
    std::uint64_t documents = 0;
    std::vector<int> runs;         // what was spilled instead of columns: open files, to be closed by whoever takes them
    WordTable::Columns columns{};  // to be freed by whoever takes them

  private:
    static const byte* bytes_of(const std::string& text) { return reinterpret_cast<const byte*>(text.data()); }

    // What is still in the tables goes into runs too, so that there is one kind of result.
    void hand_over_runs() {
        for (const auto& range : ranges_) {
            if (!range->empty_table() && (spill_error = range->spill_error)) return;
            runs.insert(runs.end(), range->runs.begin(), range->runs.end());
            range->runs.clear();
        }
    }

    double part_of(double Range::* seconds) const {
        double sum = 0;
        for (const auto& range : ranges_) sum += (*range).*seconds;
        return seconds_ > 0 ? sum / seconds_ : 0;
    }

    void work(std::size_t i) {
        const auto begun = std::chrono::steady_clock::now();
        try {
            ranges_[i]->count();
        } catch (...) {
            failures_[i] = std::current_exception();
            stop();
        }
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
        const std::lock_guard<std::mutex> lock(mutex_);
        seconds_ += seconds;
        if (--working_ == 0) finished_.notify_all();
    }
    void join() {
        for (std::thread& thread : threads_)
            if (thread.joinable()) thread.join();
    }

    Job job_;
    std::vector<std::unique_ptr<Range>> ranges_;
    std::vector<std::exception_ptr> failures_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable finished_;
    std::size_t working_ = 0;
    double seconds_ = 0;  // of all threads
};

// The first safe cut in a window of the file from `from` on, or the window's length.
inline std::int64_t first_cut_in(const std::string& window, std::int64_t from, const std::string& pattern,
                                 const std::vector<std::string>& specials, const std::string& numbers,
                                 const std::string& pages) {
    const auto bytes = [](const std::string& text) { return reinterpret_cast<const byte*>(text.data()); };
    const Classes classes(bytes(numbers), numbers.size(), bytes(pages), pages.size());
    return static_cast<std::int64_t>(first_cut(classes, Pattern::of(pattern), SpecialTokens(specials), bytes(window),
                                               static_cast<std::size_t>(from), window.size()));
}

}  // namespace scanner
