// Runs, which are the number of words, their offsets, their counts, their bytes, in the order of the bytes; and many of
// them merged into one table.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "job.hpp"

namespace word_runs {

using native::Words;

inline std::string_view word_of(const Words& table, std::size_t word) {
    const std::int64_t* const offsets = table.offsets + word;
    return {reinterpret_cast<const char*>(table.bytes) + offsets[0], static_cast<std::size_t>(offsets[1] - offsets[0])};
}

// A word of a table, or of one of many, and the prefix that it is sorted by first.
struct Place {
    std::uint64_t prefix;
    std::size_t word, table = 0;
};

// Throws if the word is not within the bytes: a run may be damaged.
inline Place place_of(const Words& table, std::size_t word, std::size_t number_of_table = 0) {
    const std::int64_t begin = table.offsets[word], end = table.offsets[word + 1];
    if (begin < 0 || begin > end || static_cast<std::uint64_t>(end) > table.size)
        throw native::Refused("the words' offsets do not rise from 0 to the size of their bytes; count the words again");
    return Place{native::prefix_of(table.bytes + begin, static_cast<std::uint64_t>(end - begin)), word, number_of_table};
}

// A file written from front to back through a buffer.
class Output {
  public:
    explicit Output(int file) : file_(file) { buffer_.reserve(2 * capacity); }
    void write(const void* bytes, std::size_t number) {
        const auto* const first = static_cast<const std::uint8_t*>(bytes);
        buffer_.insert(buffer_.end(), first, first + number);
        if (buffer_.size() >= capacity) flush();
    }
    template <class Value>
    void put(Value value) {
        write(&value, sizeof value);
    }
    void flush() {
        for (std::size_t done = 0; done < buffer_.size();) {
            const ssize_t written = ::write(file_, buffer_.data() + done, buffer_.size() - done);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) throw std::system_error(errno, std::generic_category());
            done += static_cast<std::size_t>(written);
        }
        buffer_.clear();
    }

  private:
    static constexpr std::size_t capacity = std::size_t(1) << 18;

    int file_;
    std::vector<std::uint8_t> buffer_;
};

// Whether a place comes before another: by their prefixes, those with the same by their bytes.
inline auto order_in(const Words* tables) {
    return [tables](const Place& left, const Place& right) {
        if (left.prefix != right.prefix) return left.prefix < right.prefix;
        return word_of(tables[left.table], left.word) < word_of(tables[right.table], right.word);   // as unsigned bytes
    };
}

inline void write_run(const Words& table, int file) {
    std::vector<Place> order(table.number);
    for (std::size_t i = 0; i < table.number; ++i) order[i] = place_of(table, i);
    std::sort(order.begin(), order.end(), order_in(&table));
    Output output(file);
    output.put<std::uint64_t>(order.size());
    std::int64_t stop = 0;
    output.put(stop);
    for (const Place& place : order) output.put(stop += static_cast<std::int64_t>(word_of(table, place.word).size()));
    for (const Place& place : order) output.put(table.counts[place.word]);
    for (const Place& place : order) output.write(word_of(table, place.word).data(), word_of(table, place.word).size());
    output.flush();
}

// Gives the pages between two places back. Only those of a mapped file can be read again: others would be zeros.
inline void give_back(const void* from, const void* to) {
    static const std::uintptr_t page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(from) / page * page;
    const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(to) / page * page;
    if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

// Gives back what a table has before this word, so that not all of it is resident in the end.
inline void give_back_before(const Words& table, std::size_t word) {
    constexpr std::size_t words_at_once = 1 << 13;
    if (word % words_at_once) return;
    const std::size_t from = word - words_at_once;
    give_back(table.bytes + table.offsets[from], table.bytes + table.offsets[word]);
    give_back(table.counts + from, table.counts + word);
    give_back(table.offsets + from, table.offsets + word);
}

// Writes the sum of tables with their words in order to three files: bytes, offsets, counts. `mapped` says of each table
// whether it is a file's, whose pages are given back once they have been read.
inline void merge(const std::vector<Words>& tables, const std::vector<bool>& mapped, int data_file, int offsets_file,
                  int counts_file) {
    const auto before = order_in(tables.data());
    const auto after = [&](const Place& one, const Place& other) { return before(other, one); };
    std::vector<Place> heads;  // a heap of the next word of each table, the first in order in front
    for (std::size_t i = 0; i < tables.size(); ++i)
        if (tables[i].number) heads.push_back(place_of(tables[i], 0, i));
    std::make_heap(heads.begin(), heads.end(), after);
    const auto advance = [&] {
        std::pop_heap(heads.begin(), heads.end(), after);
        const std::size_t table = heads.back().table, word = heads.back().word + 1;
        heads.pop_back();
        if (mapped[table]) give_back_before(tables[table], word);
        if (word == tables[table].number) return;
        heads.push_back(place_of(tables[table], word, table));
        std::push_heap(heads.begin(), heads.end(), after);
    };
    Output data(data_file), offsets(offsets_file), counts(counts_file);
    std::int64_t stop = 0;
    offsets.put(stop);
    while (!heads.empty()) {
        const Place first = heads.front();
        const std::string_view word = word_of(tables[first.table], first.word);
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
