// Inputs, results and progress reports shared by all compiled trainers: plain values, no global state.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace native {

enum class TieBreak : int { greatest_bytes, smallest_bytes, huggingface, raw_bytes };

// GPT-2 shows 188 bytes as themselves, and Hugging Face numbers those first, then the other 68.
inline bool shown_as_itself(unsigned byte) {
    return (byte >= 33 && byte < 127) || (byte >= 161 && byte < 173) || byte >= 174;
}

// The columns of WordCounts.
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

// The stopwatch that gives time to phases and asks now and then whether to go on.
class Watch {
  public:
    Watch(Training& training, Report report, void* context) : training_(training), report_(report), context_(context) {
        mark_ = reported_ = Clock::now();
    }

    // Gives the time since the last lap to `phase`.
    void lap(Phase phase) {
        const Clock::time_point now = Clock::now();
        training_.seconds[phase] += std::chrono::duration<double>(now - mark_).count();
        mark_ = now;
        phase_ = phase;
    }

    // Counts steps of some nanoseconds each; every 65,536 of them it looks at the clock and reports if it is time.
    // `phase` is what is going on.
    void worked(std::uint64_t steps, Phase phase) {
        if (steps < left_) {
            left_ -= steps;
            return;
        }
        left_ = steps_between_looks;
        const Clock::time_point now = Clock::now();
        if (now - reported_ < std::chrono::milliseconds(100)) return;
        lap(phase);
        const bool go_on = report_(context_, training_);
        mark_ = reported_ = Clock::now();
        if (!go_on) throw Stopped{};
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::uint64_t steps_between_looks = 65536;
    Training& training_;
    Report report_;
    void* context_;
    Clock::time_point mark_, reported_;
    std::uint64_t left_ = steps_between_looks;
    Phase phase_ = convert;
};

}  // namespace native
