// Rows of tokens merged by rank: every merge in its turn, everywhere, from left to right.
#pragma once

#include <functional>

#include "flat_inherited.hpp"

namespace flat {

// A list of places for each rank, in the order in which they are put there. The lists come out from the least rank up.
class RankLists {
  public:
    struct Entry {
        std::uint32_t place, next;
    };
    struct List {
        std::uint32_t first, last;   // entries
    };
    static constexpr std::uint32_t none = InheritedMerges::none;

    // Empties all lists and makes room for so many entries.
    void begin(std::size_t ranks, std::size_t entries) {
        bits_.resize((ranks >> 6) + 1);
        groups_.resize((ranks >> 12) + 1);
        if (lists_.size() < ranks) lists_ = Array<List>(ranks);
        entries_.reserve(entries);
        group_ = 0;
        for (std::uint32_t rank; (rank = least()) != none;) take(rank);   // if looking ended the last row
        group_ = 0;
        number_ = 0;
    }
    void put(std::uint32_t rank, std::uint32_t place) {
        std::uint64_t& bits = bits_[rank >> 6];
        List& list = lists_[rank];
        entries_[number_] = {place, none};
        if (bits >> (rank & 63) & 1) {
            entries_[list.last].next = number_;
        } else {
            list.first = number_;
            bits |= std::uint64_t{1} << (rank & 63);
            groups_[rank >> 12] |= std::uint64_t{1} << (rank >> 6 & 63);
        }
        list.last = number_++;
    }
    // The least rank that has a list. Nobody puts a place into a list of a lesser rank than one that was taken.
    std::uint32_t least() {
        for (; group_ < groups_.size(); ++group_) {
            if (!groups_[group_]) continue;
            const std::size_t word = group_ << 6 | static_cast<std::size_t>(__builtin_ctzll(groups_[group_]));
            return static_cast<std::uint32_t>(word << 6 | static_cast<std::size_t>(__builtin_ctzll(bits_[word])));
        }
        return none;
    }
    std::uint32_t take(std::uint32_t rank) {
        bits_[rank >> 6] &= ~(std::uint64_t{1} << (rank & 63));
        if (!bits_[rank >> 6]) groups_[rank >> 12] &= ~(std::uint64_t{1} << (rank >> 6 & 63));
        return lists_[rank].first;
    }
    // One of the entries that were put there together: most of a list's are.
    const Entry& near(std::uint32_t entry) { return entries_[std::min(entry, number_ - 1)]; }
    Entry& operator[](std::uint32_t entry) { return entries_[entry]; }
    void give_back() { entries_ = Column<Entry>(); }

  private:
    Array<List> lists_;                   // of the ranks whose bit is set
    std::vector<std::uint64_t> bits_, groups_;   // a bit for each rank, and for each word of these
    std::size_t group_ = 0;               // before it there is none
    Column<Entry> entries_;
    std::uint32_t number_ = 0;
};

// A merge was met if its pair occurred anywhere, at the start or after some merge had been made everywhere. So pairs are
// looked up only when all places of a rank are merged.
class RankMerger {
  public:
    // Whoever does not ask which merges were met is spared some work. `look` is called now and then in a long row, which it
    // ends by throwing.
    RankMerger(const InheritedMerges& merges, bool asks_met, const std::function<void()>* look)
        : merges_(merges), asks_met_(asks_met), met_(merges.size()), look_(look) {}

    // Merges tokens in place and returns how many are left. There is room for `slack` more.
    static constexpr std::size_t slack = 4;
    std::size_t merge(std::uint32_t* tokens, std::size_t number) {
        if (number > few) return merge_many(tokens, number);
        if (number == 2) {
            const std::uint32_t rank = rank_met(tokens[0], tokens[1]);
            if (rank == InheritedMerges::none) return 2;
            tokens[0] = first_merge + rank;
            return 1;
        }
        std::uint32_t ranks[few + slack];
        for (std::size_t place = 0; place + 1 < number; ++place) ranks[place] = rank_met(tokens[place], tokens[place + 1]);
        return merge_few(tokens, number, ranks);
    }
    std::size_t merge_bytes(const std::uint8_t* bytes, std::size_t length, std::uint32_t* tokens) {
        for (std::size_t place = 0; place < length; ++place) tokens[place] = first_byte + bytes[place];
        if (length > few) return merge_many(tokens, length);
        std::uint32_t ranks[few + slack];
        for (std::size_t place = 0; place + 1 < length; ++place)
            ranks[place] = noted(merges_.ranks().of_bytes(bytes[place], bytes[place + 1]));
        return merge_few(tokens, length, ranks);
    }
    static bool is_few(std::size_t number) { return number <= few; }

