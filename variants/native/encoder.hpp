// Texts as token ids: cut at special tokens, into words, each word from the table; in parts, each by a thread.
#pragma once

#include <memory>

#include "encoder_text.hpp"
#include "encoder_words.hpp"
#include "parallel.hpp"

namespace encoder {

// Behind the last special token of a text that is whole whatever follows it, or 0.
inline std::size_t behind_last_special(const Rules& rules, const byte* text, std::size_t length) {
    const std::size_t longest = rules.specials.longest();
    std::size_t at = 0;
    scanner::SpecialTokens::Search search(rules.specials);
    while (longest && length >= longest) {
        const auto found = search.next(text, at, length - longest + 1, length);
        if (!found.length) break;
        at = found.place + found.length;
    }
    return at;
}

// The last place to cut a text at whatever follows it, for a text that comes in blocks; 0 if there is none.
inline std::size_t last_cut(const Rules& rules, const byte* text, std::size_t length) {
    const std::size_t longest = rules.specials.longest();
    if (!rules.pattern.of_documents() && length > longest)
        for (std::size_t at = length - longest - 1; at > 0; --at)
            if (scanner::is_cut(rules.classes, rules.pattern, rules.specials, text, at, length)) return at;
    return behind_last_special(rules, text, length);
}

// One thread's half: its table of words lives as long as the encoder does.
template <class Id>
class Worker {
  public:
    // `look` is called after each block and now and then within a long word, which it ends by throwing.
    Worker(const Rules& rules, const std::function<void()>& look)
        : rules_(rules), look_(look), words_(rules, look), starts_(words_), search_(rules.specials) {}

    Ids<Id>& ids() { return words_.ids; }
    std::vector<std::size_t> ends;   // of the texts, in the ids

    void begin() {
        ids().clear();
        ends.clear();
    }
    // Adds what another encoded, whose memory is freed.
    void append(Worker& other) {
        for (const std::size_t end : other.ends) ends.push_back(ids().size() + end);
        ids().append(other.ids());
        other.ids().release();
    }
    // Adds the ids of a text.
    void encode(const Text& text) {
        text.width ? encode_characters(text) : encode_bytes(text.bytes(), text.length, text.valid);
        ends.push_back(ids().size());
        if (copy_.size() > roomy()) std::vector<byte>().swap(copy_);
        if (room_ > roomy()) {
            window_ = Column<byte>();
            room_ = 0;
        }
    }

  private:
    void encode_bytes(const byte* text, std::size_t length, bool valid) {
        const std::size_t block = rules_.sizes.block;
        for (std::size_t at = 0; at < length;) {
            const std::size_t rest = length - at;
            const std::size_t size =
                rest <= block ? rest
                              : scanner::first_cut(rules_.classes, rules_.pattern, rules_.specials, text + at, block, rest);
            encode_block(text + at, size, valid, rest - size >= scanner::padding);
            at += size;
            if (look_) look_();
        }
    }

    // A block of characters becomes bytes, behind those of the block before that could not be cut off yet.
    void encode_characters(const Text& text) {
        std::size_t held = 0, wanted = rules_.sizes.block;
        bool valid = true;
        for (std::size_t at = 0; at < text.length;) {
            const Text block = text.part(at, std::min(text.length, at + wanted));
            room_ = held + Utf8Writer::longest * block.length + scanner::padding;
            window_.reserve(room_);
            Utf8Writer writer(window_.data() + held);
            writer.put(block);
            held = static_cast<std::size_t>(writer.end() - window_.data());
            valid &= writer.valid();
            at += block.length;

            const std::size_t cut = at == text.length ? held : last_cut(rules_, window_.data(), held);
            if (cut) encode_block(window_.data(), cut, valid, true);
            held -= cut;
            std::memmove(window_.data(), window_.data() + cut, held);
            if (look_) look_();
            // Where nothing can be cut, looking after each block would cost the square of the length.
            wanted = cut ? rules_.sizes.block : 2 * wanted;
        }
    }

    // Bytes that are not UTF-8 become surrogates, as when Python decodes with `surrogateescape`, so that every matcher sees
    // characters. `padded`: the bytes behind may be read.
    void encode_block(const byte* text, std::size_t length, bool valid, bool padded) {
        valid |= rules_.pattern.split == scanner::Split::bytes;   // which sees no characters
        const std::size_t whole = valid ? length : rules_.functions.valid_until(text, 0, length);
        words_.escaped = whole < length;
        if (words_.escaped) {
            escape(text, whole, length);
        } else if (!padded) {
            copy_.resize(length + scanner::padding);
            std::memcpy(copy_.data(), text, length);
        } else {
            return encode_valid(text, length);
        }
        encode_valid(copy_.data(), copy_.size() - scanner::padding);
    }

