// The count below which a pair need not be kept, because it will never be merged.
#pragma once

#include "flat_text.hpp"

namespace flat {

// How many of the kept pairs have which count. Those of 65,536 or more are not told apart.
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
    // The greatest count, as far as they are told apart, that so many pairs reach; 0 if there are fewer pairs.
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

    Array<std::uint32_t> pairs_ = Array<std::uint32_t>::zeros(65537);
    std::uint64_t number_ = 0;
};

// Two bounds, one certain and one guessed; the greater is used.
//
// Certain: with `left` merges still to come, the weight of the left-th heaviest word that is not yet one token. If the
// best count ever fell below a weight w while merges are to come, no word of weight w or more could hold a pair, so
// each of them would be one token; but a merge makes one new token and finishes at most the one word that is spelt like
// it. So while at least `left` unfinished words weigh w or more, the best count stays at w or above. The bound rises
// with every merge that finishes no word, and no word table can break it (repeated words could; then the queue runs dry
// below the threshold, which is noticed, and the text is counted again).
//
// Guessed, in two ways, low rather than high; a guess too high is noticed the same way. Counts fall like a power of the
// merge's number, so the present count tells something of the last one. And a merge takes occurrences from the pairs
// beside it, but gives as many to new pairs, so pairs do not run out: if now twice as many as there are merges to come
// reach a count, the last merge is likely not to be far below it: on random letters, which are the worst case known, it
// has three fifths of that count.
class Threshold {
  public:
    // For so many merges. Without `classes`, that is of words to be merged from bytes, only the guesses are made: a word of
    // tokens may hold no pair that may be merged.
    Threshold(const Options& options, std::uint64_t num_merges, const WeightClasses* classes)
        : num_merges_(num_merges),
          min_count_(std::max<std::int64_t>(options.min_count, 1)),
          scale_(options.guess_scale / 1.25),
          guess_from_(options.guess_scale == 1.0 ? 64 : 1),
          pruning_(options.has(pruning)),
          classes_(classes),
          left_(num_merges) {
        value_ = min_count_;
        if (!pruning_ || !classes_) return;
        for (const WeightClass& one : classes->classes()) unfinished_.push_back(one.words);
        counting_words_ = left_ > 0 && classes->words() >= left_;
        for (class_ = 0; counting_words_; ++class_) {
            standing_ += unfinished_[class_];
            if (standing_ >= left_) break;
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
                if (unfinished_[of]) unfinished_[of] -= 1;
                if (of <= class_ && standing_) standing_ -= 1;
            }
            raise_to_words();
        }
        const std::uint64_t done = num_merges_ - left_;
        if (done < guess_from_) return;
        const double share = static_cast<double>(done) / static_cast<double>(num_merges_);
        raise(static_cast<double>(count) * share * share * scale_);
        if (done < look_from_) return;
        look_from_ = done + std::max<std::uint64_t>(64, done / 16);
        raise(static_cast<double>(kept.reached_by(2 * left_)) * 0.55 * scale_);
    }

    // How many pairs should be known before the first merge to guess by: the count that they reach. 0: none is wanted.
    std::uint64_t pairs_to_begin_with() const { return pruning_ ? 2 * std::min(left_, num_merges_) : 0; }
    void begin_at(std::int64_t count) { raise(static_cast<double>(count) * scale_); }

    // The best pair left is below the threshold: guess anew, well below, and more carefully from now on.
    void lower() {
        // A guess by all pairs is seldom far from right, and pairs of tokens are many more below it.
        const bool slightly = !classes_ && !lowered_;
        value_ = std::max(min_count_, slightly ? value_ / 3 * 2 : value_ / 16);
        scale_ /= 4;
        lowered_ = true;
        counting_words_ = false;
    }

  private:
    void raise(double guess) {
        if (guess > static_cast<double>(value_)) value_ = static_cast<std::int64_t>(std::min(guess, 9e18));
    }

    void raise_to_words() {
        if (!counting_words_ || !left_) return;
        while (class_ > 0 && standing_ - unfinished_[class_] >= left_) standing_ -= unfinished_[class_--];
        if (standing_ < left_) {   // only repeated words can bring this about
            counting_words_ = false;
            return;
        }
        value_ = std::max(value_, static_cast<std::int64_t>(classes_->classes()[class_].weight));
    }

    std::uint64_t num_merges_;
    std::int64_t min_count_;
    double scale_;
    std::uint64_t guess_from_;
    std::uint64_t look_from_ = 64;   // when to look at the pairs again
    bool pruning_;
    const WeightClasses* classes_;
    std::uint64_t left_;                       // merges to come
    std::vector<std::uint64_t> unfinished_;    // words of each class that are not yet one token
    bool counting_words_ = false;
    std::size_t class_ = 0;                    // the lightest class that the certain bound may count on
    std::uint64_t standing_ = 0;               // unfinished words in it and in all heavier classes
    std::int64_t value_;
    bool lowered_ = false;
};

}  // namespace flat
