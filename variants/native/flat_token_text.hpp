// The text of tokens: every piece encoded by the inherited merges, one cell a token.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "flat_classes.hpp"
#include "flat_encoding.hpp"
#include "flat_job.hpp"
#include "flat_layout.hpp"
#include "flat_memory.hpp"
#include "flat_order.hpp"
#include "flat_parallel.hpp"

namespace flat {

// Pieces as they are encoded, each with a separator behind it. One that is a single token holds no pair and is left out.
// How many tokens there will be is known only in the end, so it grows. As in flat_layout.hpp, pieces of one weight stand
// together and fill whole blocks of 2**shift cells.
template <class Symbol>
class TokenText {
  public:
    TokenText(const InheritedMerges& merges, unsigned shift) : encoder_(merges), shift_(shift) {}

    void add(const std::uint8_t* piece, std::size_t length, std::uint64_t weight, const std::uint8_t* readable) {
        begin(weight);
        symbols_.reserve(size_ + length + 1);
        Symbol* const start = symbols_.data() + size_;
        Symbol* const end = encoder_.encode(piece, length, readable, start);
        if (end - start < 2) return;
        *end = static_cast<Symbol>(separator);
        size_ += static_cast<std::size_t>(end - start) + 1;
    }

    // Puts the pieces of another, whose weights go on from the last of these, behind them; the other is empty then.
    void append(TokenText& other) {
        if (!other.runs_.empty()) other.runs_.back().end = other.size_;
        for (const Run& run : other.runs_) {
            begin(run.weight);
            symbols_.reserve(size_ + run.end - run.begin);
            std::copy(other.symbols_.data() + run.begin, other.symbols_.data() + run.end, symbols_.data() + size_);
            size_ += run.end - run.begin;
        }
        other.symbols_ = Growing<Symbol>();
        other.size_ = 0;
    }

    // The text, its tokens numbered by `ids`.
    Text<Symbol> finish(const std::vector<std::uint32_t>& ids) {
        begin(0);   // fills the last block up
        Text<Symbol> text;
        text.shift = shift_;
        text.begin = std::size_t{1} << shift_;
        text.weights = Array<std::int64_t>::zeros(size_ >> shift_);
        for (std::size_t run = 0; run + 1 < runs_.size(); ++run)
            std::fill(text.weights.data() + (runs_[run].begin >> shift_), text.weights.data() + (runs_[run + 1].begin >> shift_),
                      static_cast<std::int64_t>(runs_[run].weight));
        text.symbols = symbols_.release(size_);
        if (!ids.empty())
            for (std::size_t at = 0; at < size_; ++at) text.symbols[at] = static_cast<Symbol>(ids[text.symbols[at]]);
        return text;
    }

    const std::vector<std::uint8_t>& met() const { return encoder_.met(); }

  private:
    struct Run {
        std::uint64_t weight;
        std::size_t begin, end;   // the end is known when another begins
    };

    // Pieces of this weight come next. Before the first stands a block of separators.
    void begin(std::uint64_t weight) {
        if (!runs_.empty() && runs_.back().weight == weight) return;
        const std::size_t block = std::size_t{1} << shift_;
        if (!runs_.empty()) runs_.back().end = size_;
        const std::size_t begin = std::max(block, (size_ + block - 1) & ~(block - 1));
        symbols_.reserve(begin);
        while (size_ < begin) symbols_.data()[size_++] = static_cast<Symbol>(separator);
        runs_.push_back({weight, begin, begin});
    }

    Encoder encoder_;
    unsigned shift_;
    Growing<Symbol> symbols_;
    std::size_t size_ = 0;
    std::vector<Run> runs_;
};

// Which word stands at which place of the text: by weight, or as given.
class PieceOrder {
  public:
    PieceOrder(const Words& words, const WeightClasses& classes, bool by_weight, std::size_t parts, Watch& watch)
        : order_(words, classes, false, parts, watch), by_weight_(by_weight), size_(by_weight ? order_.size() : words.number) {}

    std::size_t size() const { return size_; }
    std::size_t operator[](std::size_t place) const { return by_weight_ ? order_[place] : place; }

  private:
    WordOrder order_;
    bool by_weight_;
    std::size_t size_;
};

// Encodes all pieces; every one of `parts` threads takes as many bytes. `met` is by rank.
template <class Symbol>
TokenText<Symbol> encode(const Words& words, const WeightClasses& classes, const InheritedMerges& merges, bool by_weight,
                         std::size_t parts, std::vector<std::uint8_t>& met, Watch& watch) {
    const PieceOrder order(words, classes, by_weight, parts, watch);
    const auto length = [&](std::size_t place) {
        return static_cast<std::size_t>(words.offsets[order[place] + 1] - words.offsets[order[place]]);
    };
    const std::vector<std::size_t> cuts =
        parts > 1 ? equal_shares(order.size(), parts, length) : std::vector<std::size_t>{0, order.size()};
    std::vector<TokenText<Symbol>> texts;
    for (std::size_t part = 0; part < parts; ++part) texts.emplace_back(merges, by_weight ? block_shift : 0);
    in_parallel(parts, [&](std::size_t part) {
        for (std::size_t place = cuts[part]; place < cuts[part + 1]; ++place) {
            const std::size_t word = order[place];
            const std::uint64_t weight = words.counts[word];
            if (weight && length(place) > 1)
                texts[part].add(words.bytes + words.offsets[word], length(place), weight, words.bytes + words.size);
            if (part + 1 == parts) watch.worked(length(place) + 1, convert);
        }
    });
    met.assign(merges.size(), 0);
    for (std::size_t part = 0; part < parts; ++part) {
        for (std::size_t rank = 0; rank < met.size(); ++rank) met[rank] |= texts[part].met()[rank];
        if (part) texts[0].append(texts[part]);
    }
    return std::move(texts[0]);
}

}  // namespace flat