    void escape(const byte* text, std::size_t valid, std::size_t length) {
        copy_.assign(text, text + valid);
        for (std::size_t at = valid; at < length;) {
            const int size = scanner::length_of_character(text + at, length - at);
            if (size > 0) {
                copy_.insert(copy_.end(), text + at, text + at + size);
                at += static_cast<std::size_t>(size);
                continue;
            }
            const byte value = text[at++];
            for (const byte part : {0xEDu, 0xB0u | value >> 6, 0x80u | (value & 0x3Fu)}) copy_.push_back(part);
        }
        copy_.resize(copy_.size() + scanner::padding);
    }

    void encode_valid(const byte* text, std::size_t length) {
        std::size_t at = 0;
        search_.restart();
        while (rules_.specials.longest()) {
            const auto found = search_.next(text, at, length, length);
            if (!found.length) break;
            encode_plain(text, at, found.place);
            const std::string token(reinterpret_cast<const char*>(text + found.place), found.length);
            ids().push(rules_.special_ids.at(token));
            at = found.place + found.length;
        }
        encode_plain(text, at, length);
    }

    void encode_plain(const byte* text, std::size_t from, std::size_t to) {
        if (from == to) return;
        starts_.begin(text);
        rules_.functions.find_starts(rules_.classes, rules_.pattern, text, from, to, starts_);
        starts_.finish(to);
    }

    std::size_t roomy() const { return 8 * rules_.sizes.block; }   // memory beyond is given back after a text

    const Rules& rules_;
    const std::function<void()>& look_;
    WordIds<Id> words_;
    scanner::Starts starts_;
    scanner::SpecialTokens::Search search_;
    std::vector<byte> copy_;
    Column<byte> window_;
    std::size_t room_ = 0;   // in the window
};

// What all threads encoded, in ids of one width.
class Encoder {
  public:
    explicit Encoder(Rules rules) : rules_(std::move(rules)) {}
    virtual ~Encoder() = default;

    // Encodes texts by up to so many threads; one text is divided where that changes nothing. Throws std::invalid_argument
    // for a lone surrogate. The ids lie here until the next texts. False: `report` said stop, and there are none.
    bool encode(const std::vector<Text>& texts, std::size_t threads, Report report = nullptr, void* context = nullptr) {
        Training nothing;
        Progress progress(nothing, report, context);
        look_ = nullptr;
        if (report) look_ = [&progress] { progress.look(update); };
        try {
            encode_all(texts, threads);
            return true;
        } catch (const Stopped&) {
            return false;
        }
    }

    virtual std::size_t size() const = 0;
    virtual const std::vector<std::size_t>& ends() const = 0;   // of each text, in the ids; of a text alone the last one
    virtual const void* data() const = 0;
    virtual Memory release() = 0;

    std::size_t last_cut(const byte* text, std::size_t length) const { return encoder::last_cut(rules_, text, length); }

  protected:
    virtual void begin(std::size_t part) = 0;
    virtual void encode_part(std::size_t part, const Text* text, const Text* end) = 0;
    virtual void append(std::size_t part) = 0;   // to the first
    const Rules rules_;
    std::function<void()> look_;   // of the call

  private:
    void encode_all(const std::vector<Text>& texts, std::size_t threads) {
        if (threads == 1) {
            begin(0);
            return encode_part(0, texts.data(), texts.data() + texts.size());
        }
        std::size_t length = 0;
        for (const Text& text : texts) length += text.length;
        const std::size_t most = std::max<std::size_t>(1, std::min(threads, length / rules_.sizes.part));
        const std::vector<Text> cut = most > 1 && texts.size() == 1 ? cut_up(texts[0], most) : texts;

        const std::size_t parts = std::max<std::size_t>(1, std::min(most, cut.size()));
        const std::vector<std::size_t> bounds =
            equal_shares(cut.size(), parts, [&](std::size_t index) { return cut[index].length; });
        for (std::size_t part = 0; part < parts; ++part) begin(part);
        const auto encode = [&](std::size_t part) {
            encode_part(part, cut.data() + bounds[part], cut.data() + bounds[part + 1]);
        };
        look_ ? in_parallel(parts, encode, look_) : in_parallel(parts, encode);
        for (std::size_t part = 1; part < parts; ++part) append(part);
    }

