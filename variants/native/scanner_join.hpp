// The tables of several ranges joined: by threads that each take the words of a range of hashes, in every table.
//
// A word belongs to the first table that has it; the others' counts are added there and set to 0. What is left of the
// later tables is then moved behind the first one's words, so that all stand in the order of their first occurrence.
// Every slice has an index of its own, made for the sum of its words: to enter the words of one index into another in
// the order of their hashes would fill one end of it and leave ever longer runs there.
#pragma once

#include <atomic>

#include "parallel.hpp"
#include "scanner_words.hpp"

namespace scanner {

// Calls work(0) to work(number - 1) in so many threads, each of which takes the next that is left.
template <class Work>
void in_turn(std::size_t width, std::size_t number, const Work& work) {
    std::atomic<std::size_t> next{0};
    native::in_parallel(std::min(width, number), [&](std::size_t) {
        for (std::size_t i; (i = next++) < number;) work(i);
    });
}

class Join {
  public:
    // All tables have one seed and the same special_words words.
    Join(const std::vector<WordTable*>& tables, std::size_t width) : tables_(tables), width_(width) {}

    // Leaves everything in the first table's columns, whose index is of no use afterwards.
    void run() {
        std::size_t words = 0;
        for (const WordTable* table : tables_) words += table->words_;
        unsigned bits = 4;
        while (bits < most_slice_bits && words >> bits > words_in_slice) ++bits;
        in_turn(width_, std::size_t(1) << bits, [&](std::size_t number) { join_slice(Slice{number, bits}); });
        move_what_is_left();
    }

  private:
    static constexpr unsigned most_slice_bits = 12;
    static constexpr std::size_t words_in_slice = 4096, words_in_piece = std::size_t(1) << 14;
    static_assert(most_slice_bits <= WordTable::first_bits, "a slice begins at a slot of every index");

    // The words whose hashes begin with these bits.
    struct Slice {
        std::size_t number;
        unsigned bits;
    };
    struct Short {
        WordTable::ShortSlot* slot;
        std::uint64_t hash;
    };
    struct Long {
        std::uint32_t tag, ordinal, table;
    };
    struct Candidate {
        std::size_t word, earlier;  // with the same tag
    };

    // Calls visit(slot, hash) for each word of the slice in an index; those pushed behind the slice's slots included.
    template <class Slot, class Taken, class HashOf, class Visit>
    static void visit(Array<Slot>& slots, unsigned shift, Slice slice, Taken taken, HashOf hash_of, Visit visit) {
        const std::size_t size = slots.size() >> slice.bits, first = slice.number * size;
        for (std::size_t step = 0; step < slots.size(); ++step) {
            Slot& slot = slots.data()[(first + step) & (slots.size() - 1)];
            if (!taken(slot)) {
                if (step >= size) return;
                continue;
            }
            const std::uint64_t hash = hash_of(slot);
            if ((hash >> shift) - first < size) visit(slot, hash);
        }
    }
    // Free places for so many words, at most half of which will be taken.
    template <class Place>
    static unsigned make_places(std::vector<Place>& places, std::size_t words) {
        unsigned bits = 4;
        while (std::size_t(1) << bits < 2 * words) ++bits;
        places.assign(std::size_t(1) << bits, Place{});
        return bits;
    }
    static std::size_t home(std::uint64_t hash, Slice slice, unsigned bits) {
        return static_cast<std::size_t>(hash << slice.bits >> (64 - bits));
    }

    void join_slice(Slice slice) {
        join_shorts(slice);
        join_longs(slice);
    }

    void join_shorts(Slice slice) {
        std::vector<Short> shorts;
        std::vector<std::size_t> ends;
        for (WordTable* table : tables_) {
            visit(
                table->shorts_, table->short_shift_, slice, [](const auto& slot) { return slot.key.high != 0; },
                [&](const auto& slot) { return table->hash_.of_key(table->seed_, slot.key); },
                [&](auto& slot, std::uint64_t hash) { shorts.push_back(Short{&slot, hash}); });
            ends.push_back(shorts.size());
        }
        std::vector<WordTable::ShortSlot*> places;
        const unsigned bits = make_places(places, shorts.size());
        for (const Short& word : shorts) {
            std::size_t place = home(word.hash, slice, bits);
            const Key key = word.slot->key;
            while (places[place] && (places[place]->key.low != key.low || places[place]->key.high != key.high))
                place = (place + 1) & (places.size() - 1);
            if (places[place]) {
                places[place]->count += word.slot->count;
                word.slot->count = 0;
            } else {
                places[place] = word.slot;
            }
        }
        for (std::size_t table = 0, i = 0; table < tables_.size(); ++table)
            for (; i < ends[table]; ++i) tables_[table]->counts_[shorts[i].slot->ordinal] = shorts[i].slot->count;
    }

