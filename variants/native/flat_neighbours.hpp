// What a merge has to say of the tokens that stand beside its occurrences.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flat_job.hpp"
#include "flat_memory.hpp"
#include "flat_pair_table.hpp"

namespace flat {

template <class Symbol, class Position>
struct Occurrence {
    Position position;
    Symbol before;   // the neighbours when it was replaced
    Symbol after;
};

// Merging (A, B) to C changes the pairs (x, A), (x, C), (B, y) and (C, y) only, where x and y stand beside an
// occurrence. Each is told by one token, so its changes are summed in an array over tokens, and the pair table is
// asked once for every distinct neighbour instead of four times for every occurrence. First a neighbour's cell holds
// its sums, then where its new occurrences are written; a pair that is not kept writes them all to the same idle cell.
template <class Position>
union Neighbour {
    struct {
        std::int64_t weight;
        Position occurrences;
    } sum;
    struct {
        Position* next;
        Position length;   // from the neighbour's beginning to the occurrence
        Position step;
    } list;
    typename PairTable<Position>::Slot* slot;   // instead of a list, where lists grow as they are written
};

// The cells of one side's neighbours; all zero between two merges.
template <class Symbol, class Position>
struct Neighbours {
    Array<Neighbour<Position>> of;
    Array<Symbol> met;        // those whose sums are not zero
    std::size_t number = 0;   // of them

    void reach(std::uint32_t token) {
        of.reach(token);
        met.reach(token + std::size_t{1});
    }
    void forget() {
        for (std::size_t place = 0; place < number; ++place) of[met[place]] = Neighbour<Position>{};
        of[separator] = Neighbour<Position>{};
        number = 0;
    }
};

// The same while it is added to, copied out of the class so that the compiler may keep it in registers.
template <class Symbol, class Position>
struct Adding {
    explicit Adding(Neighbours<Symbol, Position>& side)
        : of(side.of.data()), met(side.met.data()), number(side.number) {}

    void add(std::uint32_t token, std::int64_t weight) {
        Neighbour<Position>& neighbour = of[token];
        met[number] = static_cast<Symbol>(token);
        number += neighbour.sum.occurrences == 0;
        neighbour.sum.weight += weight;
        neighbour.sum.occurrences += 1;
    }

    Neighbour<Position>* const of;
    Symbol* const met;
    std::size_t number;
};

}  // namespace flat