    // By rank: whether its pair ever occurred.
    const std::vector<std::uint8_t>& met() const { return met_; }
    bool notes = true;      // what is met
    bool certain = true;    // that nothing was met which had not been

  private:
    static constexpr std::size_t few = 40;   // tokens in which the next merge is found by looking at all of them
    static constexpr std::size_t roomy = std::size_t{1} << 16;   // cells above which memory is given back after use

    std::uint32_t rank_met(std::uint32_t left, std::uint32_t right) { return noted(merges_.ranks().of(left, right)); }
    std::uint32_t noted(std::uint32_t rank) {
        if (asks_met_ && rank != InheritedMerges::none && !met_[rank]) {
            met_[rank] = notes;
            certain = false;
        }
        return rank;
    }

    // Looks at all pairs for each merge; `ranks` are theirs.
    std::size_t merge_few(std::uint32_t* tokens, std::size_t number, std::uint32_t* ranks) {
        if (!asks_met_) return merge_singly(tokens, number, ranks);
        while (number > 1) {
            const std::uint32_t least = *std::min_element(ranks, ranks + number - 1);
            if (least == InheritedMerges::none) break;
            const std::uint32_t merged = first_merge + least;
            std::size_t kept = 0;
            for (std::size_t place = 0; place < number; ++kept) {
                const bool here = place + 1 < number && ranks[place] == least;
                tokens[kept] = here ? merged : tokens[place];
                const std::size_t next = place + 1 + here;
                if (next < number) ranks[kept] = ranks[next - 1];   // of what it holds with the one behind it
                place = next;
            }
            number = kept;
            for (std::size_t place = 0; place + 1 < number; ++place)
                if (tokens[place] == merged || tokens[place + 1] == merged)
                    ranks[place] = rank_met(tokens[place], tokens[place + 1]);
        }
        return number;
    }

    // The same, one place after the other, for whoever does not ask: it looks up pairs that are gone when all are merged.
    std::size_t merge_singly(std::uint32_t* tokens, std::size_t number, std::uint32_t* ranks) {
        const auto& of = merges_.ranks();
        while (number > 1) {
            std::size_t at = 0;
            std::uint32_t least = ranks[0];
            for (std::size_t place = 1; place + 1 < number; ++place) {
                at = ranks[place] < least ? place : at;
                least = std::min(least, ranks[place]);
            }
            if (least == InheritedMerges::none) break;

            tokens[at] = first_merge + least;
            --number;
            move_down(tokens + at + 1, number - at - 1);
            move_down(ranks + at, number - at);
            if (at) ranks[at - 1] = of.of(tokens[at - 1], tokens[at]);
            if (at + 1 < number) ranks[at] = of.of(tokens[at], tokens[at + 1]);
        }
        return number;
    }
    // Moves so many cells to the place before, and some behind them, which may be anything.
    static void move_down(std::uint32_t* to, std::size_t number) {
        for (std::size_t place = 0; place < number; place += slack) {
            std::uint32_t cells[slack];
            std::memcpy(cells, to + place + 1, sizeof cells);
            std::memcpy(to + place, cells, sizeof cells);
        }
    }

    // The same by a list of places for each rank: as many steps as there are merges, and not times the length. A list holds
    // its places from left to right, since all occurrences of a pair appear at one merge (claim 1 of the page). As there, a
    // token has a cell for each of its bytes and its id in the first and the last of them; the others are never read.
    std::size_t merge_many(std::uint32_t* tokens, std::size_t number) {
        std::size_t size = 0;
        for (std::size_t place = 0; place < number; ++place) size += merges_.length(tokens[place]);
        if (size > most_cells) throw Refused("a piece has 2**30 bytes or more that no merge divides; cut the text");
        cells_.reserve(size + 2);
        lists_.begin(merges_.size(), 3 * number);   // a merge leaves two pairs and takes a token away

        std::uint32_t* const cells = cells_.data() + 1;
        cells[-1] = cells[size] = separator;
        std::uint32_t at = 0;
        for (std::size_t place = 0; place < number; ++place) {
            const std::uint32_t id = tokens[place], next = at + merges_.length(id);
            cells[at] = cells[next - 1] = id;
            if (place + 1 < number) put(at, id, tokens[place + 1]);
            at = next;
        }
        for (std::uint32_t rank; (rank = lists_.least()) != RankLists::none;) merge_all(cells, rank);

        std::size_t kept = 0;
        for (at = 0; at < size; at += merges_.length(cells[at])) tokens[kept++] = cells[at];
        if (size > roomy) {
            cells_ = Column<std::uint32_t>();
            lists_.give_back();
        }
        return kept;
    }
    static constexpr std::uint32_t ahead = 16;   // entries between a prefetch and its use
    static constexpr std::size_t most_cells = std::size_t{1} << 30;   // entries have numbers of 32 bits

