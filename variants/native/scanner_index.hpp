// An index of words by their hashes: what counting and encoding have in common.
#pragma once

#include "memory.hpp"
#include "scanner_classes.hpp"

namespace scanner {

using namespace native;

// A word that does not fit into its slot; who has the index knows the word by its place.
struct LongSlot {
    std::uint32_t tag;     // the top of the hash
    std::uint32_t place;   // 0 in a free slot
    bool taken() const { return place != 0; }
    std::uint64_t hash() const { return std::uint64_t{tag} << 32; }
};

// A long word in the text, before it is looked for.
struct LongWord {
    const byte* word;
    std::size_t length;
    std::uint64_t hash;
    std::uint32_t tag() const { return static_cast<std::uint32_t>(hash >> 32); }
};

// Slots, a power of two, at most six tenths of them taken. A word's home is the top of its hash; it lies there or, behind
// taken slots only, in the next free one.
template <class Slot>
class Index {
  public:
    explicit Index(unsigned bits) : slots_(std::size_t{1} << bits), shift_(64 - bits) {}

    Array<Slot>& slots() { return slots_; }
    const Array<Slot>& slots() const { return slots_; }
    unsigned shift() const { return shift_; }
    Slot& home(std::uint64_t hash) { return slots_[hash >> shift_]; }

    // The slot that holds a word, or the free one where it belongs, from a place on.
    template <class IsWord>
    Slot* find(std::size_t place, IsWord is_word) {
        Slot* const slots = slots_.data();
        const std::size_t last = slots_.size() - 1;
        while (slots[place].taken() && !is_word(slots[place])) place = (place + 1) & last;
        return slots + place;
    }

    // Makes room for so many words. Since a home is the top of the hash, the slots are copied from front to back.
    template <class HashOf>
    void reserve(std::size_t words, HashOf hash_of) {
        unsigned bits = 64 - shift_;
        while (words > (std::size_t{1} << bits) / 10 * 6) ++bits;
        if (bits == 64 - shift_) return;
        if (bits < few_bits) ++bits;   // while it is small, fourfold growth copies half as often

        Index larger(bits);
        for (const Slot& slot : slots_)
            if (slot.taken()) *larger.find(hash_of(slot) >> larger.shift_, [](const Slot&) { return false; }) = slot;
        *this = std::move(larger);
    }

  private:
    static constexpr unsigned few_bits = 18;
    Array<Slot> slots_;
    unsigned shift_;
};

}  // namespace scanner
