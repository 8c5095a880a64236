// The count below which a pair need not be kept, because it will never be merged.
#pragma once

#include <cmath>

#include "flat_text.hpp"

namespace flat {

// A histogram of the kept pairs' counts, used to guess the final count. Counts of 65,536 or more share a place.
class CountHistogram {
  public:
    void add(std::int64_t count) {
        pairs_[place(count)] += 1;
        number_ += 1;
    }
    void remove(std::int64_t count) {
        pairs_[place(count)] -= 1;
        number_ -= 1;
    }
    // The greatest count that so many pairs reach; 0 if there are fewer pairs.
    std::int64_t reached_by(std::uint64_t pairs) const {
        std::uint64_t reaching = number_;
        std::size_t count = 0;
        while (reaching >= pairs && count + 1 < pairs_.size()) reaching -= pairs_[count++];
        return static_cast<std::int64_t>(reaching >= pairs || !count ? count : count - 1);
    }

  private:
    std::size_t place(std::int64_t count) const {
        return std::min(static_cast<std::size_t>(count), pairs_.size() - 1);
    }

    Array<std::uint32_t> pairs_ = Array<std::uint32_t>(65537);
    std::uint64_t number_ = 0;
};

// Two bounds, one certain and one guessed; the greater is used.
//
// Certain (claim 4 of docs/explanation/flat.md): with `left` merges still to come, the weight of the left-th heaviest word
// that is not yet one token. Proof: a word of weight w that is not one token holds a pair, which counts at least w. So while
// `left` such words weigh w or more, the next merge counts w or more. It makes at most one of them one token, that which is
// spelled like the merge, since words are distinct: then left - 1 merges are to come, and left - 1 such words remain. Only
// repeated words can break it; then the queue runs dry below the threshold, which is noticed, and the text is counted again.
//
// Guessed, in two ways, low rather than high; a guess too high is noticed the same way, as in 3 of 162 runs on texts of all
// kinds. Counts fall like a power of the merge's number. And a merge takes occurrences from the pairs beside it, but gives as
// many to new pairs: if now twice as many pairs as there are merges to come reach a count, the last merge is likely not far
// below it (on random letters, the worst case known, at three fifths).
class Threshold {
  public:
    // For so many merges. Without `classes` only the guesses are made: a word of inherited tokens may hold no pair to merge.
    Threshold(const Options& options, std::uint64_t num_merges, const WeightClasses* classes)
        : num_merges_(num_merges),
          min_count_(std::max<std::int64_t>(options.min_count, 1)),
          scale_(options.guess_scale / 1.25),   // room below a guess
          guess_from_(options.guess_scale == 1.0 ? 64 : 1),   // merges from which a guess says anything
          pruning_(options.has(pruning)),
          classes_(classes),
          left_(num_merges) {
        value_ = min_count_;
        if (!pruning_ || !classes_) return;
        for (const WeightClass& one : classes->classes()) splittable_.push_back(one.words);
        counting_words_ = left_ > 0 && classes->words() >= left_;
        for (class_ = 0; counting_words_; ++class_) {
            splittable_above_ += splittable_[class_];
            if (splittable_above_ >= left_) break;
        }
        raise_to_words();
    }

    // A pair whose count is below this is not kept.
    std::int64_t value() const { return value_; }
    // Nothing that could be merged was ever left out.
    bool lossless() const { return value_ == min_count_; }

    // A merge of a pair with this count was made; it finished a word of weight `finished`, or none (0). `kept` are the
    // pairs now.
    void merged(std::int64_t count, std::uint64_t finished, const CountHistogram& kept) {
        if (!pruning_) return;
        left_ -= 1;
        if (counting_words_) {
            if (finished) {
                const std::size_t of = classes_->class_of(finished);
                if (splittable_[of]) splittable_[of] -= 1;
                if (of <= class_ && splittable_above_) splittable_above_ -= 1;
            }
            raise_to_words();
        }
        const std::uint64_t done = num_merges_ - left_;
        if (done < guess_from_) return;
        const double share = static_cast<double>(done) / static_cast<double>(num_merges_);
        if (!lowered_) raise(static_cast<double>(count) * share * std::sqrt(share) * scale_ * below_the_power);
        if (done < look_from_) return;
        look_from_ = done + std::max<std::uint64_t>(64, done / 16);   // some hundred looks in all
        raise(static_cast<double>(kept.reached_by(2 * left_)) * below_twice_as_many * scale_);
    }

    // To guess before the first merge, the count that so many pairs reach is wanted; 0: none is.
    std::uint64_t pairs_to_begin_with() const { return pruning_ ? 2 * std::min(left_, num_merges_) : 0; }
    void begin_at(std::int64_t count) { raise(static_cast<double>(count) * scale_); }

    // The best pair left is below the threshold: guess anew, by sums that are no smaller than the counts of all pairs, and
    // more carefully from now on. A second guess in vain is far from right.
    void lower(const CountHistogram& sums) {
        const double guess = static_cast<double>(sums.reached_by(2 * left_)) * below_twice_as_many * scale_;
        const std::int64_t below = lowered_ ? value_ / 16 : value_ / 3 * 2;
        value_ = std::max(min_count_, std::min(below, static_cast<std::int64_t>(guess)));
        scale_ /= 4;
        lowered_ = true;
        counting_words_ = false;
    }

  private:
    static constexpr double below_the_power = 0.9;        // of the count that falls by the power of one and a half
    static constexpr double below_twice_as_many = 0.55;   // of the count that twice as many pairs reach

    void raise(double guess) {
        if (guess > static_cast<double>(value_)) value_ = static_cast<std::int64_t>(std::min(guess, 9e18));
    }

    void raise_to_words() {
        if (!counting_words_ || !left_) return;
        while (class_ > 0 && splittable_above_ - splittable_[class_] >= left_) splittable_above_ -= splittable_[class_--];
        if (splittable_above_ < left_) {   // only repeated words can bring this about
            counting_words_ = false;
            return;
        }
        value_ = std::max(value_, static_cast<std::int64_t>(classes_->classes()[class_].weight));
    }

    std::uint64_t num_merges_;
    std::int64_t min_count_;
    double scale_;
    std::uint64_t guess_from_;
    std::uint64_t look_from_ = 64;   // merges after which to look at the pairs again
    bool pruning_;
    const WeightClasses* classes_;
    std::uint64_t left_;                       // merges to come
    std::vector<std::uint64_t> splittable_;    // words of each class that are not yet one token
    bool counting_words_ = false;
    std::size_t class_ = 0;                    // the lightest class that the certain bound may count on
    std::uint64_t splittable_above_ = 0;               // such words in it and in all heavier classes
    std::int64_t value_;
    bool lowered_ = false;
};

}  // namespace flat
