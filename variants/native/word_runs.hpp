// Runs: word counts in an order, and many of them merged into one table.
//
// A run is the number of words, their offsets, their counts, their bytes. What a scanner spills is one run, in the order
// of its bytes, in a file without a name: whoever holds its descriptor has it, and it is gone with the last who does, even
// when a process is killed. Runs of the partitions of a table stand one behind the other in one file, each in the order of
// hashes.
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
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace word_runs {

struct Table {
    const std::uint8_t* data;
    const std::int64_t* offsets;  // one more than there are words
    const std::uint64_t* counts;
    std::size_t words;
    std::size_t size;     // of the bytes
    bool mapped = false;  // of a file: pages that have been read may be given back, they can be had again

    const std::uint8_t* word(std::size_t i) const { return data + offsets[i]; }
    std::size_t length(std::size_t i) const { return static_cast<std::size_t>(offsets[i + 1] - offsets[i]); }
    // Refuses a word that is not within the bytes.
    void check(std::size_t i) const {
        if (offsets[i] < 0 || offsets[i] > offsets[i + 1] || static_cast<std::uint64_t>(offsets[i + 1]) > size)
            throw std::invalid_argument("the words' offsets do not rise from 0 to the size of their bytes; count the words again");
    }
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

// FNV-1a of a word, its high bits folded into the low ones: what decides the partition of a word, on every machine.
inline std::uint64_t hash_of(const std::uint8_t* word, std::size_t length) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (std::size_t i = 0; i < length; ++i) hash = (hash ^ word[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

// A word of a table, or of one of many, and the number that it is sorted by: its prefix or its hash.
struct Place {
    std::uint64_t number;
    std::size_t word, table = 0;
};
using Number = std::uint64_t (*)(const std::uint8_t*, std::size_t);

template <Number number>
Place place_of(const Table& table, std::size_t word, std::size_t number_of_table = 0) {
    table.check(word);
    return Place{number(table.word(word), table.length(word)), word, number_of_table};
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

// Writes the words of the table that `order` names as one run; returns its length in bytes.
inline std::size_t write_words(const Table& table, const std::vector<Place>& order, Output& output) {
    output.put<std::uint64_t>(order.size());
    std::int64_t stop = 0;
    output.put(stop);
    for (const Place& place : order) output.put(stop += static_cast<std::int64_t>(table.length(place.word)));
    for (const Place& place : order) output.put(table.counts[place.word]);
    for (const Place& place : order) output.write(table.word(place.word), table.length(place.word));
    return 8 * (2 * order.size() + 2) + static_cast<std::size_t>(stop);
}

// Whether a place comes before another: by their numbers, those with the same by their bytes.
inline auto order_in(const Table* tables) {
    return [tables](const Place& left, const Place& right) {
        if (left.number != right.number) return left.number < right.number;
        const Table &one = tables[left.table], &other = tables[right.table];
        return compare(one.word(left.word), one.length(left.word), other.word(right.word), other.length(right.word)) < 0;
    };
}

// Writes the table, its words in the order of their bytes, to the file.
inline void write_run(const Table& table, int file) {
    std::vector<Place> order(table.words);
    for (std::size_t i = 0; i < table.words; ++i) order[i] = place_of<prefix_of>(table, i);
    std::sort(order.begin(), order.end(), order_in(&table));
    Output output(file);
    write_words(table, order, output);
    output.flush();
}

// Sorts places by hashes, which are spread evenly: first into as many buckets by their high bits, then those that meet.
inline void sort_hashed(std::vector<Place>& places, const Table& table) {
    unsigned bits = 0;
    while (bits < 16 && places.size() >> bits > 2) ++bits;
    const auto bucket = [bits](const Place& place) { return bits ? place.number >> (64 - bits) : 0; };
    std::vector<std::size_t> stops((std::size_t(1) << bits) + 1);
    for (const Place& place : places) ++stops[bucket(place) + 1];
    for (std::size_t i = 1; i < stops.size(); ++i) stops[i] += stops[i - 1];
    std::vector<Place> sorted(places.size());
    for (const Place& place : places) sorted[stops[bucket(place)]++] = place;
    std::size_t start = 0;  // where a bucket began is now where it ends
    for (std::size_t i = 0; i + 1 < stops.size(); start = stops[i++])
        std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(start), sorted.begin() + static_cast<std::ptrdiff_t>(stops[i]),
                  order_in(&table));
    places.swap(sorted);
}

// Writes a run for each partition by hash, one behind the other at multiples of eight bytes; returns where each ends.
inline std::vector<std::size_t> write_runs(const Table& table, std::size_t partitions, int file) {
    std::vector<std::vector<Place>> orders(partitions);
    for (std::size_t i = 0; i < table.words; ++i) {
        const Place place = place_of<hash_of>(table, i);
        orders[place.number % partitions].push_back(place);
    }
    Output output(file);
    std::vector<std::size_t> stops;
    std::size_t stop = 0;
    for (auto& order : orders) {
        sort_hashed(order, table);
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

// Writes the sum of tables, each with its words in the order of their numbers, to three files: bytes, offsets, counts.
template <Number number>
void merge(const std::vector<Table>& tables, int data_file, int offsets_file, int counts_file) {
    const auto before = order_in(tables.data());
    std::vector<Reading> readings(tables.begin(), tables.end());
    std::vector<Place> heads;  // the next word of each table, the first of them in front: a heap
    for (std::size_t i = 0; i < tables.size(); ++i)
        if (tables[i].words) heads.push_back(place_of<number>(tables[i], 0, i));
    std::sort(heads.begin(), heads.end(), before);
    const auto advance = [&] {
        const std::size_t table = heads.front().table, word = heads.front().word + 1;
        readings[table].reach(word);
        if (word < tables[table].words) {
            heads.front() = place_of<number>(tables[table], word, table);
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
        const Table& of = tables[first.table];
        std::uint64_t count = 0;
        do {
            count += tables[heads.front().table].counts[heads.front().word];
            advance();
        } while (!heads.empty() && !before(first, heads.front()));
        data.write(of.word(first.word), of.length(first.word));
        offsets.put(stop += static_cast<std::int64_t>(of.length(first.word)));
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
inline int error_of_merge(const std::vector<Table>& tables, int data_file, int offsets_file, int counts_file, bool hashed) {
    return error_of([&] {
        if (hashed)
            merge<hash_of>(tables, data_file, offsets_file, counts_file);
        else
            merge<prefix_of>(tables, data_file, offsets_file, counts_file);
    });
}

}  // namespace word_runs
