// Collision chains that run through the cells of the table itself: the common ground of dense and inline tables.
//
// A chain holds the elements of one home cell (hash modulo cells) and begins there; every cell knows the next one, the
// last one knows itself. A newcomer whose home is taken by an element of another chain moves that one away, so a search
// only ever meets elements of its own chain or, where the home belongs to another chain, finds nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace grid {

template <class Payload>
class Chains {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    // The cell whose payload satisfies `equal`, among those of this hash.
    template <class Equal>
    std::uint32_t find(std::size_t hash, Equal equal) const {
        if (cells_.empty()) return none;
        std::uint32_t cell = home(hash);
        if (cells_[cell].next == none) return none;
        for (;;) {
            if (equal(cells_[cell].payload)) return cell;
            const std::uint32_t next = cells_[cell].next;
            if (next == cell) return none;
            cell = next;
        }
    }

    // Adds what is not there yet; `hash_of` gives the hash of a payload.
    template <class HashOf>
    void insert(std::size_t hash, Payload payload, HashOf hash_of) {
        if (5 * (used_ + 1) > 4 * cells_.size()) grow(hash_of);
        place(hash, payload, hash_of);
        ++used_;
    }

    void erase(std::uint32_t cell, std::size_t hash) {
        const std::uint32_t first = home(hash), next = cells_[cell].next;
        std::uint32_t freed = cell;
        if (cell == first) {
            if (next != cell) {   // the second element moves to the home
                cells_[cell] = {cells_[next].next == next ? cell : cells_[next].next, cells_[next].payload};
                freed = next;
            }
        } else {
            const std::uint32_t before = predecessor(first, cell);
            cells_[before].next = next == cell ? before : next;
        }
        cells_[freed].next = none;
        --used_;
    }

    Payload& payload(std::uint32_t cell) { return cells_[cell].payload; }
    const Payload& payload(std::uint32_t cell) const { return cells_[cell].payload; }
    std::size_t used() const { return used_; }
    std::size_t cells() const { return cells_.size(); }
    bool holds(std::size_t cell) const { return cells_[cell].next != none; }

  private:
    struct Cell {
        std::uint32_t next;
        Payload payload;
    };
    static constexpr std::size_t fewest_cells = 4, most_cells = std::size_t{1} << 31;

    std::uint32_t home(std::size_t hash) const { return static_cast<std::uint32_t>(hash & (cells_.size() - 1)); }

    std::uint32_t predecessor(std::uint32_t first, std::uint32_t cell) const {
        while (cells_[first].next != cell) first = cells_[first].next;
        return first;
    }

    template <class HashOf>
    void place(std::size_t hash, Payload payload, HashOf hash_of) {
        const std::uint32_t first = home(hash);
        if (cells_[first].next == none) {
            cells_[first] = {first, payload};
            return;
        }
        const std::uint32_t free = free_cell(first);
        const std::uint32_t other = home(hash_of(cells_[first].payload));
        const std::uint32_t next = cells_[first].next == first ? free : cells_[first].next;
        if (other == first) {   // behind the first of its own chain
            cells_[free] = {next, payload};
            cells_[first].next = free;
        } else {   // the guest goes, its chain with it
            const std::uint32_t before = predecessor(other, first);
            cells_[free] = {next, cells_[first].payload};
            cells_[before].next = free;
            cells_[first] = {first, payload};
        }
    }

    // A free cell, near `cell` if there is one; else wherever the search through the table stands.
    std::uint32_t free_cell(std::uint32_t cell) {
        const std::uint32_t mask = static_cast<std::uint32_t>(cells_.size() - 1);
        for (std::uint32_t step = 1; step <= 6; ++step)
            if (cells_[(cell + step) & mask].next == none) return (cell + step) & mask;
        do cursor_ = (cursor_ + 1) & mask;
        while (cells_[cursor_].next != none);
        return cursor_;
    }

    template <class HashOf>
    void grow(HashOf hash_of) {
        if (cells_.size() >= most_cells) throw std::length_error("a hash table would pass 2**31 cells");
        std::vector<Cell> old(cells_.empty() ? fewest_cells : 2 * cells_.size(), Cell{none, Payload{}});
        old.swap(cells_);
        cursor_ = 0;
        for (const Cell& cell : old)
            if (cell.next != none) place(hash_of(cell.payload), cell.payload, hash_of);
    }

    std::vector<Cell> cells_;   // a power of two of them, or none
    std::size_t used_ = 0;
    std::uint32_t cursor_ = 0;
};

}  // namespace grid
