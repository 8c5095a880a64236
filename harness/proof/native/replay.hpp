// Judges a list of merges against the true counts, without running a trainer.
//
// Input: distinct words with weights, and the claimed merges. Output: how many of the claimed merges are right, up to the
// first one at which another pair had a greater count, or the same count and precedence in the tie-break. The judge is as
// fast as the trainer it judges, and shares no code with it.
//
// 1. Each claimed merge is replayed wherever its pair occurs. A pair of neighbours comes into being in one step, the step
//    that makes the newer of the two tokens; later it can only disappear. So the list of a claim's positions is written
//    once, when its pair first occurs, and its size is known then. When its turn comes, the text shows which positions are
//    still live: a token's id is in its first and its last position, and a replaced right half leaves a hole.
//
// 2. After a step the text shows the neighbours of each new token C = AB. If the neighbour is another C, then (B, A) was
//    there and (C, C) is now; otherwise (x, A) was and (x, C) is, and on the other side (B, y) and (C, y). So all changes
//    are sums by neighbour, and the table of pairs is asked once for each different neighbour.
//
// 3. No queue is needed, because the list says what comes next. Instead each pair is examined when its count is about to
//    fall, and at the end. Say that it first occurred at step s and counts n. Then no claim since s may have a count below
//    n, nor the same count and a later place in the tie-break. Counts fall along right claims, so the claim just replayed
//    has the lowest; among those of the same count, a short stack holds the one that the tie-break takes last since any s.
//    While the pair counted more than n, no claim had the count n yet, or an earlier examination found the claim wrong. So
//    the step at which it fell to n does not matter.
//
// 4. A pair that first occurs with a lower count than the last claim has is never examined with success, so it need not be
//    kept. The judge guesses the last claim's count and remembers the highest count of a pair that it left out. If the
//    guess was too high, it replays the claims again, now with the known count. A claimed pair is never left out.
//
// 5. Claims may go on from inherited merges. These are replayed first and not judged, except for whether their pair ever
//    occurred ("was met"). Pairs that they leave behind count as if they first occurred at the last inherited merge. A
//    pair that may not be merged is not kept, so a claim of it is wrong.
//
// Each byte belongs to two pairs, so the lists of byte pairs are written in several passes over the text: first those of
// the earliest claims, the others from what is left of the text when the first of them is due. A position holds a byte's
// id if and only if that byte is still a token.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "replay_job.hpp"
#include "replay_order.hpp"
#include "replay_pairs.hpp"
#include "replay_refusals.hpp"
#include "replay_sums.hpp"
#include "replay_text.hpp"

namespace replay {

// One replay of all claims.
template <class Symbol, class Position>
class Pass {
  public:
    Pass(const Words& words, const Layout& layout, const std::vector<PairKey>& claims, const ClaimTable& claimed,
         const Claims& given, const Question& question, GoOn go_on, void* context)
        : text_(words, layout), claims_(claims), claimed_(claimed), inherited_(given.inherited), question_(question),
          tokens_(question.tie_break), refusals_(question.veto), tied_(tokens_), kept_(question.all_pairs), lists_(claims.size()), counts_(1),
          met_(given.inherited), go_on_(go_on), context_(context), before_(first_merged + claims.size()),
          after_(first_merged + claims.size()) {
        Tokens tokens(question.tie_break);
        for (std::size_t claim = 0; claim < inherited_; ++claim) {
            tokens.merge(left_of(claims[claim]), right_of(claims[claim]));
            if (given.stays[claim]) refusals_.inherit(tokens.bytes(static_cast<std::uint32_t>(first_merged + claim)));
        }
    }

    // Leaves out pairs with a count below `lowest` and, if `guessing`, below the guess, which rises on the way.
    void run(std::int64_t lowest, bool guessing) {
        lowest_ = lowest;
        count_byte_pairs();
        while (step_ < inherited_ && !stopped_) merge_inherited(claims_[step_]);
        while (step_ < claims_.size() && wrong_at_ == none && !stopped_) {
            merge_claimed(claims_[step_]);
            if (guessing) guess();
        }
        for (const KeptPair& pair : kept_.all())
            if (pair.key) examine(pair);
    }

