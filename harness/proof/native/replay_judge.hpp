// The judgement of claims: passes over them (replay.hpp), until one has left nothing out that matters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "replay.hpp"

namespace replay {

template <class Symbol, class Position>
Judgement judge_in(const Words& words, const Plan& plan, const std::vector<PairKey>& claims, const Claims& given,
                   const Question& question, GoOn go_on, void* context) {
    const ClaimTable claimed(claims);
    const bool complete = claims.size() >= question.num_merges;
    const std::int64_t least = std::max<std::int64_t>(question.min_count, 1);
    // While merges are inherited nothing says what the last claim has. So at first only what is claimed is watched.
    std::int64_t lowest = complete && given.inherited ? INT64_MAX : least;
    Judgement judgement;
    for (bool guessing = complete;; guessing = false) {
        Pass<Symbol, Position> pass(words, plan, claims, claimed, given, question, go_on, context);
        pass.run(lowest, guessing);
        judgement.passes += 1;
        judgement.watched = pass.watched();
        if ((judgement.stopped = pass.stopped())) return judgement;
        judgement.met = pass.met();
        judgement.merged = pass.merged();
        if (guessing && pass.left_out() >= std::max<std::int64_t>(pass.last_count(), question.min_count)) {
            lowest = std::max(least, pass.last_count());
            continue;
        }
        judgement.right = std::min<std::uint64_t>(pass.wrong_at() - 1, std::min<std::uint64_t>(claims.size(), question.num_merges));
        judgement.too_few = pass.wrong_at() == pass.none && !complete && pass.any_left();
        return judgement;
    }
}

// Throws Refused for a table that is none, std::bad_alloc when memory runs out.
inline Judgement judge(const Words& words, const Claims& claimed, const Question& question, GoOn go_on, void* context) {
    check(words);
    if (claimed.number >= std::uint64_t{1} << 31) throw Refused("2**31 merges are more than can be numbered; hold fewer to the counts");
    std::vector<PairKey> claims;
    for (std::size_t claim = 0; claim < claimed.number; ++claim) {
        const std::uint32_t made = 256 + static_cast<std::uint32_t>(claim);
        if (claimed.lefts[claim] >= made || claimed.rights[claim] >= made)
            throw Refused("a merge joins a token that is not made before it");
        claims.push_back(key_of(first_byte + claimed.lefts[claim], first_byte + claimed.rights[claim]));
    }
    if (claimed.inherited > claimed.number) throw Refused("more merges are inherited than claimed");
    const Plan plan(words);
    const bool wide = question.wide_positions || plan.begins.back() > UINT32_MAX;
    if (wide) return judge_in<std::uint32_t, std::uint64_t>(words, plan, claims, claimed, question, go_on, context);
    if (first_made + claims.size() > UINT16_MAX || question.wide_symbols)
        return judge_in<std::uint32_t, std::uint32_t>(words, plan, claims, claimed, question, go_on, context);
    return judge_in<std::uint16_t, std::uint32_t>(words, plan, claims, claimed, question, go_on, context);
}

}  // namespace replay
