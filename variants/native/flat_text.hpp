// The text: every word of two bytes or more, end to end in one array of token ids, so ordered that the weight of a
// position is found without knowing its word.
#pragma once

#include <functional>
#include <map>

#include "flat_tokens.hpp"
#include "parallel.hpp"

namespace flat {

// The words of one weight that are long enough to hold a pair.
struct WeightClass {
    std::uint64_t weight;
    std::uint64_t words;
    std::uint64_t positions;   // their bytes and one separator each
};

// Weights in descending order, and which class a weight belongs to.
class WeightClasses {
  public:
    WeightClasses(const Words& words, Progress& progress) {
        std::vector<WeightClass> light(1);   // by weight
        std::map<std::uint64_t, WeightClass, std::greater<>> heavy;
        for (std::size_t word = 0; word < words.number; ++word) {
            const std::int64_t length = words.offsets[word + 1] - words.offsets[word];
            const std::uint64_t weight = words.counts[word];
            progress.advance(1, convert);
            if (length < 2 || !weight) continue;
            if (weight < light_weights && weight >= light.size()) light.resize(weight + 1);
            WeightClass& one = weight < light_weights ? light[weight] : heavy[weight];
            one.words += 1;
            one.positions += static_cast<std::uint64_t>(length) + 1;
            words_ += 1;
            positions_ += static_cast<std::uint64_t>(length) + 1;
        }
        for (const auto& [weight, one] : heavy) classes_.push_back({weight, one.words, one.positions});
        class_of_light_.resize(light.size());
        for (std::uint64_t weight = light.size(); weight-- > 1;) {
            if (!light[weight].words) continue;
            class_of_light_[weight] = static_cast<std::uint32_t>(classes_.size());
            classes_.push_back({weight, light[weight].words, light[weight].positions});
        }
    }

    std::size_t class_of(std::uint64_t weight) const {
        if (weight < light_weights) return class_of_light_[weight];
        const auto heavier = [](const WeightClass& one, std::uint64_t than) { return one.weight > than; };
        return static_cast<std::size_t>(std::lower_bound(classes_.begin(), classes_.end(), weight, heavier) -
                                        classes_.begin());
    }

    const std::vector<WeightClass>& classes() const { return classes_; }
    std::uint64_t words() const { return words_; }
    std::uint64_t positions() const { return positions_; }   // without any filling up

  private:
    static constexpr std::uint64_t light_weights = 65536;

    std::vector<WeightClass> classes_;
    std::vector<std::uint32_t> class_of_light_;
    std::uint64_t words_ = 0, positions_ = 0;
};

// The first and the last position of a token hold its id; the inner ones are never read.
// Blocks of 2**shift positions share a weight: a class is filled up with separators to whole blocks.
template <class Symbol>
struct Text {
    Array<Symbol> symbols;
    Array<std::int64_t> weights;   // of the blocks
    unsigned shift = 0;
    std::size_t begin = 0;   // of the first word; before it is at least one separator, and after the last word

    std::int64_t weight_at(std::size_t position) const { return weights[position >> shift]; }
    // Into the second-level cache and no closer: only a few misses of the first can be under way at once.
    static void prefetch(const Symbol* symbol) { __builtin_prefetch(symbol, 0, 2); }
    void prefetch_weight(std::size_t position) const { __builtin_prefetch(weights.data() + (position >> shift)); }
    std::size_t size() const { return symbols.size(); }
    // Where one of several parts begins; the last position of the text is a separator and begins no pair.
    std::size_t cut(std::size_t part, std::size_t parts) const {
        const std::size_t blocks = (size() - begin) >> shift;
        return part < parts ? begin + (blocks * part / parts << shift) : size() - 1;
    }
    std::size_t bytes() const { return symbols.size() * sizeof(Symbol) + weights.size() * sizeof(std::int64_t); }
};

constexpr unsigned block_shift = 6;
constexpr std::uint64_t in_blocks(std::uint64_t positions) {
    return (((positions - 1) >> block_shift) + 1) << block_shift;
}

template <class Symbol>
class TextWriter {
  public:
    TextWriter(const Words& words, Text<Symbol>& text, std::size_t begin, std::size_t end)
        : words_(words), text_(text), next_(begin), end_(end), closed_(begin >> text.shift) {}

    void word(std::size_t number) {
        const std::uint8_t* const bytes = words_.bytes + words_.offsets[number];
        const std::size_t length = static_cast<std::size_t>(words_.offsets[number + 1] - words_.offsets[number]);
        Symbol* const to = text_.symbols.data() + next_;
        // Most words are short: copied as one piece of a fixed length, whose rest the next word overwrites.
        const bool room = bytes + piece <= words_.bytes + words_.size && next_ + piece <= end_;
        const auto copy = [=](std::size_t number_of_bytes) {
            for (std::size_t place = 0; place < number_of_bytes; ++place)
                to[place] = static_cast<Symbol>(bytes[place] + first_byte);
        };
        length <= piece && room ? copy(piece) : copy(length);
        to[length] = static_cast<Symbol>(separator);
        next_ += length + 1;
    }