    // The first wrong claim, from 1; `none` if all are right.
    static constexpr std::uint64_t none = UINT64_MAX;
    std::uint64_t wrong_at() const { return wrong_at_; }
    bool stopped() const { return stopped_; }
    // The count of the last claim that was replayed, or of the wrong one.
    std::int64_t last_count() const {
        return wrong_at_ == none ? counts_.back() : wrong_at_ <= step_ ? counts_[wrong_at_] : wrong_count_;
    }
    // The highest count of a pair that was left out.
    std::int64_t highest_left_out() const { return highest_left_out_; }
    std::uint64_t merged_weight() const { return merged_weight_; }
    std::uint64_t work() const { return work_ + tokens_.comparisons(); }
    const std::vector<std::uint8_t>& met() const { return met_; }
    // Of each claim that was replayed, from 1: its count then, and how many pairs had that count.
    const std::vector<std::int64_t>& counts() const { return counts_; }
    const std::vector<std::uint64_t>& sharing() const { return sharing_; }
    KeptPairs& kept() { return kept_; }   // what is left of the text, if nothing was left out

  private:
    // Where a claim's pair occurred when it was listed.
    struct List {
        Position* positions = nullptr;
        Position entries = 0;
        Position capacity = 0;
    };
    struct Occurrence {
        Position position;
        Symbol before, after;   // the neighbours when it was replaced
    };
    using Sum = replay::Sum<Position>;
    using Sums = replay::Sums<Position>;
    static constexpr std::size_t prefetch_distance = 96;   // list entries between a prefetch and its use
    static constexpr std::size_t first_prefetched = 64;     // of the next claim's list
    static constexpr std::size_t chunk = 256;
    static constexpr std::size_t side = first_merged + 1;   // of the square of byte pairs; all merged tokens share a row

    // ---- byte pairs ----

    static std::size_t pair_index(std::uint32_t left, std::uint32_t right) {
        return std::min(left, first_merged) * side + std::min(right, first_merged);
    }

    void count_byte_pairs() {
        struct Count {
            std::uint64_t weight;   // beyond 63 bits only for what is no pair: word ends and separators
            std::uint64_t occurrences;
        };
        std::vector<Count> counts(side * side);
        const Symbol* const symbols = text_.symbols.data();
        const std::size_t block = std::size_t{1} << Layout::shift;
        for (std::size_t begin = text_.begin(); begin < text_.end(); begin += block) {
            const std::uint64_t weight = static_cast<std::uint64_t>(text_.weight(begin));
            for (std::size_t position = begin; position < begin + block; ++position) {
                Count& count = counts[symbols[position] * side + symbols[position + 1]];
                count.weight += weight;
                count.occurrences += 1;
            }
            advance(block);
        }

        for (std::uint32_t left = first_byte; left < first_merged; ++left)
            for (std::uint32_t right = first_byte; right < first_merged; ++right) {
                const Count& count = counts[left * side + right];
                if (!count.occurrences) continue;
                const std::uint32_t claim = open(key_of(left, right), static_cast<std::int64_t>(count.weight));
                if (claim == ClaimTable::none) continue;
                lists_[claim].capacity = static_cast<Position>(count.occurrences);
                byte_claims_.push_back(claim);
            }
        std::sort(byte_claims_.begin(), byte_claims_.end());
    }

    // Writes the lists of the next claimed byte pairs: half of the positions that are not listed yet, or enough of them to be
    // worth a pass over the whole text.
    void list_byte_pairs() {
        struct Destination {
            Position* next;
            std::size_t step;
        };
        Position discard = 0;
        std::vector<Destination> destinations(side * side, Destination{&discard, 0});
        const auto destination_of = [&](std::uint32_t claim) -> Destination& {
            return destinations[pair_index(left_of(claims_[claim]), right_of(claims_[claim]))];
        };

        std::uint64_t unlisted = 0;
        for (std::size_t index = byte_claims_listed_; index < byte_claims_.size(); ++index)
            unlisted += lists_[byte_claims_[index]].capacity;
        const std::uint64_t wanted = std::max<std::uint64_t>(unlisted / 2, text_.symbols.size() / 4);

        const std::size_t first = byte_claims_listed_;
        std::uint64_t listed = 0;
        while (byte_claims_listed_ < byte_claims_.size() && listed <= wanted) {
            const std::uint32_t claim = byte_claims_[byte_claims_listed_++];
            List& list = lists_[claim];
            listed += list.capacity;
            list.positions = pool_.take(list.capacity);
            destination_of(claim) = {list.positions, 1};
        }

        const Symbol* const symbols = text_.symbols.data();
        for (std::size_t position = text_.begin(); position < text_.end(); ++position) {
            Destination& destination = destinations[pair_index(symbols[position], symbols[position + 1])];
            *destination.next = static_cast<Position>(position);
            destination.next += destination.step;
        }
        advance(text_.end() - text_.begin());

        for (std::size_t index = first; index < byte_claims_listed_; ++index) {
            const std::uint32_t claim = byte_claims_[index];
            lists_[claim].entries = static_cast<Position>(destination_of(claim).next - lists_[claim].positions);
        }
    }

