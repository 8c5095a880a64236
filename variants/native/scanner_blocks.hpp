// GPT-2's pattern and UTF-8, 64 bytes at a time: a bit for each byte, and shifts where the pattern looks to its sides.
//
// No include guard: scanner_vectors.hpp includes this once for each instruction set, in a namespace that defines Bytes64
// (64 bytes and comparisons that give a bit for each) and put_starts (the places of set bits).

// What a block has beyond ASCII; every byte of a character has its character's class.
struct Beyond {
    std::uint64_t continuations, letters = 0, numbers = 0, spaces = 0;
    std::uint64_t last_spaces = 0;  // spaces with something else than a space behind them
    std::uint64_t next_letters = 0, next_numbers = 0, next_spaces = 0;  // of the next block, by the last character here
};

// Whether the text goes on at `at` with something else than a space.
static inline bool goes_on_at(const Classes& classes, const byte* text, std::size_t at, std::size_t stop) {
    return at < stop && !(classes.at(text + at) & space);
}

// Takes the classes from the first byte where that settles them, else character by character.
__attribute__((noinline)) static Beyond classify_beyond_ascii(const Classes& classes, const byte* text, std::size_t at,
                                                              std::size_t stop, std::uint64_t inside) {
    const Bytes64 bytes(text + at);
    Beyond beyond;
    beyond.continuations = bytes.continuations();
    const std::uint64_t leads = inside & bytes.beyond_ascii() & ~beyond.continuations;
    const std::uint64_t from_3 = bytes.at_least(0xE0), from_4 = bytes.at_least(0xF0);
    std::uint64_t settled = leads & bytes.only_letters(classes);
    if (classes.excepted_lead()) {
        // The second byte of a character that begins in the last place is not here to be looked at.
        const std::uint64_t seconds = bytes.equal(classes.excepted_second()) >> 1 | std::uint64_t(1) << 63;
        settled &= ~(bytes.equal(classes.excepted_lead()) & seconds);
    }
    beyond.letters = settled | settled << 1 | (settled & from_3) << 2 | (settled & from_4) << 3;
    beyond.next_letters = settled >> 63 | (settled & from_3) >> 62 | (settled & from_4) >> 61;
    for (std::uint64_t rest = leads & ~settled; rest; rest &= rest - 1) {
        const unsigned bit = static_cast<unsigned>(__builtin_ctzll(rest));
        const byte kind = classes.of(decode(text + at + bit)) & (letter | number | space);
        if (!kind) continue;
        const unsigned length = length_by_lead(text[at + bit]);
        const std::uint64_t whole = (std::uint64_t(1) << length) - 1, here = whole << bit;
        const std::uint64_t next = bit + length > 64 ? whole >> (64 - bit) : 0;
        if (kind & letter) {
            beyond.letters |= here, beyond.next_letters |= next;
        } else if (kind & number) {
            beyond.numbers |= here, beyond.next_numbers |= next;
        } else {
            beyond.spaces |= here, beyond.next_spaces |= next;
            beyond.last_spaces |= std::uint64_t(goes_on_at(classes, text, at + bit + length, stop)) << bit;
        }
    }
    return beyond;
}

// What the pattern must remember of the block before.
struct Carried {
    std::uint64_t letter = 0, number = 0, space = 0, other = 0, blank = 0;  // of the last byte, in bit 0
    std::uint64_t letters = 0, numbers = 0, spaces = 0;  // of the first bytes here, whose character began there
    std::uint64_t contracted = 0, after_contraction = 0;  // bits that are no starts, and bits that are
};

// The starts in the block at `at`; with `lines`, a run of spaces ends with its line.
template <bool lines>
static inline std::uint64_t starts_in_block(const Classes& classes, const byte* text, std::size_t at, std::size_t stop,
                                            std::uint64_t inside, Carried& carried) {
    const Bytes64 bytes(text + at);
    const std::uint64_t blanks = bytes.equal(' ') & inside;
    std::uint64_t lead = inside, letters = (bytes.ascii_letters() & inside) | carried.letters;
    std::uint64_t numbers = (bytes.ascii_digits() & inside) | carried.numbers;
    const std::uint64_t ascii_spaces = blanks | (bytes.between('\t', '\r') & inside);
    std::uint64_t spaces = ascii_spaces | carried.spaces, last_spaces = 0;
    carried.letters = carried.numbers = carried.spaces = 0;
    if (bytes.beyond_ascii() & inside) {
        const Beyond beyond = classify_beyond_ascii(classes, text, at, stop, inside);
        lead &= ~beyond.continuations;
        letters |= beyond.letters;
        numbers |= beyond.numbers;
        spaces |= beyond.spaces;
        last_spaces = beyond.last_spaces;
        carried.letters = beyond.next_letters;
        carried.numbers = beyond.next_numbers;
        carried.spaces = beyond.next_spaces;
    }
    const std::uint64_t others = inside & ~(letters | numbers | spaces);
    // A word of letters, numbers or others starts where the class changes, unless a blank has been taken along.
    const std::uint64_t goes_on = (letters & (letters << 1 | carried.letter)) | (numbers & (numbers << 1 | carried.number)) |
                                  (others & (others << 1 | carried.other)) | blanks << 1 | carried.blank;
    // A run of spaces starts a word, and its last one starts another if the text goes on behind it.
    last_spaces |= ascii_spaces & (inside & ~spaces) >> 1;
    if (ascii_spaces >> 63) last_spaces |= std::uint64_t(goes_on_at(classes, text, at + 64, stop)) << 63;
    const std::uint64_t line_ends = lines ? bytes.equal('\n') & inside : 0, running = spaces & ~line_ends;
    std::uint64_t starts = (lead & ~spaces & ~goes_on) | (lead & spaces & ~(running << 1 | carried.space)) |
                           (last_spaces & ~line_ends);

    starts = (starts & ~carried.contracted) | (carried.after_contraction & inside);
    carried.contracted = carried.after_contraction = 0;
    for (std::uint64_t rest = starts & bytes.equal('\''); rest; rest &= rest - 1) {
        const unsigned bit = static_cast<unsigned>(__builtin_ctzll(rest));
        const std::size_t length = Reader::contraction_in(text + at + bit, stop - at - bit, false), end = bit + length;
        if (!length) continue;
        if (bit < 63)
            starts &= ~(std::uint64_t(2) << bit);
        else
            carried.contracted = 1;
        if (end < 64)
            starts |= std::uint64_t(1) << end & inside;
        else
            carried.after_contraction |= std::uint64_t(1) << (end - 64);
    }
    carried.letter = letters >> 63;
    carried.number = numbers >> 63;
    carried.space = running >> 63;
    carried.other = others >> 63;
    carried.blank = blanks >> 63;
    return starts;
}

template <bool lines>
static void find_gpt2_starts(const Classes& classes, const byte* text, std::size_t from, std::size_t to, Starts& starts) {
    Carried carried;
    for (std::size_t at = from; at < to; at += 64) {
        const std::uint64_t inside = to - at >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << (to - at)) - 1;
        starts.make_room(at);
        put_starts(starts, starts_in_block<lines>(classes, text, at, to, inside, carried), at);
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
