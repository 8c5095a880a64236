// Memory of flat: arrays that are not initialised, and the pool that holds the occurrence lists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace flat {

// An array of plain values whose pages are first touched by whoever fills them. An allocation that fails throws
// std::bad_alloc, as everywhere here. A large one asks for huge pages, before anything is touched: then its first
// touches cost the kernel a hundredth of the faults, and jumping about in it does not miss the address cache.
template <class Value>
class Array {
  public:
    Array() = default;
    explicit Array(std::size_t size) : values_(allocate(size)), size_(size) {}
    Array(Array&& other) noexcept { swap(other); }
    Array& operator=(Array&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Array() { std::free(values_); }

    // All values zero.
    static Array zeros(std::size_t size) {
        Array array(size);
        std::memset(static_cast<void*>(array.values_), 0, size * sizeof(Value));
        return array;
    }
    // Makes room for `index`, at least doubling; new values are zero.
    void reach(std::size_t index) {
        if (index < size_) return;
        Array roomier = zeros(std::max(index + 1, 2 * size_));
        std::copy_n(values_, size_, roomier.values_);
        swap(roomier);
    }

    Value* data() { return values_; }
    const Value* data() const { return values_; }
    std::size_t size() const { return size_; }
    Value& operator[](std::size_t index) { return values_[index]; }
    const Value& operator[](std::size_t index) const { return values_[index]; }

  private:
    static constexpr std::size_t huge_page = std::size_t{2} << 20;

    template <class Other>
    friend class Growing;
    Array(Value* values, std::size_t size) : values_(values), size_(size) {}

    static Value* allocate(std::size_t size) {
        if (size > SIZE_MAX / 2 / sizeof(Value)) throw std::bad_alloc();
        const std::size_t bytes = std::max(size * sizeof(Value), std::size_t{1});
        void* allocated = nullptr;
#ifdef __linux__
        if (bytes >= huge_page) {
            if (posix_memalign(&allocated, huge_page, bytes)) throw std::bad_alloc();
            madvise(allocated, bytes, MADV_HUGEPAGE);   // advice: where it is not taken, small pages do
            return static_cast<Value*>(allocated);
        }
#endif
        allocated = std::malloc(bytes);
        if (!allocated) throw std::bad_alloc();
        return static_cast<Value*>(allocated);
    }
    void swap(Array& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(size_, other.size_);
    }
    Value* values_ = nullptr;
    std::size_t size_ = 0;
};

// Values whose number is known only in the end. Growing moves pages, not what is in them, where the system can.
template <class Value>
class Growing {
  public:
    Growing() = default;
    Growing(Growing&& other) noexcept { swap(other); }
    Growing& operator=(Growing&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Growing() { std::free(values_); }

    void reserve(std::size_t values) {
        if (values <= room_) return;
        resize(std::max({values, room_ + room_ / 4, smallest}));
    }
    Value* data() { return values_; }
    const Value* data() const { return values_; }

    // Gives the first `size` values away as an array, without the room behind them.
    Array<Value> release(std::size_t size) {
        resize(size);
        room_ = 0;
        return Array<Value>(std::exchange(values_, nullptr), size);
    }

  private:
    static constexpr std::size_t smallest = 1024;

    void resize(std::size_t values) {
        if (values > SIZE_MAX / 2 / sizeof(Value)) throw std::bad_alloc();
        void* const moved = std::realloc(static_cast<void*>(values_), std::max<std::size_t>(values, 1) * sizeof(Value));
        if (!moved) throw std::bad_alloc();
        values_ = static_cast<Value*>(moved);
        room_ = values;
    }
    void swap(Growing& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(room_, other.room_);
    }
    Value* values_ = nullptr;
    std::size_t room_ = 0;
};

// Hands out the occurrence lists and takes dead ones back. A list's size is known when it is made and never changes,
// so there is nothing to grow: fresh lists are cut from the end of the last chunk, or from a free extent. Free extents
// stand in bins, four for every power of two, found through a bitmap; the smallest bin whose extents are all large
// enough serves a request, and what is left over goes back. Neighbouring extents are not joined.
template <class Position>
class ListPool {
  public:
    Position* take(std::size_t entries) {
        entries = rounded(entries);
        if (Position* const list = pop(bin_for_request(entries))) {
            const std::size_t left = extent_at(list).entries - entries;
            if (left) push(list + entries, left);
            return list;
        }
        if (static_cast<std::size_t>(end_ - next_) < entries) add_chunk(entries);
        Position* const list = next_;
        next_ += entries;
        return list;
    }