    // ---- one claim ----

    // The merge at work.
    struct Step {
        std::uint32_t left, right, merged;
        std::size_t left_length, length;
    };

    Step step_of(PairKey pair) const {
        const std::uint32_t left = left_of(pair), right = right_of(pair);
        return {left, right, tokens_.size(), tokens_.length(left), tokens_.length(left) + tokens_.length(right)};
    }

    void merge_claimed(PairKey pair) {
        const KeptPair* const found = kept_.find(pair);
        const std::int64_t count = found ? found->count : 0;
        if (count < question_.min_count) {
            wrong_at_ = step_ + 1;
            wrong_count_ = count;
            return;
        }
        examine(*found);
        if (wrong_at_ != none) return;

        if (count > counts_.back() && step_) throw std::logic_error("the count of a kept pair rose");
        if (count != counts_.back()) tied_.clear();
        ++step_;
        counts_.push_back(count);
        sharing_.push_back(kept_.sharing(count));
        tied_.add(step_, pair);
        merge(pair, count);
    }

    void merge_inherited(PairKey pair) {
        const KeptPair* const found = kept_.find(pair);
        const std::int64_t count = found ? found->count : 0;
        ++step_;
        counts_.push_back(INT64_MAX);   // nothing is judged by it
        sharing_.push_back(0);
        merge(pair, count);
    }

    void merge(PairKey pair, std::int64_t count) {
        const Step step = step_of(pair);
        tokens_.merge(step.left, step.right);
        if (!count) return;

        List& list = lists_[step_ - 1];
        if (!list.positions) list_byte_pairs();
        prefetch_next();
        if (occurrences_.size() < list.entries) occurrences_ = RawArray<Occurrence>(list.entries);

        const std::int64_t replaced = replace(list, step);
        if (step.left != step.right && replaced != count)
            throw std::logic_error("the occurrences of a pair have another weight than its count");
        merged_weight_ += static_cast<std::uint64_t>(replaced);
        kept_.change(*kept_.find(pair), -count);
        pool_.give_back(list.positions, list.capacity);

        update_neighbours(step);
    }

    void prefetch_next() const {
        if (step_ + 1 < claims_.size()) {
            kept_.prefetch(claims_[step_ + 1]);
            if (lists_[step_ + 1].positions) __builtin_prefetch(lists_[step_ + 1].positions);
        }
        if (step_ == claims_.size() || !lists_[step_].positions) return;
        const std::size_t some = std::min<std::size_t>(lists_[step_].entries, first_prefetched);
        for (std::size_t entry = 0; entry < some; ++entry) text_.prefetch(lists_[step_].positions[entry]);
    }

    // Replaces the pair from left to right and notes each occurrence with its neighbours. Returns their weight.
    std::int64_t replace(const List& list, const Step& step) {
        const Symbol* const symbols = text_.symbols.data();
        const Position* const positions = list.positions;
        const std::size_t entries = list.entries;
        const std::uint32_t left = step.left, right = step.right;
        const std::size_t left_length = step.left_length, length = step.length;
        Position live[chunk];
        std::size_t found = 0;
        const auto test = [&](Position position) {
            live[found] = position;
            found += (symbols[position] == left) & (symbols[position + left_length] == right);
        };

        occurrence_count_ = 0;
        std::int64_t weight = 0;
        for (std::size_t entry = 0; entry < std::min(entries, prefetch_distance); ++entry) text_.prefetch(positions[entry]);
        for (std::size_t begin = 0; begin < entries; begin += chunk) {
            const std::size_t end = std::min(begin + chunk, entries);
            found = 0;
            std::size_t entry = begin;
            for (; entry < end && entry + prefetch_distance < entries; ++entry) {
                text_.prefetch(positions[entry + prefetch_distance] - 1);
                text_.prefetch(positions[entry + prefetch_distance] + length);
                test(positions[entry]);
            }
            for (; entry < end; ++entry) test(positions[entry]);
            if (found) weight += replace_live(live, found, step);
            advance(end - begin);
        }
        if (occurrence_count_) set_after(last_weight_, step);
        return weight;
    }

