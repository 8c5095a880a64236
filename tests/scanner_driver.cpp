// The scanner as a program of its own, to be compiled in other ways: every path, pattern and width over the files named.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scanner.hpp"

namespace {

std::string content_of(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int count, char** arguments) {
    const std::string tables = content_of(arguments[1]);
    const std::size_t split = 2 * scanner::Classes::number_of_pages;
    const std::string numbers = tables.substr(0, split), pages = tables.substr(split), seed(32, '\x5b');
    const std::vector<std::string> specials = {"<|e|>", "<|e|>x", "aa", "a special token that is long"};
    std::size_t words[3] = {};  // that each path counts
    for (int i = 2; i < count; ++i) {
        const std::string content = content_of(arguments[i]);
        const std::int64_t size = static_cast<std::int64_t>(content.size());
        for (int pattern = 0; pattern < 6; ++pattern)
            for (int path = 0; path < 3; ++path) {
                if (!scanner::supported(static_cast<scanner::Path>(path))) continue;
                for (std::size_t buffer : {std::size_t(8), std::size_t(100), std::size_t(1) << 16}) {
                    std::vector<std::int64_t> bounds = {0};
                    for (int part = 1; part < 4; ++part) {
                        const std::int64_t place =
                            scanner::first_cut_in(content, size * part / 4, pattern, specials, numbers, pages);
                        if (place > bounds.back() && place < size) bounds.push_back(place);
                    }
                    bounds.push_back(bounds.size() > 1 ? size : scanner::until_end);
                    const int file = ::open(arguments[i], O_RDONLY);
                    scanner::Scan scan(file, pattern, path, bounds, specials, numbers, pages, seed, buffer);
                    scan.start();
                    while (!scan.wait(0.1)) {
                    }
                    scan.finish();
                    words[path] += scan.columns.words;
                    for (const scanner::Memory& column : {scan.columns.data, scan.columns.offsets, scan.columns.counts})
                        scanner::give_back(column);
                    ::close(file);
                }
            }
    }
    for (int path = 1; path < 3; ++path)
        if (scanner::supported(static_cast<scanner::Path>(path)) && words[path] != words[0]) return 1;
    std::printf("%zu words\n", words[0]);
}
