// Runs: word counts in the order of their bytes, in files without names, and many of them merged into one table.
//
// A run is one file: the number of words, their offsets, their counts, their bytes. Whoever holds its descriptor has it,
// and it is gone with the last who does, even when a process is killed.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <queue>
#include <string>
#include <system_error>
#include <vector>

namespace word_runs {

struct Table {
    const std::uint8_t* data;
    const std::int64_t* offsets;  // one more than there are words
    const std::uint64_t* counts;
    std::size_t words;
    bool mapped = false;  // of a file: pages that have been read may be given back, they can be had again

    const std::uint8_t* word(std::size_t i) const { return data + offsets[i]; }
    std::size_t length(std::size_t i) const { return static_cast<std::size_t>(offsets[i + 1] - offsets[i]); }
};

// The first eight bytes as a number that sorts as they do; zeros stand behind a shorter word, so equal ones are compared.
inline std::uint64_t prefix_of(const std::uint8_t* word, std::size_t length) {
    std::uint8_t bytes[8] = {};
    std::memcpy(bytes, word, std::min<std::size_t>(length, 8));
    std::uint64_t prefix = 0;
    for (const std::uint8_t byte : bytes) prefix = prefix << 8 | byte;
    return prefix;
}

inline int compare(const std::uint8_t* left, std::size_t left_length, const std::uint8_t* right, std::size_t right_length) {
    const int order = std::memcmp(left, right, std::min(left_length, right_length));
    if (order) return order;
    return left_length < right_length ? -1 : left_length > right_length;
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

// A file without a name in `folder`, open for reading and writing.
inline int nameless_file(const std::string& folder) {
#if defined(O_TMPFILE)
    const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (unnamed >= 0) return unnamed;
#endif
    std::string name = folder + "/run-XXXXXX";
    const int file = ::mkstemp(name.data());
    if (file < 0) throw std::system_error(errno, std::generic_category());
    ::fcntl(file, F_SETFD, FD_CLOEXEC);
    ::unlink(name.c_str());
    return file;
}

struct Place {
    std::uint64_t prefix;
    std::size_t word;
};

// Writes the words of the table that `order` names, sorted here, as one run; returns its length in bytes.
inline std::size_t write_words(const Table& table, std::vector<Place>& order, Output& output) {
    std::sort(order.begin(), order.end(), [&table](const Place& left, const Place& right) {
        if (left.prefix != right.prefix) return left.prefix < right.prefix;
        return compare(table.word(left.word), table.length(left.word), table.word(right.word), table.length(right.word)) < 0;
    });
    output.put<std::uint64_t>(order.size());
    std::int64_t stop = 0;
    output.put(stop);
    for (const Place& place : order) output.put(stop += static_cast<std::int64_t>(table.length(place.word)));
    for (const Place& place : order) output.put(table.counts[place.word]);
    for (const Place& place : order) output.write(table.word(place.word), table.length(place.word));
    return 8 * (2 * order.size() + 2) + static_cast<std::size_t>(stop);
}

// Writes the table, its words in order, to the file.
inline void write_run(const Table& table, int file) {
    std::vector<Place> order(table.words);
    for (std::size_t i = 0; i < table.words; ++i) order[i] = Place{prefix_of(table.word(i), table.length(i)), i};
    Output output(file);
    write_words(table, order, output);
    output.flush();
}

// FNV-1a of a word, its high bits folded into the low ones: what decides the partition of a word, on every machine.
inline std::uint64_t hash_of(const std::uint8_t* word, std::size_t length) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (std::size_t i = 0; i < length; ++i) hash = (hash ^ word[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

// Writes a run for each partition, one behind the other at multiples of eight bytes; returns where each ends.
inline std::vector<std::size_t> write_runs(const Table& table, std::size_t partitions, int file) {
    std::vector<std::vector<Place>> orders(partitions);
    for (std::size_t i = 0; i < table.words; ++i) {
        const std::size_t partition = hash_of(table.word(i), table.length(i)) % partitions;
        orders[partition].push_back(Place{prefix_of(table.word(i), table.length(i)), i});
    }
    Output output(file);
    std::vector<std::size_t> stops;
    std::size_t stop = 0;
    for (auto& order : orders) {
        const std::size_t length = write_words(table, order, output), padding = (8 - length % 8) % 8;
        output.write("\0\0\0\0\0\0\0", padding);
        stops.push_back(stop += length + padding);
    }
    output.flush();
    return stops;
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

// The pages of a table, given back behind the word that is read; of one that is in memory none are.
class Reading {
  public:
    explicit Reading(const Table& table)
        : table_(table), offsets_(table.offsets), counts_(table.counts), data_(table.data) {}
    void reach(std::size_t word) {
        if (!table_.mapped || word % words_at_once) return;
        offsets_.give_back_until(table_.offsets + word);
        counts_.give_back_until(table_.counts + word);
        data_.give_back_until(table_.word(word));
    }

  private:
    static constexpr std::size_t words_at_once = 1 << 13;

    const Table& table_;
    Pages offsets_, counts_, data_;
};

// Writes the sum of tables, each with its words in order, to three files: bytes, offsets, counts.
inline void merge(const std::vector<Table>& tables, int data_file, int offsets_file, int counts_file) {
    struct Head {
        std::uint64_t prefix;
        std::size_t table, word;
    };
    const auto later = [&tables](const Head& left, const Head& right) {  // the first in order comes out first
        if (left.prefix != right.prefix) return left.prefix > right.prefix;
        const Table &one = tables[left.table], &other = tables[right.table];
        return compare(one.word(left.word), one.length(left.word), other.word(right.word), other.length(right.word)) > 0;
    };
    std::priority_queue<Head, std::vector<Head>, decltype(later)> heads(later);
    std::vector<Reading> readings(tables.begin(), tables.end());
    const auto enter = [&](std::size_t table, std::size_t word) {
        const Table& of = tables[table];
        readings[table].reach(word);
        if (word < of.words) heads.push(Head{prefix_of(of.word(word), of.length(word)), table, word});
    };
    for (std::size_t i = 0; i < tables.size(); ++i) enter(i, 0);
    Output data(data_file), offsets(offsets_file), counts(counts_file);
    std::int64_t stop = 0;
    offsets.put(stop);
    while (!heads.empty()) {
        const Head first = heads.top();
        const Table& of = tables[first.table];
        const std::uint8_t* word = of.word(first.word);
        const std::size_t length = of.length(first.word);
        std::uint64_t count = 0;
        while (!heads.empty()) {
            const Head next = heads.top();
            const Table& its = tables[next.table];
            if (next.prefix != first.prefix || compare(word, length, its.word(next.word), its.length(next.word)) != 0) break;
            count += its.counts[next.word];
            heads.pop();
            enter(next.table, next.word + 1);
        }
        data.write(word, length);
        offsets.put(stop += static_cast<std::int64_t>(length));
        counts.put(count);
    }
    data.flush();
    offsets.flush();
    counts.flush();
}

// The error of the system that ended the work, 0 if it came to its end.
template <class Work>
int error_of(Work work) {
    try {
        work();
        return 0;
    } catch (const std::system_error& error) {
        return error.code().value();
    }
}
inline int error_of_run(const Table& table, int file) {
    return error_of([&] { write_run(table, file); });
}
inline int error_of_runs(const Table& table, std::size_t partitions, int file, std::vector<std::size_t>& stops) {
    return error_of([&] { stops = write_runs(table, partitions, file); });
}
inline int error_of_merge(const std::vector<Table>& tables, int data_file, int offsets_file, int counts_file) {
    return error_of([&] { merge(tables, data_file, offsets_file, counts_file); });
}

}  // namespace word_runs
