// Trains tables read from a file and prints the merges: flat without Python, to be compiled with sanitizers.
//
// A case is a line of numbers (words, num_merges, min_count, tie-break, threads, four bits of switches, guess scale,
// whether it extends, 2 from pieces that two threads take; if so whether merges are dropped, whether a veto is called,
// its rules, and the inherited merges, their number first), then its words. With a second argument, that many threads train
// all cases, each for itself. A line of token ids is printed for every case.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "driver_words.hpp"
#include "flat.hpp"

namespace {

struct Case {
    CaseWords words;
    flat::Options options;
    int extends = 0;
    bool drops = false;
    flat::Veto veto;
    std::vector<flat::Merge> inherited;
};

// The veto that is called: no token of which the left half is the longer.
int longer_left(void*, flat::Bytes left, flat::Bytes right) { return left.size > right.size; }

std::vector<Case> read_cases(const char* path) {
    std::ifstream file(path);
    std::vector<Case> cases;
    std::size_t words = 0;
    int tie_break = 0;
    unsigned switches = 0;
    for (Case one; file >> words; cases.push_back(one), one = Case()) {
        flat::Options& options = one.options;
        file >> options.num_merges >> options.min_count >> tie_break >> options.threads >> switches >>
            options.guess_scale >> one.extends;
        if (one.extends) {
            bool calls_veto = false;
            std::size_t inherited = 0;
            file >> one.drops >> calls_veto;
            if (calls_veto) one.veto.ask = longer_left;
            read_veto(file, one.veto);
            file >> inherited;
            one.inherited.resize(inherited);
            for (flat::Merge& merge : one.inherited) file >> merge.left >> merge.right;
        }
        options.part = 16;
        options.tie_break = static_cast<flat::TieBreak>(tie_break);
        options.ideas = switches & flat::all_ideas;
        options.wide_symbols = switches >> 3 & 1;
        one.words.read(file, words);
    }
    return cases;
}

bool go_on(void*, const flat::Training&) { return true; }

flat::Answer extended(const Case& one, const flat::Extension& extension) {
    flat::Pieces pieces(one.inherited.data(), one.inherited.size(), scanner::Seed{{1, 2, 3, 4}});
    if (one.extends == 1) {
        const flat::Words words = one.words.columns();
        return flat::extend(pieces, one.options, extension, go_on, nullptr, &words);
    }
    pieces.begin(2);
    flat::in_parallel(2, [&](std::size_t part) {   // each word comes twice, with halves of its weight
        std::vector<std::uint64_t> counts = one.words.counts;
        for (std::uint64_t& count : counts) count = (count + part) / 2;
        flat::Words words = one.words.columns();
        words.counts = counts.data();
        pieces.take(part, words);
    });
    return flat::extend(pieces, one.options, extension, go_on, nullptr);
}

std::string answers_to(const std::vector<Case>& cases) {
    std::ostringstream lines;
    for (const Case& one : cases) {
        const flat::Extension extension{one.drops, one.veto};
        const flat::Answer answer = one.extends ? extended(one, extension)
                                                : flat::train(one.words.columns(), one.options, go_on, nullptr);
        for (const flat::Merge& merge : answer.merges)
            lines << merge.left << ' ' << merge.right << ' ';
        lines << '\n';
    }
    return lines.str();
}

}  // namespace

int main(int count, char** arguments) {
    const std::vector<Case> cases = read_cases(arguments[1]);
    std::vector<std::string> answers(count > 2 ? std::stoul(arguments[2]) : 1);
    std::vector<std::thread> threads;
    for (std::string& answer : answers) threads.emplace_back([&] { answer = answers_to(cases); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& answer : answers) {
        if (answer != answers[0]) return std::fputs("two threads learned different merges\n", stderr), 1;
    }
    std::fputs(answers[0].c_str(), stdout);
}
