// The table of words: an index over columns that hold the words in the order of their first occurrence.
//
// Short words lie in the index with their counts, 32 bytes each; of long ones it knows the top of the hash, and their
// bytes are compared in the column. What the table has counted is what WordCounts shows, without a copy.
#pragma once

#include <string>

#include "job.hpp"
#include "scanner_index.hpp"

namespace scanner {

// Takes the words of a text in batches, in their order.
class WordSink {
  public:
    virtual void take(const WordBatch& words) = 0;

  protected:
    ~WordSink() = default;
};

class WordTable final : public WordSink {
  public:
    // Words that will be seen but must not be counted are entered first, and left out in the end. Words that take more
    // cells, one for each byte and one for each word, are refused.
    WordTable(const Seed& seed, const KeyHash& hash, const std::vector<std::string>& special_words, std::size_t most_cells)
        : seed_(seed), hash_(hash), most_cells_(most_cells) {
        offsets_.reserve(1);
        offsets_[0] = 0;
        for (const std::string& word : special_words) {
            std::vector<byte> padded(word.begin(), word.end());
            padded.resize(word.size() + padding);
            const std::uint32_t stop = static_cast<std::uint32_t>(word.size());
            count(WordBatch{padded.data(), 0, 0, &stop, 1});
        }
        special_words_ = words_;
    }

    std::size_t words() const { return words_ - special_words_; }

    // The bytes that the index and the columns have.
    std::size_t memory() const {
        return shorts_.slots().size() * sizeof(ShortSlot) + longs_.slots().size() * sizeof(LongSlot) +
               static_cast<std::size_t>(offsets_[words_]) + words_ * (sizeof offsets_[0] + sizeof counts_[0]);
    }

    void take(const WordBatch& words) override { count(words); }

    // Known words are counted first, new ones entered afterwards, short and long ones in the order of the text.
    void count(const WordBatch& words) {
        reserve(words.number);
        const std::size_t shorts = hash_.of_batch(seed_, words, Home{reinterpret_cast<const byte*>(shorts_.slots().data()), shorts_.shift()}, batch_);
        const std::size_t longs = words.number - shorts;
        std::size_t missing_shorts = 0, missing_longs = 0;
        ShortSlot* const slots = shorts_.slots().data();
        for (std::size_t i = 0, longs_before = 0; i < shorts; ++i) {
            const Key key = batch_.keys[i];
            ShortSlot* const slot = slots + batch_.homes[i];
            const bool home = ((slot->key.low ^ key.low) | (slot->key.high ^ key.high)) == 0;
            if (__builtin_expect(home, 1)) {
                ++slot->count;
                continue;
            }
            ShortSlot* const found = find(key, batch_.homes[i]);
            if (found->key.high) {
                // The more frequent of two takes the place where it is found at once; all between them are taken.
                if (++found->count > slot->count) std::swap(*found, *slot);
                continue;
            }
            while (longs_before < longs && batch_.longs[longs_before] <= i + longs_before) ++longs_before;
            missing_shorts_[missing_shorts++] =
                Missing{std::uint16_t(i + longs_before), std::uint16_t(i), std::size_t(found - slots)};
        }
        if (longs) missing_longs = count_longs(words, longs);
        if (missing_shorts + missing_longs) enter_missing(missing_shorts, missing_longs);
    }

    struct Columns {
        Memory data, offsets, counts;  // bytes, int64_t, uint64_t
        std::size_t words, first, bytes;  // the first word that is counted, and where its bytes begin
    };
    // Gives the columns away, once they are settled; the special words are still before those that count.
    Columns release() {
        const std::int64_t before = offsets_[special_words_];
        const std::size_t bytes = static_cast<std::size_t>(offsets_[words_]);
        for (std::size_t word = special_words_; word <= words_; ++word) offsets_[word] -= before;
        return {data_.release(bytes), offsets_.release(words_ + 1), counts_.release(words_), words_,
                special_words_,           static_cast<std::size_t>(before)};
    }

    // Brings the counts of short words from the index into their column.
    void settle() {
        for (const ShortSlot& slot : shorts_.slots())
            if (slot.taken()) counts_[slot.ordinal] = slot.count;
    }

  private:
    friend class Join;
    static constexpr unsigned first_bits = 14;
    static constexpr std::size_t most_words = std::size_t(1) << 30;

