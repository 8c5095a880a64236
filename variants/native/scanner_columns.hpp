// Arrays that grow in place where the system can move their pages, and are handed to Python as they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace scanner {

constexpr std::size_t huge_page = std::size_t(1) << 21;

// For memory that was not touched yet: fewer page faults and fewer misses of the address cache.
inline void ask_for_huge_pages(void* memory, std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const std::uintptr_t start = (reinterpret_cast<std::uintptr_t>(memory) + huge_page - 1) / huge_page * huge_page;
    const std::uintptr_t stop = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / huge_page * huge_page;
    if (start < stop) ::madvise(reinterpret_cast<void*>(start), stop - start, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

// Plain values in memory from malloc, so that whoever takes them over needs to know nothing but free.
template <class Value>
class Column {
  public:
    Column() = default;
    Column(Column&& other) noexcept { *this = std::move(other); }
    Column& operator=(Column&& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~Column() { std::free(values_); }

    void reserve(std::size_t size) {
        if (size <= capacity_) return;
        const std::size_t capacity = std::max(size, capacity_ + capacity_ / 2 + 1024);
        void* moved = capacity <= SIZE_MAX / sizeof(Value) ? std::realloc(values_, capacity * sizeof(Value)) : nullptr;
        if (!moved) throw std::bad_alloc();
        values_ = static_cast<Value*>(moved);
        capacity_ = capacity;
    }
    // Gives the memory away, cut to size.
    Value* release(std::size_t size) {
        void* cut = std::realloc(values_, std::max<std::size_t>(size, 1) * sizeof(Value));
        if (!cut) throw std::bad_alloc();
        values_ = nullptr;
        capacity_ = 0;
        return static_cast<Value*>(cut);
    }

    Value* data() { return values_; }
    const Value* data() const { return values_; }
    Value& operator[](std::size_t index) { return values_[index]; }
    const Value& operator[](std::size_t index) const { return values_[index]; }

  private:
    Value* values_ = nullptr;
    std::size_t capacity_ = 0;
};

// Slots that begin as zeros; large arrays ask for huge pages before anyone touches them.
template <class Slot>
class Slots {
  public:
    explicit Slots(std::size_t size) : size_(size) {
        const std::size_t bytes = size * sizeof(Slot);
#if defined(__linux__)
        if (bytes >= huge_page) {
            mapped_ = bytes + huge_page;  // enough to begin at a huge page
            mapping_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (mapping_ == MAP_FAILED) {
                mapping_ = nullptr;
                throw std::bad_alloc();
            }
            const std::uintptr_t aligned = (reinterpret_cast<std::uintptr_t>(mapping_) + huge_page - 1) / huge_page * huge_page;
            slots_ = reinterpret_cast<Slot*>(aligned);
            ask_for_huge_pages(slots_, bytes);
            return;
        }
#endif
        slots_ = static_cast<Slot*>(std::calloc(size, sizeof(Slot)));
        if (!slots_) throw std::bad_alloc();
    }
    Slots(const Slots&) = delete;
    Slots& operator=(Slots&& other) noexcept {
        std::swap(slots_, other.slots_);
        std::swap(size_, other.size_);
        std::swap(mapping_, other.mapping_);
        std::swap(mapped_, other.mapped_);
        return *this;
    }
    ~Slots() {
#if defined(__linux__)
        if (mapping_) {
            ::munmap(mapping_, mapped_);
            return;
        }
#endif
        std::free(slots_);
    }

    std::size_t size() const { return size_; }
    Slot* data() { return slots_; }
    const Slot* begin() const { return slots_; }
    const Slot* end() const { return slots_ + size_; }

  private:
    Slot* slots_ = nullptr;
    std::size_t size_ = 0;  // a power of two
    void* mapping_ = nullptr;
    std::size_t mapped_ = 0;
};

}  // namespace scanner
