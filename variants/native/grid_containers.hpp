// What the grid's points are made of: hashes, hash maps that count pairs, and indexes from a pair to the words that hold it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace grid {

using Token = std::uint32_t;
using PairKey = std::uint64_t;   // the left token in the upper half
using WordNumber = std::uint32_t;

inline PairKey key_of(Token left, Token right) { return PairKey{left} << 32 | right; }
inline Token left_of(PairKey pair) { return static_cast<Token>(pair >> 32); }
inline Token right_of(PairKey pair) { return static_cast<Token>(pair); }

// h1 ^ (h2 << 1), where the hash of an integer is the integer: a few tens of thousands of values for millions of pairs.
struct weak_hash {
    static constexpr const char* name = "weak";
    std::size_t operator()(PairKey pair) const noexcept {
        return std::size_t{left_of(pair)} ^ std::size_t{right_of(pair)} << 1;
    }
};

// The step of boost::hash_combine as it was for long, from the left token to the right one: it spreads neighbouring ids,
// though not over all bits.
struct boost_hash {
    static constexpr const char* name = "boost";
    std::size_t operator()(PairKey pair) const noexcept {
        const std::size_t left = left_of(pair);
        return left ^ (right_of(pair) + std::size_t{0x9e3779b9} + (left << 6) + (left >> 2));
    }
};

// Two rounds of multiplying and folding: every bit of the pair moves every bit of the hash.
struct strong_hash {
    static constexpr const char* name = "strong";
    using is_avalanching = void;   // what boost::unordered_flat_map asks, so that it does not mix once more
    std::size_t operator()(PairKey pair) const noexcept {
        pair = (pair ^ pair >> 32) * 0xd6e8feb86659fd93;
        pair = (pair ^ pair >> 32) * 0xd6e8feb86659fd93;
        return static_cast<std::size_t>(pair ^ pair >> 32);
    }
};

// ---- the layouts of emhash8 and emhash9 ----

// Collision chains that run through the cells of the table itself. A chain holds the elements of one home cell (hash modulo
// cells) and begins there; every cell knows the next one, the last one knows itself. A newcomer whose home is taken by an
// element of another chain moves that one away, so a search only ever meets elements of its own chain.
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

    // A free cell, near `cell` if there is one; else where the search through the table is.
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

// emhash8's: entries in one array without a hole, which is what a scan wants, with an index of chained cells beside it. An
// erased entry is replaced by the last one. `KeyOf` gives the key of an entry.
template <class Key, class Entry, class KeyOf, class Hash>
class DenseTable {
  public:
    auto begin() { return entries_.begin(); }
    auto end() { return entries_.end(); }
    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }
    std::size_t size() const { return entries_.size(); }
    const Entry& entry(std::size_t number) const { return entries_[number]; }

    auto find(const Key& key) { return entries_.begin() + static_cast<std::ptrdiff_t>(slot(key)); }
    auto find(const Key& key) const { return entries_.begin() + static_cast<std::ptrdiff_t>(slot(key)); }
    std::size_t count(const Key& key) const { return cell_of(key) != chains_.none; }

    void insert(const Key& key) {
        if (!count(key)) append(Entry(key));
    }

    std::size_t erase(const Key& key) {
        const std::uint32_t cell = cell_of(key);
        if (cell == chains_.none) return 0;
        const std::uint32_t gone = chains_.payload(cell), last = static_cast<std::uint32_t>(entries_.size() - 1);
        chains_.erase(cell, Hash()(key));
        if (gone != last) {
            chains_.payload(cell_of(KeyOf()(entries_[last]))) = gone;
            entries_[gone] = std::move(entries_[last]);
        }
        entries_.pop_back();
        return 1;
    }

  protected:
    void append(Entry entry) {
        const std::uint32_t slot = static_cast<std::uint32_t>(entries_.size());
        const std::size_t hash = Hash()(KeyOf()(entry));
        entries_.push_back(std::move(entry));
        chains_.insert(hash, slot, [this](std::uint32_t at) { return Hash()(KeyOf()(entries_[at])); });
    }

    std::size_t slot(const Key& key) const {
        const std::uint32_t cell = cell_of(key);
        return cell == chains_.none ? entries_.size() : chains_.payload(cell);
    }

    std::vector<Entry> entries_;

  private:
    std::uint32_t cell_of(const Key& key) const {
        return chains_.find(Hash()(key), [&](std::uint32_t slot) { return KeyOf()(entries_[slot]) == key; });
    }

    Chains<std::uint32_t> chains_;   // of slots
};

struct ItsOwnKey {
    template <class Entry>
    const Entry& operator()(const Entry& entry) const { return entry; }
};
struct FirstIsKey {
    template <class Entry>
    const auto& operator()(const Entry& entry) const { return entry.first; }
};

