// Runs: word counts in the order of their bytes, and many of them merged into one table.
//
// A run is the number of words, their offsets, their counts, their bytes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "job.hpp"

namespace word_runs {

using native::prefix_of;

struct Table {
    const std::uint8_t* data;
    const std::int64_t* offsets;  // one more than there are words
    const std::uint64_t* counts;
    std::size_t words;
    std::size_t size;     // of the bytes

    std::string_view word(std::size_t i) const {
        return {reinterpret_cast<const char*>(data) + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
    }
    // Refuses a word that is not within the bytes.
    void check(std::size_t i) const {
        if (offsets[i] < 0 || offsets[i] > offsets[i + 1] || static_cast<std::uint64_t>(offsets[i + 1]) > size)
            throw std::invalid_argument("the words' offsets do not rise from 0 to the size of their bytes; count the words again");
    }
};

// A word of a table, or of one of many, and the prefix that it is sorted by first.
struct Place {
    std::uint64_t prefix;
    std::size_t word, table = 0;
};

inline Place place_of(const Table& table, std::size_t word, std::size_t number_of_table = 0) {
    table.check(word);
    return Place{prefix_of(table.data + table.offsets[word], table.word(word).size()), word, number_of_table};
}

// A file being written from front to back through a buffer.
class Output {
  public:
    explicit Output(int file) : file_(file) { buffer_.reserve(capacity); }
    void write(const void* bytes, std::size_t number) {
        if (buffer_.size() + number > capacity) flush();
        if (number > capacity)
            write_through(static_cast<const std::uint8_t*>(bytes), number);
        else
            buffer_.insert(buffer_.end(), static_cast<const std::uint8_t*>(bytes),
                           static_cast<const std::uint8_t*>(bytes) + number);
    }
    template <class Value>
    void put(Value value) {
        write(&value, sizeof value);
    }
    void flush() {
        write_through(buffer_.data(), buffer_.size());
        buffer_.clear();
    }

  private:
    static constexpr std::size_t capacity = std::size_t(1) << 18;

    void write_through(const std::uint8_t* bytes, std::size_t number) {
        while (number) {
            const ssize_t written = ::write(file_, bytes, number);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) throw std::system_error(errno, std::generic_category());
            bytes += written;
            number -= static_cast<std::size_t>(written);
        }
    }

    int file_;
    std::vector<std::uint8_t> buffer_;
};

// Whether a place comes before another: by their prefixes, those with the same by their bytes.
inline auto order_in(const Table* tables) {
    return [tables](const Place& left, const Place& right) {
        if (left.prefix != right.prefix) return left.prefix < right.prefix;
        return tables[left.table].word(left.word) < tables[right.table].word(right.word);   // as unsigned bytes
    };
}

// Writes the table to the file as a run.
inline void write_run(const Table& table, int file) {
    std::vector<Place> order(table.words);
    for (std::size_t i = 0; i < table.words; ++i) order[i] = place_of(table, i);
    std::sort(order.begin(), order.end(), order_in(&table));
    Output output(file);
    output.put<std::uint64_t>(order.size());
    std::int64_t stop = 0;
    output.put(stop);
    for (const Place& place : order) output.put(stop += static_cast<std::int64_t>(table.word(place.word).size()));
    for (const Place& place : order) output.put(table.counts[place.word]);
    for (const Place& place : order) output.write(table.word(place.word).data(), table.word(place.word).size());
    output.flush();
}

// Memory mapped from a file and read from front to back: without this, all of it would be resident in the end.
class Pages {
  public:
    explicit Pages(const void* start) : kept_(page_of(start)) {}
    void give_back_until(const void* place) {
        const std::uintptr_t page = page_of(place);
        if (page > kept_) ::madvise(reinterpret_cast<void*>(kept_), page - kept_, MADV_DONTNEED);
        kept_ = page;
    }

  private:
    static std::uintptr_t page_of(const void* place) {
        static const std::uintptr_t size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        return reinterpret_cast<std::uintptr_t>(place) / size * size;
    }

    std::uintptr_t kept_;
};

// The pages of a table, given back behind the word that is read: they can be had again from its file.
class Reading {
  public:
    explicit Reading(const Table& table)
        : table_(table), offsets_(table.offsets), counts_(table.counts), data_(table.data) {}
    void reach(std::size_t word) {
        if (word % words_at_once) return;
        offsets_.give_back_until(table_.offsets + word);
        counts_.give_back_until(table_.counts + word);
        data_.give_back_until(table_.word(word).data());
    }

  private:
    static constexpr std::size_t words_at_once = 1 << 13;

    const Table& table_;
    Pages offsets_, counts_, data_;
};

// Lets the first of a heap sink to where it belongs.
template <class Before>
void sink_first(std::vector<Place>& heap, const Before& before) {
    const Place sinking = heap.front();
    std::size_t place = 0;
    for (std::size_t child; (child = 2 * place + 1) < heap.size(); place = child) {
        if (child + 1 < heap.size() && before(heap[child + 1], heap[child])) ++child;
        if (!before(heap[child], sinking)) break;
        heap[place] = heap[child];
    }
    heap[place] = sinking;
}

// Writes the sum of tables, mapped from files with their words in order, to three files: bytes, offsets, counts.
inline void merge(const std::vector<Table>& tables, int data_file, int offsets_file, int counts_file) {
    const auto before = order_in(tables.data());
    std::vector<Reading> readings(tables.begin(), tables.end());
    std::vector<Place> heads;  // the next word of each table, the first of them in front: a heap
    for (std::size_t i = 0; i < tables.size(); ++i)
        if (tables[i].words) heads.push_back(place_of(tables[i], 0, i));
    std::sort(heads.begin(), heads.end(), before);
    const auto advance = [&] {
        const std::size_t table = heads.front().table, word = heads.front().word + 1;
        readings[table].reach(word);
        if (word < tables[table].words) {
            heads.front() = place_of(tables[table], word, table);
        } else {
            heads.front() = heads.back();
            heads.pop_back();
        }
        if (!heads.empty()) sink_first(heads, before);
    };
    Output data(data_file), offsets(offsets_file), counts(counts_file);
    std::int64_t stop = 0;
    offsets.put(stop);
    while (!heads.empty()) {
        const Place first = heads.front();
        const std::string_view word = tables[first.table].word(first.word);
        std::uint64_t count = 0;
        do {
            count += tables[heads.front().table].counts[heads.front().word];
            advance();
        } while (!heads.empty() && !before(first, heads.front()));
        data.write(word.data(), word.size());
        offsets.put(stop += static_cast<std::int64_t>(word.size()));
        counts.put(count);
    }
    data.flush();
    offsets.flush();
    counts.flush();
}

}  // namespace word_runs
