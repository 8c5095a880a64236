// The published family of patterns and UTF-8, 64 bytes at a time: a bit for each byte, and shifts where the pattern looks
// to its sides.
//
// No include guard: scanner_paths.hpp includes this once for each instruction set, in a namespace that defines Bytes64
// (64 bytes and comparisons that give a bit for each) and put_starts (the places of set bits).

using Bits = std::uint64_t;

// What a block has beyond ASCII. Every byte of a character has its character's class.
struct Beyond {
    Bits continuations, letters, numbers, spaces, uppers = 0, lowers = 0;
    Bits last_spaces = 0;   // first bytes of spaces with something else than a space behind them
    Bits marks = 0;         // first bytes of letters of the pattern that are no letters
};

// What the pattern must remember of the block before: the class of its last byte, in bit 0, and more.
struct Carried {
    Bits letter = 0, number = 0, space = 0, other = 0, blank = 0, white = 0, newline = 0, line_end = 0, upper = 0, lower = 0;
    Bits trail = 0;                              // it was in a trail
    Bits behind = 0;                             // it was the first sign of its word, or within that
    unsigned group = 0;                          // the numbers in the word that the block ends in
    Bits contracted = 0, after_contraction = 0;  // bits that are no starts, and bits that are
};

// The bits of `set` that the additions of `from` run through: from each of these on, as long as there are bits.
static inline Bits run_on(Bits set, Bits from) { return (((set + from) ^ set) & set) | from; }

// A pattern on a text, block by block. `plain` ones, as GPT-2's, have none of the slots that cost something in each block.
template <bool plain>
struct Blocks {
    const Classes& classes;
    const Pattern& pattern;
    const byte* text;
    std::size_t stop;
    Carried carried;
    bool undecided = false;   // the bits of the last block did not say where its words start

    // The starts in the block at `at`, where nothing is undecided.
    Bits starts(std::size_t at, Bits inside) {
        const Bytes64 bytes(text + at);
        const Bits blanks = bytes.equal(' ') & inside, line_ends = bytes.equal('\n') & inside;
        const Bits newlines_of_all = line_ends | (bytes.equal('\r') & inside);
        const Bits ascii_spaces = blanks | (bytes.between('\t', '\r') & inside);
        Bits letters = bytes.ascii_letters() & inside, numbers = bytes.ascii_digits() & inside, spaces = ascii_spaces;
        Bits continuations = 0, last = 0, uppers = 0, lowers = 0, marks = 0;
        if (has(pattern.cased)) {
            uppers = bytes.between('A', 'Z') & inside;
            lowers = letters & ~uppers;
        }
        if (bytes.beyond_ascii() & inside) {
            const Beyond beyond = classify_beyond_ascii(at, inside);
            continuations = beyond.continuations, last = beyond.last_spaces, marks = beyond.marks;
            letters |= beyond.letters, numbers |= beyond.numbers, spaces |= beyond.spaces;
            uppers |= beyond.uppers, lowers |= beyond.lowers;
        }
        const Bits leads = inside & ~continuations;
        Bits others = inside & ~(letters | numbers | spaces), newlines = newlines_of_all;
        undecided = false;
        if (has(pattern.trail)) {
            const Bits slashes = pattern.trail == slashes_trail ? bytes.equal('/') & inside : 0;
            const Bits trailing = trail(others, newlines, slashes, line_ends);
            carried.trail = trailing >> 63;
            others &= ~trailing, spaces &= ~trailing, newlines &= ~trailing;
        }
        const Bits white = spaces & ~newlines_of_all, behind_letters = letters << 1 | carried.letter;
        const Bits behind_blanks = blanks << 1 | carried.blank;

        // A word of letters, numbers or others starts where the class changes, unless a character has been taken along.
        const Bits other_starts = others & leads & ~(others << 1 | carried.other | behind_blanks);
        Bits preceded = behind_blanks;
        if (has(pattern.prefix)) preceded = white << 1 | carried.white | behind_first(others, other_starts, continuations);
        Bits starts = other_starts | (letters & leads & ~(behind_letters | preceded));
        const Bits first_numbers = numbers & leads & ~(numbers << 1 | carried.number);
        starts |= number_starts(numbers, first_numbers, continuations) & ~(pattern.blank_numbers ? behind_blanks : 0);

        // A run of spaces starts a word, and its last one starts another if the text goes on behind it.
        const Bits running = has(pattern.lines) ? spaces & ~line_ends : spaces;
        last |= ascii_spaces & (inside & ~(spaces | (has(pattern.numbers_apart) ? numbers : 0))) >> 1;
        if (ascii_spaces >> 63) last |= Bits(goes_on_at(at + 64)) << 63;
        last &= spaces & ~(has(pattern.newlines) ? newlines : has(pattern.lines) ? line_ends : 0);
        starts |= last | (spaces & leads & ~(running << 1 | carried.space));
        if (has(pattern.newlines)) starts |= blanks_behind_newlines(at, inside, white, newlines, leads);

        if (has(pattern.cased)) {
            // UPPER* takes what follows it into account where a character is of both classes, and others take marks.
            const Bits only_uppers = uppers & ~lowers & leads;
            starts |= only_uppers & ((lowers & ~uppers) << 1 | (carried.lower & ~carried.upper));
            undecided |= (only_uppers & ((lowers & uppers) << 1 | (carried.lower & carried.upper))) != 0;
            undecided |= !pattern.marks && (marks & (others << 1 | carried.other));
            carried.upper = uppers >> 63;
            carried.lower = lowers >> 63;
        }
        if (pattern.contraction) starts = contract(at, inside, starts, bytes.equal('\''), behind_letters);
        carried.letter = letters >> 63;
        carried.number = numbers >> 63;
        carried.space = running >> 63;
        carried.other = others >> 63;
        carried.blank = blanks >> 63;
        if (plain) return starts;
        carried.white = white >> 63;
        carried.newline = newlines >> 63;
        carried.line_end = line_ends >> 63;
        return starts;
    }