    std::vector<Text> cut_up(const Text& text, std::size_t number) const {
        const std::size_t before = rules_.specials.longest() + 8;   // characters or bytes that a cut depends on
        std::vector<Text> pieces;
        std::size_t done = 0;
        for (std::size_t piece = 1; piece < number; ++piece) {
            const std::size_t target = text.length / number * piece;
            const std::size_t window = std::max(done, target - std::min(target, before));
            const std::size_t cut = window + first_cut(text.part(window, text.length), before);
            if (cut >= text.length) break;
            pieces.push_back(text.part(done, cut));
            done = cut;
        }
        pieces.push_back(text.part(done, text.length));
        return pieces;
    }

    // The first place to cut a text at behind so many bytes, or its length.
    std::size_t first_cut(const Text& text, std::size_t from) const {
        const auto first_in = [&](const byte* bytes, std::size_t length) {
            return scanner::first_cut(rules_.classes, rules_.pattern, rules_.specials, bytes, from, length);
        };
        if (!text.width) return first_in(text.bytes(), text.length);

        // Mostly the first words of the characters are enough.
        for (std::size_t enough = 1024; enough < text.length; enough *= 2) {
            const std::vector<byte> bytes = utf8_of(text.part(0, enough));
            const std::size_t cut = first_in(bytes.data(), bytes.size());
            if (cut < bytes.size()) return characters_in(text, cut);
        }
        return text.length;
    }
};

template <class Id>
class EncoderOf final : public Encoder {
  public:
    using Encoder::Encoder;

    std::size_t size() const override { return workers_[0]->ids().size(); }
    const std::vector<std::size_t>& ends() const override { return workers_[0]->ends; }
    const void* data() const override { return workers_[0]->ids().data(); }
    Memory release() override { return workers_[0]->ids().release(); }

  private:
    void begin(std::size_t part) override {
        if (part == workers_.size()) workers_.push_back(std::make_unique<Worker<Id>>(rules_, look_));
        workers_[part]->begin();
    }
    void encode_part(std::size_t part, const Text* text, const Text* end) override {
        for (; text != end; ++text) workers_[part]->encode(*text);
    }
    void append(std::size_t part) override { workers_[0]->append(*workers_[part]); }

    std::vector<std::unique_ptr<Worker<Id>>> workers_;
};

// The same as plain columns, as Python passes them.
struct Settings {
    std::vector<Merge> merges;
    std::vector<std::uint32_t> ids;
    std::vector<std::string> whole_words, specials;
    std::vector<std::uint32_t> whole_ids, special_ids;
    std::string pattern, numbers, pages, seed;
    int path = 0;
    Sizes sizes;
};

// By the merges that stay within words, words become tokens as they are.
inline Rules rules_of_words(const Rules& rules) {
    const std::size_t number = rules.merges.first_across_words();
    std::vector<std::uint32_t> tokens(flat::first_merge + number);
    for (std::size_t token = 0; token < tokens.size(); ++token) tokens[token] = static_cast<std::uint32_t>(token);
    return {flat::InheritedMerges(rules.merges.data(), number), nullptr, nullptr, tokens, {}, rules.pattern, rules.functions,
            rules.classes, scanner::SpecialTokens({}), {}, rules.seed, rules.sizes};
}

// An encoder whose ids have two bytes if it is narrow, else four.
inline std::unique_ptr<Encoder> encoder_of(const Settings& settings, bool narrow) {
    const scanner::Pattern pattern = scanner::Pattern::of(settings.pattern);
    Rules rules{flat::InheritedMerges(settings.merges.data(), settings.merges.size()),
                nullptr,
                nullptr,
                settings.ids,
                {},
                pattern,
                scanner::functions_of(pattern, static_cast<scanner::Path>(settings.path)),
                scanner::Classes(settings.numbers, settings.pages),
                scanner::SpecialTokens(settings.specials),
                {},
                {},
                settings.sizes};
    for (std::size_t index = 0; index < settings.whole_words.size(); ++index)
        rules.whole[settings.whole_words[index]] = settings.whole_ids[index];
    for (std::size_t index = 0; index < settings.specials.size(); ++index)
        rules.special_ids[settings.specials[index]] = settings.special_ids[index];
    if (settings.seed.size() != sizeof rules.seed) throw std::invalid_argument("the hash wants a seed of 32 bytes");
    std::memcpy(&rules.seed, settings.seed.data(), sizeof rules.seed);
    if (flat::Joints::is_useful(rules.merges)) {
        rules.joints = std::make_unique<flat::Joints>(rules.merges);
        rules.words = std::make_unique<Rules>(rules_of_words(rules));
    }
    if (narrow) return std::make_unique<EncoderOf<std::uint16_t>>(std::move(rules));
    return std::make_unique<EncoderOf<std::uint32_t>>(std::move(rules));
}

}  // namespace encoder
