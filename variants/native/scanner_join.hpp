// Merges the threads' word tables in parallel; each thread handles ranges of hash values, in every table.
#pragma once

#include <atomic>

#include "parallel.hpp"
#include "scanner_words.hpp"

namespace scanner {

// A word belongs to the first table that has it; the others' counts are added there and set to 0. What is left of the
// later tables is then appended to the first one's words, so that all are in the order of their first occurrence.
// Every slice has an index of its own, made for the sum of its words: to enter the words of one index into another in
// the order of their hashes would fill one end of it and leave ever longer runs there.
class Join {
  public:
    // All tables have one seed and the same special words.
    explicit Join(const std::vector<WordTable*>& tables) : tables_(tables) {}

    // Leaves everything in the first table's columns, whose index is of no use afterwards.
    void run() {
        std::size_t words = 0;
        for (const WordTable* table : tables_) words += table->words_;
        unsigned bits = 4;
        while (bits < most_slice_bits && words >> bits > words_in_slice) ++bits;
        std::atomic<std::size_t> next{0};
        native::in_parallel(tables_.size(), [&](std::size_t) {
            for (std::size_t number; (number = next++) < std::size_t(1) << bits;) join_slice(Slice{number, bits});
        });
        append_what_is_left();
    }

  private:
    static constexpr unsigned most_slice_bits = 12;
    static constexpr std::size_t words_in_slice = 4096;
    static_assert(most_slice_bits <= WordTable::first_bits, "a slice begins at a slot of every index");

    // The words whose hashes begin with these bits.
    struct Slice {
        std::size_t number;
        unsigned bits;
    };
    struct Word {
        WordTable::ShortSlot* slot;   // null for a long word
        std::uint32_t tag, ordinal, table;   // the tag is the top of the hash
    };
    struct Candidate {
        std::size_t word, earlier;  // with the same tag
    };

    // Calls visit(slot, hash) for each word of the slice in an index; those pushed behind the slice's slots included.
    template <class Slot, class Visit>
    static void visit(const WordTable& table, Index<Slot>& index, Slice slice, Visit visit) {
        Array<Slot>& slots = index.slots();
        const std::size_t size = slots.size() >> slice.bits, first = slice.number * size;
        for (std::size_t step = 0; step < slots.size(); ++step) {
            Slot& slot = slots[(first + step) & (slots.size() - 1)];
            if (slot.taken()) {
                const std::uint64_t hash = table.hash_of(slot);
                if ((hash >> index.shift()) - first < size) visit(slot, static_cast<std::uint32_t>(hash >> 32));
            } else if (step >= size) {
                return;
            }
        }
    }

    void join_slice(Slice slice) {
        std::vector<Word> words;
        std::vector<std::size_t> ends;
        for (std::uint32_t number = 0; number < tables_.size(); ++number) {
            WordTable& table = *tables_[number];
            visit(table, table.shorts_, slice, [&](auto& slot, std::uint32_t tag) {
                words.push_back({&slot, tag, static_cast<std::uint32_t>(slot.ordinal), number});
            });
            visit(table, table.longs_, slice, [&](const auto& slot, std::uint32_t tag) {
                words.push_back({nullptr, tag, slot.place - 1, number});
            });
            ends.push_back(words.size());
        }
        unsigned bits = 4;
        while (std::size_t(1) << bits < 2 * words.size()) ++bits;
        std::vector<std::size_t> places(std::size_t(1) << bits);  // numbers of words, plus 1
        // From the word's home on, the first place that is free or holds a word of the same tag that is `found`.
        const auto search = [&](std::size_t word, const auto& found) {
            std::size_t place = words[word].tag << slice.bits >> (32 - bits);
            while (places[place] && !(words[places[place] - 1].tag == words[word].tag && found(places[place] - 1)))
                place = (place + 1) & (places.size() - 1);
            return place;
        };
        std::vector<Candidate> candidates;
        for (std::size_t table = 0, i = 0; table < tables_.size(); ++table) {
            candidates.clear();
            for (; i < ends[table]; ++i) {
                const std::size_t place = search(i, [](std::size_t) { return true; });
                if (!places[place]) {
                    places[place] = i + 1;
                    continue;
                }
                candidates.push_back(Candidate{i, places[place] - 1});
                prefetch(words[i]);
                prefetch(words[places[place] - 1]);
            }
            for (const Candidate& two : candidates) {
                if (words[two.word].slot || words[two.earlier].slot) continue;
                __builtin_prefetch(bytes_of(words[two.word]));
                __builtin_prefetch(bytes_of(words[two.earlier]));
            }
            for (const Candidate& two : candidates) {
                std::size_t earlier = two.earlier;
                if (!same(words[two.word], words[earlier])) {  // other words may have the same tag
                    const auto is_it = [&](std::size_t each) { return same(words[two.word], words[each]); };
                    const std::size_t place = search(two.word, is_it);
                    if (!places[place]) {
                        places[place] = two.word + 1;
                        continue;
                    }
                    earlier = places[place] - 1;
                }
                std::uint64_t& count = count_of(words[two.word]);
                count_of(words[earlier]) += count;
                count = 0;
            }
        }
        for (const Word& word : words)
            if (word.slot) tables_[word.table]->counts_[word.ordinal] = word.slot->count;
    }

    void prefetch(const Word& word) const {
        if (word.slot) return;
        __builtin_prefetch(&tables_[word.table]->offsets_[word.ordinal]);
        __builtin_prefetch(&tables_[word.table]->counts_[word.ordinal], 1);
    }
    std::uint64_t& count_of(const Word& word) const {
        return word.slot ? word.slot->count : tables_[word.table]->counts_[word.ordinal];
    }
    const byte* bytes_of(const Word& word) const {
        const WordTable& table = *tables_[word.table];
        return table.data_.data() + table.offsets_[word.ordinal];
    }
    std::size_t length_of(const Word& word) const { return tables_[word.table]->length_of(word.ordinal); }
    bool same(const Word& one, const Word& other) const {
        if (one.slot && other.slot) return one.slot->key.low == other.slot->key.low && one.slot->key.high == other.slot->key.high;
        const std::size_t length = length_of(one);   // a short and a long word differ in it
        return length == length_of(other) && WordTable::same(bytes_of(one), bytes_of(other), length);
    }

    void append_what_is_left() {
        WordTable& all = *tables_.front();
        for (std::size_t table = 1; table < tables_.size(); ++table) {
            const WordTable& later = *tables_[table];
            for (std::size_t word = 0; word < later.words_; ++word) {
                if (!later.counts_[word]) continue;
                const std::size_t length = later.length_of(word);
                WordTable::copy(all.append(length), later.data_.data() + later.offsets_[word], length);
                all.counts_[all.words_ - 1] = later.counts_[word];
            }
        }
    }

    const std::vector<WordTable*>& tables_;
};

}  // namespace scanner