    void merge_all(std::uint32_t* cells, std::uint32_t rank) {
        const auto [left, right] = merges_[rank];
        const std::uint32_t merged = first_merge + rank;
        const std::uint32_t middle = merges_.length(left), length = merges_.length(merged);
        const std::uint32_t first = lists_.take(rank);
        std::uint32_t live = first, number = 0;   // places that were merged take the entries from the first on
        for (std::uint32_t entry = first; entry != RankLists::none; entry = lists_[entry].next) {
            const std::uint32_t at = lists_[entry].place;
            __builtin_prefetch(cells + lists_.near(entry + ahead).place, 1);
            step();
            if (cells[at] != left || cells[at + middle] != right) continue;
            cells[at + middle] = hole;
            cells[at] = cells[at + length - 1] = merged;
            lists_[live].place = at;
            live = lists_[live].next;
            ++number;
        }
        for (std::uint32_t entry = first; number; entry = lists_[entry].next, --number) {
            const std::uint32_t at = lists_[entry].place, before = cells[static_cast<std::ptrdiff_t>(at) - 1], after = cells[at + length];
            if (before != separator) put(at - merges_.length(before), before, merged);
            if (after != separator) put(at, merged, after);
        }
    }
    void put(std::uint32_t at, std::uint32_t left, std::uint32_t right) {
        step();
        const std::uint32_t rank = rank_met(left, right);
        if (rank != InheritedMerges::none) lists_.put(rank, at);
    }
    void step() {
        if (--steps_left_) return;
        steps_left_ = steps_between_looks;
        if (look_ && *look_) (*look_)();
    }

    const InheritedMerges& merges_;
    const bool asks_met_;
    std::vector<std::uint8_t> met_;
    const std::function<void()>* const look_;
    Column<std::uint32_t> cells_;
    RankLists lists_;
    std::uint64_t steps_left_ = steps_between_looks;
};

// Which tokens of a row the merges that reach across words may join.
//
// Below the rank of the first token that reaches across a border between words, no merge joins two sides of a border. So all
// of these merges can be made in each word alone. They come before all others: a pair that another merge brings holds its token,
// so its rank is greater still. What is left of the words is a row of tokens, on which the other merges are made by rank. Such a
// merge joins the last token of the row in its left half to the first one in its right half: where no merge joins two
// neighbours of the row, it is cut.
class Joints {
  public:
    explicit Joints(const InheritedMerges& merges) {
        const std::size_t within = merges.first_across_words();
        const std::uint32_t first = first_merge + static_cast<std::uint32_t>(within);
        while (std::size_t{1} << log_ < bits_a_merge * (merges.size() - within)) ++log_;
        bits_.resize((std::size_t{1} << log_) / 64);
        std::vector<Merge> ends;   // of the tokens that reach across: the first and the last of the row in each
        for (std::size_t rank = within; rank < merges.size(); ++rank) {
            const auto [left, right] = merges[rank];
            const Merge of_left = left < first ? Merge{left, left} : ends[left - first];
            const Merge of_right = right < first ? Merge{right, right} : ends[right - first];
            ends.push_back({of_left.left, of_right.right});
            const std::size_t bit = bit_of(of_left.right, of_right.left);
            bits_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
        }
    }
    // Whether these merges are worth encoding words first.
    static bool is_useful(const InheritedMerges& merges) {
        return merges.first_across_words() < merges.size() && 8 * merges.first_across_words() >= merges.size();
    }

    bool may_join(std::uint32_t left, std::uint32_t right) const {
        const std::size_t bit = bit_of(left, right);
        return bits_[bit >> 6] >> (bit & 63) & 1;
    }

  private:
    static constexpr std::size_t bits_a_merge = 16;   // of pairs that no merge joins one in sixteen is taken for one

    std::size_t bit_of(std::uint32_t left, std::uint32_t right) const {
        const std::uint64_t key = key_of(left, right);
        return static_cast<std::size_t>((key ^ key >> 29) * 0x9e3779b97f4a7c15u >> (64 - log_));
    }

    unsigned log_ = 6;
    std::vector<std::uint64_t> bits_;
};

}  // namespace flat
