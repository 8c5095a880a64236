// What a point of the grid is asked to do and what it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "grid_hash.hpp"
#include "job.hpp"

namespace grid {

using namespace native;

constexpr Token first_byte = 0;    // bytes are their own ids, NUL is 0, and no id stands for "none"
constexpr Token first_merge = 256;

enum class Schedule : int { fixed, dynamic, guided, automatic };

struct Options {
    std::uint64_t num_merges = 0;
    std::int64_t min_count = 1;
    TieBreak tie_break = TieBreak::greatest_bytes;
    bool reuse_returned = false;       // decide by what `-=` returns, instead of looking the pair up again
    bool push_grown = false;           // the heap gets only pairs whose count grew, instead of all in a rewritten window
    // For the scans in several threads.
    std::size_t threads = 1;
    Schedule schedule = Schedule::dynamic;
    int chunk = 1000;
};

// The words on which a point trains, its own copy: as ids, each with its weight.
struct Table {
    std::vector<std::vector<Token>> words;
    std::vector<std::int64_t> weights;
    // Where whoever passes the words has counted and indexed the pairs as well.
    bool indexed = false;
    std::vector<std::pair<PairKey, std::int64_t>> pair_counts;
    std::vector<std::pair<PairKey, std::vector<std::uint32_t>>> holders;
};

struct Tallies {
    std::uint64_t pair_updates = 0;
    std::uint64_t positions_visited = 0;
    std::uint64_t words_rewritten = 0;
    std::uint64_t pairs_scanned = 0;
    std::uint64_t pairs_copied = 0;
    std::uint64_t heap_pushes = 0;
    std::uint64_t heap_pops = 0;
    std::uint64_t stale_pops = 0;
};

struct Answer : Training {
    Tallies tallies;
};

// What a module's points are handed over under: another name if it was compiled with other types than those here. So a module
// that may be absent, and whose last build failed, is refused and not called. Count `version` up if only a meaning changes.
inline const char* capsule_name() {
    constexpr int version = 1;
    static const std::string name = "variants.native.grid.members " + std::to_string(version) + " " +
                                    std::to_string(sizeof(Options)) + " " + std::to_string(sizeof(Answer)) + " " +
                                    std::to_string(sizeof(Table)) + " " + std::to_string(sizeof(Watch));
    return name.c_str();
}

}  // namespace grid
