// What the scanner must find, said a second time and slowly: decode, split, match by backtracking, count in a map.
//
// It has only the classes of characters in common with the scanner, which a test of their own holds against `regex`.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scanner_classes.hpp"
#include "scanner_patterns.hpp"

namespace reference {

using Character = std::uint32_t;
using Text = std::vector<Character>;
using Class = std::function<bool(Character)>;
// Whether the expression matches from a place on so that what follows it matches too: `rest` says that.
using Rest = std::function<bool(std::size_t)>;
using Expression = std::function<bool(const Text&, std::size_t, const Rest&)>;

inline Expression repeated(Class wanted, std::size_t least, std::size_t most, bool gives_back = true) {
    return [=](const Text& text, std::size_t at, const Rest& rest) {
        std::size_t number = 0;
        while (number < most && at + number < text.size() && wanted(text[at + number])) ++number;
        for (;; --number) {
            if (number < least) return false;
            if (rest(at + number)) return true;
            if (number == 0 || !gives_back) return false;
        }
    };
}
inline Expression one(Class wanted) { return repeated(std::move(wanted), 1, 1); }
inline Expression some(Class wanted) { return repeated(std::move(wanted), 1, SIZE_MAX); }
inline Expression any(Class wanted) { return repeated(std::move(wanted), 0, SIZE_MAX); }
inline Expression perhaps(Class wanted) { return repeated(std::move(wanted), 0, 1); }
inline Expression not_before(Class wanted) {
    return [=](const Text& text, std::size_t at, const Rest& rest) { return !(at < text.size() && wanted(text[at])) && rest(at); };
}
inline Expression either(std::vector<Expression> choices) {
    return [=](const Text& text, std::size_t at, const Rest& rest) {
        for (const Expression& choice : choices)
            if (choice(text, at, rest)) return true;
        return false;
    };
}
inline Expression in_a_row(std::vector<Expression> parts) {
    return [=](const Text& text, std::size_t at, const Rest& rest) {
        const std::function<bool(std::size_t, std::size_t)> from = [&](std::size_t part, std::size_t place) {
            if (part == parts.size()) return rest(place);
            return parts[part](text, place, [&](std::size_t end) { return from(part + 1, end); });
        };
        return from(0, at);
    };
}

inline Class only(std::initializer_list<Character> characters) {
    const std::vector<Character> wanted(characters);
    return [=](Character character) {
        for (Character each : wanted)
            if (each == character) return true;
        return false;
    };
}
inline Class negated(Class wanted) {
    return [=](Character character) { return !wanted(character); };
}

inline Expression nothing() { return repeated([](Character) { return false; }, 0, 0); }

// What each pattern matches, said as its regular expression says it.
class Patterns {
  public:
    explicit Patterns(const scanner::Classes& classes) : classes_(classes) {}

    // Empty for raw bytes.
    Expression of(const scanner::Pattern& pattern) const {
        switch (pattern.split) {
            case scanner::Split::family: return family(pattern);
            case scanner::Split::line: return either({in_a_row({any(in_line), one(line_end)}), some(in_line)});
            case scanner::Split::document: return some([](Character) { return true; });
            case scanner::Split::superbpe: return superbpe();
            case scanner::Split::bytes: break;
        }
        return nullptr;
    }

  private:
    Class kinds(unsigned bits) const {
        return [this, bits](Character character) { return (classes_.of(character) & bits) != 0; };
    }

    static Expression contraction(unsigned kind) {
        const auto sign = [=](Character small) {
            const Character great = kind == scanner::exact ? small : small - 32;
            return one(kind == scanner::folded && small == 's' ? only({'s', 'S', 0x17F}) : only({small, great}));
        };
        const auto two = [=](Character first, Character second) { return in_a_row({sign(first), sign(second)}); };
        return in_a_row({one(only({'\''})), either({sign('s'), sign('d'), sign('m'), sign('t'), two('l', 'l'), two('v', 'e'),
                                                    two('r', 'e')})});
    }

    Expression family(const scanner::Pattern& pattern) const {
        std::vector<Expression> choices;
        Expression behind = nothing();
        if (pattern.contraction && pattern.behind) behind = either({contraction(pattern.contraction), nothing()});
        if (pattern.contraction && !pattern.behind) choices.push_back(contraction(pattern.contraction));
        const Class before_word = [=](Character each) { return !newline(each) && !letter(each) && !number(each); };
        const Expression prefix = perhaps(pattern.prefix ? before_word : blank);
        const Class upper = kinds(scanner::upper_like), lower = kinds(scanner::lower_like), marked = either_of(upper, lower);
        if (pattern.cased) {
            choices.push_back(in_a_row({prefix, any(upper), some(lower), behind}));
            choices.push_back(in_a_row({prefix, some(upper), any(lower), behind}));
        } else {
            choices.push_back(in_a_row({prefix, some(pattern.marks ? marked : letter), behind}));
        }
        const std::size_t most = pattern.digits ? pattern.digits : SIZE_MAX;
        choices.push_back(in_a_row({pattern.blank_numbers ? perhaps(blank) : nothing(), repeated(number, 1, most)}));
        const Class sign = pattern.marks ? both(other, negated(marked)) : other;
        choices.push_back(in_a_row({perhaps(blank), some(sign), trail(pattern)}));
        const Class spaces = pattern.lines ? both(space, in_line) : space;
        const Class goes_on = pattern.numbers_apart ? both(negated(space), negated(number)) : negated(space);
        if (pattern.whole_tail) choices.push_back(in_a_row({some(space), not_before([](Character) { return true; })}));
        if (pattern.newlines || pattern.lines)
            choices.push_back(in_a_row({any(spaces), one(pattern.newlines ? newline : line_end)}));
        choices.push_back(in_a_row({some(spaces), not_before(goes_on)}));
        choices.push_back(some(spaces));
        return either(choices);
    }

