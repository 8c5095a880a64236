// Lets one allocation after the other fail, or all from one on, while the encoder, the scanner, flat or the replay is used:
// each must end in std::bad_alloc or with the result that it has otherwise, and then the same object gives that result. To be
// compiled with sanitizers and linked with --wrap for the functions below.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "encoder.hpp"
#include "flat.hpp"
#include "replay_judge.hpp"
#include "scanner.hpp"
#include "scanner_members.hpp"

namespace {

constexpr long none = -1;
std::atomic<long> allocations{0}, failing{none};
std::atomic<bool> all_behind{false};

bool fails() {
    const long number = allocations++, first = failing;
    return first != none && (all_behind ? number >= first : number == first);
}

}  // namespace

extern "C" {
// `new` is ours, by malloc.
const char* __asan_default_options() { return "alloc_dealloc_mismatch=0"; }
void* __real_malloc(std::size_t);
void* __real_calloc(std::size_t, std::size_t);
void* __real_realloc(void*, std::size_t);
int __real_posix_memalign(void**, std::size_t, std::size_t);
void* __real_mmap(void*, std::size_t, int, int, int, long);
void* __real_mremap(void*, std::size_t, std::size_t, int, void*);
int __real_mprotect(void*, std::size_t, int);
void* __wrap_malloc(std::size_t bytes) { return fails() ? nullptr : __real_malloc(bytes); }
void* __wrap_calloc(std::size_t number, std::size_t bytes) { return fails() ? nullptr : __real_calloc(number, bytes); }
void* __wrap_realloc(void* memory, std::size_t bytes) { return fails() ? nullptr : __real_realloc(memory, bytes); }
int __wrap_posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
    return fails() ? 12 : __real_posix_memalign(memory, alignment, bytes);
}
void* __wrap_mmap(void* start, std::size_t bytes, int protection, int flags, int file, long offset) {
    return fails() ? MAP_FAILED : __real_mmap(start, bytes, protection, flags, file, offset);
}
void* __wrap_mremap(void* start, std::size_t old, std::size_t bytes, int flags, void* place) {
    return fails() ? MAP_FAILED : __real_mremap(start, old, bytes, flags, place);
}
int __wrap_mprotect(void* start, std::size_t bytes, int protection) {
    return fails() ? -1 : __real_mprotect(start, bytes, protection);
}
}

