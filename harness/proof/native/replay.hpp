// Claimed merges held against the true counts: are they what the definition gives? No trainer is run for it.
//
// Input: distinct words with weights, and merges somebody claims. Answer: how many of them are right, up to the first at
// which another pair had a greater count, or the same and the better right to it. It is to be as fast as the trainer it
// judges, and nothing of it is the trainer's.
//
// 1. Every claim is made, in its turn, at the places where its pair stands. A pair of neighbours comes into being at one
//    step, that which makes the newer of the two, and can only vanish later. So the list of a claim's places is written
//    once, when its pair is born, with its size known beforehand; those that are gone by its turn are told by the text,
//    where a token's id stands in its first and its last place and what was swallowed leaves a mark.
//
// 2. After a step the text says what stands beside each new token C = AB. If it is another C, then (B, A) stood there and
//    (C, C) does now; else (x, A) did and (x, C) does, and on the other side (B, y) and (C, y). So all changes are sums
//    over neighbours, and a table of pairs is asked for each different neighbour once.
//
// 3. There is no queue, for what comes next is claimed. Instead each pair is examined when its count is about to fall, and
//    at the end. It was born at step s and counts n, so no claim since s may have a count below n, nor the same count and
//    a worse place in the tie-break. Counts fall along right claims, so the claim just made has the least; of those with
//    the same count a short stack knows the one worst placed since any s. When the pair counted more than n, no claim
//    counted n yet, or it had been examined with another result: so it need not be known when it fell to n.
//
// 4. A pair that is born with fewer than the last claim has is never examined with success, so it need not be kept. What
//    the last claim has is guessed, and the most frequent pair left out is remembered: if the guess was too high, the
//    claims are gone through again, knowing the count now. A claimed pair is never left out.
//
// 5. Claims may go on from merges that were inherited. These are made first and judged by nothing but whether their pair was
// ever born, that is, met. Pairs they leave behind count from there on as if they had been born at the last of them. A pair
// that may not be merged is not examined, and its claim is wrong.
//
// Bytes stand in two pairs each, so their lists are written in turns, the earliest claims' first, and the others from
// what is left of the text when the first of them is due: a place holds a byte's id if and only if that byte is a token.
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
#include "replay_text.hpp"

namespace replay {

// One pass over the claims.
template <class Symbol, class Position>
class Pass {
  public:
    Pass(const Words& words, const Plan& plan, const std::vector<PairKey>& claims, const ClaimTable& claimed,
         const Claims& given, const Question& question, GoOn go_on, void* context)
        : text_(words, plan), claims_(claims), claimed_(claimed), inherited_(given.inherited), question_(question),
          tokens_(question.tie_break), refusals_(question.veto), level_(tokens_), lists_(claims.size()), counts_(1),
          met_(given.inherited), go_on_(go_on), context_(context), befores_(first_made + claims.size()),
          afters_(first_made + claims.size()) {
        Tokens tokens(question.tie_break);
        for (std::size_t claim = 0; claim < inherited_; ++claim) {
            tokens.make(left_of(claims[claim]), right_of(claims[claim]));
            if (given.stays[claim]) refusals_.inherit(tokens.bytes(static_cast<std::uint32_t>(first_made + claim)));
        }
        refuses_ = inherited_ || question.veto.refuses_any();
    }

    // Leaves out pairs that count less than `lowest`, and, if `guessing`, those below what is guessed meanwhile.
    void run(std::int64_t lowest, bool guessing) {
        lowest_ = lowest;
        count_bytes();
        while (step_ < inherited_ && !stopped_) make_inherited(claims_[step_]);
        while (step_ < claims_.size() && wrong_at_ == none && !stopped_) {
            make(claims_[step_]);
            if (guessing) guess();
        }
        for (const Watched& pair : watched_.all())
            if (pair.key) examine(pair);
    }

