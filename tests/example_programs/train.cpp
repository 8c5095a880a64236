// ./train WORDS MERGES NUM_MERGES: the definition, which counts all pairs again before every merge.
// std::string compares bytes as unsigned, and std::pair the left token first, which together are the tie-break.
// g++ -O2 -std=c++17 -o train train.cpp
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

using Token = std::string;
using Pair = std::pair<Token, Token>;
struct Word { std::uint64_t count; std::vector<Token> tokens; };

Token from_hex(const std::string& digits) {
    Token bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2)
        bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    return bytes;
}

std::string to_hex(const Token& bytes) {
    std::string digits;
    for (unsigned char byte : bytes) { digits += "0123456789abcdef"[byte >> 4]; digits += "0123456789abcdef"[byte & 15]; }
    return digits;
}

int main(int argc, char** argv) {
    if (argc != 4) { std::cerr << "usage: train WORDS MERGES NUM_MERGES\n"; return 2; }
    std::ifstream input(argv[1]);
    std::ofstream output(argv[2]);
    std::vector<Word> words;
    std::uint64_t count;
    std::string digits;
    while (input >> count >> digits) {
        Word word{count, {}};
        for (char byte : from_hex(digits)) word.tokens.emplace_back(1, byte);
        words.push_back(word);
    }
    for (long left = std::atol(argv[3]); left > 0; --left) {
        std::map<Pair, std::uint64_t> counts;
        for (const Word& word : words)
            for (std::size_t i = 1; i < word.tokens.size(); ++i)
                counts[{word.tokens[i - 1], word.tokens[i]}] += word.count;
        if (counts.empty()) break;
        auto best = counts.begin();  // in the order of pairs, so that of equal counts the last is the greatest
        for (auto each = counts.begin(); each != counts.end(); ++each)
            if (each->second >= best->second) best = each;
        const Pair pair = best->first;
        output << to_hex(pair.first) << ' ' << to_hex(pair.second) << std::endl;
        for (Word& word : words) {
            std::vector<Token> merged;
            for (std::size_t i = 0; i < word.tokens.size(); ++i) {
                bool here = i + 1 < word.tokens.size() && word.tokens[i] == pair.first && word.tokens[i + 1] == pair.second;
                merged.push_back(here ? pair.first + pair.second : word.tokens[i]);
                i += here;
            }
            word.tokens = merged;
        }
    }
    return output.good() ? 0 : 1;
}