  private:
    static bool has(byte slot) { return !plain && slot; }
    bool goes_on_at(std::size_t at) const {
        const byte quiet = pattern.numbers_apart ? space | number : space;
        return at < stop && !(classes.at(text + at) & quiet);
    }

    // Takes the classes from the first byte where that settles them, else character by character.
    __attribute__((noinline)) Beyond classify_beyond_ascii(std::size_t at, Bits inside) const {
        const Bytes64 bytes(text + at);
        const Bits continuations = bytes.continuations() & inside;
        const Bits leads = inside & bytes.beyond_ascii() & ~continuations;
        const SettledLeads& settled_leads = pattern.cased ? classes.caseless() : classes.letters();
        Bits settled = leads & bytes.in(settled_leads);
        if (settled_leads.excepted_lead) {
            // The second byte of a character that begins in the last place is not here to be looked at.
            const Bits seconds = bytes.equal(settled_leads.excepted_second) >> 1 | Bits(1) << 63;
            settled &= ~(bytes.equal(settled_leads.excepted_lead) & seconds);
        }
        Bits numbers = 0, spaces = 0, uppers = settled, lowers = settled;
        if (pattern.cased) {
            const Bits of_two = leads & ~settled & ~bytes.at_least(0xE0);
            for (Bits rest = of_two, same; rest; rest &= ~same) {
                const byte lead = text[at + static_cast<unsigned>(__builtin_ctzll(rest))];
                same = rest & bytes.equal(lead);
                const Seconds upper = classes.uppers(lead), lower = classes.lowers(lead);
                uppers |= same & bytes.between(upper.first, upper.last) >> 1;
                lowers |= same & bytes.between(lower.first, lower.last) >> 1;
            }
            settled |= uppers | lowers;
        }
        Beyond beyond{continuations, 0, 0, 0};
        Bits letters = settled;
        for (Bits rest = leads & ~settled; rest; rest &= rest - 1) {
            const unsigned bit = static_cast<unsigned>(__builtin_ctzll(rest));
            const byte kind = classes.of(decode(text + at + bit));
            if (kind & pattern.letters()) {
                letters |= Bits(1) << bit;
                uppers |= Bits((kind & upper_like) != 0) << bit;
                lowers |= Bits((kind & lower_like) != 0) << bit;
                beyond.marks |= Bits((kind & letter) == 0) << bit;
            } else if (kind & number) {
                numbers |= Bits(1) << bit;
            } else if (kind & space) {
                spaces |= Bits(1) << bit;
                beyond.last_spaces |= Bits(goes_on_at(at + bit + length_by_lead(text[at + bit]))) << bit;
            }
        }
        const auto whole = [=](Bits leads_of_kind, Bits before) {
            const Bits seconds = (leads_of_kind << 1 | before) & continuations;
            return leads_of_kind | run_on(continuations, seconds);
        };
        beyond.letters = whole(letters, carried.letter);
        beyond.numbers = whole(numbers, carried.number);
        beyond.spaces = whole(spaces, carried.space);
        if (pattern.cased) {
            beyond.uppers = whole(uppers, carried.upper);
            beyond.lowers = whole(lowers, carried.lower);
        }
        return beyond;
    }

