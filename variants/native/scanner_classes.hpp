// The classes of every character, in the two levels that variants/counting/character_classes.py makes of `regex`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace scanner {

using byte = std::uint8_t;

// Readers may look this many bytes past the end of a text; what lies there never changes a result.
constexpr std::size_t padding = 192;

enum : byte {
    letter = 1,
    number = 2,
    space = 4,
    upper_like = 8,   // o200k's [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
    lower_like = 16,  // o200k's [\p{Ll}\p{Lm}\p{Lo}\p{M}]
};

inline bool is_continuation(byte value) { return (value & 0xC0) == 0x80; }

// The length of a character of valid UTF-8 by its first byte.
inline unsigned length_by_lead(byte lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

inline std::uint32_t decode(const byte* at) {
    if (at[0] < 0x80) return at[0];
    if (at[0] < 0xE0) return (at[0] & 0x1Fu) << 6 | (at[1] & 0x3Fu);
    if (at[0] < 0xF0) return (at[0] & 0x0Fu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
    return (at[0] & 0x07u) << 18 | (at[1] & 0x3Fu) << 12 | (at[2] & 0x3Fu) << 6 | (at[3] & 0x3Fu);
}

class Classes {
  public:
    static constexpr std::size_t page_size = 128, number_of_pages = 0x110000 / page_size;

    Classes(const byte* numbers, std::size_t numbers_size, const byte* pages, std::size_t pages_size)
        : numbers_(number_of_pages), pages_(pages, pages + pages_size) {
        if (numbers_size != 2 * number_of_pages) throw std::invalid_argument("the table of character classes is cut off");
        std::memcpy(numbers_.data(), numbers, numbers_size);
        for (std::uint16_t page : numbers_)
            if ((page + 1u) * page_size > pages_size) throw std::invalid_argument("a page of character classes is missing");
        find_leads_of_letters();
    }

    // At most 0x1FFFFF can be decoded from four bytes, so that this is safe in text not yet known to be valid.
    byte of(std::uint32_t character) const {
        return character > 0x10FFFF ? byte(0) : pages_[numbers_[character / page_size] * page_size + character % page_size];
    }
    byte at(const byte* text) const { return *text < 0x80 ? pages_[numbers_[0] * page_size + *text] : of(decode(text)); }

    // The first bytes of which every character is a letter, but for those of the excepted lead with the excepted second
    // byte. As a table from C0 on, and as one by the low nibble with a bit for each high one.
    const byte* only_letters_from_c0() const { return only_letters_; }
    const byte* only_letters_by_nibble() const { return only_letters_by_nibble_; }
    static constexpr byte bit_of_high_nibble[16] = {16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 1, 2, 4, 8};
    byte excepted_lead() const { return excepted_lead_; }
    byte excepted_second() const { return excepted_second_; }

  private:
    bool all_letters(std::uint32_t first, std::uint32_t count) const {
        for (std::uint32_t character = first; character < first + count; ++character)
            if (!(of(character) & letter)) return false;
        return true;
    }
    void settle(std::uint32_t lead, bool letters) {
        if (!letters) return;
        only_letters_[lead - 0xC0] = 1;
        only_letters_by_nibble_[lead & 0x0F] = byte(only_letters_by_nibble_[lead & 0x0F] | 1u << (lead / 16 - 12));
    }
    // Most characters of most scripts are settled by their first byte. E4 is so but for one row of hexagrams, and holds
    // the commonest Chinese characters; hence the exception.
    void find_leads_of_letters() {
        for (std::uint32_t lead = 0xC2; lead < 0xE0; ++lead) settle(lead, all_letters((lead & 0x1F) << 6, 64));
        for (std::uint32_t lead = 0xE1; lead < 0xF0; ++lead) {
            unsigned others = 0, other = 0;
            for (std::uint32_t second = 0; second < 64; ++second)
                if (!all_letters((lead & 0x0F) << 12 | second << 6, 64)) ++others, other = second;
            settle(lead, others == 0 || (others == 1 && !excepted_lead_));
            if (others == 1 && !excepted_lead_) {
                excepted_lead_ = byte(lead);
                excepted_second_ = byte(0x80 | other);
            }
        }
    }

    std::vector<std::uint16_t> numbers_;
    std::vector<byte> pages_;
    byte only_letters_[64] = {}, only_letters_by_nibble_[16] = {};
    byte excepted_lead_ = 0, excepted_second_ = 0;  // 0: there is none
};

}  // namespace scanner
