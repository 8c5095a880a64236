// A set whose elements stand in the chained cells themselves: the layout of emhash9. One array instead of two, so a
// small set is one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grid_chains.hpp"

namespace grid {

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
    std::size_t size() const { return chains_.used(); }
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

}  // namespace grid
