// Where words start, on their way from whoever finds them to the table that counts them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scanner_words.hpp"

namespace scanner {

// A word ends where the next one starts, so one number a word is enough; `finish` gives the end of the last.
class Starts {
  public:
    static constexpr std::size_t batch = 512, slack = 256;
    static_assert(batch + slack <= Batch::size, "the table takes a batch at once");

    explicit Starts(WordTable& table) : table_(&table) {}

    // From now on words are counted in this table; all before have been.
    void into(WordTable& table) { table_ = &table; }

    // From now on places are places in this text.
    void begin(const byte* text) {
        text_ = text;
        open_ = none;
        number_ = 0;
        origin_ = 0;
    }

    // To be called at least once for each `slack` starts, with the place before which all are known: places are kept
    // as 32 bits from `origin`, and there is room for no more than `slack` beyond a batch.
    void make_room(std::size_t place) {
        if (number_ >= batch || place - origin_ >= farthest) flush(place);
    }

    // Room for starts as distances from `origin`, and how many were put there.
    std::uint32_t* room() { return starts_ + number_; }
    std::size_t origin() const { return origin_; }
    void put(std::size_t number) { number_ += number; }

    void push(std::size_t place) {
        make_room(place);
        starts_[number_++] = static_cast<std::uint32_t>(place - origin_);
    }

    void finish(std::size_t end) {
        if (open_ == none && number_ == 0) return;
        push(end);
        flush(end);
        open_ = none;
    }

  private:
    static constexpr std::size_t none = SIZE_MAX, farthest = std::size_t(1) << 31;

    __attribute__((noinline)) void flush(std::size_t place) {
        if (number_) {
            const std::size_t last = origin_ + starts_[number_ - 1];
            if (open_ == none) {
                if (number_ > 1) table_->count(Words{text_, origin_ + starts_[0], origin_, starts_ + 1, number_ - 1});
            } else {
                table_->count(Words{text_, open_, origin_, starts_, number_});
            }
            open_ = last;
            number_ = 0;
        }
        origin_ = place;
    }

    WordTable* table_;
    const byte* text_ = nullptr;
    std::size_t open_ = none;  // where the last word flushed starts
    std::size_t origin_ = 0;
    std::size_t number_ = 0;
    std::uint32_t starts_[batch + 2 * slack];
};

}  // namespace scanner