    struct ShortSlot {
        Key key;  // high is 0 in a free slot
        std::uint64_t count;
        std::uint64_t ordinal;
        bool taken() const { return key.high != 0; }
    };
    static_assert(sizeof(ShortSlot) == 32, "Home counts on it");
    struct Missing {
        std::uint16_t number, index;  // in the batch, and among its short or its long words
        std::size_t slot;             // a free one where the search for it ended
    };

    __attribute__((noinline)) std::size_t count_longs(const WordBatch& words, std::size_t longs) {
        for (std::size_t i = 0; i < longs; ++i) {
            const std::size_t number = batch_.longs[i], length = words.length(number);
            const byte* word = words.text + words.start(number);
            long_words_[i] = LongWord{word, length, hash_of_long(seed_, word, length)};
            __builtin_prefetch(&longs_.home(long_words_[i].hash), 1);
        }
        std::size_t known = 0;
        for (std::size_t i = 0; i < longs; ++i) {
            const LongSlot home = longs_.home(long_words_[i].hash);
            likely_[known] = home.place - 1;
            if (!home.taken() || home.tag != long_words_[i].tag()) continue;
            ++known;
            __builtin_prefetch(&offsets_[home.place - 1]);
            __builtin_prefetch(&counts_[home.place - 1], 1);
        }
        for (std::size_t i = 0; i < known; ++i) __builtin_prefetch(data_.data() + offsets_[likely_[i]]);
        std::size_t missing = 0;
        for (std::size_t i = 0; i < longs; ++i) {
            const LongSlot* slot = find(long_words_[i], long_words_[i].hash >> longs_.shift());
            if (slot->taken())
                ++counts_[slot->place - 1];
            else
                missing_longs_[missing++] = Missing{batch_.longs[i], std::uint16_t(i), std::size_t(slot - longs_.slots().data())};
        }
        return missing;
    }

    __attribute__((noinline)) void enter_missing(std::size_t shorts, std::size_t longs) {
        for (std::size_t i = 0, j = 0; i < shorts || j < longs;) {
            if (j == longs || (i < shorts && missing_shorts_[i].number < missing_longs_[j].number)) {
                const Missing missing = missing_shorts_[i++];
                enter(batch_.keys[missing.index], missing.slot);
            } else {
                const Missing missing = missing_longs_[j++];
                enter(long_words_[missing.index], missing.slot);
            }
        }
    }

    // The slot that holds the word, or the free one where it belongs, from `index` on.
    ShortSlot* find(Key key, std::size_t index) {
        return shorts_.find(index, [=](const ShortSlot& slot) { return slot.key.low == key.low && slot.key.high == key.high; });
    }
    LongSlot* find(const LongWord& word, std::size_t index) {
        return longs_.find(index, [&](const LongSlot& slot) { return slot.tag == word.tag() && is_word(slot.place - 1, word); });
    }
    bool is_word(std::size_t ordinal, const LongWord& word) const {
        return length_of(ordinal) == word.length && same(data_.data() + offsets_[ordinal], word.word, word.length);
    }
    std::size_t length_of(std::size_t ordinal) const {
        return static_cast<std::size_t>(offsets_[ordinal + 1] - offsets_[ordinal]);
    }

    // Since the search ended at a free slot, other words of the batch may have come to lie there, or this one itself.
    void enter(Key key, std::size_t index) {
        ShortSlot* slot = find(key, index);
        if (!slot->key.high) {
            const std::size_t length = key.high >> 56;
            byte* data = append(length);
            std::memcpy(data, &key.low, 8);
            std::memcpy(data + 8, &key.high, 8);
            *slot = ShortSlot{key, 0, words_ - 1};
            ++short_words_;
        }
        ++slot->count;
    }
    void enter(const LongWord& word, std::size_t index) {
        LongSlot* slot = find(word, index);
        if (!slot->taken()) {
            copy(append(word.length), word.word, word.length);
            *slot = LongSlot{word.tag(), static_cast<std::uint32_t>(words_)};
        }
        ++counts_[slot->place - 1];
    }
    // Without a call and mostly without a loop; both texts have padding behind them.
    static constexpr std::size_t step = 64;
    static void copy(byte* to, const byte* from, std::size_t length) {
        for (std::size_t done = 0; done < length; done += step) std::memcpy(to + done, from + done, step);
    }
    // At least 16 bytes.
    static bool same(const byte* one, const byte* other, std::size_t length) {
        for (std::size_t at = 0; at + 16 < length; at += 16)
            if (!same_sixteen(one + at, other + at)) return false;
        return same_sixteen(one + length - 16, other + length - 16);
    }
    static bool same_sixteen(const byte* one, const byte* other) {
        return ((load64(one) ^ load64(other)) | (load64(one + 8) ^ load64(other + 8))) == 0;
    }
    // Room for one more word in the columns, with no count yet.
    byte* append(std::size_t length) {
        const std::size_t start = static_cast<std::size_t>(offsets_[words_]);
        data_.reserve(start + length + padding);
        offsets_.reserve(words_ + 2);
        counts_.reserve(words_ + 1);
        counts_[words_] = 0;
        offsets_[++words_] = static_cast<std::int64_t>(start + length);
        return data_.data() + start;
    }