    // Weights fall along the text, so all are equal if the first and the last are.
    std::int64_t replace_live(const Position* live, std::size_t count, const Step& step) {
        const std::int64_t first = text_.weight(live[0]), last = text_.weight(live[count - 1]);
        if (first == last) return replace_each(live, count, step, [=](std::size_t) { return first; });
        return replace_each(live, count, step, [this](std::size_t position) { return text_.weight(position); });
    }

    template <class WeightAt>
    std::int64_t replace_each(const Position* live, std::size_t count, Step step, WeightAt weight_at) {
        const auto [left, right, merged, left_length, length] = step;
        Symbol* const symbols = text_.symbols.data();
        std::int64_t replaced = 0;
        for (std::size_t index = 0; index < count; ++index) {
            const std::size_t position = live[index];
            // In a run of equal tokens a replacement undoes the next candidate, which was tested before it.
            if (left == right && (symbols[position] != left || symbols[position + left_length] != right)) continue;

            const std::int64_t weight = weight_at(position);
            replaced += weight;
            symbols[position + left_length] = static_cast<Symbol>(hole);
            symbols[position] = static_cast<Symbol>(merged);
            symbols[position + length - 1] = static_cast<Symbol>(merged);

            // Only now is it certain what follows the occurrence before this one.
            if (occurrence_count_) set_after(last_weight_, step);
            last_weight_ = weight;
            const Symbol before = symbols[position - 1];
            before_.add(before, weight);
            occurrences_[occurrence_count_++] = {static_cast<Position>(position), before, 0};
        }
        return replaced;
    }

    // Where the next occurrence follows at once, that one notes the pair, as its left neighbour.
    void set_after(std::int64_t weight, Step step) {
        Occurrence& last = occurrences_[occurrence_count_ - 1];
        const Symbol after = text_.symbols[last.position + step.length];
        last.after = after == step.merged ? static_cast<Symbol>(separator) : after;
        after_.add(last.after, weight);
    }

    // ---- the pairs beside it ----

    void update_neighbours(const Step& step) {
        const auto [left, right, merged, left_length, length] = step;
        bool any_listed = false;
        for (std::size_t index = 0; index < before_.count; ++index) {
            if (index + 8 < before_.count) kept_.prefetch(key_of(before_.touched[index + 8], left));
            const std::uint32_t token = before_.touched[index];
            if (token == separator) continue;
            Sum& sum = before_.of[token];
            lose(token == merged ? key_of(right, left) : key_of(token, left), sum.weight);
            any_listed |= open_list(sum, key_of(token, merged), tokens_.length(token));
        }
        for (std::size_t index = 0; index < after_.count; ++index) {
            if (index + 8 < after_.count) kept_.prefetch(key_of(right, after_.touched[index + 8]));
            const std::uint32_t token = after_.touched[index];
            if (token == separator) continue;
            Sum& sum = after_.of[token];
            lose(key_of(right, token), sum.weight);
            any_listed |= open_list(sum, key_of(merged, token), 0);
        }

        if (any_listed) write_lists();
        before_.forget();
        after_.forget();
    }

    void lose(PairKey key, std::int64_t weight) {
        KeptPair* const pair = kept_.find(key);
        if (!pair) return;
        examine(*pair);
        kept_.change(*pair, -weight);
    }

    // Turns a neighbour's sum into a place to write to. True if the new pair is a claim to come, which needs its list.
    bool open_list(Sum& sum, PairKey key, std::uint64_t offset) {
        const std::uint32_t claim = open(key, sum.weight);
        sum.next = &discard_;
        sum.step = 0;
        if (claim == ClaimTable::none) return false;

        List& list = lists_[claim];
        list.entries = list.capacity = sum.occurrences;
        list.positions = pool_.take(sum.occurrences);
        sum.next = list.positions;
        sum.offset = static_cast<Position>(offset);
        sum.step = 1;
        return true;
    }

    // Keeps a new pair if it matters. Returns its claim if that is still to come, else `none`.
    std::uint32_t open(PairKey key, std::int64_t count) {
        const std::uint32_t claim = claimed_.of(key);
        if (claim < inherited_) met_[claim] = 1;
        if (claim == ClaimTable::none && count < lowest_) {
            highest_left_out_ = std::max(highest_left_out_, count);
            return ClaimTable::none;
        }
        if (claim >= inherited_ && is_refused(key)) return ClaimTable::none;

        kept_.add({key, count, std::max<std::uint64_t>(step_, inherited_)}, std::min<std::int64_t>(lowest_, 1));
        return claim != ClaimTable::none && claim >= step_ ? claim : ClaimTable::none;
    }

