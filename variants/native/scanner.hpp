// One thread's part of the file: read it a buffer at a time, validate it, find special tokens, count the rest.
//
// A buffer that is used again costs less than a mapping: no page is touched for the first time, pipes can be read, and
// a file that is cut off meanwhile is an error rather than a signal.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <system_error>

#include "scanner_join.hpp"
#include "scanner_paths.hpp"

namespace scanner {

// Takes the columns of a range's table, whose memory it may free; false: stop.
using HandOver = bool (*)(void* context, std::int64_t range, WordTable::Columns& columns);

// Asked every tenth of a second, with the number of bytes that are done; false: stop.
using GoOn = bool (*)(void* context, std::int64_t done);

// What all ranges of a scan have in common.
struct Job {
    int file;
    Pattern pattern;
    Functions functions;
    Classes classes;
    SpecialTokens specials;
    Seed seed;
    std::size_t buffer;  // the bytes read at once, as long as a word fits
    HandOver hand_over;        // if there is one, it takes every table that has more than `table_bytes`, and then the rest
    std::size_t table_bytes;
    bool hands_over_all;       // the rest even if no table was that large, in the range's thread
    void* context;
    std::size_t most_cells;    // that the words of a table may take
    GoOn go_on = nullptr;      // who is asked, if the only range is counted in the thread that started the scan
    std::atomic<bool> handed_over{false};
    std::atomic<std::int64_t> done{0};
    std::atomic<bool> stopped{false};
    std::atomic<std::int64_t> first_bad_range{INT64_MAX};  // ranges behind it are not needed any more
};

constexpr std::int64_t until_end = INT64_MAX;

// Adds the time of its life to a sum.
class Stopwatch {
  public:
    explicit Stopwatch(double& sum) : sum_(sum) {}
    ~Stopwatch() { sum_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

  private:
    using Clock = std::chrono::steady_clock;
    double& sum_;
    const Clock::time_point start_ = Clock::now();
};

class Range {
  public:
    Range(Job& job, std::int64_t number, std::int64_t start, std::int64_t stop)
        : table(new_table(job)), job_(job),
          number_(number), position_(start), stop_(stop), base_(start), search_(job.specials), starts_(*table) {}

    void count() {
        const Stopwatch watch(seconds);
        std::size_t capacity = std::max(job_.buffer, job_.specials.longest() + 8);
        std::vector<byte> buffer(capacity + padding);
        for (;;) {
            if (is_stopped() || job_.first_bad_range < number_) return;
            const bool last = fill(buffer.data(), capacity);
            if (error || !validate(buffer.data(), last)) {
                std::int64_t bad = job_.first_bad_range;
                while (number_ < bad && !job_.first_bad_range.compare_exchange_weak(bad, number_)) {
                }
                return;
            }
            const std::size_t taken = take(buffer.data(), last);
            std::memmove(buffer.data(), buffer.data() + taken, filled_ - taken);
            filled_ -= taken;
            valid_ -= taken;
            base_ += static_cast<std::int64_t>(taken);
            job_.done += static_cast<std::int64_t>(taken);
            const bool full = table->memory() > job_.table_bytes || (last && job_.hands_over_all);
            if (job_.hand_over && full && !empty_table()) return;
            if (last) return;
            if (filled_ == capacity) {
                capacity *= 2;
                buffer.resize(capacity + padding);
            }
        }
    }

    // Hands over what was counted so far and begins a new table; false if that failed.
    bool empty_table() {
        if (!table->words()) return true;
        table->settle();
        WordTable::Columns columns = table->release();
        table.reset();
        job_.handed_over = true;
        const bool taken = [&] {
            const Stopwatch watch(seconds_handing_over);
            return job_.hand_over(job_.context, number_, columns);
        }();
        table = new_table(job_);
        starts_.into(*table);
        if (!taken) job_.stopped = true;
        return taken;
    }

    std::unique_ptr<WordTable> table;
    int error = 0;                  // of reading
    bool cut_off = false;           // the file ended before the range did
    std::int64_t invalid_at = -1;   // the offset in the file of the first bad byte
    double seconds = 0, seconds_reading = 0, seconds_handing_over = 0;
    // Documents that hold more than blanks. Those at the ends of the range may go on in its neighbours.
    std::uint64_t documents = 0;
    bool any_special = false, blank_head = true, blank_tail = true;

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr int milliseconds_to_stop = 50, milliseconds_to_ask = 100;

