// The word table as a whole: checked, and its words gathered by weight.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_job.hpp"
#include "flat_parallel.hpp"

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
    // Reads the whole table once, and refuses what is not one.
    WeightClasses(const Words& words, Watch& watch) {
        std::vector<WeightClass> light(1);   // by weight
        std::vector<WeightClass> heavy;
        for (std::size_t word = 0; word < words.number; ++word) {
            const std::int64_t length = words.offsets[word + 1] - words.offsets[word];
            const std::uint64_t weight = words.counts[word];
            watch.worked(1, convert);
            if (length < 2 || !weight) continue;
            count_adjacent(weight, static_cast<std::uint64_t>(length) - 1);
            const std::uint64_t positions = static_cast<std::uint64_t>(length) + 1;
            if (weight < light_weights) {
                if (weight >= light.size()) light.resize(weight + 1);
                light[weight].words += 1;
                light[weight].positions += positions;
            } else {
                heavy.push_back({weight, 1, positions});
            }
        }
        std::sort(heavy.begin(), heavy.end(), [](auto& one, auto& other) { return one.weight > other.weight; });
        for (const WeightClass& word : heavy) {
            if (classes_.empty() || classes_.back().weight != word.weight) classes_.push_back({word.weight, 0, 0});
            classes_.back().words += word.words;
            classes_.back().positions += word.positions;
        }
        heavy_classes_ = classes_.size();
        class_of_light_.resize(light.size());
        for (std::uint64_t weight = light.size(); weight-- > 1;) {
            if (!light[weight].words) continue;
            class_of_light_[weight] = static_cast<std::uint32_t>(classes_.size());
            classes_.push_back({weight, light[weight].words, light[weight].positions});
        }
        for (const WeightClass& one : classes_) {
            words_ += one.words;
            positions_ += one.positions;
        }
    }

    std::size_t class_of(std::uint64_t weight) const {
        if (weight < light_weights) return class_of_light_[weight];
        const auto heavier = [](const WeightClass& one, std::uint64_t than) { return one.weight > than; };
        return static_cast<std::size_t>(
            std::lower_bound(classes_.begin(), classes_.begin() + static_cast<std::ptrdiff_t>(heavy_classes_), weight,
                             heavier) -
            classes_.begin());
    }

    const std::vector<WeightClass>& classes() const { return classes_; }
    // Cuts the classes into parts of about the same length.
    std::vector<std::size_t> shares(std::size_t parts) const {
        return equal_shares(classes_.size(), parts, [&](std::size_t one) { return classes_[one].positions; });
    }
    std::uint64_t words() const { return words_; }
    std::uint64_t positions() const { return positions_; }   // without any filling up

  private:
    static constexpr std::uint64_t light_weights = 65536;

    void count_adjacent(std::uint64_t weight, std::uint64_t pairs) {
        constexpr std::uint64_t most = (std::uint64_t{1} << 63) - 1;
        if (weight > most || pairs > (most - adjacent_) / weight)
            throw Refused("the words hold more than 2**63 - 1 adjacent positions by weight; divide the counts");
        adjacent_ += weight * pairs;
    }

    std::vector<WeightClass> classes_;
    std::vector<std::uint32_t> class_of_light_;
    std::size_t heavy_classes_ = 0;
    std::uint64_t words_ = 0, positions_ = 0, adjacent_ = 0;
};

}  // namespace flat
