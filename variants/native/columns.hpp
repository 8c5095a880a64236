// The door for the columns of WordCounts: what compiled code reads without looking is looked at here, once for all.
#pragma once

#include "job.hpp"

namespace native {

// The largest that any pair's count, and with it every sum of a trainer, may become.
constexpr std::uint64_t largest_count = INT64_MAX;

// Refuses offsets that do not rise within the bytes, and weights whose sums could pass 63 bits.
inline void check_columns(const Words& words) {
    bool rising = words.offsets[0] >= 0 && words.offsets[words.number] <= static_cast<std::int64_t>(words.size);
    std::uint64_t heaviest = 0;
    for (std::size_t word = 0; word < words.number; ++word) {
        rising &= words.offsets[word] <= words.offsets[word + 1];
        heaviest = heaviest < words.counts[word] ? words.counts[word] : heaviest;
    }
    if (!rising)
        throw Refused("the words' offsets do not rise from 0 to the size of their bytes; count the words again");
    std::uint64_t bound = 0, total = 0, added = 0;
    bool over = heaviest > largest_count;
    // Exact only where it could matter: most tables are far below.
    if (__builtin_mul_overflow(heaviest, static_cast<std::uint64_t>(words.size), &bound) || bound > largest_count)
        for (std::size_t word = 0; word < words.number && !over; ++word) {
            const std::uint64_t length = static_cast<std::uint64_t>(words.offsets[word + 1] - words.offsets[word]);
            over = length > 1 && (__builtin_mul_overflow(words.counts[word], length - 1, &added) ||
                                  __builtin_add_overflow(total, added, &total) || total > largest_count);
        }
    if (over) throw Refused("the words hold more than 2**63 - 1 adjacent positions by weight; divide the counts");
}

}  // namespace native
