// Memory of the compiled parts: arrays of a fixed size, and columns that grow in place and go to Python without a copy.
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

namespace native {

constexpr std::size_t huge_page = std::size_t{2} << 20;

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
#ifdef __linux__
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

#ifdef __linux__
inline std::size_t in_huge_pages(std::size_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

// Address space in whole huge pages that may not be touched yet; nothing if there is not so much of it.
inline Memory reserved_space(std::size_t bytes) {
    void* mapping = ::mmap(nullptr, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return {};
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(mapping), start = in_huge_pages(first);
    if (start > first) ::munmap(mapping, start - first);
    if (first + huge_page > start) ::munmap(reinterpret_cast<void*>(start + bytes), first + huge_page - start);
    return {reinterpret_cast<void*>(start), bytes};
}

// Opens the beginning of reserved space. Before anything is touched it asks for huge pages: then the first touches cost the
// kernel a hundredth of the faults, and jumping about misses the address cache less. Where that is not granted, small ones do.
inline void open_space(void* start, std::size_t bytes) {
    if (::mprotect(start, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    ::madvise(start, bytes, MADV_HUGEPAGE);
}
#endif

// Plain values, all zero at first. A large array has pages of its own, which are first touched by whoever fills them.
template <class Value>
class Array {
  public:
    Array() = default;
    explicit Array(std::size_t size) : size_(size) {
        if (size > SIZE_MAX / 2 / sizeof(Value)) throw std::bad_alloc();
        const std::size_t bytes = std::max(size * sizeof(Value), std::size_t{1});
#ifdef __linux__
        if (bytes >= huge_page) {
            memory_ = reserved_space(in_huge_pages(bytes));
            if (!memory_.start) throw std::bad_alloc();
            open_space(memory_.start, memory_.mapped);
            return;
        }
#endif
        memory_.start = std::calloc(bytes, 1);
        if (!memory_.start) throw std::bad_alloc();
    }
    // Makes room for `index`, at least doubling.
    void reach(std::size_t index) {
        if (index < size_) return;
        Array roomier(std::max(index + 1, 2 * size_));
        std::copy_n(data(), size_, roomier.data());
        *this = std::move(roomier);
    }

    Value* data() { return static_cast<Value*>(memory_.start); }
    const Value* data() const { return static_cast<const Value*>(memory_.start); }
    std::size_t size() const { return size_; }
    Value& operator[](std::size_t index) { return data()[index]; }
    const Value& operator[](std::size_t index) const { return data()[index]; }
    const Value* begin() const { return data(); }
    const Value* end() const { return data() + size_; }

    Array(Array&& other) noexcept { *this = std::move(other); }
    Array& operator=(Array&& other) noexcept {
        memory_.swap(other.memory_);
        std::swap(size_, other.size_);
        return *this;
    }

  private:
    Memory memory_;
    std::size_t size_ = 0;
};

// Plain values that grow without being copied: few in memory from malloc, many in address space reserved for more.
template <class Value>
class Column {
    static_assert(huge_page % sizeof(Value) == 0, "what is opened holds whole values");

  public:
    void reserve(std::size_t size) {
        if (__builtin_expect(size > capacity_, 0)) grow(size);
    }
    // Gives the values away: few as a copy of their size, many with the memory that they lie in, cut to size.
    Memory release(std::size_t size) {
        reserve(std::max<std::size_t>(size, 1));
        if (!memory_.mapped) return copy_of(size);
#ifdef __linux__
        const std::size_t used = in_huge_pages(size * sizeof(Value) + 1);
        if (memory_.mapped > used && ::munmap(at(used), memory_.mapped - used) == 0) memory_.mapped = used;
#endif
        capacity_ = 0;
        return std::move(memory_);
    }

    Value* data() { return static_cast<Value*>(memory_.start); }
    const Value* data() const { return static_cast<const Value*>(memory_.start); }
    Value& operator[](std::size_t index) { return data()[index]; }
    const Value& operator[](std::size_t index) const { return data()[index]; }

  private:
    static constexpr std::size_t few = std::size_t{1} << 20, first_reserved = std::size_t{1} << 30;
    void* at(std::size_t byte) { return static_cast<char*>(memory_.start) + byte; }

    Memory copy_of(std::size_t size) const {
        const std::size_t bytes = size * sizeof(Value);
        Memory copy(std::malloc(std::max<std::size_t>(bytes, 1)), 0);
        if (!copy.start) throw std::bad_alloc();
        std::memcpy(copy.start, memory_.start, bytes);
        return copy;
    }

    __attribute__((noinline)) void grow(std::size_t size) {
        if (size > SIZE_MAX / 8 / sizeof(Value)) throw std::bad_alloc();
        const std::size_t bytes = std::max(size, capacity_ + capacity_ / 2 + 1024) * sizeof(Value);
#ifdef __linux__
        if (bytes > few) return grow_in_space(in_huge_pages(bytes));
#endif
        void* const moved = std::realloc(memory_.start, bytes);
        if (!moved) throw std::bad_alloc();
        memory_.start = moved;
        capacity_ = bytes / sizeof(Value);
    }
#ifdef __linux__
    // What is reserved counts against no limit until it is opened.
    void grow_in_space(std::size_t bytes) {
        if (bytes > memory_.mapped) {
            Memory space = reserved_space(std::max(first_reserved, 4 * bytes));
            if (!space.start) space = reserved_space(bytes);
            if (!space.start) throw std::bad_alloc();
            const std::size_t held = capacity_ * sizeof(Value);
            if (!memory_.mapped) {
                open_space(space.start, bytes);
                if (held) std::memcpy(space.start, memory_.start, held);
            } else if (::mremap(memory_.start, held, held, MREMAP_MAYMOVE | MREMAP_FIXED, space.start) == MAP_FAILED) {
                throw std::bad_alloc();
            } else if (memory_.mapped > held) {
                ::munmap(at(held), memory_.mapped - held);
            }
            const bool moved = memory_.mapped;
            memory_.swap(space);
            if (moved) space.start = nullptr;   // its pages have
        }
        open_space(memory_.start, bytes);
        capacity_ = bytes / sizeof(Value);
    }
#endif

    Memory memory_;
    std::size_t capacity_ = 0;
};

}  // namespace native
