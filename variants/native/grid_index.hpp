// The inverted index, from a pair to the words that hold it, over three kinds of sets.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "grid_dense.hpp"
#include "grid_hash.hpp"
#include "grid_inline_set.hpp"

namespace grid {

using WordNumber = std::uint32_t;

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

// Flat sets in a flat map: entries in one array with an index beside it, as emhash8 lays them out.
struct dense_set {
    static constexpr const char* name = "dense_set";
    template <class Key, class Hash>
    using set = DenseSet<Key, Hash>;
    using words = set<WordNumber, std::hash<WordNumber>>;
    template <class Hash>
    using index = Index<DenseMap<words, Hash>, words>;
};

// Flat sets with their elements in the cells, as emhash9 lays them out, in the same flat map.
struct inline_set {
    static constexpr const char* name = "inline_set";
    template <class Key, class Hash>
    using set = InlineSet<Key, Hash>;
    using words = set<WordNumber, std::hash<WordNumber>>;
    template <class Hash>
    using index = Index<DenseMap<words, Hash>, words>;
};

}  // namespace grid