    void write_lists() {
        before_.of[separator].next = after_.of[separator].next = &discard_;
        before_.of[separator].step = after_.of[separator].step = 0;
        for (std::size_t index = 0; index < occurrence_count_; ++index) {
            const Occurrence occurrence = occurrences_[index];
            Sum& before = before_.of[occurrence.before];
            *before.next = occurrence.position - before.offset;
            before.next += before.step;
            Sum& after = after_.of[occurrence.after];
            *after.next = occurrence.position;
            after.next += after.step;
        }
    }

    // ---- whether a pair should have been taken ----

    bool is_refused(PairKey pair) const {
        return refusals_.any() && refusals_.refuses(tokens_.bytes(left_of(pair)), tokens_.bytes(right_of(pair)));
    }

    // Marks a claim as wrong if this pair, which has its count up to this step, should have been merged instead.
    void examine(const KeptPair& pair) {
        if (!step_ || pair.count < counts_.back() || pair.since >= step_) return;
        if (pair.count > counts_.back() || (!question_.any_choice && tied_.passed_over(pair.key, pair.since))) {
            std::uint64_t step = pair.since + 1;
            while (!better(pair, step)) ++step;
            wrong_at_ = std::min(wrong_at_, step);
        }
    }

    bool better(const KeptPair& pair, std::uint64_t step) const {
        const bool by_count = pair.count != counts_[step] || question_.any_choice;
        return by_count ? pair.count > counts_[step] : tokens_.before(pair.key, claims_[step - 1]);
    }

    // Guesses the count of the last claim: today's, falling with the square of what is done.
    void guess() {
        const double done = static_cast<double>(step_ - inherited_) / static_cast<double>(claims_.size() - inherited_);
        const double guessed = static_cast<double>(counts_.back()) * done * done * 0.8 * question_.guess_scale;
        lowest_ = std::max(lowest_, static_cast<std::int64_t>(std::min(guessed, 9e18)));
    }

    void advance(std::uint64_t steps) {
        work_ += steps;
        if (steps < steps_left_) {
            steps_left_ -= steps;
            return;
        }
        steps_left_ = steps_between_looks;
        const Clock::time_point now = Clock::now();
        if (now - looked_ < std::chrono::milliseconds(100)) return;
        stopped_ |= !go_on_(context_, step_);
        looked_ = Clock::now();
    }

    using Clock = std::chrono::steady_clock;
    static constexpr std::uint64_t steps_between_looks = 65536;

    Text<Symbol> text_;
    const std::vector<PairKey>& claims_;
    const ClaimTable& claimed_;
    const std::size_t inherited_;
    const Question& question_;
    Tokens tokens_;
    Refusals refusals_;
    TiedClaims tied_;
    KeptPairs kept_;
    Lists<Position> pool_;
    std::vector<List> lists_;                  // by claim
    std::vector<std::uint32_t> byte_claims_;   // claims of two bytes, in order
    std::size_t byte_claims_listed_ = 0;
    std::vector<std::int64_t> counts_;         // of the claims replayed, from 1
    std::vector<std::uint64_t> sharing_{0};    // of these too
    std::uint64_t step_ = 0;                   // how many those are
    std::uint64_t wrong_at_ = none;
    std::int64_t wrong_count_ = 0;   // of a wrong claim that could not be merged
    std::int64_t lowest_ = 1, highest_left_out_ = 0;
    std::uint64_t merged_weight_ = 0;   // occurrences replaced, by weight
    std::uint64_t work_ = 0;            // positions looked at
    std::vector<std::uint8_t> met_;     // for each inherited merge: whether its pair ever occurred
    bool stopped_ = false;
    GoOn go_on_;
    void* context_;
    Clock::time_point looked_{};
    std::uint64_t steps_left_ = steps_between_looks;

    // Of the step at work.
    Sums before_, after_;
    RawArray<Occurrence> occurrences_;
    std::size_t occurrence_count_ = 0;
    std::int64_t last_weight_ = 0;   // of the occurrence noted last
    Position discard_ = 0;
};

}  // namespace replay
