// The words as one text in which tokens are replaced, and the weight at each of its positions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "replay_job.hpp"

namespace replay {

// Ids in the text: between two words, where the right half of a merged token began, the bytes, the merged tokens.
constexpr std::uint32_t separator = 0, hole = 1, first_byte = 2, first_merged = first_byte + 256;

// An array whose values are not initialised.
template <class Value>
class RawArray {
  public:
    explicit RawArray(std::size_t size = 0) : values_(new Value[size]), size_(size) {}
    Value* data() { return values_.get(); }
    const Value* data() const { return values_.get(); }
    std::size_t size() const { return size_; }
    Value& operator[](std::size_t index) { return values_[index]; }
    const Value& operator[](std::size_t index) const { return values_[index]; }

  private:
    std::unique_ptr<Value[]> values_;
    std::size_t size_;
};

// Throws Refused for offsets that do not rise and for counts of pairs that could pass 63 bits.
inline void check(const Words& words) {
    bool rising = words.offsets[0] >= 0 && words.offsets[words.number] <= static_cast<std::int64_t>(words.size);
    for (std::size_t word = 0; word < words.number; ++word) rising &= words.offsets[word] <= words.offsets[word + 1];
    if (!rising) throw Refused("the words' offsets do not rise from 0 to the size of their bytes; count the words again");
    constexpr std::uint64_t most = INT64_MAX;
    std::uint64_t adjacent = 0;
    for (std::size_t word = 0; word < words.number; ++word) {
        const std::uint64_t length = static_cast<std::uint64_t>(words.offsets[word + 1] - words.offsets[word]);
        const std::uint64_t weight = words.counts[word];
        if (length < 2 || !weight) continue;
        if (weight > most || length - 1 > (most - adjacent) / weight)
            throw Refused("the words hold more than 2**63 - 1 adjacent positions by weight; divide the counts");
        adjacent += weight * (length - 1);
    }
}

// Where the words of each weight lie: the heaviest first, those of one weight together in whole blocks.
class Layout {
  public:
    static constexpr unsigned shift = 5;   // a block's positions, as a power of two

    explicit Layout(const Words& words) {
        std::vector<std::uint64_t> light(light_weights);
        std::vector<std::pair<std::uint64_t, std::uint64_t>> heavy;   // weight, length
        for (std::size_t word = 0; word < words.number; ++word) {
            const std::uint64_t length = static_cast<std::uint64_t>(words.offsets[word + 1] - words.offsets[word]);
            if (length < 2 || !words.counts[word]) continue;
            if (words.counts[word] < light_weights) {
                light[words.counts[word]] += length + 1;
            } else {
                heavy.emplace_back(words.counts[word], length + 1);
            }
        }
        std::sort(heavy.rbegin(), heavy.rend());
        for (const auto& [weight, length] : heavy) {
            if (weights.empty() || weights.back() != weight) begin(weight);
            end_ += length;
        }
        heavies_ = weights.size();
        index_of_light_.resize(light_weights);
        for (std::uint64_t weight = light_weights; weight-- > 1;) {
            if (!light[weight]) continue;
            index_of_light_[weight] = static_cast<std::uint32_t>(weights.size());
            begin(weight);
            end_ += light[weight];
        }
        begin(0);
    }

    // The index of a weight in `weights`.
    std::size_t index_of(std::uint64_t weight) const {
        if (weight < light_weights) return index_of_light_[weight];
        const auto end = weights.begin() + static_cast<std::ptrdiff_t>(heavies_);
        return static_cast<std::size_t>(std::lower_bound(weights.begin(), end, weight, std::greater<>()) - weights.begin());
    }

    std::vector<std::uint64_t> weights;   // descending, a 0 behind them
    std::vector<std::uint64_t> begins;    // the first position of each

  private:
    static constexpr std::uint64_t light_weights = 65536;

    void begin(std::uint64_t weight) {
        end_ = ((end_ >> shift) + 1) << shift;   // at least one separator in between
        weights.push_back(weight);
        begins.push_back(end_);
    }

    std::vector<std::uint32_t> index_of_light_;
    std::size_t heavies_ = 0;
    std::uint64_t end_ = 0;
};

// A token covers the positions of its bytes; its id is in the first and in the last of them.
template <class Symbol>
class Text {
  public:
    Text(const Words& words, const Layout& layout)
        : symbols(layout.begins.back() + 1), weights_((layout.begins.back() >> Layout::shift) + 1) {
        std::memset(static_cast<void*>(symbols.data()), 0, symbols.size() * sizeof(Symbol));
        for (std::size_t index = 0; index + 1 < layout.weights.size(); ++index)
            std::fill(weights_.data() + (layout.begins[index] >> Layout::shift),
                      weights_.data() + (layout.begins[index + 1] >> Layout::shift), layout.weights[index]);
        std::vector<std::uint64_t> next(layout.begins);
        for (std::size_t word = 0; word < words.number; ++word) {
            const std::size_t length = static_cast<std::size_t>(words.offsets[word + 1] - words.offsets[word]);
            if (length < 2 || !words.counts[word]) continue;
            std::uint64_t& position = next[layout.index_of(words.counts[word])];
            const std::uint8_t* const bytes = words.bytes + words.offsets[word];
            Symbol* const to = symbols.data() + position;
            for (std::size_t byte = 0; byte < length; ++byte) to[byte] = static_cast<Symbol>(first_byte + bytes[byte]);
            position += length + 1;
        }
    }

    std::size_t begin() const { return std::size_t{1} << Layout::shift; }
    std::size_t end() const { return symbols.size() - 1; }   // of the last separator
    std::int64_t weight(std::size_t position) const { return static_cast<std::int64_t>(weights_[position >> Layout::shift]); }
    void prefetch(std::size_t position) const { __builtin_prefetch(symbols.data() + position, 0, 2); }

    RawArray<Symbol> symbols;

  private:
    RawArray<std::uint64_t> weights_;
};

}  // namespace replay
