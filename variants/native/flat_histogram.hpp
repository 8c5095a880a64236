// The counts of the kept pairs, as a whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "flat_memory.hpp"

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
    void clear() {
        std::fill_n(pairs_.data(), pairs_.size(), 0);
        number_ = 0;
    }

  private:
    std::size_t place(std::int64_t count) const {
        return std::min(static_cast<std::size_t>(count), pairs_.size() - 1);
    }

    Array<std::uint32_t> pairs_ = Array<std::uint32_t>::zeros(65537);
    std::uint64_t number_ = 0;
};

}  // namespace flat
