// Judges claims: replays them (replay.hpp) until a pass has left out no pair that matters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "replay.hpp"

namespace replay {

template <class Symbol, class Position>
Judgement judge_in(const Words& words, const Layout& layout, const std::vector<PairKey>& claims, const Claims& given,
                   const Question& question, GoOn go_on, void* context) {
    const ClaimTable claimed(claims);
    const bool enough = claims.size() >= question.num_merges;
    const bool complete = enough && !question.all_pairs;
    const std::int64_t least = question.all_pairs ? 1 : std::max<std::int64_t>(question.min_count, 1);
    // The counts of inherited merges say nothing about the last claim's. So at first only claimed pairs are kept.
    std::int64_t lowest = complete && given.inherited ? INT64_MAX : least;
    Judgement judgement;
    for (bool guessing = complete;; guessing = false) {
        Pass<Symbol, Position> pass(words, layout, claims, claimed, given, question, go_on, context);
        pass.run(lowest, guessing);
        judgement.work += pass.work();
        if ((judgement.stopped = pass.stopped())) return judgement;
        judgement.met = pass.met();
        judgement.merged = pass.merged_weight();
        if (guessing && pass.highest_left_out() >= std::max<std::int64_t>(pass.last_count(), question.min_count)) {
            lowest = std::max(least, pass.last_count());
            continue;
        }
        judgement.right = std::min<std::uint64_t>(pass.wrong_at() - 1, std::min<std::uint64_t>(claims.size(), question.num_merges));
        KeptPairs& kept = pass.kept();
        const std::vector<PairKey> best = enough && !question.all_pairs ? std::vector<PairKey>{} : kept.best();
        if (!best.empty()) judgement.highest = kept.count_of(best.front());
        judgement.too_few = pass.wrong_at() == pass.none && !enough && judgement.highest >= question.min_count;
        const auto right = static_cast<std::ptrdiff_t>(judgement.right);
        judgement.counts.assign(pass.counts().begin() + 1, pass.counts().begin() + 1 + right);
        judgement.sharing.assign(pass.sharing().begin() + 1, pass.sharing().begin() + 1 + right);
        if (!question.all_pairs) return judgement;
        for (const PairKey pair : best) judgement.best.push_back({left_of(pair) - first_byte, right_of(pair) - first_byte});
        for (const Pair& pair : question.asked)
            judgement.asked.push_back(kept.count_of(key_of(first_byte + pair.left, first_byte + pair.right)));
        return judgement;
    }
}

// Throws Refused for an invalid table or claim, std::bad_alloc when memory runs out.
inline Judgement judge(const Words& words, const Claims& claimed, const Question& question, GoOn go_on, void* context) {
    check(words);
    if (claimed.count >= std::uint64_t{1} << 31) throw Refused("2**31 merges are more than can be numbered; hold fewer to the counts");
    std::vector<PairKey> claims;
    for (std::size_t claim = 0; claim < claimed.count; ++claim) {
        const std::uint32_t merged = 256 + static_cast<std::uint32_t>(claim);
        if (claimed.lefts[claim] >= merged || claimed.rights[claim] >= merged)
            throw Refused("a merge joins a token that no earlier merge makes");
        claims.push_back(key_of(first_byte + claimed.lefts[claim], first_byte + claimed.rights[claim]));
    }
    if (claimed.inherited > claimed.count) throw Refused("more merges are inherited than claimed");
    const Layout layout(words);
    const bool wide = question.wide_positions || layout.begins.back() > UINT32_MAX;
    if (wide) return judge_in<std::uint32_t, std::uint64_t>(words, layout, claims, claimed, question, go_on, context);
    if (first_merged + claims.size() > UINT16_MAX || question.wide_symbols)
        return judge_in<std::uint32_t, std::uint32_t>(words, layout, claims, claimed, question, go_on, context);
    return judge_in<std::uint16_t, std::uint32_t>(words, layout, claims, claimed, question, go_on, context);
}

}  // namespace replay