void* operator new(std::size_t bytes) {
    void* const memory = fails() ? nullptr : __real_malloc(bytes ? bytes : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    void* memory = nullptr;
    if (fails() || __real_posix_memalign(&memory, static_cast<std::size_t>(alignment), bytes)) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

bool go_on(void*, const flat::Training&) { return true; }

using Merges = std::vector<std::uint64_t>;

Merges merges_of(const flat::Answer& answer) {
    Merges merges;
    for (const flat::Merge& merge : answer.merges) merges.push_back(flat::key_of(merge.left, merge.right));
    return merges;
}

bool leave_out(void* words, std::int64_t, scanner::WordTable::Columns& columns) {
    *static_cast<std::size_t*>(words) += columns.words - columns.first;
    return true;
}

// The counts of the words in a file, or how many there are in the tables that were handed over.
Merges scanned(std::FILE* file, std::size_t table_bytes) {
    const std::string classes(2 * scanner::Classes::number_of_pages, '\0'), page(scanner::Classes::page_size, '\0');
    std::size_t handed_over = 0;
    const std::string lines{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    scanner::Scan scan(::fileno(file), lines, 0, {0, 500, 1000}, {"<|e|>"}, classes, page, std::string(32, 'x'), 512,
                       table_bytes ? leave_out : nullptr, table_bytes, false, &handed_over);
    scan.start();
    while (!scan.wait(1)) {
    }
    scan.finish();
    if (handed_over) return {handed_over};
    const auto* const counts = static_cast<const std::uint64_t*>(scan.columns.counts.start);
    return {counts + scan.columns.first, counts + scan.columns.words};
}

// Makes an object and returns what uses it.
using Make = std::function<std::function<Merges()>()>;

bool each_failure_is_told(const char* name, const Make& make) {
    failing = none;
    const std::function<Merges()> undisturbed = make();
    allocations = 0;
    const Merges expected = undisturbed();
    const long all = allocations;
    for (const bool behind : {false, true}) {
        all_behind = behind;
        for (long number = 0; number < all; ++number) {
            const std::function<Merges()> use = make();
            allocations = 0;
            failing = number;
            bool same = true;
            try {
                const Merges result = use();
                failing = none;
                same = result == expected;
            } catch (const std::bad_alloc&) {
                failing = none;
            }
            if (same && use() == expected) continue;
            std::printf("%s gives another result when allocation %ld fails%s\n", name, number, same ? ", the next time" : "");
            return false;
        }
    }
    std::printf("%s: some of %ld allocations failed, and nothing else did\n", name, all);
    return true;
}

// An encoder with small tables, which grow and begin anew, and its ids of a text with words of every kind.
Make encoding(const std::vector<flat::Merge>& merges, bool narrow, std::size_t threads) {
    encoder::Settings settings;
    settings.merges = merges;
    settings.ids.resize(flat::first_merge + merges.size());
    for (std::size_t id = 0; id < settings.ids.size(); ++id) settings.ids[id] = static_cast<std::uint32_t>(id);
    settings.specials = {"<|e|>"};
    settings.special_ids = {7};
    settings.pattern = members::named[0];
    settings.numbers = std::string(2 * scanner::Classes::number_of_pages, '\0');
    settings.pages = std::string(scanner::Classes::page_size, '\0');
    for (char letter = 'a'; letter <= 'z'; ++letter) settings.pages[static_cast<std::size_t>(letter)] = scanner::letter;
    settings.pages[' '] = settings.pages['\n'] = scanner::space;
    settings.seed = std::string(32, 'x');
    settings.sizes = {400, 900, 60, 20, 30000, 3, 3};
    std::string text = "<|e|>";
    for (unsigned number = 0; number < 240; ++number) {
        for (unsigned digit = number * 7 + 3; digit; digit /= 5) text += "abcxy"[digit % 5];
        text += std::string(number % 9 == 0 ? 20 + number : 0, "ab"[number % 2]) + (number % 31 ? " " : "<|e|> \xFF");
    }
    text += std::string(3000, 'c');   // tokens in a buffer that grows
    return [=] {
        const std::shared_ptr<encoder::Encoder> one = encoder::encoder_of(settings, narrow);
        return [=] {
            Merges ids;
            one->encode({encoder::Text{text.data(), text.size(), 0, false}}, threads);
            for (std::size_t index = 0; index < one->size(); ++index)
                ids.push_back(narrow ? static_cast<const std::uint16_t*>(one->data())[index]
                                     : static_cast<const std::uint32_t*>(one->data())[index]);
            one->release();
            return ids;
        };
    };
}

// What has no state: a new object for each use.
Make anew(std::function<Merges()> use) {
    return [=] { return use; };
}

}  // namespace

int main() {
    std::mt19937 dice(1);
    std::vector<std::uint8_t> bytes;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint64_t> counts;
    for (unsigned word = 0; word < 40; ++word) {
        for (unsigned left = 2 + dice() % 20; left; --left) bytes.push_back(static_cast<std::uint8_t>("ab c:"[dice() % 5]));
        offsets.push_back(static_cast<std::int64_t>(bytes.size()));
        counts.push_back(word % 7 ? 1 + dice() % 3 : 70'000);   // more than a cell of two bytes can hold
    }
    const flat::Words words{bytes.data(), bytes.size(), offsets.data(), counts.data(), counts.size()};
    const auto id = [](char byte) { return flat::first_byte + static_cast<std::uint8_t>(byte); };
    const std::vector<flat::Merge> inherited{{id('a'), id('b')}, {flat::first_merge, id('c')}, {id(' '), id('a')}};
    const flat::Extension extension{true, {}};
    flat::Options options;
    options.num_merges = 60;
    options.part = 16;
    const auto train = [&] { return merges_of(flat::train(words, options, go_on, nullptr)); };
    const auto extend = [&] {
        const auto pieces = std::make_shared<flat::Pieces>(inherited.data(), inherited.size(), scanner::Seed{{1, 2, 3, 4}});
        return [=] { return merges_of(flat::extend(*pieces, options, extension, go_on, nullptr, &words)); };
    };
    const std::vector<flat::Merge> trained = flat::train(words, options, go_on, nullptr).merges;
    const auto replay = [&] {
        std::vector<std::uint32_t> lefts, rights;
        for (const flat::Merge& merge : trained) {
            lefts.push_back(merge.left - flat::first_byte);
            rights.push_back(merge.right - flat::first_byte);
        }
        replay::Question question;
        question.num_merges = trained.size();
        const replay::Claims claims{lefts.data(), rights.data(), trained.size(), 0, nullptr};
        return Merges{replay::judge(words, claims, question, [](void*, std::uint64_t) { return true; }, nullptr).right};
    };
    if (replay() != Merges{trained.size()}) return 1;
    std::FILE* const file = std::tmpfile();
    for (int line = 0; line < 100; ++line) std::fprintf(file, "line %04d\n", line / 2);
    std::fflush(file);
    for (const std::size_t table_bytes : {0, 1})
        if (!each_failure_is_told("count", anew([&] { return scanned(file, table_bytes); }))) return 1;
    if (!each_failure_is_told("replay", anew(replay))) return 1;
    for (const std::size_t threads : {1, 3})
        for (const bool narrow : {true, false})
            if (!each_failure_is_told("encode", encoding(trained, narrow, threads))) return 1;
    for (options.threads = 1; options.threads <= 3; options.threads += 2)
        if (!each_failure_is_told("train", anew(train)) || !each_failure_is_told("extend", extend)) return 1;
}
