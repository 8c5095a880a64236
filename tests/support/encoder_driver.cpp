// Encodes texts by tokenizers read from a file: the encoder without Python, to be compiled with sanitizers.
//
// driver CLASSES CASES. A case is: narrow, threads, path, block, part, words in a table, bytes in its arena; then lists, each
// after its length: halves of merges, ids, special tokens with ids, whole words with ids; the pattern, and a list of texts.
// Bytes are in hexadecimal behind a point. A line of ids is printed for each text.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "encoder_decoding.hpp"
#include "encoder.hpp"

namespace {

std::string bytes_in(std::istream& cases) {
    std::string text, bytes;
    cases >> text;
    for (std::size_t at = 1; at < text.size(); at += 2)
        bytes.push_back(static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16)));
    return bytes;
}

template <class Read>
void read_list(std::istream& cases, Read read) {
    std::size_t number = 0;
    cases >> number;
    for (std::size_t index = 0; index < number; ++index) read();
}

std::uint32_t number_in(std::istream& cases) {
    std::uint32_t number = 0;
    cases >> number;
    return number;
}

std::vector<std::uint32_t> ids_of(encoder::Encoder& one, bool narrow, const encoder::Text& text, std::size_t threads) {
    one.encode({text}, threads);
    std::vector<std::uint32_t> ids;
    for (std::size_t index = 0; index < one.size(); ++index)
        ids.push_back(narrow ? static_cast<const std::uint16_t*>(one.data())[index]
                             : static_cast<const std::uint32_t*>(one.data())[index]);
    return ids;
}

std::vector<std::uint32_t> ids_of(encoder::Encoder& one, bool narrow, const std::string& text, std::size_t threads) {
    // A copy of just this size, so that reading beyond it shows.
    const std::vector<encoder::byte> content(text.begin(), text.end());
    return ids_of(one, narrow, encoder::Text{content.data(), content.size(), 0, false}, threads);
}

// The characters of a text; bytes that are not UTF-8 are surrogates.
std::vector<std::uint32_t> characters_of(const std::string& text) {
    const std::vector<encoder::byte> padded = [&] {
        std::vector<encoder::byte> bytes(text.begin(), text.end());
        bytes.resize(bytes.size() + scanner::padding);
        return bytes;
    }();
    std::vector<std::uint32_t> characters;
    for (std::size_t at = 0; at < text.size();) {
        const int length = scanner::length_of_character(padded.data() + at, text.size() - at);
        characters.push_back(length > 0 ? scanner::decode(padded.data() + at) : 0xDC00u + padded[at]);
        at += length > 0 ? static_cast<std::size_t>(length) : 1;
    }
    return characters;
}

// What decodes the ids that an encoder gives.
encoder::Decoder decoder_of(const encoder::Settings& settings) {
    encoder::Decoder decoder;
    std::vector<std::string> tokens(flat::first_byte);
    for (unsigned byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
    for (const native::Merge& merge : settings.merges) tokens.push_back(tokens[merge.left] + tokens[merge.right]);
    for (std::size_t id = flat::first_byte; id < tokens.size(); ++id) decoder.add(settings.ids[id], tokens[id]);
    for (std::size_t word = 0; word < settings.whole_words.size(); ++word)
        decoder.add(settings.whole_ids[word], settings.whole_words[word]);
    for (std::size_t token = 0; token < settings.specials.size(); ++token)
        decoder.add(settings.special_ids[token], settings.specials[token]);
    decoder.finish();
    return decoder;
}

std::string decoded(const encoder::Decoder& decoder, const std::vector<std::uint32_t>& ids) {
    const auto measured = decoder.measure(ids.data(), ids.size(), sizeof ids[0], false);
    std::vector<char> bytes(measured.bytes);   // of just this size, so that writing beyond it shows
    decoder.write(ids.data(), ids.size(), sizeof ids[0], false, bytes.data(), bytes.size());
    return {bytes.begin(), bytes.end()};
}

}  // namespace

int main(int, char** arguments) {
    std::ifstream classes(arguments[1], std::ios::binary), cases(arguments[2]);
    const std::string all{std::istreambuf_iterator<char>(classes), std::istreambuf_iterator<char>()};
    const std::size_t split = 2 * scanner::Classes::number_of_pages;
    bool narrow = false;
    while (cases >> narrow) {
        encoder::Settings settings;
        settings.numbers = all.substr(0, split), settings.pages = all.substr(split);
        settings.seed = std::string(32, '\x5b');
        std::size_t threads = 0;
        cases >> threads >> settings.path >> settings.sizes.block >> settings.sizes.part >> settings.sizes.short_words >>
            settings.sizes.arena;
        settings.sizes.long_words = settings.sizes.short_words;
        if (!scanner::supported(static_cast<scanner::Path>(settings.path))) settings.path = 0;
        read_list(cases, [&] {
            const std::uint32_t left = number_in(cases);
            settings.merges.push_back({left, number_in(cases)});
        });
        read_list(cases, [&] { settings.ids.push_back(number_in(cases)); });
        read_list(cases, [&] {
            settings.specials.push_back(bytes_in(cases));
            settings.special_ids.push_back(number_in(cases));
        });
        read_list(cases, [&] {
            settings.whole_words.push_back(bytes_in(cases));
            settings.whole_ids.push_back(number_in(cases));
        });
        settings.pattern = bytes_in(cases);
        const auto one = encoder::encoder_of(settings, narrow);
        const encoder::Decoder decoder = decoder_of(settings);
        read_list(cases, [&] {
            const std::string text = bytes_in(cases);
            const std::vector<std::uint32_t> ids = ids_of(*one, narrow, text, threads);
            for (const std::uint32_t id : ids) std::printf("%u ", id);
            std::puts("");

            if (decoded(decoder, ids) != text) {
                std::fputs("the ids decode to another text\n", stderr);
                std::exit(1);
            }
            const std::vector<std::uint32_t> characters = characters_of(text);
            if (ids_of(*one, narrow, encoder::Text{characters.data(), characters.size(), 4, true}, threads) != ids) {
                std::fputs("other ids of the characters\n", stderr);
                std::exit(1);
            }

            const std::vector<encoder::byte> content(text.begin(), text.end());
            const std::size_t cut = one->last_cut(content.data(), content.size());
            std::vector<std::uint32_t> both = ids_of(*one, narrow, text.substr(0, cut), threads);
            for (const std::uint32_t id : ids_of(*one, narrow, text.substr(cut), threads)) both.push_back(id);
            if (both != ids) {
                std::fprintf(stderr, "other ids if the text is cut at %zu\n", cut);
                std::exit(1);
            }
        });
    }
}
