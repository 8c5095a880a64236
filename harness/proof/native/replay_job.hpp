// The question that a replay is asked, and its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "job.hpp"

namespace replay {

using native::Refused;
using native::TieBreak;
using native::Words;

// The merges to judge. Ids: bytes by their values, then the merged tokens in order, from 256 on.
struct Claims {
    const std::uint32_t* lefts = nullptr;
    const std::uint32_t* rights = nullptr;
    std::size_t count = 0;
    // So many of the first are inherited: they are replayed unjudged, whatever their count. Each makes another token. `stays`
    // is 0 for one whose pair is claimed never to have occurred.
    std::size_t inherited = 0;
    const std::uint8_t* stays = nullptr;
};

// Which pairs may not be merged, as vetoes.Limits has it; inherited pairs may.
struct Veto {
    static constexpr std::uint64_t any = INT64_MAX;
    bool superbpe = false;
    bool whole_characters = false;
    std::uint64_t most_bytes = any;
    std::uint64_t most_characters = any;
    std::unordered_set<std::string> protected_tokens;

    bool refuses_any() const {
        return superbpe || whole_characters || most_bytes < any || most_characters < any || !protected_tokens.empty();
    }
};

struct Question {
    std::uint64_t num_merges = 0;   // asked for; if fewer are claimed, no pair may be left
    std::int64_t min_count = 1;
    TieBreak tie_break = TieBreak::greatest_bytes;
    Veto veto;
    // For tests: a factor for the guess below which pairs are left out, and the wide types.
    double guess_scale = 1.0;
    bool wide_symbols = false;
    bool wide_positions = false;
};

struct Judgement {
    std::uint64_t right = 0;   // claims before the first wrong one
    bool too_few = false;      // all are right, and another pair had to be merged
    bool stopped = false;      // on request; the rest says nothing
    std::uint64_t passes = 0;  // over the claims: more than one if a guess was too high
    std::uint64_t kept = 0;    // pairs whose counts were kept in the last pass
    std::uint64_t merged = 0;  // occurrences replaced, by weight: so many tokens fewer are left
    std::vector<std::uint8_t> met;   // for each inherited merge: whether its pair ever occurred
};

// Asked at most ten times a second, with the claims replayed so far; false stops the replay.
using GoOn = bool (*)(void* context, std::uint64_t done);

}  // namespace replay