    // The first wrong claim, from 1; `none` if all are right.
    static constexpr std::uint64_t none = UINT64_MAX;
    std::uint64_t wrong_at() const { return wrong_at_; }
    bool stopped() const { return stopped_; }
    std::size_t watched() const { return watched_.number(); }
    // The count of the last claim that was made, or is wrong; and the greatest of a pair that was left out.
    std::int64_t last_count() const {
        return wrong_at_ == none ? counts_.back() : wrong_at_ <= step_ ? counts_[wrong_at_] : too_rare_;
    }
    std::int64_t left_out() const { return left_out_; }
    std::uint64_t merged() const { return merged_; }
    // Of those inherited, whether they were met.
    const std::vector<std::uint8_t>& met() const { return met_; }
    // Whether a pair stands that is frequent enough to be merged.
    bool any_left() const {
        const auto frequent = [this](const Watched& pair) { return pair.key && pair.count >= question_.min_count; };
        return std::any_of(watched_.all().begin(), watched_.all().end(), frequent);
    }

  private:
    struct List {
        Position* places = nullptr;
        Position number = 0;
        Position room = 0;
    };
    struct Place {
        Position at;
        Symbol before, after;
    };
    struct Sum {
        std::int64_t weight;
        Position* next;   // where the next place of the pair is written
        Position number;
        Position back;    // from the token to where its pair begins
        Position step;
    };
    // The sums of one side, and of which tokens they are not zero.
    struct Side {
        explicit Side(std::size_t tokens) : of(tokens), met(tokens + 1) {}

        void add(std::uint32_t token, std::int64_t weight) {
            Sum& sum = of[token];
            met[number] = token;
            number += sum.number == 0;
            sum.weight += weight;
            sum.number += 1;
        }
        void forget() {
            for (std::size_t one = 0; one < number; ++one) of[met[one]] = Sum{};
            number = 0;
        }
        std::vector<Sum> of;
        std::vector<std::uint32_t> met;
        std::size_t number = 0;
    };
    static constexpr std::size_t ahead = 96, first_ahead = 64, chunk = 256, side = first_made + 1;

    // ---- the bytes ----

    static std::size_t cell(std::uint32_t left, std::uint32_t right) {
        return std::min(left, first_made) * side + std::min(right, first_made);
    }

    void count_bytes() {
        struct Count {
            std::uint64_t weight;   // of what is no pair, words' ends and gaps, it may pass 63 bits
            std::uint64_t number;
        };
        std::vector<Count> counts(side * side);
        const Symbol* const symbols = text_.symbols.data();
        const std::size_t block = std::size_t{1} << Plan::shift;
        for (std::size_t begin = text_.begin(); begin < text_.end(); begin += block) {
            const std::uint64_t weight = static_cast<std::uint64_t>(text_.weight(begin));
            for (std::size_t at = begin; at < begin + block; ++at) {
                Count& count = counts[symbols[at] * side + symbols[at + 1]];
                count.weight += weight;
                count.number += 1;
            }
            worked(block);
        }
        for (std::uint32_t left = first_byte; left < first_made; ++left)
            for (std::uint32_t right = first_byte; right < first_made; ++right) {
                const Count& count = counts[left * side + right];
                if (!count.number) continue;
                const std::uint32_t claim = open(key_of(left, right), static_cast<std::int64_t>(count.weight));
                if (claim == ClaimTable::none) continue;
                lists_[claim].room = static_cast<Position>(count.number);
                byte_claims_.push_back(claim);
            }
        std::sort(byte_claims_.begin(), byte_claims_.end());
    }

