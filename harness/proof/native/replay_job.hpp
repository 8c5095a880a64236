// What a replay is asked and what it answers.
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

// Tokens in claims: the bytes by their values, then the tokens of the claims in order, from 256 on.
struct Claims {
    const std::uint32_t* lefts = nullptr;
    const std::uint32_t* rights = nullptr;
    std::size_t number = 0;
    // The first of them were inherited: they are made unjudged, whatever they count. Each token among them is made once. Of
    // each is claimed whether it stays; those that do not are claimed never to have been met.
    std::size_t inherited = 0;
    const std::uint8_t* stays = nullptr;
};

// Which pairs may not be merged, as vetoes.Limits has it, those inherited excepted.
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
    std::uint64_t num_merges = 0;   // asked for; where fewer are claimed, no pair may be left
    std::int64_t min_count = 1;
    TieBreak tie_break = TieBreak::greatest_bytes;
    Veto veto;
    // For tests: scales the guess below which pairs are left out, and forces the wide types.
    double guess_scale = 1.0;
    bool wide_symbols = false;
    bool wide_positions = false;
};

struct Judgement {
    std::uint64_t right = 0;   // claims before the first that is wrong
    bool too_few = false;      // all are right, and a pair was left that had to be merged
    bool stopped = false;      // it was told to stop, and knows nothing
    std::uint64_t passes = 0;  // over the claims: more than one where a guess was too high
    std::uint64_t watched = 0; // pairs whose counts were kept in the last pass
    std::uint64_t merged = 0;  // places at which the claims were made, by weight: so many tokens fewer are left
    std::vector<std::uint8_t> met;   // of those inherited: whether their pair ever stood anywhere
};

// Asked at most ten times a second, with the claims made so far; false: stop.
using GoOn = bool (*)(void* context, std::uint64_t done);

}  // namespace replay