    // Ends a run of words of one weight: fills up the block and notes the weight of all blocks since the last call.
    void close(std::uint64_t weight) {
        while (next_ & ((std::size_t{1} << text_.shift) - 1)) text_.symbols[next_++] = static_cast<Symbol>(separator);
        while (closed_ < next_ >> text_.shift) text_.weights[closed_++] = static_cast<std::int64_t>(weight);
    }

  private:
    static constexpr std::size_t piece = 16;

    const Words& words_;
    Text<Symbol>& text_;
    std::size_t next_, end_;
    std::size_t closed_;   // blocks whose weight is noted
};

template <class Symbol>
Text<Symbol> empty_text(std::size_t positions, unsigned shift) {
    if (positions > UINT32_MAX) throw Refused("the words take 2**32 positions or more; leave the rarest out");
    Text<Symbol> text;
    text.shift = shift;
    text.begin = std::size_t{1} << shift;
    text.symbols = Array<Symbol>(positions);
    text.weights = Array<std::int64_t>(positions >> shift);
    std::fill_n(text.symbols.data(), text.begin, static_cast<Symbol>(separator));
    text.weights[0] = 0;
    return text;
}

// Lays the words out as they are given, every position with a weight of its own.
template <class Symbol>
Text<Symbol> lay_out_as_given(const Words& words, const WeightClasses& classes, Progress& progress) {
    Text<Symbol> text = empty_text<Symbol>(1 + classes.positions(), 0);
    TextWriter<Symbol> writer(words, text, text.begin, text.size());
    for (std::size_t word = 0; word < words.number; ++word) {
        const std::int64_t length = words.offsets[word + 1] - words.offsets[word];
        if (length < 2 || !words.counts[word]) continue;
        writer.word(word);
        writer.close(words.counts[word]);
        progress.advance(static_cast<std::uint64_t>(length), convert);
    }
    return text;
}

// Lays the words out by weight, heavy ones first, those of one class in the order given; every part of the classes knows where
// it begins.
template <class Symbol>
Text<Symbol> lay_out(const Words& words, const WeightClasses& classes, std::size_t parts, Progress& progress) {
    std::vector<std::size_t> begins{in_blocks(1)}, first_words{0};   // of the classes
    for (const WeightClass& one : classes.classes()) {
        begins.push_back(begins.back() + in_blocks(one.positions));
        first_words.push_back(first_words.back() + one.words);
    }
    Text<Symbol> text = empty_text<Symbol>(begins.back(), block_shift);
    Array<std::size_t> order(classes.words());
    std::vector<std::size_t> next(first_words);
    for (std::size_t word = 0; word < words.number; ++word) {
        progress.advance(1, convert);
        if (words.offsets[word + 1] - words.offsets[word] < 2 || !words.counts[word]) continue;
        order[next[classes.class_of(words.counts[word])]++] = word;
    }
    const std::vector<std::size_t> cuts =
        equal_shares(classes.classes().size(), parts, [&](std::size_t one) { return classes.classes()[one].positions; });
    in_parallel(parts, [&](std::size_t part) {
        TextWriter<Symbol> writer(words, text, begins[cuts[part]], begins[cuts[part + 1]]);
        for (std::size_t one = cuts[part]; one < cuts[part + 1]; ++one) {
            for (std::size_t place = first_words[one]; place < first_words[one + 1]; ++place) {
                // Two steps ahead of the copying: where the word's bytes are, and the bytes.
                if (place + 32 < order.size()) __builtin_prefetch(words.offsets + order[place + 32]);
                if (place + 16 < order.size()) __builtin_prefetch(words.bytes + words.offsets[order[place + 16]]);
                writer.word(order[place]);
            }
            writer.close(classes.classes()[one].weight);
            if (part + 1 == parts) progress.advance(classes.classes()[one].positions, convert);
        }
    });
    return text;
}

// ---- the count below which a pair need not be kept, because it will never be merged

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
// that is not yet one token. Only repeated words can break it; then the queue runs dry below the threshold, which is noticed,
// and the text is counted again.
//
// Guessed, in two ways, low rather than high; a guess too high is noticed the same way. Counts fall like a power of the
// merge's number. And a merge takes occurrences from the pairs beside it, but gives as many to new pairs: if now twice as
// many pairs as there are merges to come reach a count, the last merge is likely not far below it (on random letters, the
// worst case known, at three fifths).
class Threshold {
  public:
    // For so many merges. Without `classes` only the guesses are made: a word of inherited tokens may hold no pair to merge.
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
        if (!lowered_) raise(static_cast<double>(count) * share * share * scale_);
        if (done < look_from_) return;
        look_from_ = done + std::max<std::uint64_t>(64, done / 16);
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
    std::uint64_t look_from_ = 64;   // when to look at the pairs again
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
