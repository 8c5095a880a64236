// libFuzzer's target: the first six bytes say how to scan, the rest is the text; tests/support/fuzz_scanner.py runs it.
//
// Every path that the machine has must find the words, documents and bad bytes that the reference finds, in one range
// and in several, whatever the size of the buffer.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "scanner.hpp"
#include "scanner_members.hpp"
#include "scanner_reference.hpp"

namespace {

const std::vector<std::vector<std::string>> special_tokens = {
    {},           {"<|endoftext|>"}, {"<|e|>", "<|e|>x", "x<|e|>"},           {"aa"},       {"ab", "bc"},
    {"aba", "bab"}, {"\n\n", " ", "\xC3\xA9"}, {"<|e|>", "a token of more than fifteen bytes"}, {"'s", " "}};
const std::size_t buffers[] = {8, 13, 64, 65, 200, std::size_t(1) << 18};
const std::size_t widths[] = {2, 3, 7, 16};

struct Setting {
    std::string numbers, pages, seed;
    std::unique_ptr<scanner::Classes> classes;
    std::unique_ptr<reference::Patterns> patterns;
    std::uint64_t bytes = 0, most = UINT64_MAX, runs = 0;
};

Setting& setting() {
    static Setting made;
    return made;
}

std::string asked_for(const char* name) {
    const char* value = std::getenv(name);
    if (!value) std::fprintf(stderr, "%s is not set; run python tests/support/fuzz_scanner.py\n", name), std::_Exit(2);
    return value;
}

struct Way {
    const std::string& pattern;
    int path;
    std::vector<std::int64_t> bounds;
    std::size_t buffer;
    const std::vector<std::string>& specials;
};

void expect(bool right, const char* what, const Way& way) {
    if (right) return;
    std::fprintf(stderr, "%s: path %d, %zu ranges, buffer %zu, pattern", what, way.path, way.bounds.size() - 1, way.buffer);
    for (const char slot : way.pattern) std::fprintf(stderr, " %d", slot);
    std::fprintf(stderr, "\n");
    std::abort();
}

void hold_against(const reference::Counted& want, int file, const Way& way) {
    ::lseek(file, 0, SEEK_SET);
    scanner::Scan scan(file, way.pattern, way.path, way.bounds, way.specials, setting().numbers, setting().pages,
                       setting().seed, way.buffer);
    scan.start();
    while (!scan.wait(1)) {
    }
    scan.finish();
    expect(scan.error == 0 && !scan.cut_off, "it could not be read", way);
    expect(scan.invalid_at == want.invalid_at, "another first bad byte", way);
    if (want.invalid_at >= 0) return;
    const auto& columns = scan.columns;
    expect(columns.words - columns.first == want.words.size(), "another number of words", way);
    expect(scan.documents == want.documents, "another number of documents", way);
    const auto* data = static_cast<const char*>(columns.data.start) + columns.bytes;
    const auto* offsets = static_cast<const std::int64_t*>(columns.offsets.start) + columns.first;
    const auto* counts = static_cast<const std::uint64_t*>(columns.counts.start) + columns.first;
    for (std::size_t i = 0; i < want.words.size(); ++i) {
        const std::string word(data + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
        expect(word == want.words[i].first, "another word", way);
        expect(counts[i] == want.words[i].second, "another count", way);
    }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    std::ifstream file(asked_for("SCANNER_CLASSES"), std::ios::binary);
    const std::string tables{std::istreambuf_iterator<char>(file), {}};
    const std::size_t split = 2 * scanner::Classes::number_of_pages;
    Setting& made = setting();
    made.numbers = tables.substr(0, split);
    made.pages = tables.substr(split);
    made.seed = std::string(32, '\x5b');
    const auto* pages = reinterpret_cast<const scanner::byte*>(made.pages.data());
    made.classes = std::make_unique<scanner::Classes>(reinterpret_cast<const scanner::byte*>(made.numbers.data()),
                                                      made.numbers.size(), pages, made.pages.size());
    made.patterns = std::make_unique<reference::Patterns>(*made.classes);
    made.most = std::strtoull(asked_for("SCANNER_BYTES").c_str(), nullptr, 10);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 6) return 0;
    Setting& made = setting();
    const std::size_t choices = members::named.size() + 5;   // five in sixteen are members that nobody has published
    const bool is_named = data[0] % choices < members::named.size();
    const std::string pattern = is_named ? members::named[data[0] % choices]
                                         : members::member(data[3] | data[4] << 8 | data[5] << 16);
    const std::vector<std::string>& specials = special_tokens[data[0] / choices % special_tokens.size()];
    const std::size_t buffer = buffers[data[1] % std::size(buffers)], width = widths[data[2] % std::size(widths)];
    const std::string content(reinterpret_cast<const char*>(data) + 6, size - 6);
    const auto asked = scanner::Pattern::of(pattern);
    const reference::Counted want = reference::Counter(made.patterns->of(asked), specials).count(content);

    // A document goes whole, whatever is in it.
    const bool cuttable = !asked.of_documents();
    std::vector<std::int64_t> bounds = {0};
    for (std::size_t part = 1; part < width && cuttable; ++part) {
        const std::int64_t from = static_cast<std::int64_t>(content.size() * part / width);
        const std::int64_t place = scanner::first_cut_in(content, from, pattern, specials, made.numbers, made.pages);
        if (place > bounds.back() && place < static_cast<std::int64_t>(content.size())) bounds.push_back(place);
    }
    bounds.push_back(static_cast<std::int64_t>(content.size()));
    static const int file = ::memfd_create("text", 0);
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
        std::abort();
    for (int path = 0; path < scanner::number_of_paths; ++path) {
        if (!scanner::supported(static_cast<scanner::Path>(path))) continue;
        hold_against(want, file, Way{pattern, path, {0, scanner::until_end}, buffer, specials});
        if (bounds.size() > 2) hold_against(want, file, Way{pattern, path, bounds, buffer, specials});
    }
    ++made.runs;
    if ((made.bytes += content.size()) >= made.most) {
        std::fprintf(stderr, "%llu bytes in %llu texts: nothing differs\n", static_cast<unsigned long long>(made.bytes),
                     static_cast<unsigned long long>(made.runs));
        std::_Exit(0);
    }
    return 0;
}