    static std::unique_ptr<WordTable> new_table(const Job& job) {
        return std::make_unique<WordTable>(job.seed, job.functions.key_hash, job.specials.tokens(), job.most_cells);
    }

    // Whether not to go on; asks if it is time.
    bool is_stopped() {
        if (job_.go_on && Clock::now() - asked_ >= std::chrono::milliseconds(milliseconds_to_ask)) {
            if (!job_.go_on(job_.context, job_.done)) job_.stopped = true;
            asked_ = Clock::now();
        }
        return job_.stopped;
    }

    // Reads until the buffer is full; whether that was the last of the range.
    bool fill(byte* buffer, std::size_t capacity) {
        const Stopwatch watch(seconds_reading);
        bool last = false;
        while (filled_ < capacity && !last) {
            std::size_t wanted = capacity - filled_;
            if (stop_ != until_end) wanted = std::min(wanted, static_cast<std::size_t>(stop_ - position_));
            if (wanted == 0) return true;
            if (stop_ == until_end && !ready()) return true;
            const ssize_t got = stop_ == until_end ? ::read(job_.file, buffer + filled_, wanted)
                                                   : ::pread(job_.file, buffer + filled_, wanted, position_);
            if (got < 0 && errno == EINTR && !job_.stopped) continue;
            if (got < 0) error = errno;
            if (got <= 0) {
                cut_off = stop_ != until_end;
                last = true;
                break;
            }
            filled_ += static_cast<std::size_t>(got);
            position_ += got;
        }
        return last || position_ == stop_;
    }

    // Waits for a pipe to have bytes or an end; false if the scan was stopped meanwhile.
    bool ready() {
        pollfd waiting{job_.file, POLLIN, 0};
        while (!is_stopped())
            if (::poll(&waiting, 1, milliseconds_to_stop) != 0) return true;  // an error shows when it is read
        return false;
    }

    bool validate(const byte* buffer, bool last) {
        if (job_.pattern.split == Split::bytes) {
            valid_ = filled_;
            return true;
        }
        valid_ = job_.functions.valid_until(buffer, valid_, filled_);
        if (valid_ == filled_) return true;
        if (!last && length_of_character(buffer + valid_, filled_ - valid_) < 0) return true;
        invalid_at = base_ + static_cast<std::int64_t>(valid_);
        return false;
    }

    // Counts what is certain in the buffer and returns its length.
    std::size_t take(const byte* buffer, bool last) {
        const std::size_t longest = job_.specials.longest();
        // Special tokens that begin before here are known, whatever is read next.
        const std::size_t known = last || !longest ? valid_ : valid_ + 1 > longest ? valid_ + 1 - longest : 0;
        std::size_t at = 0;
        starts_.begin(buffer);
        search_.restart();
        while (longest) {
            const auto found = search_.next(buffer, std::max(at, searched_), known, valid_);
            if (!found.length) break;
            take_text(buffer, at, found.place);
            close_document();
            starts_.push(found.place);  // the special token itself, which the table does not count
            at = found.place + found.length;
        }
        if (last) {
            take_text(buffer, at, valid_);
            at = valid_;
        } else if (const std::size_t limit = std::min(known, valid_ ? valid_ - 1 : 0); limit > at) {
            const std::size_t cut = last_cut(job_.classes, job_.pattern, buffer, at, limit);
            take_text(buffer, at, cut);
            at = cut;
        }
        starts_.finish(at);
        searched_ = known > at ? known - at : 0;
        return at;
    }

    void take_text(const byte* buffer, std::size_t from, std::size_t to) {
        if (from >= to) return;
        bool& blank = any_special ? blank_tail : blank_head;
        for (std::size_t at = from; blank && at < to; ++at)
            blank = buffer[at] == ' ' || (buffer[at] >= '\t' && buffer[at] <= '\r');
        job_.functions.find_starts(job_.classes, job_.pattern, buffer, from, to, starts_);
    }

    void close_document() {
        documents += any_special && !blank_tail;
        any_special = true;
        blank_tail = true;
    }

