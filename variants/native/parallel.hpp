// Threads, for work that falls into parts which do not touch each other.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace native {

// Calls work(part) for every part from 0 to parts - 1, each in a thread of its own, the last one in this thread, which
// alone may use a Progress. Returns when all have ended, and throws the first part's exception if any threw. Where
// a thread cannot be had, its part is done here.
template <class Work>
void in_parallel(std::size_t parts, Work work) {
    std::vector<std::exception_ptr> thrown(parts);
    const auto run_part = [&](std::size_t part) {
        try {
            work(part);
        } catch (...) {
            thrown[part] = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(parts);
    std::size_t started = 0;
    try {
        for (; started + 1 < parts; ++started) threads.emplace_back(run_part, started);
    } catch (const std::exception&) {
    }
    for (std::size_t part = started; part < parts; ++part) run_part(part);
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& exception : thrown)
        if (exception) std::rethrow_exception(exception);
}

// The same, and this thread calls while_waiting() twenty times a second from the end of its part to that of all others.
template <class Work, class WhileWaiting>
void in_parallel(std::size_t parts, Work work, WhileWaiting while_waiting) {
    std::mutex mutex;
    std::condition_variable part_ended;
    std::size_t ended = 0;
    in_parallel(parts, [&](std::size_t part) {
        std::exception_ptr thrown;
        try {
            work(part);
        } catch (...) {
            thrown = std::current_exception();
        }

        std::unique_lock<std::mutex> lock(mutex);
        ++ended;
        part_ended.notify_one();
        while (part + 1 == parts && ended < parts) {
            part_ended.wait_for(lock, std::chrono::milliseconds(50));
            lock.unlock();
            while_waiting();
            lock.lock();
        }
        if (thrown) std::rethrow_exception(thrown);
    });
}

// Where to cut [0, number) so that every part has about the same share of `size(index)` for the indices in it.
template <class Size>
std::vector<std::size_t> equal_shares(std::size_t number, std::size_t parts, Size size) {
    double total = 0, before = 0;
    for (std::size_t index = 0; index < number; ++index) total += static_cast<double>(size(index));
    std::vector<std::size_t> cuts{0};
    for (std::size_t index = 0; index < number; ++index) {
        const double of_index = static_cast<double>(size(index)), middle = before + of_index / 2;
        while (cuts.size() < parts && middle * static_cast<double>(parts) > total * static_cast<double>(cuts.size()))
            cuts.push_back(index);
        before += of_index;
    }
    cuts.resize(parts + 1, number);
    return cuts;
}

}  // namespace native
