// Texts as token ids: cut at special tokens, into words, each word from the table; in parts, each by a thread.
#pragma once

#include <memory>

#include "encoder_words.hpp"
#include "parallel.hpp"

namespace encoder {

// A text of its own: no word spans two of them.
struct Text {
    const byte* start;
    std::size_t length;
};

// One thread's half: its table of words lives as long as the encoder does.
template <class Id>
class Worker {
  public:
    explicit Worker(const Rules& rules) : rules_(rules), words_(rules), starts_(words_), search_(rules.specials) {}

    Ids<Id>& ids() { return words_.ids; }
    std::vector<std::size_t> ends;   // of the texts, in the ids

    void begin() {
        ids().clear();
        ends.clear();
    }
    // Adds the ids of a text.
    void encode(const Text& text) {
        for (std::size_t at = 0; at < text.length;) {
            const byte* const start = text.start + at;
            const std::size_t rest = text.length - at, block = rules_.sizes.block;
            const std::size_t size =
                rest <= block ? rest : scanner::first_cut(rules_.classes, rules_.pattern, rules_.specials, start, block, rest);
            encode_block(start, size, rest - size >= scanner::padding);
            at += size;
        }
        ends.push_back(ids().size());
    }

  private:
    // Bytes that are not UTF-8 become surrogates, as when Python decodes with `surrogateescape`, so that every matcher sees
    // characters. `padded`: the bytes behind may be read.
    void encode_block(const byte* text, std::size_t length, bool padded) {
        const bool bytes = rules_.pattern.split == scanner::Split::bytes;
        const std::size_t valid = bytes ? length : rules_.functions.valid_until(text, 0, length);
        words_.escaped = valid < length;
        if (words_.escaped) {
            escape(text, valid, length);
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

    const Rules& rules_;
    WordIds<Id> words_;
    scanner::Starts starts_;
    scanner::SpecialTokens::Search search_;
    std::vector<byte> copy_;
};

// Ids of one width; a part is what one thread encoded.
class Encoder {
  public:
    explicit Encoder(Rules rules) : rules_(std::move(rules)) {}
    virtual ~Encoder() = default;

    // Encodes texts in up to so many parts, one text cut where that changes nothing. The ids lie in the parts until the next.
    void encode(const std::vector<Text>& texts, std::size_t threads) {
        const std::vector<Text> cut = texts.size() == 1 ? cut_up(texts[0], threads) : texts;
        std::size_t bytes = 0;
        for (const Text& text : cut) bytes += text.length;
        const std::size_t most = std::min(threads, cut.size());
        parts_ = std::max<std::size_t>(1, texts.size() == 1 ? most : std::min(most, bytes / rules_.sizes.part));
        for (std::size_t part = 0; part < parts_; ++part) begin(part);
        if (parts_ == 1) return encode_part(0, cut.data(), cut.data() + cut.size());

        const std::vector<std::size_t> bounds =
            equal_shares(cut.size(), parts_, [&](std::size_t index) { return cut[index].length; });
        in_parallel(parts_, [&](std::size_t part) {
            encode_part(part, cut.data() + bounds[part], cut.data() + bounds[part + 1]);
        });
    }

    std::size_t parts() const { return parts_; }
    virtual std::size_t size(std::size_t part) const = 0;
    virtual const std::vector<std::size_t>& ends(std::size_t part) const = 0;   // of its texts, in its ids
    virtual const void* data(std::size_t part) const = 0;
    virtual Memory release(std::size_t part) = 0;

    // The last place to cut a text at whatever follows it, for a text that comes in blocks; 0 if there is none.
    std::size_t last_cut(const byte* text, std::size_t length) const {
        const std::size_t longest = rules_.specials.longest();
        if (!rules_.pattern.of_documents() && length > longest)
            for (std::size_t at = length - longest - 1; at > 0; --at)
                if (scanner::is_cut(rules_.classes, rules_.pattern, rules_.specials, text, at, length)) return at;
        return behind_last_special(text, length);
    }

  protected:
    virtual void begin(std::size_t part) = 0;
    virtual void encode_part(std::size_t part, const Text* text, const Text* end) = 0;
    const Rules rules_;

  private:
    // A special token that could still become a longer one is not known yet.
    std::size_t behind_last_special(const byte* text, std::size_t length) const {
        const std::size_t longest = rules_.specials.longest();
        std::size_t at = 0;
        scanner::SpecialTokens::Search search(rules_.specials);
        while (longest && length >= longest) {
            const auto found = search.next(text, at, length - longest + 1, length);
            if (!found.length) break;
            at = found.place + found.length;
        }
        return at;
    }

    std::vector<Text> cut_up(const Text& text, std::size_t threads) const {
        const std::size_t number = std::max<std::size_t>(1, std::min(threads, text.length / rules_.sizes.part));
        const std::size_t around = rules_.specials.longest() + 8;
        std::vector<Text> pieces;
        std::size_t done = 0;
        for (std::size_t piece = 1; piece < number; ++piece) {
            const std::size_t target = text.length / number * piece;
            const std::size_t window = std::max(done, target - std::min(target, around));
            const std::size_t cut = window + scanner::first_cut(rules_.classes, rules_.pattern, rules_.specials,
                                                                text.start + window, around, text.length - window);
            if (cut >= text.length) break;
            pieces.push_back({text.start + done, cut - done});
            done = cut;
        }
        pieces.push_back({text.start + done, text.length - done});
        return pieces;
    }

    std::size_t parts_ = 0;
};

template <class Id>
class EncoderOf final : public Encoder {
  public:
    using Encoder::Encoder;

    std::size_t size(std::size_t part) const override { return workers_[part]->ids().size(); }
    const std::vector<std::size_t>& ends(std::size_t part) const override { return workers_[part]->ends; }
    const void* data(std::size_t part) const override { return workers_[part]->ids().data(); }
    Memory release(std::size_t part) override { return workers_[part]->ids().release(); }

  private:
    void begin(std::size_t part) override {
        if (part == workers_.size()) workers_.push_back(std::make_unique<Worker<Id>>(rules_));
        workers_[part]->begin();
    }
    void encode_part(std::size_t part, const Text* text, const Text* end) override {
        for (; text != end; ++text) workers_[part]->encode(*text);
    }

    std::vector<std::unique_ptr<Worker<Id>>> workers_;
};

// The same as plain columns, as the door to Python has it.
struct Settings {
    std::vector<Merge> merges;
    std::vector<std::uint32_t> ids;
    std::vector<std::string> whole_words, specials;
    std::vector<std::uint32_t> whole_ids, special_ids;
    std::string pattern, numbers, pages, seed;
    int path = 0;
    Sizes sizes;
};

// An encoder whose ids have two bytes if it is narrow, else four.
inline std::unique_ptr<Encoder> encoder_of(const Settings& settings, bool narrow) {
    const scanner::Pattern pattern = scanner::Pattern::of(settings.pattern);
    Rules rules{flat::InheritedMerges(settings.merges.data(), settings.merges.size()),
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
    if (narrow) return std::make_unique<EncoderOf<std::uint16_t>>(std::move(rules));
    return std::make_unique<EncoderOf<std::uint32_t>>(std::move(rules));
}

}  // namespace encoder
