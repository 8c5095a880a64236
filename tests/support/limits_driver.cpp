// What no table of a usual size shows: long work looks whether it is to end, and the index of words has a limit.
// Prints a line for each fact that is as it should be.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "encoder.hpp"
#include "flat.hpp"
#include "scanner.hpp"
#include "scanner_members.hpp"

namespace {

bool as_it_says(void* goes_on, const flat::Training&) { return *static_cast<bool*>(goes_on); }

struct Asked {
    unsigned times = 0;
    unsigned last = ~0u;   // the time at which the answer is no
};
bool ask(void* context) {
    Asked& asked = *static_cast<Asked*>(context);
    return ++asked.times < asked.last;
}

std::string ab_of(std::size_t size) {
    std::string bytes;
    std::uint32_t random = 1;
    while (bytes.size() < size) bytes += "ab"[(random = random * 1664525 + 1013904223) >> 31];
    return bytes;
}
constexpr std::uint32_t a = flat::first_byte + 'a', b = flat::first_byte + 'b';
const std::vector<flat::Merge> merges{{a, a}, {a, b}, {b, a}, {b, b}};   // so no place is cut

void take_one_long_piece() {
    const std::string bytes = ab_of(1'000'000);
    const std::int64_t offsets[] = {0, static_cast<std::int64_t>(bytes.size())};
    const std::uint64_t count = 1;
    const flat::Words words{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), offsets, &count, 1};
    flat::Pieces pieces(merges.data(), merges.size(), scanner::Seed{{1, 2, 3, 4}});
    Asked asked;
    pieces.ask_by(ask, &asked);

    pieces.begin(1);
    if (pieces.take_unless_stopped(0, words) && asked.times >= bytes.size() / 65'536)
        std::puts("a long piece asks every 65,536 steps");

    asked = {0, 3};
    pieces.begin(1);
    if (!pieces.take_unless_stopped(0, words) && asked.times == 3) std::puts("and ends at a no");
}

// A word for which the encoder takes longer than the tenth of a second between two questions.
void encode_one_long_word() {
    encoder::Settings settings;
    settings.merges = merges;
    for (std::uint32_t id = 0; id < flat::first_merge + merges.size(); ++id) settings.ids.push_back(id);
    settings.pattern = members::named[4];
    settings.numbers = std::string(2 * scanner::Classes::number_of_pages, '\0');
    settings.pages = std::string(scanner::Classes::page_size, '\0');
    settings.seed = std::string(32, 'x');
    const auto one = encoder::encoder_of(settings, true);
    const std::string bytes = ab_of(8'000'000);
    const std::vector<encoder::Text> text{{bytes.data(), bytes.size(), 0, false}};
    bool goes_on = false;
    if (!one->encode(text, 1, as_it_says, &goes_on)) std::puts("the encoder ends a long word at a no");

    one->encode(text, 1);
    const std::size_t ids = one->size();
    const auto another = encoder::encoder_of(settings, true);
    another->encode(text, 1);
    if (ids == another->size() && std::memcmp(one->data(), another->data(), 2 * ids) == 0)
        std::puts("and encodes it like a new one afterwards");
}

// Whether the next pop asks, and ends at a no.
bool ends(flat::Queue& queue, bool& goes_on) {
    goes_on = false;
    std::this_thread::sleep_for(std::chrono::milliseconds(110));   // then the next look reports
    try {
        queue.pop(1, 1);
    } catch (const flat::Stopped&) {
        goes_on = true;
        return true;
    }
    return false;
}

void pop_from_a_large_level() {
    constexpr std::uint32_t number = 700;
    flat::Tokens tokens(flat::TieBreak::greatest_bytes, false);
    while (tokens.size() < flat::first_byte + number) tokens.merge(flat::first_byte, tokens.size() - 1);
    bool goes_on = true;
    flat::Training training;
    flat::Tallies tallies;
    for (const bool is_formed : {false, true}) {
        flat::Progress progress(training, as_it_says, &goes_on);
        flat::PairTable table;
        flat::Queue queue(table, tokens, tallies, progress);
        for (std::uint32_t left = 0; left < number; ++left)
            for (std::uint32_t right = 0; right < number; ++right) {
                const flat::PairKey key = flat::key_of(flat::first_byte + left, flat::first_byte + right);
                table.insert(key, 5, nullptr, 1);
                queue.push(key, 5);
            }

        // A level is sorted by quarters: after the first, the next pop sorts what is left.
        for (std::uint32_t pops = 0; is_formed && pops < number * number / 4 + 1; ++pops) queue.pop(1, 1);
        if (ends(queue, goes_on)) std::puts(is_formed ? "sorting a large level asks" : "forming a large level asks");
    }
}

void wait_for_the_other_parts() {
    std::atomic<bool> asked{false};
    flat::in_parallel(
        2,
        [&](std::size_t part) {
            while (!part && !asked) std::this_thread::yield();
        },
        [&] { asked = true; });
    std::puts("a thread asks while it waits for others");
}

void count_too_many_words() {
    const auto hash = scanner::functions_of(scanner::Pattern{}, scanner::Path::portable).key_hash;
    scanner::WordTable table(scanner::Seed{{1, 2, 3, 4}}, hash, {}, SIZE_MAX);
    try {
        table.count(scanner::WordBatch{nullptr, 0, 0, nullptr, (std::size_t{1} << 30) + 1});
    } catch (const flat::Refused& refused) {
        std::puts(refused.what());
    }
}

}  // namespace

int main() {
    take_one_long_piece();
    encode_one_long_word();
    pop_from_a_large_level();
    wait_for_the_other_parts();
    count_too_many_words();
}
