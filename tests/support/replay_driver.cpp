// Holds claimed merges against the counts of tables read from a file: the compiled replay without Python.
//
// A case is a line of numbers (words, num_merges, min_count, tie-break, guess scale, 1 for wide symbols or 2 for wide
// positions, the veto, how many were inherited, and for each of these 1 if it stays, claims, then two ids
// for each), then its words. For each: how many are right, and 1 if they are too few; and of those inherited whether they
// were met.
#include <cstdio>
#include <fstream>
#include <vector>

#include "driver_words.hpp"
#include "replay_judge.hpp"

int main(int, char** arguments) {
    std::ifstream file(arguments[1]);
    std::size_t words = 0;
    while (file >> words) {
        replay::Question question;
        int tie_break = 0, wide = 0;
        std::size_t inherited = 0, number = 0;
        file >> question.num_merges >> question.min_count >> tie_break >> question.guess_scale >> wide;
        read_veto(file, question.veto);
        file >> inherited;
        std::vector<std::uint8_t> stays(inherited);
        for (std::uint8_t& stay : stays) {
            int read = 0;
            file >> read;
            stay = static_cast<std::uint8_t>(read);
        }
        file >> number;
        question.tie_break = static_cast<replay::TieBreak>(tie_break);
        question.wide_symbols = wide == 1;
        question.wide_positions = wide == 2;
        std::vector<std::uint32_t> lefts(number), rights(number);
        for (std::size_t claim = 0; claim < number; ++claim) file >> lefts[claim] >> rights[claim];
        CaseWords table;
        table.read(file, words);
        const auto go_on = [](void*, std::uint64_t) { return true; };
        const auto judged =
            replay::judge(table.columns(), {lefts.data(), rights.data(), number, inherited, stays.data()}, question, go_on, nullptr);
        std::printf("%llu %d", static_cast<unsigned long long>(judged.right), judged.too_few);
        for (const std::uint8_t met : judged.met) std::printf(" %d", met);
        std::printf("\n");
    }
}
