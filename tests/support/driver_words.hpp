// The words of a case as the drivers read them: a line for every word, its weight and its bytes in hexadecimal.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "job.hpp"

struct CaseWords {
    std::vector<std::uint8_t> bytes;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint64_t> counts;

    void add(const std::string& word, std::uint64_t weight) {
        bytes.insert(bytes.end(), word.begin(), word.end());
        offsets.push_back(static_cast<std::int64_t>(bytes.size()));
        counts.push_back(weight);
    }

    void read(std::istream& file, std::size_t words) {
        for (; words; --words) {
            std::uint64_t weight = 0;
            std::string digits, word;
            file >> weight >> digits;
            for (std::size_t at = 0; at < digits.size(); at += 2)
                word += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
            add(word, weight);
        }
    }

    native::Words columns() const { return {bytes.data(), bytes.size(), offsets.data(), counts.data(), counts.size()}; }
};

// The rules of a vetoes.Limits that need no call: four numbers, then the protected tokens, their number first.
template <class Veto>
void read_veto(std::istream& file, Veto& veto) {
    std::size_t tokens = 0;
    CaseWords bytes;
    file >> veto.superbpe >> veto.whole_characters >> veto.most_bytes >> veto.most_characters >> tokens;
    bytes.read(file, tokens);
    for (std::size_t token = 0; token < tokens; ++token)
        veto.protected_tokens.insert({bytes.bytes.begin() + bytes.offsets[token], bytes.bytes.begin() + bytes.offsets[token + 1]});
}
