// Inputs, results and progress reports shared by all compiled trainers: plain values, no global state.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

namespace native {

enum class TieBreak : int { greatest_bytes, smallest_bytes, huggingface, raw_bytes };
constexpr int tie_breaks = 4;

// What a byte is compared by where ids are: GPT-2 shows 188 bytes as themselves, and Hugging Face numbers those first.
inline std::uint32_t byte_number(std::uint32_t byte, TieBreak tie_break) {
    if (tie_break != TieBreak::huggingface) return byte;
    const auto is_shown = [](std::uint32_t b) { return (b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174; };
    std::uint32_t shown = 0;
    for (std::uint32_t before = 0; before < byte; ++before) shown += is_shown(before);
    return is_shown(byte) ? shown : 188 + byte - shown;
}

// The first eight bytes, the first one highest, filled up with zeros: where two prefixes differ, they order words and
// tokens as their bytes do, since a zero is no more than whatever the longer one has there.
inline std::uint64_t prefix_of(const std::uint8_t* bytes, std::uint64_t length) {
    std::uint64_t value = 0;
    for (unsigned place = 0; place < 8; ++place) value = value << 8 | (place < length ? bytes[place] : 0);
    return value;
}

// Whether two words meet before this byte: a blank behind what is neither a blank, a tab nor a line end.
inline bool is_border(const std::uint8_t* at) {
    return at[0] == ' ' && at[-1] != ' ' && at[-1] != '\t' && at[-1] != '\n' && at[-1] != '\r';
}

struct Words {
    const std::uint8_t* bytes = nullptr;
    std::size_t size = 0;                    // of bytes
    const std::int64_t* offsets = nullptr;   // number + 1 of them
    const std::uint64_t* counts = nullptr;
    std::size_t number = 0;
};

struct Merge {
    std::uint32_t left;   // ids, as the trainer numbers them
    std::uint32_t right;
};

enum Phase : int { convert, init, copy, max, update, phase_count };

// How much of some work there was, by the name that the meter has for it.
struct Tally {
    const char* name;
    std::uint64_t number;
};

// What has been learned up to now, the seconds of each phase, and in the end the work.
struct Training {
    std::vector<Merge> merges;
    double seconds[phase_count] = {};
    std::vector<Tally> work;
};

// Input that cannot be trained on; becomes ValueError.
struct Refused : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// Thrown through the trainer when the reporter says stop; what was learned so far is the answer.
struct Stopped {};

// Called at most ten times a second with what has been learned so far; false: stop.
using Report = bool (*)(void* context, const Training& so_far);

// Steps of long work after which to look whether it is to end.
constexpr std::uint64_t steps_between_looks = 65536;

// The stopwatch that gives time to phases and asks now and then whether to go on.
class Progress {
  public:
    Progress(Training& training, Report report, void* context) : training_(training), report_(report), context_(context) {
        mark_ = reported_ = Clock::now();
    }

    // Gives the time since the last lap to `phase`.
    void lap(Phase phase) {
        const Clock::time_point now = Clock::now();
        training_.seconds[phase] += std::chrono::duration<double>(now - mark_).count();
        mark_ = now;
    }

    // Counts steps of some nanoseconds each; every so many of them it looks at the clock and reports if it is time.
    // `phase` is what is going on.
    void advance(std::uint64_t steps, Phase phase) {
        if (steps < left_) {
            left_ -= steps;
            return;
        }
        left_ = steps_between_looks;
        report_if_it_is_time(phase);
    }

    // The same for any thread after `steps_between_looks` steps: the one that made this object reports, all end if it says stop.
    void look(Phase phase) {
        if (stopped_) throw Stopped{};
        if (std::this_thread::get_id() == reporter_) advance(steps_between_looks, phase);
    }

  private:
    using Clock = std::chrono::steady_clock;

    // Not inlined, so that `advance` is, everywhere.
    __attribute__((noinline)) void report_if_it_is_time(Phase phase) {
        const Clock::time_point now = Clock::now();
        if (now - reported_ < std::chrono::milliseconds(100)) return;
        lap(phase);
        const bool go_on = report_(context_, training_);
        mark_ = reported_ = Clock::now();
        if (go_on) return;
        stopped_ = true;
        throw Stopped{};
    }

    Training& training_;
    Report report_;
    void* context_;
    Clock::time_point mark_, reported_;
    const std::thread::id reporter_ = std::this_thread::get_id();
    std::atomic<bool> stopped_{false};
    std::uint64_t left_ = steps_between_looks;
};

// The largest that any pair's count, and with it every sum of a trainer, may become.
constexpr std::uint64_t largest_count = INT64_MAX;

// Refuses offsets that do not rise within the bytes, and weights whose sums could pass 63 bits.
inline void check_columns(const Words& words) {
    bool rising = words.offsets[0] >= 0 && words.offsets[words.number] <= static_cast<std::int64_t>(words.size);
    bool over = false;
    unsigned __int128 total = 0;
    for (std::size_t word = 0; word < words.number; ++word) {
        const std::uint64_t begin = static_cast<std::uint64_t>(words.offsets[word]);
        const std::uint64_t length = static_cast<std::uint64_t>(words.offsets[word + 1]) - begin;
        rising &= words.offsets[word] <= words.offsets[word + 1];
        over |= words.counts[word] > largest_count;
        total += static_cast<unsigned __int128>(words.counts[word]) * (length ? length - 1 : 0);
    }
    if (!rising)
        throw Refused("the words' offsets do not rise from 0 to the size of their bytes; count the words again");
    if (over || total > largest_count)
        throw Refused("the words hold more than 2**63 - 1 adjacent positions by weight; divide the counts");
}

}  // namespace native
