// The words as one text in which tokens are replaced, and the weight at every place of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "replay_job.hpp"

namespace replay {

// Ids in the text: what stands between two words, what a swallowed token leaves behind, the bytes, the claims' tokens.
constexpr std::uint32_t gap = 0, swallowed = 1, first_byte = 2, first_made = first_byte + 256;

// Plain values that whoever fills them touches first.
template <class Value>
class Plain {
  public:
    explicit Plain(std::size_t size = 0) : values_(new Value[size]), size_(size) {}
    Value* data() { return values_.get(); }
    const Value* data() const { return values_.get(); }
    std::size_t size() const { return size_; }
    Value& operator[](std::size_t index) { return values_[index]; }
    const Value& operator[](std::size_t index) const { return values_[index]; }

  private:
    std::unique_ptr<Value[]> values_;
    std::size_t size_;
};

// Refuses a table that is none, and one whose counts could pass 63 bits.
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

// Where the words of each weight stand: the heaviest first, those of one weight together in whole blocks.
class Plan {
  public:
    static constexpr unsigned shift = 5;   // a block's positions, as a power of two

    explicit Plan(const Words& words) {
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
        of_light_.resize(light_weights);
        for (std::uint64_t weight = light_weights; weight-- > 1;) {
            if (!light[weight]) continue;
            of_light_[weight] = static_cast<std::uint32_t>(weights.size());
            begin(weight);
            end_ += light[weight];
        }
        begin(0);
    }

    // Which of `weights` this is.
    std::size_t of(std::uint64_t weight) const {
        if (weight < light_weights) return of_light_[weight];
        const auto end = weights.begin() + static_cast<std::ptrdiff_t>(heavies_);
        return static_cast<std::size_t>(std::lower_bound(weights.begin(), end, weight, std::greater<>()) - weights.begin());
    }

    std::vector<std::uint64_t> weights;   // descending, a 0 behind them
    std::vector<std::uint64_t> begins;    // of each

  private:
    static constexpr std::uint64_t light_weights = 65536;

    void begin(std::uint64_t weight) {
        end_ = ((end_ >> shift) + 1) << shift;   // at least one gap between
        weights.push_back(weight);
        begins.push_back(end_);
    }

    std::vector<std::uint32_t> of_light_;
    std::size_t heavies_ = 0;
    std::uint64_t end_ = 0;
};

// A token keeps the places of its bytes: its id stands in the first and the last of them.
template <class Symbol>
class Text {
  public:
    Text(const Words& words, const Plan& plan)
        : symbols(plan.begins.back() + 1), weights_((plan.begins.back() >> Plan::shift) + 1) {
        std::memset(static_cast<void*>(symbols.data()), 0, symbols.size() * sizeof(Symbol));
        for (std::size_t one = 0; one + 1 < plan.weights.size(); ++one)
            std::fill(weights_.data() + (plan.begins[one] >> Plan::shift),
                      weights_.data() + (plan.begins[one + 1] >> Plan::shift), plan.weights[one]);
        std::vector<std::uint64_t> next(plan.begins);
        for (std::size_t word = 0; word < words.number; ++word) {
            const std::size_t length = static_cast<std::size_t>(words.offsets[word + 1] - words.offsets[word]);
            if (length < 2 || !words.counts[word]) continue;
            std::uint64_t& place = next[plan.of(words.counts[word])];
            const std::uint8_t* const bytes = words.bytes + words.offsets[word];
            Symbol* const to = symbols.data() + place;
            for (std::size_t byte = 0; byte < length; ++byte) to[byte] = static_cast<Symbol>(first_byte + bytes[byte]);
            place += length + 1;
        }
    }

    std::size_t begin() const { return std::size_t{1} << Plan::shift; }
    std::size_t end() const { return symbols.size() - 1; }   // a gap stands there
    std::int64_t weight(std::size_t place) const { return static_cast<std::int64_t>(weights_[place >> Plan::shift]); }
    void call_for(std::size_t place) const { __builtin_prefetch(symbols.data() + place, 0, 2); }

    Plain<Symbol> symbols;

  private:
    Plain<std::uint64_t> weights_;
};

}  // namespace replay