template <class Key, class Hash>
using DenseSet = DenseTable<Key, Key, ItsOwnKey, Hash>;

template <class Value, class Hash>
class DenseMap : public DenseTable<std::uint64_t, std::pair<std::uint64_t, Value>, FirstIsKey, Hash> {
  public:
    Value& operator[](std::uint64_t key) {
        std::size_t at = this->slot(key);
        if (at == this->size()) this->append({key, Value()});
        return this->entries_[at].second;
    }
};

// emhash9's: the elements are in the chained cells themselves, so a small set is one piece of memory.
template <class Key, class Hash>
class InlineSet {
  public:
    class const_iterator {
      public:
        const_iterator(const Chains<Key>& chains, std::size_t cell) : chains_(&chains), cell_(cell) { skip(); }
        const Key& operator*() const { return chains_->payload(static_cast<std::uint32_t>(cell_)); }
        const_iterator& operator++() {
            ++cell_;
            skip();
            return *this;
        }
        bool operator!=(const const_iterator& other) const { return cell_ != other.cell_; }

      private:
        void skip() {
            while (cell_ < chains_->cells() && !chains_->holds(cell_)) ++cell_;
        }

        const Chains<Key>* chains_;
        std::size_t cell_;
    };

    const_iterator begin() const { return {chains_, 0}; }
    const_iterator end() const { return {chains_, chains_.cells()}; }
    std::size_t count(const Key& key) const { return cell_of(key) != chains_.none; }

    void insert(const Key& key) {
        if (!count(key)) chains_.insert(Hash()(key), key, Hash());
    }
    void erase(const Key& key) {
        const std::uint32_t cell = cell_of(key);
        if (cell != chains_.none) chains_.erase(cell, Hash()(key));
    }

  private:
    std::uint32_t cell_of(const Key& key) const {
        return chains_.find(Hash()(key), [&](const Key& held) { return held == key; });
    }

    Chains<Key> chains_;
};

// ---- maps: `cells` and `visit` cut them into parts that threads can share ----

struct std_map {
    static constexpr const char* name = "std";
    template <class Value, class Hash>
    using map = std::unordered_map<PairKey, Value, Hash>;

    template <class Map>
    static std::size_t cells(const Map& map) { return map.bucket_count(); }
    template <class Map, class Visit>
    static void visit(const Map& map, std::size_t cell, Visit visit) {
        for (auto entry = map.begin(cell); entry != map.end(cell); ++entry) visit(entry->first, entry->second);
    }
};

struct dense_map {
    static constexpr const char* name = "dense";
    template <class Value, class Hash>
    using map = DenseMap<Value, Hash>;

    template <class Map>
    static std::size_t cells(const Map& map) { return map.size(); }
    template <class Map, class Visit>
    static void visit(const Map& map, std::size_t cell, Visit visit) {
        visit(map.entry(cell).first, map.entry(cell).second);
    }
};

template <class Map, class Hash>
using Counts = typename Map::template map<std::int64_t, Hash>;

// ---- the inverted index, from a pair to the words that hold it, over three kinds of sets ----

template <class Map, class Set>
class Index {
  public:
    void add(PairKey pair, WordNumber word) { words_[pair].insert(word); }
    void remove(PairKey pair, WordNumber word) {
        const auto found = words_.find(pair);
        if (found != words_.end()) found->second.erase(word);
    }
    void forget(PairKey pair) { words_.erase(pair); }

    // The words of a pair, which is then no longer in the index.
    Set take(PairKey pair) {
        Set words;
        const auto found = words_.find(pair);
        if (found == words_.end()) return words;
        words = std::move(found->second);
        words_.erase(pair);
        return words;
    }

  private:
    Map words_;
};

// A node for every pair and every word: std::unordered_map of std::unordered_set.
struct node_set {
    static constexpr const char* name = "node_set";
    template <class Key, class Hash>
    using set = std::unordered_set<Key, Hash>;
    using words = set<WordNumber, std::hash<WordNumber>>;
    template <class Hash>
    using index = Index<std::unordered_map<PairKey, words, Hash>, words>;
};

// Flat sets in a flat map.
template <template <class, class> class Set>
struct sets_in_dense_map {
    template <class Key, class Hash>
    using set = Set<Key, Hash>;
    using words = Set<WordNumber, std::hash<WordNumber>>;
    template <class Hash>
    using index = Index<DenseMap<words, Hash>, words>;
};
struct dense_set : sets_in_dense_map<DenseSet> {
    static constexpr const char* name = "dense_set";
};
struct inline_set : sets_in_dense_map<InlineSet> {
    static constexpr const char* name = "inline_set";
};

}  // namespace grid
