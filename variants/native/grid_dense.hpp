// Tables whose entries stand in one array, with an index of chained cells beside it: the layout of emhash8.
//
// Whoever looks at all entries walks an array without a hole, which is what the scan for the maximum wants. An erased
// entry is replaced by the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "grid_chains.hpp"

namespace grid {

struct ItsOwnKey {
    template <class Entry>
    const Entry& operator()(const Entry& entry) const { return entry; }
};

struct FirstIsKey {
    template <class Entry>
    const auto& operator()(const Entry& entry) const { return entry.first; }
};

template <class Key, class Entry, class KeyOf, class Hash>
class DenseTable {
  public:
    using iterator = typename std::vector<Entry>::iterator;
    using const_iterator = typename std::vector<Entry>::const_iterator;

    iterator begin() { return entries_.begin(); }
    iterator end() { return entries_.end(); }
    const_iterator begin() const { return entries_.begin(); }
    const_iterator end() const { return entries_.end(); }
    std::size_t size() const { return entries_.size(); }
    const Entry& entry(std::size_t number) const { return entries_[number]; }

    iterator find(const Key& key) { return entries_.begin() + static_cast<std::ptrdiff_t>(slot(key)); }
    const_iterator find(const Key& key) const { return entries_.begin() + static_cast<std::ptrdiff_t>(slot(key)); }
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

template <class Value, class Hash>
class DenseMap : public DenseTable<std::uint64_t, std::pair<std::uint64_t, Value>, FirstIsKey, Hash> {
  public:
    Value& operator[](std::uint64_t key) {
        std::size_t at = this->slot(key);
        if (at == this->size()) this->append({key, Value()});
        return this->entries_[at].second;
    }
};

template <class Key, class Hash>
using DenseSet = DenseTable<Key, Key, ItsOwnKey, Hash>;

}  // namespace grid