    // Writes the lists of the next claims of bytes: half of what is left of the places, or enough to be worth a look at
    // the whole text.
    void list_bytes() {
        struct To {
            Position* next;
            std::size_t step;
        };
        Position nowhere = 0;
        std::vector<To> to(side * side, To{&nowhere, 0});
        std::uint64_t all = 0, listed = 0;
        for (std::size_t one = byte_claims_listed_; one < byte_claims_.size(); ++one) all += lists_[byte_claims_[one]].room;
        const std::uint64_t wanted = std::max<std::uint64_t>(all / 2, text_.symbols.size() / 4);
        const std::size_t first = byte_claims_listed_;
        while (byte_claims_listed_ < byte_claims_.size() && listed <= wanted) {
            const std::uint32_t claim = byte_claims_[byte_claims_listed_++];
            listed += lists_[claim].room;
            lists_[claim].places = pool_.take(lists_[claim].room);
            to[cell(left_of(claims_[claim]), right_of(claims_[claim]))] = {lists_[claim].places, 1};
        }
        const Symbol* const symbols = text_.symbols.data();
        for (std::size_t at = text_.begin(); at < text_.end(); ++at) {
            To& one = to[cell(symbols[at], symbols[at + 1])];
            *one.next = static_cast<Position>(at);
            one.next += one.step;
        }
        worked(text_.end() - text_.begin());
        for (std::size_t one = first; one < byte_claims_listed_; ++one) {
            const std::uint32_t claim = byte_claims_[one];
            const To& written = to[cell(left_of(claims_[claim]), right_of(claims_[claim]))];
            lists_[claim].number = static_cast<Position>(written.next - lists_[claim].places);
        }
    }

    // ---- one claim ----

    void make(PairKey pair) {
        const std::uint32_t left = left_of(pair), right = right_of(pair), made = tokens_.size();
        const Watched* const found = watched_.find(pair);
        const std::int64_t count = found ? found->count : 0;
        if (count < question_.min_count || is_refused(pair)) {
            wrong_at_ = step_ + 1;
            too_rare_ = count;
            return;
        }
        examine(*found);
        if (wrong_at_ != none) return;
        if (count > counts_.back() && step_) throw std::logic_error("a pair's count rose, and nobody noticed why");
        if (count != counts_.back()) level_.clear();
        ++step_;
        counts_.push_back(count);
        level_.add(step_, pair);
        tokens_.make(left, right);
        make_places(left, right, made, count);
    }

    void make_inherited(PairKey pair) {
        const std::uint32_t made = tokens_.size();
        const Watched* const found = watched_.find(pair);
        const std::int64_t count = found ? found->count : 0;
        ++step_;
        counts_.push_back(INT64_MAX);   // nothing is judged by it
        tokens_.make(left_of(pair), right_of(pair));
        if (count) make_places(left_of(pair), right_of(pair), made, count);
    }

    void make_places(std::uint32_t left, std::uint32_t right, std::uint32_t made, std::int64_t count) {
        List& list = lists_[step_ - 1];
        if (!list.places) list_bytes();
        call_for_next();
        if (noted_.size() < list.number) noted_ = Plain<Place>(list.number);
        const std::int64_t replaced = replace(list, left, right, made);
        merged_ += static_cast<std::uint64_t>(replaced);
        if (left != right && replaced != count)
            throw std::logic_error("the places of a pair have another weight than its count");
        watched_.find(key_of(left, right))->count = 0;
        pool_.give_back(list.places, list.room);
        settle(left, right, made);
    }

    void call_for_next() const {
        if (step_ + 1 < claims_.size()) {
            watched_.call_for(claims_[step_ + 1]);
            if (lists_[step_ + 1].places) __builtin_prefetch(lists_[step_ + 1].places);
        }
        if (step_ < claims_.size() && lists_[step_].places)
            for (std::size_t one = 0; one < std::min<std::size_t>(lists_[step_].number, first_ahead); ++one)
                text_.call_for(lists_[step_].places[one]);
    }

    // Replaces the pair from left to right and notes every place with its neighbours; returns their weight.
    std::int64_t replace(const List& list, std::uint32_t left, std::uint32_t right, std::uint32_t made) {
        const std::size_t left_length = tokens_.length(left), length = tokens_.length(made);
        const Symbol* const symbols = text_.symbols.data();
        noted_number_ = 0;
        Position standing[chunk];
        std::int64_t weight = 0;
        const Position* const places = list.places;
        for (std::size_t one = 0; one < std::min<std::size_t>(list.number, ahead); ++one) text_.call_for(places[one]);
        for (std::size_t begin = 0; begin < list.number; begin += chunk) {
            const std::size_t end = std::min<std::size_t>(begin + chunk, list.number);
            std::size_t number = 0;
            const auto keep_if_standing = [&](const Position at) {
                standing[number] = at;
                number += (symbols[at] == left) & (symbols[at + left_length] == right);
            };
            std::size_t one = begin;
            for (; one < end && one + ahead < list.number; ++one) {
                text_.call_for(places[one + ahead] - 1);
                text_.call_for(places[one + ahead] + length);
                keep_if_standing(places[one]);
            }
            for (; one < end; ++one) keep_if_standing(places[one]);
            if (number) weight += replace_standing(standing, number, left, right, made, left_length, length);
            worked(end - begin);
        }
        if (noted_number_) note_after(last_weight_, length, made);
        return weight;
    }