    // Room for so many more words of either kind.
    void reserve(std::size_t more) {
        if (words_ + more > most_words) throw Refused("the text holds more than 2**30 different words; count a part of it, as data.bytes= cuts it, or with a pattern that cuts more");
        const std::size_t bytes = static_cast<std::size_t>(offsets_[words_] - offsets_[special_words_]);
        if (bytes + words() > most_cells_) throw Refused("the different words will take 2**32 positions or more, which the trainer cannot number; train on a sample or a part of the text, as data.bytes= cuts it, or with a pattern that cuts more");
        shorts_.reserve(short_words_ + more, [this](const ShortSlot& slot) { return hash_of(slot); });
        longs_.reserve(words_ - short_words_ + more, [](const LongSlot& slot) { return slot.hash(); });
    }
    std::uint64_t hash_of(const ShortSlot& slot) const { return hash_.of_key(seed_, slot.key); }
    static std::uint64_t hash_of(const LongSlot& slot) { return slot.hash(); }

    const Seed seed_;
    const KeyHash hash_;
    const std::size_t most_cells_;
    std::size_t special_words_ = 0;
    Index<ShortSlot> shorts_{first_bits};
    Index<LongSlot> longs_{first_bits};   // whose places are ordinals, plus 1
    std::size_t words_ = 0, short_words_ = 0;
    Column<byte> data_;             // the words end to end
    Column<std::int64_t> offsets_;  // where they begin, and where the last ends
    Column<std::uint64_t> counts_;  // of short words only once they are settled
    Batch batch_;
    LongWord long_words_[Batch::size];
    std::size_t likely_[Batch::size];  // ordinals of long words that are probably known
    Missing missing_shorts_[Batch::size], missing_longs_[Batch::size];
};

// A batch of word offsets, passed from the pattern matcher to the sink. A word ends where the next one starts, so one
// number a word is enough; `finish` gives the end of the last.
class Starts {
  public:
    static constexpr std::size_t batch = 512, slack = 256;
    static_assert(batch + slack <= Batch::size, "the sink takes a batch at once");

    explicit Starts(WordSink& sink) : sink_(&sink) {}

    void into(WordSink& sink) { sink_ = &sink; }

    // From now on places are places in this text.
    void begin(const byte* text) {
        text_ = text;
        open_ = none;
        number_ = 0;
        origin_ = 0;
    }

    // To be called at least once for each `slack` starts, with the place before which all are known: places are kept
    // as 32 bits from `origin`, and there is room for no more than `slack` beyond a batch.
    void make_room(std::size_t place) {
        if (number_ >= batch || place - origin_ >= farthest) flush(place);
    }

    // Room for starts as distances from `origin`, and how many were put there.
    std::uint32_t* room() { return starts_ + number_; }
    std::size_t origin() const { return origin_; }
    void put(std::size_t number) { number_ += number; }

    void push(std::size_t place) {
        make_room(place);
        starts_[number_++] = static_cast<std::uint32_t>(place - origin_);
    }

    void finish(std::size_t end) {
        if (open_ == none && number_ == 0) return;
        push(end);
        flush(end);
        open_ = none;
    }

  private:
    static constexpr std::size_t none = SIZE_MAX, farthest = std::size_t(1) << 31;

    __attribute__((noinline)) void flush(std::size_t place) {
        if (number_) {
            const std::size_t last = origin_ + starts_[number_ - 1];
            if (open_ == none) {
                if (number_ > 1) sink_->take(WordBatch{text_, origin_ + starts_[0], origin_, starts_ + 1, number_ - 1});
            } else {
                sink_->take(WordBatch{text_, open_, origin_, starts_, number_});
            }
            open_ = last;
            number_ = 0;
        }
        origin_ = place;
    }

    WordSink* sink_;
    const byte* text_ = nullptr;
    std::size_t open_ = none;  // where the last word flushed starts
    std::size_t origin_ = 0;
    std::size_t number_ = 0;
    std::uint32_t starts_[batch + 2 * slack];
};

}  // namespace scanner
