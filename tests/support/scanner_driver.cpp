// The scanner as a program of its own, to be compiled in other ways and for other machines.
//
// driver CLASSES CONTENTS [PATH]: contents are numbers of 64 bits, each with so many bytes behind it. They are scanned on
// every path, or on that one, with every pattern and buffer.
// For each, a digest is printed of the words in order, the counts, the documents and the first bad byte.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scanner.hpp"
#include "scanner_members.hpp"

namespace {

std::string content_of(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// FNV-1a of 64-bit numbers and of bytes.
struct Digest {
    std::uint64_t value = 0xcbf29ce484222325;

    void add(std::uint64_t number) { value = (value ^ number) * 0x100000001b3; }
    void add(const scanner::byte* bytes, std::size_t number) {
        for (std::size_t i = 0; i < number; ++i) add(bytes[i]);
    }
};

struct Way {
    const std::string& pattern;
    int path;
    std::size_t buffer;
};

struct Tables {
    std::string numbers, pages;
};

std::uint64_t digest_of(const std::string& content, std::FILE* file, const Tables& tables, const Way& way) {
    const std::vector<std::string> specials = {"<|e|>", "<|e|>x", "aa", "a special token that is long"};
    const std::int64_t size = static_cast<std::int64_t>(content.size());
    std::vector<std::int64_t> bounds = {0};
    for (int part = 1; part < 4; ++part) {
        const std::int64_t place =
            scanner::first_cut_in(content, size * part / 4, way.pattern, specials, tables.numbers, tables.pages);
        if (place > bounds.back() && place < size) bounds.push_back(place);
    }
    bounds.push_back(bounds.size() > 1 ? size : scanner::until_end);
    scanner::Scan scan(::fileno(file), way.pattern, way.path, bounds, specials, tables.numbers, tables.pages,
                       std::string(32, '\x5b'), way.buffer);
    ::lseek(::fileno(file), 0, SEEK_SET);
    scan.start();
    while (!scan.wait(0.1)) {
    }
    scan.finish();
    Digest digest;
    digest.add(static_cast<std::uint64_t>(scan.invalid_at));
    if (scan.invalid_at >= 0) return digest.value;
    digest.add(scan.documents);
    const auto& columns = scan.columns;
    const auto* const offsets = static_cast<const std::int64_t*>(columns.offsets.start);
    const auto* const counts = static_cast<const std::uint64_t*>(columns.counts.start);
    for (std::size_t word = columns.first; word < columns.words; ++word) {
        digest.add(counts[word]);
        digest.add(static_cast<std::uint64_t>(offsets[word + 1]));
    }
    digest.add(static_cast<const scanner::byte*>(columns.data.start) + columns.bytes,
               static_cast<std::size_t>(offsets[columns.words]));
    return digest.value;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string all = content_of(arguments[1]), contents = content_of(arguments[2]);
    const std::size_t split = 2 * scanner::Classes::number_of_pages;
    const Tables tables{all.substr(0, split), all.substr(split)};
    std::vector<int> paths;
    for (int path = 0; path < scanner::number_of_paths; ++path)
        if (scanner::supported(static_cast<scanner::Path>(path)) && (count < 4 || path == std::atoi(arguments[3])))
            paths.push_back(path);
    if (paths.empty()) return std::fputs("no such path here\n", stderr), 1;
    for (std::size_t at = 0; at < contents.size();) {
        std::uint64_t size = 0;
        std::memcpy(&size, contents.data() + at, sizeof size);
        const std::string content = contents.substr(at + sizeof size, size);
        at += sizeof size + size;
        std::FILE* const file = std::tmpfile();
        std::fwrite(content.data(), 1, content.size(), file);
        std::fflush(file);
        Digest digest;
        for (std::size_t pattern = 0; pattern < members::named.size(); ++pattern) {
            std::uint64_t found = 0;
            bool first = true;
            for (const int path : paths)
                for (std::size_t buffer : {std::size_t(1) << 16, std::size_t(8), std::size_t(100)}) {
                    const std::uint64_t here = digest_of(content, file, tables, Way{members::named[pattern], path, buffer});
                    if (!first && here != found) {
                        std::fprintf(stderr, "path %d, pattern %zu, buffer %zu: other words than path %d\n", path, pattern,
                                     buffer, paths[0]);
                        return 1;
                    }
                    found = here;
                    first = false;
                }
            digest.add(found);
        }
        std::fclose(file);
        std::printf("%016llx\n", static_cast<unsigned long long>(digest.value));
    }
}