    std::int64_t replace_standing(const Position* standing, std::size_t number, std::uint32_t left, std::uint32_t right,
                                  std::uint32_t made, std::size_t left_length, std::size_t length) {
        // Weights fall along the text, so between two equal ones there is no other.
        const std::int64_t first = text_.weight(standing[0]), last = text_.weight(standing[number - 1]);
        const auto equal = [=](std::size_t) { return first; };
        const auto looked_up = [this](std::size_t at) { return text_.weight(at); };
        if (first == last) return replace_weighed(standing, number, left, right, made, left_length, length, equal);
        return replace_weighed(standing, number, left, right, made, left_length, length, looked_up);
    }

    template <class Weight>
    std::int64_t replace_weighed(const Position* standing, std::size_t number, std::uint32_t left, std::uint32_t right,
                                 std::uint32_t made, std::size_t left_length, std::size_t length, Weight weight_at) {
        Symbol* const symbols = text_.symbols.data();
        std::int64_t weight_of_all = 0;
        for (std::size_t one = 0; one < number; ++one) {
            const std::size_t at = standing[one];
            // In a run of one token what stood when it was looked at may have been swallowed since.
            if (left == right && (symbols[at] != left || symbols[at + left_length] != right)) continue;
            const std::int64_t weight = weight_at(at);
            weight_of_all += weight;
            symbols[at + left_length] = static_cast<Symbol>(swallowed);
            symbols[at] = static_cast<Symbol>(made);
            symbols[at + length - 1] = static_cast<Symbol>(made);
            // What stands behind the place before is settled now.
            if (noted_number_) note_after(last_weight_, length, made);
            last_weight_ = weight;
            const Symbol before = symbols[at - 1];
            befores_.add(before, weight);
            noted_[noted_number_++] = {static_cast<Position>(at), before, 0};
        }
        return weight_of_all;
    }

    // A neighbour that is made now says on its own left what stands here.
    void note_after(std::int64_t weight, std::size_t length, std::uint32_t made) {
        Place& place = noted_[noted_number_ - 1];
        const Symbol after = text_.symbols[place.at + length];
        place.after = after == made ? static_cast<Symbol>(gap) : after;
        afters_.add(place.after, weight);
    }

    // ---- the pairs beside it ----

    void settle(std::uint32_t left, std::uint32_t right, std::uint32_t made) {
        bool any = false;
        for (std::size_t one = 0; one < befores_.number; ++one) {
            if (one + 8 < befores_.number) watched_.call_for(key_of(befores_.met[one + 8], left));
            const std::uint32_t token = befores_.met[one];
            Sum& sum = befores_.of[token];
            if (token != gap) {
                lose(token == made ? key_of(right, left) : key_of(token, left), sum.weight);
                any |= bear(sum, key_of(token, made), tokens_.length(token));
            }
        }
        for (std::size_t one = 0; one < afters_.number; ++one) {
            if (one + 8 < afters_.number) watched_.call_for(key_of(right, afters_.met[one + 8]));
            const std::uint32_t token = afters_.met[one];
            Sum& sum = afters_.of[token];
            if (token != gap) {
                lose(key_of(right, token), sum.weight);
                any |= bear(sum, key_of(made, token), 0);
            }
        }
        if (any) write_lists();
        befores_.forget();
        afters_.forget();
    }

    void lose(PairKey key, std::int64_t weight) {
        Watched* const pair = watched_.find(key);
        if (!pair) return;
        examine(*pair);
        pair->count -= weight;
    }

