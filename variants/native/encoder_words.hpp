// The words of a text as token ids: each word is encoded once and then copied from a table.
//
// A short word lies in the index with its ids, 32 bytes together, so that a known one costs one cache line. A long word is
// in an arena, its bytes and ids one after the other. Neither may grow with the text. A table that is full takes no more long
// words, and begins anew when as many were missing as it holds: a text that comes again finds most of its words, and after a
// change of language no more words are encoded twice than the table had cost.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "flat_encoding.hpp"
#include "scanner_paths.hpp"

namespace encoder {

using namespace native;
using scanner::byte;

// How much is done and kept at once; tests make all of it small.
struct Sizes {
    std::size_t block = std::size_t{1} << 17;           // bytes that are scanned together
    std::size_t part = std::size_t{1} << 18;            // bytes for which a thread is worth starting
    std::size_t short_words = std::size_t{600} << 10;   // that a thread's table holds, at 32 bytes of 0.6 in use
    std::size_t long_words = std::size_t{1200} << 10;
    std::size_t arena = std::size_t{96} << 20;          // bytes of long words and of their ids
    unsigned short_bits = 16, long_bits = 12;           // slots of a new table, as a power of two
};

// What a tokenizer consists of, for all threads.
struct Rules {
    flat::InheritedMerges merges;
    std::unique_ptr<const Rules> words;                      // of the words in a piece, if some merges reach across these
    std::unique_ptr<const flat::Joints> joints;
    std::vector<std::uint32_t> ids;                          // by the id inside flat
    std::unordered_map<std::string, std::uint32_t> whole;    // words that become one token without merging
    scanner::Pattern pattern;
    scanner::Functions functions;
    scanner::Classes classes;
    scanner::SpecialTokens specials;
    std::unordered_map<std::string, std::uint32_t> special_ids;
    scanner::Seed seed;
    Sizes sizes;
};

// Ids in the order of the text. Whoever writes may write up to `slack` ids more than there are.
template <class Id>
class Ids {
  public:
    static constexpr std::size_t slack = 64;

    // Where `more` ids have room.
    Id* room(std::size_t more) {
        column_.reserve(number_ + more + slack);
        return column_.data() + number_;
    }
    void finish(const Id* end) { number_ = static_cast<std::size_t>(end - column_.data()); }
    void push(std::uint32_t id) {
        *room(1) = static_cast<Id>(id);
        ++number_;
    }
    void append(const Ids& others) {
        std::copy_n(others.data(), others.size(), room(others.size()));
        number_ += others.size();
    }
    void clear() { number_ = 0; }

    std::size_t size() const { return number_; }
    const Id* data() const { return column_.data(); }
    Memory release() { return column_.release(std::exchange(number_, 0)); }

  private:
    Column<Id> column_;
    std::size_t number_ = 0;
};

template <class Id>
class WordIds final : public scanner::WordSink {
  public:
    WordIds(const Rules& rules, const std::function<void()>& look)
        : rules_(rules), encoder_(rules.merges, false, &look), shorts_(rules.sizes.short_bits), longs_(rules.sizes.long_bits) {
        if (rules.words) words_ = std::make_unique<Words>(rules, look);
    }

    Ids<Id> ids;
    bool escaped = false;   // bytes that are not UTF-8 are surrogates in the words that come

    void take(const scanner::WordBatch& words) override {
        reserve(words.number);
        const scanner::Home home{reinterpret_cast<const byte*>(shorts_.slots().data()), shorts_.shift()};
        const std::size_t shorts = rules_.functions.key_hash.of_batch(rules_.seed, words, home, batch_);
        const std::size_t longs = words.number - shorts;
        const std::size_t bytes = words.origin + words.starts[words.number - 1] - words.open;

        Id* to = ids.room(bytes);
        if (longs) look_ahead(words, longs);
        std::size_t done = 0;
        for (std::size_t index = 0; index < longs; ++index) {
            const std::size_t before = batch_.longs[index] - index;
            to = put_shorts(words, done, before, index, to);
            to = put_long(long_words_[index], to);
            done = before;
        }
        ids.finish(put_shorts(words, done, shorts, longs, to));
    }

  private:
    using LongSlot = scanner::LongSlot;
    using LongWord = scanner::LongWord;
    static constexpr std::size_t share = 64;   // one part in so many of the arena is for one word at most
    static constexpr std::size_t inlined = 16 / sizeof(Id) - 1;

    struct ShortSlot {
        scanner::Key key;    // high is 0 in a free slot
        Id ids[inlined];     // or, if there are more, the place of the record
        Id number;
        bool taken() const { return key.high != 0; }
    };
    static_assert(sizeof(ShortSlot) == 32, "Home counts on it");

    // In the arena: the length of a word and the number of its ids, its bytes, and from the next multiple of eight its ids.
    struct Record {
        std::uint32_t length, number;
    };
    static constexpr std::size_t unit = 8;   // places count so many bytes
    static std::size_t in_units(std::size_t bytes) { return (bytes + unit - 1) / unit; }
    byte* at(std::uint32_t place) { return arena_.data() + unit * place; }