    Expression trail(const scanner::Pattern& pattern) const {
        if (pattern.trail == scanner::no_trail) return nothing();
        if (pattern.lines) return in_a_row({any(only({'\r', '/'})), perhaps(line_end)});
        return any(pattern.trail == scanner::slashes_trail ? only({'\r', '\n', '/'}) : newline);
    }

    Expression superbpe() const {
        const Expression signs = in_a_row({perhaps(blank), repeated(other, 2, SIZE_MAX)});
        const Expression alone = either({repeated(number, 1, 3), in_a_row({signs, any(only({'\r', '/'})), perhaps(line_end)}),
                                         in_a_row({some(blank), not_before(negated(space))})});
        const auto found = [=](const Text& text, std::size_t at) { return alone(text, at, [](std::size_t) { return true; }); };
        const Expression line_ends = perhaps(line_end);
        const Class within = in_line;
        const Expression between = [=](const Text& text, std::size_t at, const Rest& rest) {
            std::size_t to = at;
            while (to < text.size() && within(text[to]) && !found(text, to)) ++to;
            return to > at && line_ends(text, to, rest);
        };
        return either({alone, between, one(line_end)});
    }

    static Class both(Class one, Class other) {
        return [=](Character character) { return one(character) && other(character); };
    }
    static Class either_of(Class one, Class other) {
        return [=](Character character) { return one(character) || other(character); };
    }

    const scanner::Classes& classes_;
    const Class letter = kinds(scanner::letter), number = kinds(scanner::number), space = kinds(scanner::space);
    const Class other = negated(kinds(scanner::letter | scanner::number | scanner::space));
    const Class blank = only({' '}), newline = only({'\r', '\n'}), line_end = only({'\n'}), in_line = negated(line_end);
};

// The words in the order of their first occurrence.
struct Counted {
    std::vector<std::pair<std::string, std::uint64_t>> words;
    std::uint64_t documents = 0;
    std::int64_t invalid_at = -1;
};

class Counter {
  public:
    Counter(Expression pattern, const std::vector<std::string>& specials)
        : pattern_(std::move(pattern)), specials_(specials) {}

    Counted count(const std::string& content) {
        std::size_t begin = 0;
        for (std::size_t at = 0; at < content.size();) {
            const std::size_t length = special_at(content, at);
            if (!length) {
                ++at;
                continue;
            }
            if (!document(content, begin, at)) return counted_;
            begin = at += length;
        }
        document(content, begin, content.size());
        return counted_;
    }

  private:
    std::size_t special_at(const std::string& content, std::size_t at) const {
        std::size_t longest = 0;
        for (const std::string& special : specials_)
            if (special.size() > longest && content.compare(at, special.size(), special) == 0) longest = special.size();
        return longest;
    }

    bool document(const std::string& content, std::size_t begin, std::size_t end) {
        if (begin == end) return true;
        const std::string part = content.substr(begin, end - begin);
        Text text;
        std::vector<std::size_t> places;
        if (pattern_ && !decode(part, text, places)) {
            counted_ = Counted{};
            counted_.invalid_at = static_cast<std::int64_t>(begin + places.back());
            return false;
        }
        counted_.documents += part.find_first_not_of(" \t\n\v\f\r") != std::string::npos;
        if (!pattern_) {
            add(part);
            return true;
        }
        for (std::size_t at = 0; at < text.size();) {
            std::size_t end_of_word = at;
            pattern_(text, at, [&](std::size_t place) { return end_of_word = place, place > at; });
            if (end_of_word == at) __builtin_trap();  // every pattern covers every text
            add(part.substr(places[at], places[end_of_word] - places[at]));
            at = end_of_word;
        }
        return true;
    }

    // Where each character begins, and the end; or, last, where the first bad one does. Table 3-7 of the Unicode Standard.
    static bool decode(const std::string& part, Text& text, std::vector<std::size_t>& places) {
        struct Form {
            unsigned first, last, length, lowest, highest;  // of the first byte, and of the second
        };
        static constexpr Form forms[] = {{0x00, 0x7F, 1, 0, 0},       {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
                                         {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
                                         {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F}};
        for (std::size_t at = 0; at < part.size();) {
            places.push_back(at);
            const unsigned lead = static_cast<unsigned char>(part[at]);
            const Form* form = nullptr;
            for (const Form& each : forms)
                if (each.first <= lead && lead <= each.last) form = &each;
            if (!form || at + form->length > part.size()) return false;
            Character character = form->length == 1 ? lead : lead & (0x7Fu >> form->length);
            for (unsigned i = 1; i < form->length; ++i) {
                const unsigned next = static_cast<unsigned char>(part[at + i]);
                if (next < (i == 1 ? form->lowest : 0x80) || next > (i == 1 ? form->highest : 0xBF)) return false;
                character = character << 6 | (next & 0x3F);
            }
            text.push_back(character);
            at += form->length;
        }
        places.push_back(part.size());
        return true;
    }

    void add(const std::string& word) {
        const auto [found, is_new] = ordinals_.emplace(word, counted_.words.size());
        if (is_new) counted_.words.emplace_back(word, 0);
        ++counted_.words[found->second].second;
    }

    const Expression pattern_;  // empty: what is between special tokens, as it is
    const std::vector<std::string>& specials_;
    std::map<std::string, std::size_t> ordinals_;
    Counted counted_;
};

}  // namespace reference
