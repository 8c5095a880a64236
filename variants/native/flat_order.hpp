// The order in which the words stand in the text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "flat_classes.hpp"
#include "flat_job.hpp"
#include "flat_memory.hpp"
#include "flat_parallel.hpp"

namespace flat {

// A word by its first eight bytes, the first one highest, filled up with zeros.
struct OrderedWord {
    std::uint64_t prefix;
    std::uint64_t number;   // in the table
};

// Sorts by prefix; words of equal prefixes stay in the order given.
class PrefixSort {
  public:
    void operator()(OrderedWord* words, std::size_t number) {
        if (number < many) {
            std::stable_sort(words, words + number, [](const OrderedWord& one, const OrderedWord& other) {
                return one.prefix < other.prefix;
            });
            return;
        }
        if (scratch_.size() < number) scratch_ = Array<OrderedWord>(number);
        std::vector<std::size_t> counts(8 * 256);
        for (std::size_t word = 0; word < number; ++word)
            for (unsigned place = 0; place < 8; ++place) ++counts[256 * place + byte_at(words[word], place)];
        OrderedWord* from = words;
        OrderedWord* to = scratch_.data();
        for (unsigned place = 0; place < 8; ++place) {
            std::size_t* const next = counts.data() + 256 * place;
            if (next[byte_at(words[0], place)] == number) continue;   // all alike here, as blanks are in front
            std::size_t begin = 0;
            for (unsigned byte = 0; byte < 256; ++byte) begin += std::exchange(next[byte], begin);
            for (std::size_t word = 0; word < number; ++word) to[next[byte_at(from[word], place)]++] = from[word];
            std::swap(from, to);
        }
        if (from != words) std::copy_n(from, number, words);
    }

  private:
    static constexpr std::size_t many = 2048;   // from here on, byte by byte from the last to the first is faster

    // The byte sorted by as the place-th: the last one first.
    static unsigned byte_at(const OrderedWord& word, unsigned place) {
        return static_cast<unsigned>(word.prefix >> 8 * place & 255);
    }

    Array<OrderedWord> scratch_;
};

// Heavy words before light ones, and inside a class by their first eight bytes, so that words that begin alike, and are
// therefore merged alike, stand together and share lines of the cache.
class WordOrder {
  public:
    WordOrder(const Words& words, const WeightClasses& classes, bool lexicographic, std::size_t parts, Watch& watch)
        : ordered_(classes.words()), begins_(classes.classes().size() + 1) {
        for (std::size_t one = 0; one + 1 < begins_.size(); ++one)
            begins_[one + 1] = begins_[one] + classes.classes()[one].words;
        std::vector<std::size_t> next(begins_);
        for (std::size_t word = 0; word < words.number; ++word) {
            const std::uint64_t length = static_cast<std::uint64_t>(words.offsets[word + 1] - words.offsets[word]);
            watch.worked(1, convert);
            if (length < 2 || !words.counts[word]) continue;
            const std::uint8_t* const bytes = words.bytes + words.offsets[word];
            ordered_[next[classes.class_of(words.counts[word])]++] = {prefix(bytes, length), word};
        }
        if (!lexicographic) return;
        const std::vector<std::size_t> cuts = classes.shares(parts);
        in_parallel(parts, [&](std::size_t part) {
            PrefixSort sort;
            for (std::size_t one = cuts[part]; one < cuts[part + 1]; ++one) {
                sort(ordered_.data() + begins_[one], begins_[one + 1] - begins_[one]);
                if (part + 1 == parts) watch.worked(8 * classes.classes()[one].words, convert);
            }
        });
    }

    // The places of a class's words.
    std::size_t begin(std::size_t one) const { return begins_[one]; }
    std::size_t end(std::size_t one) const { return begins_[one + 1]; }
    std::size_t size() const { return ordered_.size(); }
    std::size_t operator[](std::size_t place) const { return ordered_[place].number; }

  private:
    static std::uint64_t prefix(const std::uint8_t* bytes, std::uint64_t length) {
        std::uint64_t value = 0;
        for (unsigned place = 0; place < 8; ++place) value = value << 8 | (place < length ? bytes[place] : 0);
        return value;
    }

    Array<OrderedWord> ordered_;
    std::vector<std::size_t> begins_;   // of the classes
};

}  // namespace flat