    void join_longs(Slice slice) {
        std::vector<Long> longs;
        std::vector<std::size_t> ends;
        for (std::size_t table = 0; table < tables_.size(); ++table) {
            visit(
                tables_[table]->longs_, tables_[table]->long_shift_, slice, [](const auto& slot) { return slot.ordinal != 0; },
                [](const auto& slot) { return std::uint64_t(slot.tag) << 32; },
                [&](const auto& slot, std::uint64_t) {
                    longs.push_back(Long{slot.tag, slot.ordinal - 1, static_cast<std::uint32_t>(table)});
                });
            ends.push_back(longs.size());
        }
        std::vector<std::size_t> places;  // numbers of words, plus 1
        const unsigned bits = make_places(places, longs.size());
        // From the word's home on, the first place that is free or holds a word of which `found` says that it is the one.
        const auto search = [&](std::size_t word, const auto& found) {
            std::size_t place = home(std::uint64_t(longs[word].tag) << 32, slice, bits);
            while (places[place] && !(longs[places[place] - 1].tag == longs[word].tag && found(places[place] - 1)))
                place = (place + 1) & (places.size() - 1);
            return place;
        };
        std::vector<Candidate> alike;
        for (std::size_t table = 0, i = 0; table < tables_.size(); ++table) {
            alike.clear();
            for (; i < ends[table]; ++i) {
                const std::size_t place = search(i, [](std::size_t) { return true; });
                if (!places[place]) {
                    places[place] = i + 1;
                    continue;
                }
                alike.push_back(Candidate{i, places[place] - 1});
                prefetch(longs[i]);
                prefetch(longs[places[place] - 1]);
            }
            for (const Candidate& two : alike) {
                __builtin_prefetch(bytes_of(longs[two.word]));
                __builtin_prefetch(bytes_of(longs[two.earlier]));
            }
            for (const Candidate& two : alike) {
                std::size_t earlier = two.earlier;
                if (!same(longs[two.word], longs[earlier])) {  // other words may have the same tag
                    const std::size_t place = search(two.word, [&](std::size_t each) { return same(longs[two.word], longs[each]); });
                    if (!places[place]) {
                        places[place] = two.word + 1;
                        continue;
                    }
                    earlier = places[place] - 1;
                }
                std::uint64_t& count = count_of(longs[two.word]);
                count_of(longs[earlier]) += count;
                count = 0;
            }
        }
    }

    void prefetch(const Long& word) const {
        __builtin_prefetch(&tables_[word.table]->offsets_[word.ordinal]);
        __builtin_prefetch(&tables_[word.table]->counts_[word.ordinal], 1);
    }
    std::uint64_t& count_of(const Long& word) const { return tables_[word.table]->counts_[word.ordinal]; }
    const byte* bytes_of(const Long& word) const {
        const WordTable& table = *tables_[word.table];
        return table.data_.data() + table.offsets_[word.ordinal];
    }
    bool same(const Long& one, const Long& other) const {
        const WordTable& table = *tables_[other.table];
        const std::int64_t length = table.offsets_[other.ordinal + 1] - table.offsets_[other.ordinal];
        return tables_[one.table]->is_word(one.ordinal, WordTable::LongWord{bytes_of(other), static_cast<std::size_t>(length), 0});
    }

    // Neighbouring words of a later table, and where those that are left of them go.
    struct Piece {
        WordTable* table;
        std::size_t first, stop;
        std::size_t words = 0, bytes = 0;  // that are left
        std::size_t word = 0, place = 0;   // in the first table's columns
    };

    void move_what_is_left() {
        std::vector<Piece> pieces;
        for (std::size_t table = 1; table < tables_.size(); ++table)
            for (std::size_t first = 0; first < tables_[table]->words_; first += words_in_piece)
                pieces.push_back(Piece{tables_[table], first, std::min(first + words_in_piece, tables_[table]->words_)});
        in_turn(width_, pieces.size(), [&](std::size_t number) { weigh(pieces[number]); });
        WordTable& all = *tables_.front();
        std::size_t words = all.words_, bytes = static_cast<std::size_t>(all.offsets_[words]);
        for (Piece& piece : pieces) {
            piece.word = words;
            piece.place = bytes;
            words += piece.words;
            bytes += piece.bytes;
        }
        all.data_.reserve(bytes + padding);
        all.offsets_.reserve(words + 1);
        all.counts_.reserve(words);
        in_turn(width_, pieces.size(), [&](std::size_t number) { move(pieces[number], all); });
        all.words_ = words;
    }
    static void weigh(Piece& piece) {
        const WordTable& table = *piece.table;
        for (std::size_t word = piece.first; word < piece.stop; ++word) {
            if (!table.counts_[word]) continue;
            ++piece.words;
            piece.bytes += static_cast<std::size_t>(table.offsets_[word + 1] - table.offsets_[word]);
        }
    }
    static void move(const Piece& piece, WordTable& all) {
        const WordTable& table = *piece.table;
        std::size_t to = piece.word, place = piece.place;
        const std::size_t end = piece.place + piece.bytes;
        for (std::size_t word = piece.first; word < piece.stop; ++word) {
            if (!table.counts_[word]) continue;
            const std::size_t length = static_cast<std::size_t>(table.offsets_[word + 1] - table.offsets_[word]);
            const byte* bytes = table.data_.data() + table.offsets_[word];
            if (place + length + WordTable::step <= end)
                WordTable::copy(all.data_.data() + place, bytes, length);
            else  // what lies behind belongs to another thread
                std::memcpy(all.data_.data() + place, bytes, length);
            place += length;
            all.counts_[to] = table.counts_[word];
            all.offsets_[++to] = static_cast<std::int64_t>(place);
        }
    }

    const std::vector<WordTable*>& tables_;
    const std::size_t width_;
};

}  // namespace scanner