    void give_back(Position* list, std::size_t entries) { push(list, rounded(entries)); }

    // Makes the first chunk as large as is wanted.
    void reserve(std::size_t entries) {
        if (!held_) add_chunk(rounded(entries));
    }

    // Forgets every list, keeps no memory.
    void clear() {
        chunks_.clear();
        for (Position*& bin : bins_) bin = nullptr;
        for (std::uint64_t& word : occupied_) word = 0;
        next_ = end_ = nullptr;
        held_ = 0;
    }

    std::size_t bytes_held() const { return held_ * sizeof(Position); }

  private:
    // What a free extent holds at its beginning.
    struct Extent {
        Position* next;
        std::size_t entries;
    };
    static constexpr std::size_t granule = sizeof(Extent) / sizeof(Position);
    static constexpr std::size_t bin_count = 4 * 64;
    static constexpr std::size_t first_chunk = std::size_t{1} << 14;

    static std::size_t rounded(std::size_t entries) { return (entries + granule - 1) / granule * granule; }

    static unsigned log2_of(std::size_t value) { return 63u - static_cast<unsigned>(__builtin_clzll(value)); }
    // Bins are numbered by the top three bits: 4 * log2 + the two bits below the leading one.
    static unsigned bin_of(std::size_t entries) {
        const unsigned log = log2_of(entries);
        return 4 * log + static_cast<unsigned>((log >= 2 ? entries >> (log - 2) : entries << (2 - log)) & 3);
    }
    // The first bin in which every extent is large enough: the sizes in a bin start at its number's own size.
    static unsigned bin_for_request(std::size_t entries) {
        const unsigned bin = bin_of(entries), log = bin / 4;
        const std::size_t smallest = (std::size_t{4} + bin % 4) << log >> 2;
        return smallest >= entries ? bin : bin + 1;
    }

    static Extent extent_at(const Position* list) {
        Extent extent;
        std::memcpy(&extent, list, sizeof extent);
        return extent;
    }

    void push(Position* list, std::size_t entries) {
        const unsigned bin = bin_of(entries);
        const Extent extent{bins_[bin], entries};
        std::memcpy(static_cast<void*>(list), &extent, sizeof extent);
        bins_[bin] = list;
        occupied_[bin / 64] |= std::uint64_t{1} << (bin % 64);
    }

    // The first extent in a bin numbered `from` or higher, which stays readable; null if there is none.
    Position* pop(unsigned from) {
        for (unsigned word = from / 64; word < bin_count / 64; ++word) {
            std::uint64_t candidates = occupied_[word];
            if (word == from / 64) candidates &= ~std::uint64_t{0} << (from % 64);
            if (!candidates) continue;
            const unsigned bin = 64 * word + static_cast<unsigned>(__builtin_ctzll(candidates));
            Position* const list = bins_[bin];
            bins_[bin] = extent_at(list).next;
            if (!bins_[bin]) occupied_[word] &= ~(std::uint64_t{1} << (bin % 64));
            return list;
        }
        return nullptr;
    }

    void add_chunk(std::size_t entries) {
        std::size_t size = std::max(first_chunk, held_ / 8 / granule * granule);
        size = std::max(size, entries);
        chunks_.emplace_back(size);
        if (next_ != end_) push(next_, static_cast<std::size_t>(end_ - next_));
        next_ = chunks_.back().data();
        end_ = next_ + size;
        held_ += size;
    }

    std::vector<Array<Position>> chunks_;
    Position* next_ = nullptr;
    Position* end_ = nullptr;
    Position* bins_[bin_count] = {};
    std::uint64_t occupied_[bin_count / 64] = {};
    std::size_t held_ = 0;
};

}  // namespace flat
