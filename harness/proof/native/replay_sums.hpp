// What the pairs on one side of a merge gain and lose.
#pragma once

#include <cstdint>
#include <vector>

namespace replay {

// What one neighbour gains or loses in a step; then where the positions of its new pair are written.
template <class Position>
struct Sum {
    std::int64_t weight;
    Position* next;
    Position occurrences;
    Position offset;   // from the beginning of the new pair to the merged token
    Position step;     // 0 if the new pair has no list: all is written to one unused cell
};

// The sums of one side by token, all zero between two steps, and the tokens whose sums are not.
template <class Position>
struct Sums {
    explicit Sums(std::size_t tokens) : of(tokens), touched(tokens + 1) {}

    void add(std::uint32_t token, std::int64_t weight) {
        Sum<Position>& sum = of[token];
        touched[count] = token;
        count += sum.occurrences == 0;
        sum.weight += weight;
        sum.occurrences += 1;
    }
    void forget() {
        for (std::size_t index = 0; index < count; ++index) of[touched[index]] = {};
        count = 0;
    }

    std::vector<Sum<Position>> of;
    std::vector<std::uint32_t> touched;
    std::size_t count = 0;
};

}  // namespace replay