    // [\r\n]* or [\r\n/]* behind other signs; `/` is one itself, and may be the last of a trail.
    Bits trail(Bits others, Bits newlines, Bits slashes, Bits line_ends) const {
        Bits taken = newlines | slashes;
        if (pattern.lines) taken &= ~(line_ends << 1 | carried.line_end);
        const Bits seeds = (newlines & (others << 1 | carried.other)) | (taken & carried.trail);
        return run_on(taken, seeds);
    }

    // The places right behind the signs that are the first of their words.
    Bits behind_first(Bits others, Bits first, Bits continuations) {
        const Bits within = continuations & others;
        Bits sum;
        const bool beyond = __builtin_add_overflow(within, first << 1 | carried.behind, &sum);
        carried.behind = Bits(beyond) | first >> 63;
        return sum & ~within;
    }

    // `first` of each run of numbers, and each that begins a word behind as many as a word may have.
    Bits number_starts(Bits numbers, Bits first, Bits continuations) {
        const unsigned most = plain ? 0 : pattern.digits;
        if (most == 0) return first;
        if (most == 1) return numbers & ~continuations;
        undecided |= (numbers & continuations) != 0;   // it would have to count characters
        Bits starts = first;
        if (carried.group) {
            const Bits up_to_next = (Bits(2) << (most - carried.group)) - 1;
            if (!(up_to_next & ~numbers)) starts |= Bits(1) << (most - carried.group);
        }
        Bits behind_most = numbers;
        for (unsigned i = 0; i < most && behind_most; ++i) behind_most &= behind_most << 1;
        for (Bits next = starts << most & behind_most; next; next = next << most & behind_most) starts |= next;
        carried.group = numbers >> 63 ? static_cast<unsigned>(__builtin_clzll(starts | 1)) + 1 : 0;
        return starts;
    }

    // The first spaces behind the last newline of a run, if there are any.
    Bits blanks_behind_newlines(std::size_t at, Bits inside, Bits white, Bits newlines, Bits leads) const {
        const Bits runs = white & leads & (newlines << 1 | carried.newline);
        if (!runs) return 0;
        Bits sum;
        const bool beyond = __builtin_add_overflow(white, runs, &sum);
        const Bits unwanted = newlines | (pattern.whole_tail ? ~inside : 0);
        if (!beyond && !(sum & ~white & unwanted)) return runs;
        Bits last = 0;
        const Reader reader{classes, text, stop};
        for (Bits rest = runs; rest; rest &= rest - 1) {
            const unsigned bit = static_cast<unsigned>(__builtin_ctzll(rest));
            std::size_t end = at + bit;
            while (reader.more(end) && !reader.is_newline(end) && (reader.class_at(end) & space)) end = reader.after(end);
            last |= Bits(reader.more(end) ? !reader.is_newline(end) : !pattern.whole_tail) << bit;
        }
        return last;
    }

    // Joins contractions, to the word before if they are behind it, and sets a start behind each.
    Bits contract(std::size_t at, Bits inside, Bits starts, Bits apostrophes, Bits behind_letters) {
        Bits ends = carried.after_contraction & inside;
        starts = (starts & ~carried.contracted) | ends;
        carried.contracted = carried.after_contraction = 0;
        for (Bits rest = apostrophes & (pattern.behind ? behind_letters : starts); rest; rest &= rest - 1) {
            const unsigned bit = static_cast<unsigned>(__builtin_ctzll(rest));
            if (pattern.behind && (ends >> bit & 1)) continue;   // that word has had one
            const std::size_t length = Reader::contraction_in(text + at + bit, stop - at - bit, pattern.contraction);
            if (!length) continue;
            const Bits joined = (Bits(1) << length) - (pattern.behind ? 1 : 2);
            const std::size_t end = bit + length;
            starts &= ~(joined << bit);
            if (end < 64) {
                ends |= Bits(1) << end & inside;
                starts |= ends;
            } else {
                carried.contracted = bit ? joined >> (64 - bit) : 0;
                carried.after_contraction = Bits(1) << (end - 64);
            }
        }
        return starts;
    }
};