    // ---- known words ----

    Id* put_shorts(const scanner::WordBatch& words, std::size_t first, std::size_t stop, std::size_t longs_before, Id* to) {
        ShortSlot* const slots = shorts_.slots().data();
        for (std::size_t index = first; index < stop; ++index) {
            const scanner::Key key = batch_.keys[index];
            const ShortSlot* slot = slots + batch_.homes[index];
            const bool home = ((slot->key.low ^ key.low) | (slot->key.high ^ key.high)) == 0;
            if (__builtin_expect(!home, 0)) slot = find_or_enter(words, index, index + longs_before);
            if (__builtin_expect(slot->number > inlined, 0)) {
                to = put_record(slot, to);
                continue;
            }
            std::memcpy(to, slot->ids, 16);   // what is too much is written over
            to += slot->number;
        }
        return to;
    }
    __attribute__((noinline)) Id* put_record(const ShortSlot* slot, Id* to) {
        std::uint32_t place;
        std::memcpy(&place, slot->ids, sizeof place);
        return put_ids(place, to);
    }

    // Hashes the long words and asks for the memory that they will be looked for in.
    void look_ahead(const scanner::WordBatch& words, std::size_t longs) {
        for (std::size_t index = 0; index < longs; ++index) {
            const std::size_t number = batch_.longs[index], length = words.length(number);
            const byte* const word = words.text + words.start(number);
            const std::uint64_t hash = scanner::hash_of_long(rules_.seed, word, length);
            long_words_[index] = LongWord{word, length, hash};
            __builtin_prefetch(&longs_.home(hash));
        }
        for (std::size_t index = 0; index < longs; ++index) {
            const LongSlot home = longs_.home(long_words_[index].hash);
            if (!home.taken() || home.tag != long_words_[index].tag()) continue;
            __builtin_prefetch(at(home.place));
            __builtin_prefetch(at(home.place) + 64);
        }
    }

    Id* put_long(const LongWord& word, Id* to) {
        if (word.length > rules_.sizes.arena / share) return encode(word.word, word.length, to);
        LongSlot* const slot = find(word);
        if (slot->taken()) return put_ids(slot->place, to);

        Id* const end = encode(word.word, word.length, to);
        if (is_full()) {
            ++missing_;
            return end;
        }
        *slot = LongSlot{word.tag(), keep(word.word, word.length, to, end)};
        ++long_words_kept_;
        return end;
    }
    Id* put_ids(std::uint32_t place, Id* to) {
        const byte* const record = at(place);
        Record head;
        std::memcpy(&head, record, sizeof head);
        const byte* const ids_of_word = record + unit * in_units(sizeof head + head.length);
        for (std::size_t done = 0; done < head.number * sizeof(Id); done += 16)
            std::memcpy(reinterpret_cast<byte*>(to) + done, ids_of_word + done, 16);
        return to + head.number;
    }

    LongSlot* find(const LongWord& word) {
        return longs_.find(word.hash >> longs_.shift(), [&](const LongSlot& slot) {
            return slot.tag == word.tag() && is_word(slot.place, word);
        });
    }
    bool is_word(std::uint32_t place, const LongWord& word) {
        const byte* const record = at(place);
        Record head;
        std::memcpy(&head, record, sizeof head);
        return head.length == word.length && std::memcmp(record + sizeof head, word.word, word.length) == 0;
    }

    // ---- new words ----

    __attribute__((noinline)) const ShortSlot* find_or_enter(const scanner::WordBatch& words, std::size_t index,
                                                             std::size_t number) {
        const scanner::Key key = batch_.keys[index];
        ShortSlot& slot = *shorts_.find(batch_.homes[index], [=](const ShortSlot& other) {
            return other.key.low == key.low && other.key.high == key.high;
        });
        if (slot.taken()) return &slot;

        Id found[scanner::longest_short + Ids<Id>::slack] = {};
        const byte* const word = words.text + words.start(number);
        const std::size_t length = words.length(number);
        const Id* const end = encode(word, length, found);
        ShortSlot entered{key, {}, static_cast<Id>(end - found)};
        if (entered.number <= inlined) {
            std::memcpy(entered.ids, found, sizeof entered.ids);
        } else {
            const std::uint32_t record = keep(word, length, found, end);
            std::memcpy(entered.ids, &record, sizeof record);
        }
        slot = entered;   // now that nothing can fail any more
        ++short_words_;
        return &slot;
    }

    // Writes the ids of a word that no table knows.
    Id* encode(const byte* word, std::size_t length, Id* to) {
        if (escaped) {
            unescape(word, length);
            word = unescaped_.data();
            length = unescaped_.size() - scanner::padding;
        }
        if (!rules_.whole.empty()) {
            const auto found = rules_.whole.find(std::string(reinterpret_cast<const char*>(word), length));
            if (found != rules_.whole.end()) {
                *to = static_cast<Id>(found->second);
                return to + 1;
            }
        }
        if (words_) return encode_words(word, length, to);
        const std::uint32_t* const ids_of_symbols = rules_.ids.data();
        return encoder_.encode(word, length, word + length + scanner::padding, to,
                               [=](std::uint32_t symbol) { return static_cast<Id>(ids_of_symbols[symbol]); });
    }

