// What flat is asked to do, and what it answers.
#pragma once

#include "job.hpp"

namespace flat {

using namespace native;

// Token ids inside flat. 0 and 1 are no tokens; a byte b is 2 + b; the n-th merge makes 258 + n.
constexpr std::uint32_t separator = 0;    // between two words, and to fill up a block
constexpr std::uint32_t hole = 1;         // where a token began that has become the right half of another
constexpr std::uint32_t first_byte = 2;
constexpr std::uint32_t first_merge = first_byte + 256;
constexpr std::uint64_t most_ids = std::uint64_t{1} << 31;

// Whether two bytes hold every id when so many merges are made.
inline bool has_narrow_ids(std::uint64_t num_merges) { return first_merge + num_merges <= (1u << 16); }

// The first eight bytes, the first one highest, filled up with zeros: where two prefixes differ, they order words and
// tokens as their bytes do, since a zero is no more than whatever the longer one has there.
inline std::uint64_t prefix(const std::uint8_t* bytes, std::uint64_t length) {
    std::uint64_t value = 0;
    for (unsigned place = 0; place < 8; ++place) value = value << 8 | (place < length ? bytes[place] : 0);
    return value;
}

struct Options {
    std::uint64_t num_merges = 0;
    std::int64_t min_count = 1;
    TieBreak tie_break = TieBreak::greatest_bytes;
    std::size_t threads = 1;                 // for the work before the first merge
    // The ideas, each of which can be switched off to see what it is worth; the merges are the same in all settings.
    bool layout = true;
    bool accumulators = true;
    bool pruning = true;
    // For tests: scales the guess at the last merge's count (so that rescans happen), forces the wide types, and treats
    // short texts as long ones.
    double guess_scale = 1.0;
    bool wide_symbols = false;
    bool wide_positions = false;
    std::size_t part = std::size_t{1} << 22;   // positions below which a thread is not worth starting, nor sorting
};

struct Tallies {
    std::uint64_t pair_updates = 0;        // changes of a pair's count by one occurrence, those of the first count too
    std::uint64_t positions_visited = 0;   // text positions read: layout, first count, list entries, rescans
    std::uint64_t occurrences_merged = 0;
    std::uint64_t stale_positions = 0;     // list entries whose pair was gone
    std::uint64_t table_updates = 0;       // look-ups in the pair table: once for each distinct neighbour of a merge
    std::uint64_t pairs_kept = 0;          // pairs that were given a list and a place in the queue
    std::uint64_t pairs_pruned = 0;        // pairs born below the threshold, which were not
    std::uint64_t queue_pushes = 0;
    std::uint64_t queue_moves = 0;         // entries found out of date and moved down
    std::uint64_t levels = 0;              // sets of equally frequent pairs
    std::uint64_t rescans = 0;
    std::uint64_t text_bytes = 0;
    std::uint64_t list_bytes = 0;          // the most that the occurrence lists held at any time
    std::uint64_t table_bytes = 0;         // the most that the pair table held

    std::vector<Tally> listed() const {
        return {{"pair_updates", pair_updates}, {"positions_visited", positions_visited},
                {"occurrences_merged", occurrences_merged}, {"stale_positions", stale_positions},
                {"table_updates", table_updates}, {"pairs_kept", pairs_kept}, {"pairs_pruned", pairs_pruned},
                {"queue_pushes", queue_pushes}, {"queue_moves", queue_moves}, {"levels", levels},
                {"rescans", rescans}, {"text_bytes", text_bytes}, {"list_bytes", list_bytes},
                {"table_bytes", table_bytes}};
    }
};

struct Answer : Training {
    Tallies tallies;
};

// Called when all words stand in the text: whoever holds them may give their memory back.
using WordsRead = void (*)(void* context);

}  // namespace flat