    // Turns a neighbour's sum into where its places are written; true if they are to be, for a claim to come.
    bool bear(Sum& sum, PairKey key, std::uint64_t back) {
        const std::uint32_t claim = open(key, sum.weight);
        sum.next = &nowhere_;
        sum.step = 0;
        if (claim == ClaimTable::none) return false;
        List& list = lists_[claim];
        list.number = list.room = sum.number;
        list.places = pool_.take(sum.number);
        sum.next = list.places;
        sum.back = static_cast<Position>(back);
        sum.step = 1;
        return true;
    }

    // Watches a new pair if it matters. Returns the claim to come that it is.
    std::uint32_t open(PairKey key, std::int64_t count) {
        const std::uint32_t claim = claimed_.of(key);
        if (claim < inherited_) met_[claim] = 1;
        if (claim == ClaimTable::none && count < lowest_) {
            left_out_ = std::max(left_out_, count);
            return ClaimTable::none;
        }
        if (claim == ClaimTable::none && is_refused(key)) return ClaimTable::none;
        watched_.add({key, count, std::max<std::uint64_t>(step_, inherited_)}, std::min<std::int64_t>(lowest_, 1));
        return claim != ClaimTable::none && claim >= step_ ? claim : ClaimTable::none;
    }

    void write_lists() {
        befores_.of[gap].next = afters_.of[gap].next = &nowhere_;
        befores_.of[gap].step = afters_.of[gap].step = 0;
        for (std::size_t one = 0; one < noted_number_; ++one) {
            const Place place = noted_[one];
            Sum& before = befores_.of[place.before];
            *before.next = place.at - before.back;
            before.next += before.step;
            Sum& after = afters_.of[place.after];
            *after.next = place.at;
            after.next += after.step;
        }
    }

    // ---- whether a pair should have been taken ----

    bool is_refused(PairKey pair) const {
        return refuses_ && refusals_.refuses(tokens_.bytes(left_of(pair)), tokens_.bytes(right_of(pair)));
    }

    // Of a pair that has its count up to this step.
    void examine(const Watched& pair) {
        if (!step_ || pair.count < counts_.back() || pair.born >= step_) return;
        if (pair.count > counts_.back() || level_.passed_over(pair.key, pair.born)) {
            std::uint64_t step = pair.born + 1;
            while (!better(pair, step)) ++step;
            wrong_at_ = std::min(wrong_at_, step);
        }
    }

    bool better(const Watched& pair, std::uint64_t step) const {
        return pair.count > counts_[step] || (pair.count == counts_[step] && tokens_.before(pair.key, claims_[step - 1]));
    }

    // What the last claim has, by a power of how much is done.
    void guess() {
        const double done = static_cast<double>(step_ - inherited_) / static_cast<double>(claims_.size() - inherited_);
        const double guessed = static_cast<double>(counts_.back()) * done * done * 0.8 * question_.guess_scale;
        lowest_ = std::max(lowest_, static_cast<std::int64_t>(std::min(guessed, 9e18)));
    }

    void worked(std::uint64_t steps) {
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
    bool refuses_ = false;
    Level level_;
    WatchTable watched_;
    Lists<Position> pool_;
    std::vector<List> lists_;                  // of the claims
    std::vector<std::uint32_t> byte_claims_;   // those of two bytes, in order
    std::size_t byte_claims_listed_ = 0;
    std::vector<std::int64_t> counts_;         // of the claims that were made, from 1
    std::uint64_t step_ = 0;                   // claims made
    std::uint64_t wrong_at_ = none;
    std::int64_t too_rare_ = 0;   // what the wrong claim counts if it could not be made
    std::int64_t lowest_ = 1, left_out_ = 0;
    std::uint64_t merged_ = 0;    // places, by weight
    std::vector<std::uint8_t> met_;
    bool stopped_ = false;
    GoOn go_on_;
    void* context_;
    Clock::time_point looked_{};
    std::uint64_t steps_left_ = steps_between_looks;

    // Of the step at work.
    Side befores_, afters_;   // by token; all zero between two steps
    Plain<Place> noted_;
    std::size_t noted_number_ = 0;
    std::int64_t last_weight_ = 0;   // of the place noted last
    Position nowhere_ = 0;
};

}  // namespace replay