    Job& job_;
    const std::int64_t number_;
    std::int64_t position_;       // up to where the file was read
    const std::int64_t stop_;
    std::int64_t base_;           // where the buffer begins in the file
    std::size_t filled_ = 0;      // bytes in the buffer
    std::size_t valid_ = 0;       // of these, in whole valid characters
    std::size_t searched_ = 0;    // no special token begins before
    SpecialTokens::Search search_;
    Starts starts_;
    Clock::time_point asked_ = Clock::now();
};

// The scanner: a thread counts each range of a file, and their tables are joined in the order of the file. A single range
// needs no thread: the kernel then says of the thread that started the scan how long it waited for a processor.
class Scan {
  public:
    Scan(int file, const std::string& pattern, int path, const std::vector<std::int64_t>& bounds, const std::vector<std::string>& specials,
         const std::string& numbers, const std::string& pages, const std::string& seed, std::size_t buffer,
         HandOver hand_over = nullptr, std::size_t table_bytes = 0, bool hands_over_all = false, void* context = nullptr,
         std::size_t most_cells = SIZE_MAX)
        : job_{file,
               Pattern::of(pattern),
               functions_of(Pattern::of(pattern), static_cast<Path>(path)),
               Classes(numbers, pages),
               SpecialTokens(specials),
               Seed{},
               buffer,
               hand_over,
               table_bytes,
               hands_over_all,
               context,
               most_cells} {
        if (seed.size() != sizeof job_.seed) throw std::invalid_argument("the hash wants a seed of 32 bytes");
        std::memcpy(&job_.seed, seed.data(), sizeof job_.seed);
        for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
            ranges_.push_back(std::make_unique<Range>(job_, static_cast<std::int64_t>(i), bounds[i], bounds[i + 1]));
    }
    ~Scan() { stop(); }

    // Starts the threads; of a single range, counts it here if there is someone to ask.
    void start(GoOn go_on = nullptr) {
        if (go_on && ranges_.size() == 1) {
            job_.go_on = go_on;
            ranges_.front()->count();
            return;
        }
        try {
            working_ = std::async(std::launch::async, [this] {
                native::in_parallel(ranges_.size(), [this](std::size_t i) { count(i); });
            });
        } catch (const std::system_error&) {   // no thread can be started: this one counts all ranges
            job_.go_on = go_on;
            for (std::size_t i = 0; i < ranges_.size(); ++i) count(i);
        }
    }
    bool wait(double seconds) {
        return !working_.valid() || working_.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
    }
    void stop() { job_.stopped = true; }
    std::int64_t done() const { return job_.done; }

    // Joins the tables, or hands over the rest. Throws what a range threw, the first in the file if several did.
    void finish() {
        if (working_.valid()) working_.get();
        if (job_.stopped) return;
        std::vector<WordTable*> tables;
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
        }
        documents += open;
        for (std::size_t i = 0; job_.handed_over && i < ranges_.size(); ++i)
            if (!ranges_[i]->empty_table()) return;
        tables.size() > 1 ? Join(tables).run() : tables.front()->settle();
        columns = tables.front()->release();
    }

    // The parts of the threads' time that went into reading, and into handing tables over.
    double part_reading() const { return part_of(&Range::seconds_reading); }
    double part_handing_over() const { return part_of(&Range::seconds_handing_over); }

    int error = 0;
    bool cut_off = false;
    std::int64_t invalid_at = -1;
    std::uint64_t documents = 0;
    WordTable::Columns columns{};

  private:
    void count(std::size_t range) {
        try {
            ranges_[range]->count();
        } catch (...) {
            stop();
            throw;
        }
    }

    double part_of(double Range::* seconds) const {
        double part = 0, all = 0;
        for (const auto& range : ranges_) {
            part += (*range).*seconds;
            all += range->seconds;
        }
        return all > 0 ? part / all : 0;
    }

    Job job_;
    std::vector<std::unique_ptr<Range>> ranges_;
    std::future<void> working_;   // last, since its end waits for the threads
};

// The first safe cut in a window of the file from `from` on, or the window's length.
inline std::int64_t first_cut_in(const std::string& window, std::int64_t from, const std::string& pattern,
                                 const std::vector<std::string>& specials, const std::string& numbers,
                                 const std::string& pages) {
    const byte* const text = reinterpret_cast<const byte*>(window.data());
    return static_cast<std::int64_t>(first_cut(Classes(numbers, pages), Pattern::of(pattern), SpecialTokens(specials), text,
                                               static_cast<std::size_t>(from), window.size()));
}

}  // namespace scanner
