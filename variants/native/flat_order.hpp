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

// A word in eight bytes: as many bits of its beginning as are sorted by, above its number in the table. Half the size of
// the two apart, and nothing is left to compare: words that begin alike stay in the order given.
class WordPacking {
  public:
    explicit WordPacking(std::size_t words) {
        while (number_bits_ < 63 && words > std::uint64_t{1} << number_bits_) ++number_bits_;
    }

    std::uint64_t packed(const std::uint8_t* bytes, std::uint64_t length, std::uint64_t number) const {
        return prefix(bytes, length) >> number_bits_ << number_bits_ | number;
    }
    std::uint64_t number(std::uint64_t word) const { return word & ((std::uint64_t{1} << number_bits_) - 1); }

    // Sorts by beginning, of which the highest `sorted_bits` bits count where words are many.
    void sort(std::uint64_t* words, std::size_t number, Array<std::uint64_t>& scratch) const {
        if (number < many) {
            std::sort(words, words + number);
            return;
        }
        if (scratch.size() < number) scratch = Array<std::uint64_t>(number);
        const unsigned lowest = std::max(number_bits_, 64 - sorted_bits);
        std::vector<std::size_t> counts(digits * digit_values);
        for (std::size_t word = 0; word < number; ++word)
            for (unsigned place = 0; place < digits; ++place)
                ++counts[place * digit_values + digit(words[word], lowest, place)];
        std::uint64_t* from = words;
        std::uint64_t* to = scratch.data();
        for (unsigned place = 0; place < digits; ++place) {
            std::size_t* const next = counts.data() + place * digit_values;
            if (next[digit(words[0], lowest, place)] == number) continue;   // all alike here
            std::size_t begin = 0;
            for (unsigned value = 0; value < digit_values; ++value) begin += std::exchange(next[value], begin);
            for (std::size_t word = 0; word < number; ++word) to[next[digit(from[word], lowest, place)]++] = from[word];
            std::swap(from, to);
        }
        if (from != words) std::copy_n(from, number, words);
    }

  private:
    static constexpr std::size_t many = 2048;   // from here on, digit by digit from the last to the first is faster
    static constexpr unsigned digit_bits = 11, digits = 4, sorted_bits = digits * digit_bits;
    static constexpr unsigned digit_values = 1u << digit_bits;

    // The place-th digit above the bit `lowest`, the last digit first.
    static unsigned digit(std::uint64_t word, unsigned lowest, unsigned place) {
        const unsigned shift = lowest + place * digit_bits;
        return shift < 64 ? static_cast<unsigned>(word >> shift & (digit_values - 1)) : 0;
    }

    unsigned number_bits_ = 1;
};

// Heavy words before light ones, and inside a class by their first bytes, four to seven of them, so that words that begin
// alike, and are therefore merged alike, stand together and share lines of the cache.
class WordOrder {
  public:
    WordOrder(const Words& words, const WeightClasses& classes, bool lexicographic, std::size_t parts, Watch& watch)
        : packing_(words.number), ordered_(classes.words()), begins_(classes.classes().size() + 1) {
        for (std::size_t one = 0; one + 1 < begins_.size(); ++one)
            begins_[one + 1] = begins_[one] + classes.classes()[one].words;
        std::vector<std::size_t> next(begins_);
        for (std::size_t word = 0; word < words.number; ++word) {
            const std::uint64_t length = static_cast<std::uint64_t>(words.offsets[word + 1] - words.offsets[word]);
            watch.worked(1, convert);
            if (length < 2 || !words.counts[word]) continue;
            const std::uint8_t* const bytes = words.bytes + words.offsets[word];
            ordered_[next[classes.class_of(words.counts[word])]++] =
                lexicographic ? packing_.packed(bytes, length, word) : word;
        }
        if (!lexicographic) return;
        const std::vector<std::size_t> cuts = classes.shares(parts);
        in_parallel(parts, [&](std::size_t part) {
            Array<std::uint64_t> scratch;
            for (std::size_t one = cuts[part]; one < cuts[part + 1]; ++one) {
                packing_.sort(ordered_.data() + begins_[one], begins_[one + 1] - begins_[one], scratch);
                if (part + 1 == parts) watch.worked(8 * classes.classes()[one].words, convert);
            }
        });
    }

    // The places of a class's words.
    std::size_t begin(std::size_t one) const { return begins_[one]; }
    std::size_t end(std::size_t one) const { return begins_[one + 1]; }
    std::size_t size() const { return ordered_.size(); }
    std::size_t operator[](std::size_t place) const { return packing_.number(ordered_[place]); }

  private:
    WordPacking packing_;
    Array<std::uint64_t> ordered_;
    std::vector<std::size_t> begins_;   // of the classes
};

}  // namespace flat