// Where the bits of a block do not say where words start, the portable matcher goes on from the last start, and blocks
// begin anew at the first start beyond: no pattern looks behind a start.
template <bool plain>
static void find_starts_in_blocks(const Classes& classes, const Pattern& pattern, const byte* text, std::size_t from,
                               std::size_t to, Starts& starts) {
    const Reader reader{classes, text, to};
    Blocks<plain> blocks{classes, pattern, text, to, {}};
    std::size_t last = from;   // the last start, if that is before `at`
    for (std::size_t at = from; at < to;) {
        const Bits inside = to - at >= 64 ? ~Bits(0) : (Bits(1) << (to - at)) - 1;
        const Bits found = blocks.starts(at, inside);
        if (!blocks.undecided) {
            starts.make_room(at);
            put_starts(starts, found, at);
            if (found) last = at + 63 - static_cast<std::size_t>(__builtin_clzll(found));
            at += 64;
            continue;
        }
        std::size_t word = last < at ? Family::end_of_word(reader, pattern, last) : at;
        for (; word < to && word < at + 64; word = Family::end_of_word(reader, pattern, word)) starts.push(word);
        at = last = word;
        blocks.carried = Carried{};
    }
}

static void find_family_starts(const Classes& classes, const Pattern& pattern, const byte* text, std::size_t from,
                               std::size_t to, Starts& starts) {
    const bool plain = !(pattern.prefix || pattern.cased || pattern.trail || pattern.newlines || pattern.lines ||
                         pattern.numbers_apart || pattern.digits);
    (plain ? find_starts_in_blocks<true> : find_starts_in_blocks<false>)(classes, pattern, text, from, to, starts);
}

// As find_starts<Separated>.
static void find_words_in_blocks(const Classes&, const Pattern&, const byte* text, std::size_t from, std::size_t to,
                                 Starts& starts) {
    starts.push(from);
    Bits behind_space = 1;   // the first byte is no border
    for (std::size_t at = from; at < to; at += 64) {
        const Bits inside = to - at >= 64 ? ~Bits(0) : (Bits(1) << (to - at)) - 1;
        const Bytes64 bytes(text + at);
        const Bits blanks = bytes.equal(' '), spaces = blanks | bytes.equal('\t') | bytes.equal('\n') | bytes.equal('\r');
        starts.make_room(at);
        put_starts(starts, blanks & ~(spaces << 1 | behind_space) & inside, at);
        behind_space = spaces >> 63;
    }
}

// As valid_until, in blocks that begin with a character.
static std::size_t valid_in_blocks(const byte* text, std::size_t start, std::size_t length) {
    std::size_t at = start;
    while (length - at >= 64) {
        const Bytes64 bytes(text + at);
        if (!bytes.beyond_ascii()) {
            at += 64;
            continue;
        }
        const std::uint64_t continuations = bytes.continuations(), leads = bytes.beyond_ascii() & ~continuations;
        const std::uint64_t from_3 = bytes.at_least(0xE0), from_4 = bytes.at_least(0xF0), from_a0 = bytes.at_least(0xA0),
                            from_90 = bytes.at_least(0x90);
        const std::uint64_t expected = leads << 1 | from_3 << 2 | from_4 << 3;
        std::uint64_t wrong = expected ^ continuations;
        wrong |= bytes.at_least(0xF5) | bytes.equal(0xC0) | bytes.equal(0xC1);
        wrong |= (bytes.equal(0xE0) << 1 & ~from_a0) | (bytes.equal(0xED) << 1 & from_a0);
        wrong |= (bytes.equal(0xF0) << 1 & ~from_90) | (bytes.equal(0xF4) << 1 & from_90);
        std::size_t whole = 64;
        if (leads >> 63 | from_3 >> 62 | from_4 >> 61) {  // the last character goes on behind the block
            whole = 63 - static_cast<std::size_t>(__builtin_clzll(leads));
            wrong &= (std::uint64_t(2) << whole) - 1;  // its first byte is checked: another character may lack one there
        }
        if (wrong) break;
        at += whole;
    }
    return valid_until(text, at, length);
}
