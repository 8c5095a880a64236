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
    static constexpr std::uint64_t light_weights = 65536;   // found by themselves as an index

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
    if (positions > UINT32_MAX) throw Refused("the words take 2**32 positions or more; train on a part of the text, as data.bytes= cuts it");
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

}  // namespace flat
