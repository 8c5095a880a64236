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
    // A veto of the user's own, called with the halves of each pair once.
    bool (*own)(void* context, const std::string& left, const std::string& right) = nullptr;
    void* context = nullptr;

    bool refuses_any() const {
        return superbpe || whole_characters || most_bytes < any || most_characters < any || !protected_tokens.empty() || own;
    }
};

// A pair by the ids of its tokens, as claims have them.
struct Pair {
    std::uint32_t left;
    std::uint32_t right;
};

struct Question {
    std::uint64_t num_merges = 0;   // asked for; if fewer are claimed, no pair may be left
    std::int64_t min_count = 1;
    TieBreak tie_break = TieBreak::greatest_bytes;
    bool any_choice = false;        // each choice among equals is right, whatever the tie-break
    Veto veto;
    // Keeps every pair, and so answers as well how many pairs shared each claim's count, and what is left after the claims:
    // the pairs of the highest count, and the counts of those that are `asked` for.
    bool all_pairs = false;
    std::vector<Pair> asked;
    // For tests: a factor for the guess below which pairs are left out, and the wide types.
    double guess_scale = 1.0;
    bool wide_symbols = false;
    bool wide_positions = false;
};

struct Judgement {
    std::uint64_t right = 0;   // claims before the first wrong one
    bool too_few = false;      // all are right, and another pair had to be merged
    bool stopped = false;      // on request; the rest says nothing
    std::uint64_t merged = 0;  // occurrences replaced, by weight: so many tokens fewer are left
    std::uint64_t work = 0;    // positions looked at and parts of tokens compared, in all passes
    std::vector<std::uint8_t> met;        // for each inherited merge: whether its pair ever occurred
    std::vector<std::int64_t> counts;     // of the right claims; of inherited ones too
    std::vector<std::uint64_t> sharing;   // with all_pairs: how many pairs had that count
    std::int64_t highest = 0;             // with all_pairs: the highest count after the claims,
    std::vector<Pair> best;               // the pairs that have it, in any order,
    std::vector<std::int64_t> asked;      // and the counts of those asked for
};

// Asked at most ten times a second, with the claims replayed so far; false stops the replay.
using GoOn = bool (*)(void* context, std::uint64_t done);

}  // namespace replay