    // The same for a piece that may hold many words: their tokens first, then the merges that reach across these.
    Id* encode_words(const byte* piece, std::size_t length, Id* to) {
        Words& words = *words_;
        words.row->ids.clear();
        words.starts.begin(piece);
        rules_.functions.find_words(rules_.classes, rules_.pattern, piece, 0, length, words.starts);
        words.starts.finish(length);

        const auto id_of = [ids = rules_.ids.data()](std::uint32_t token) { return static_cast<Id>(ids[token]); };
        std::uint32_t* const end = words.row->ids.room(0);
        *end = flat::separator;
        for (std::uint32_t *first = end - words.row->ids.size(), *last; first < end; first = last) {
            for (last = first + 1; rules_.joints->may_join(last[-1], *last) && last < end;) ++last;
            if (last == first + 1) {
                *to++ = id_of(*first);
                continue;
            }
            std::uint32_t behind[flat::RankMerger::slack];   // where merging may write
            std::copy_n(last, flat::RankMerger::slack, behind);
            const std::size_t number = words.merger.merge(first, static_cast<std::size_t>(last - first));
            std::copy_n(behind, flat::RankMerger::slack, last);
            for (std::size_t place = 0; place < number; ++place) *to++ = id_of(first[place]);
        }
        return to;
    }

    // The bytes of a word in which 0x80 to 0xFF are the surrogates U+DC80 to U+DCFF, as Python has them.
    void unescape(const byte* word, std::size_t length) {
        unescaped_.clear();
        for (std::size_t index = 0; index < length; ++index) {
            const bool surrogate = word[index] == 0xED && index + 2 < length && word[index + 1] >= 0xA0;
            if (!surrogate) {
                unescaped_.push_back(word[index]);
                continue;
            }
            unescaped_.push_back(static_cast<byte>((word[index + 1] & 3u) << 6 | (word[index + 2] & 0x3Fu)));
            index += 2;
        }
        unescaped_.resize(unescaped_.size() + scanner::padding);
    }

    // A new record, behind all others.
    std::uint32_t keep(const byte* word, std::size_t length, const Id* ids_of_word, const Id* end) {
        const Record head{static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(end - ids_of_word)};
        const std::size_t bytes_of_ids = head.number * sizeof(Id);
        const std::size_t place = arena_units_, ids_at = in_units(sizeof head + length);
        const std::size_t behind = place + ids_at + in_units(bytes_of_ids);
        arena_.reserve(unit * behind + scanner::padding);

        byte* const record = arena_.data() + unit * place;
        std::memcpy(record, &head, sizeof head);
        std::memcpy(record + sizeof head, word, length);
        std::memcpy(record + unit * ids_at, ids_of_word, bytes_of_ids);
        arena_units_ = behind;
        return static_cast<std::uint32_t>(place);
    }

    // ---- room ----

    bool is_full() const {
        return long_words_kept_ > rules_.sizes.long_words || unit * arena_units_ > rules_.sizes.arena;
    }

    // Room for so many more words of either kind, perhaps after beginning anew.
    void reserve(std::size_t more) {
        const bool useless = short_words_ > rules_.sizes.short_words || missing_ > long_words_kept_;
        if (__builtin_expect(useless, 0)) forget();
        shorts_.reserve(short_words_ + more, [this](const ShortSlot& slot) {
            return rules_.functions.key_hash.of_key(rules_.seed, slot.key);
        });
        longs_.reserve(long_words_kept_ + more, [](const LongSlot& slot) { return slot.hash(); });
    }
    // Both tables at once, or none if there is no memory: the places in them are those of one arena.
    void forget() {
        scanner::Index<ShortSlot> shorts(rules_.sizes.short_bits);
        scanner::Index<LongSlot> longs(rules_.sizes.long_bits);
        shorts_ = std::move(shorts);
        longs_ = std::move(longs);
        short_words_ = long_words_kept_ = missing_ = 0;
        arena_units_ = 1;
    }

    // Of a piece: the tokens of its words, and what merges these.
    struct Words {
        Words(const Rules& rules, const std::function<void()>& look)
            : row(std::make_unique<WordIds<std::uint32_t>>(*rules.words, look)), starts(*row), merger(rules.merges, false, &look) {}
        std::unique_ptr<WordIds<std::uint32_t>> row;
        scanner::Starts starts;
        flat::RankMerger merger;
    };

    const Rules& rules_;
    flat::Encoder encoder_;
    std::unique_ptr<Words> words_;
    scanner::Index<ShortSlot> shorts_;
    scanner::Index<LongSlot> longs_;   // whose places are in the arena
    std::size_t short_words_ = 0, long_words_kept_ = 0, missing_ = 0;
    Column<byte> arena_;
    std::size_t arena_units_ = 1;   // the place 0 is nobody's
    scanner::Batch batch_;
    LongWord long_words_[scanner::Batch::size];
    std::vector<byte> unescaped_;
};

}  // namespace encoder
