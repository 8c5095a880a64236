// Trains random tables in random settings: flat without Python, to be compiled with sanitizers. What it learns is compared with
// the definition by tests/variants/test_flat.py; here every setting must give the merges of the plain one.
//
// driver CASES [THREADS]: so many threads train all cases, each for itself, and must learn the same.
#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "driver_words.hpp"
#include "flat.hpp"

namespace {

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t below(std::uint64_t number) { return engine_() % number; }
    template <class Value>
    Value of(std::initializer_list<Value> values) {
        return values.begin()[below(values.size())];
    }

  private:
    std::mt19937_64 engine_;
};

// Words over a few parts, some of them long runs, some cut within a character; a few weigh much.
CaseWords random_words(Dice& dice) {
    std::vector<std::string> parts;
    for (std::uint64_t left = 1 + dice.below(5); left; --left)
        parts.push_back(dice.of<std::string>({"a", "b", " ", ":", "\n", "\xff", std::string(1, '\0'), "é", "法", "律"}));
    std::map<std::string, std::uint64_t> table;
    for (std::uint64_t left = 1 + dice.below(25); left; --left) {
        std::string word;
        for (std::uint64_t length = dice.below(dice.of({3, 12, 90})); length; --length) word += parts[dice.below(parts.size())];
        if (dice.below(10) == 0)
            for (std::uint64_t length = dice.below(120); length; --length) word += parts[0];
        word = word.substr(std::min<std::size_t>(word.size(), dice.of({0, 0, 1, 2})));
        if (word.empty()) word = "a";
        table[word] = dice.of<std::uint64_t>({1, 1, 2, 3, 1u << 16, 1ull << 33});
    }
    // Even the sums of the words' ends pass 63 bits.
    if (dice.below(50) == 0) table = {{"ab", INT64_MAX}};

    CaseWords words;
    for (const auto& [word, weight] : table) words.add(word, weight);
    return words;
}

// No token of which the left half is the longer.
int longer_left(void*, flat::Bytes left, flat::Bytes right) { return left.size > right.size; }

flat::Veto random_veto(Dice& dice) {
    flat::Veto veto;
    switch (dice.below(8)) {
    case 0: veto.superbpe = true; break;
    case 1: veto.most_bytes = 3; break;
    case 2: veto.most_characters = 2; break;
    case 3: veto.whole_characters = true; break;
    case 4: veto.whole_characters = true, veto.most_bytes = 6; break;
    case 5: veto.ask = longer_left; break;
    case 6: veto.protected_tokens = {"a", "法"}; break;
    default: break;
    }
    return veto;
}

void random_settings(Dice& dice, flat::Options& options) {
    options.threads = 1 + dice.below(3);
    options.part = 16;
    options.ideas = dice.below(flat::all_ideas + 1);
    options.wide_symbols = dice.below(2);
    options.guess_scale = dice.of({1.0, 30.0, 1e9});
}

bool go_on(void*, const flat::Training&) { return true; }

std::string merges_of(const flat::Answer& answer) {
    std::ostringstream line;
    for (const flat::Merge& merge : answer.merges) line << merge.left << ' ' << merge.right << ' ';
    return line.str();
}

// Two threads take the pieces, each word twice with halves of its weight.
void take_halves(flat::Pieces& pieces, const CaseWords& all) {
    pieces.begin(2);
    flat::in_parallel(2, [&](std::size_t part) {
        std::vector<std::uint64_t> counts = all.counts;
        for (std::uint64_t& count : counts) count = (count + part) / 2;
        flat::Words words = all.columns();
        words.counts = counts.data();
        pieces.take(part, words);
    });
}

std::string learned_case(std::uint64_t seed) {
    Dice dice(seed);
    const CaseWords all = random_words(dice), others = random_words(dice);
    const flat::Words words = all.columns();
    flat::Options plain;
    plain.tie_break = static_cast<flat::TieBreak>(dice.below(4));
    plain.num_merges = dice.of({0, 3, 15, 40});

    const bool extends = seed % 2;
    std::vector<flat::Merge> inherited;
    if (extends) inherited = flat::train((dice.below(3) ? all : others).columns(), plain, go_on, nullptr).merges;
    const flat::Extension extension{dice.below(2) == 1, random_veto(dice)};
    plain.num_merges = inherited.size() + dice.of({0, 5, 50, 1000});
    plain.min_count = dice.of({1, 1, 2, 5});

    const auto learn = [&](const flat::Options& options, bool halves) {
        if (!extends) return merges_of(flat::train(words, options, go_on, nullptr));
        flat::Pieces pieces(inherited.data(), inherited.size(), scanner::Seed{{1, 2, 3, 4}});
        if (halves) take_halves(pieces, all);
        return merges_of(flat::extend(pieces, options, extension, go_on, nullptr, halves ? nullptr : &words));
    };
    const std::string expected = learn(plain, false);
    for (int way = 0; way < 3; ++way) {
        flat::Options options = plain;
        random_settings(dice, options);
        if (learn(options, dice.below(2)) != expected)
            std::fprintf(stderr, "case %lu: other settings, other merges\n", static_cast<unsigned long>(seed));
    }
    return expected;
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::string> answers(count > 2 ? std::stoul(arguments[2]) : 1);
    std::vector<std::thread> threads;
    for (std::string& answer : answers)
        threads.emplace_back([&] {
            for (std::uint64_t seed = 0; seed < std::stoul(arguments[1]); ++seed) answer += learned_case(seed) + "\n";
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& answer : answers)
        if (answer != answers[0]) return std::fputs("two threads learned different merges\n", stderr), 1;
    std::printf("%s tables are learned alike in all settings\n", arguments[1]);
}
