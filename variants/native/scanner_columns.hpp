// Arrays that grow in place where the system can move their pages, and are handed to Python as they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
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

// Memory, and how much of the address space it takes; 0 means that it came from malloc.
struct Memory {
    void* start = nullptr;
    std::size_t mapped = 0;

    Memory() = default;
    Memory(void* start, std::size_t mapped) : start(start), mapped(mapped) {}
    Memory(Memory&& other) noexcept { swap(other); }
    Memory& operator=(Memory&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Memory() {
#if defined(__linux__)
        if (start && mapped) {
            ::munmap(start, mapped);
            return;
        }
#endif
        std::free(start);
    }
    void swap(Memory& other) noexcept {
        std::swap(start, other.start);
        std::swap(mapped, other.mapped);
    }
};

#if defined(__linux__)
// Address space that begins at a huge page and may not be touched yet; nullptr if there is not so much of it.
inline void* reserved_space(std::size_t bytes) {
    void* mapping = ::mmap(nullptr, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return nullptr;
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(mapping);
    const std::uintptr_t start = (first + huge_page - 1) / huge_page * huge_page;
    if (start > first) ::munmap(mapping, start - first);
    if (first + huge_page > start) ::munmap(reinterpret_cast<void*>(start + bytes), first + huge_page - start);
    return reinterpret_cast<void*>(start);
}
#endif

// Plain values that grow without being copied: few in memory from malloc, many in address space reserved for more.
template <class Value>
class Column {
    static_assert(huge_page % sizeof(Value) == 0, "what is opened holds whole values");

  public:
    Column() = default;
    Column(const Column&) = delete;
    Column& operator=(const Column&) = delete;
    ~Column() { const Memory freed{values_, reserved_}; }

    void reserve(std::size_t size) {
        if (__builtin_expect(size > capacity_, 0)) grow(size);
    }
    // Gives the memory away, cut to size.
    Memory release(std::size_t size) {
        reserve(std::max<std::size_t>(size, 1));
#if defined(__linux__)
        const std::size_t kept = (size * sizeof(Value) + huge_page) / huge_page * huge_page;
        if (reserved_ > kept && ::munmap(reinterpret_cast<char*>(values_) + kept, reserved_ - kept) == 0) reserved_ = kept;
#endif
        capacity_ = 0;
        return {std::exchange(values_, nullptr), std::exchange(reserved_, 0)};
    }

    Value* data() { return values_; }
    const Value* data() const { return values_; }
    Value& operator[](std::size_t index) { return values_[index]; }
    const Value& operator[](std::size_t index) const { return values_[index]; }

  private:
    static constexpr std::size_t few = std::size_t(1) << 20, first_reserved = std::size_t(1) << 30;

    __attribute__((noinline)) void grow(std::size_t size) {
        const std::size_t most = SIZE_MAX / 8 / sizeof(Value);
        if (size > most) throw std::bad_alloc();
        const std::size_t bytes = std::max(size, capacity_ + capacity_ / 2 + 1024) * sizeof(Value);
#if defined(__linux__)
        if (bytes > few) return grow_in_space((bytes + huge_page - 1) / huge_page * huge_page);
#endif
        void* moved = std::realloc(values_, bytes);
        if (!moved) throw std::bad_alloc();
        values_ = static_cast<Value*>(moved);
        capacity_ = bytes / sizeof(Value);
    }
#if defined(__linux__)
    // What is reserved counts against no limit until it is opened.
    void grow_in_space(std::size_t bytes) {
        if (bytes > reserved_) {
            std::size_t space = std::max(first_reserved, 4 * bytes);
            void* start = reserved_space(space);
            if (!start) start = reserved_space(space = bytes);
            if (!start) throw std::bad_alloc();
            Memory moved{start, space};
            const std::size_t held = capacity_ * sizeof(Value);
            if (reserved_ ? ::mremap(values_, held, held, MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED
                          : ::mprotect(start, bytes, PROT_READ | PROT_WRITE) != 0)
                throw std::bad_alloc();
            if (!reserved_) {
                if (held) std::memcpy(start, values_, held);
                std::free(values_);
            } else if (reserved_ > held) {
                ::munmap(reinterpret_cast<char*>(values_) + held, reserved_ - held);
            }
            values_ = static_cast<Value*>(std::exchange(moved.start, nullptr));
            reserved_ = std::exchange(moved.mapped, 0);
        }
        if (::mprotect(values_, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        ask_for_huge_pages(values_, bytes);
        capacity_ = bytes / sizeof(Value);
    }
#endif

    Value* values_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t reserved_ = 0;  // bytes of address space; 0: the memory came from malloc
};

// Slots that begin as zeros; large arrays ask for huge pages before anyone touches them.
template <class Slot>
class Slots {
  public:
    explicit Slots(std::size_t size) : size_(size) {
        const std::size_t bytes = size * sizeof(Slot);
#if defined(__linux__)
        if (bytes >= huge_page) {   // both are powers of two
            memory_ = {reserved_space(bytes), bytes};
            if (!memory_.start || ::mprotect(memory_.start, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
            ask_for_huge_pages(memory_.start, bytes);
            return;
        }
#endif
        memory_.start = std::calloc(size, sizeof(Slot));
        if (!memory_.start) throw std::bad_alloc();
    }
    Slots(const Slots&) = delete;
    Slots& operator=(Slots&& other) noexcept {
        memory_.swap(other.memory_);
        std::swap(size_, other.size_);
        return *this;
    }

    std::size_t size() const { return size_; }
    Slot* data() { return static_cast<Slot*>(memory_.start); }
    const Slot* begin() const { return static_cast<const Slot*>(memory_.start); }
    const Slot* end() const { return begin() + size_; }

  private:
    std::size_t size_;  // a power of two
    Memory memory_;
};

}  // namespace scanner
