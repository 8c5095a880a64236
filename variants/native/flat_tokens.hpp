// flat's options and results, the tokens it has learned, and the table of pairs.
#pragma once

#include "job.hpp"
#include "memory.hpp"

namespace flat {

using namespace native;

// Token ids inside flat. 0 and 1 are no tokens; a byte b is 2 + b; the n-th merge makes 258 + n.
constexpr std::uint32_t separator = 0;    // between two words, and to fill up a block
constexpr std::uint32_t hole = 1;         // where a token began that has become the right half of another
constexpr std::uint32_t first_byte = 2;
constexpr std::uint32_t first_merge = first_byte + 256;
constexpr std::uint64_t most_ids = std::uint64_t{1} << 31;

// Whether two bytes hold every id if so many merges are made.
inline bool has_narrow_ids(std::uint64_t num_merges) { return first_merge + num_merges <= (1u << 16); }

enum Idea : unsigned { layout = 1, accumulators = 2, pruning = 4, all_ideas = 7 };

struct Options {
    std::uint64_t num_merges = 0;
    std::int64_t min_count = 1;
    TieBreak tie_break = TieBreak::greatest_bytes;
    std::size_t threads = 1;                 // for the work before the first merge
    // The ideas, each of which can be switched off to see what it is worth; the merges are the same in all settings.
    unsigned ideas = all_ideas;
    bool has(Idea idea) const { return ideas & idea; }
    // For tests: scales the guess at the last merge's count (so that rescans happen), forces wide ids, and treats short
    // texts as long ones.
    double guess_scale = 1.0;
    bool wide_symbols = false;
    bool narrow() const { return has_narrow_ids(num_merges) && !wide_symbols; }
    std::size_t part = std::size_t{1} << 22;   // positions below which a thread is not worth starting
};

struct Tallies {
    std::uint64_t pair_updates = 0;        // changes of a pair's count by one occurrence, those of the first count too
    std::uint64_t positions_visited = 0;   // text positions read: layout, first count, list entries, rescans
    std::uint64_t occurrences_merged = 0;
    std::uint64_t stale_positions = 0;     // list entries whose pair was gone
    std::uint64_t table_updates = 0;       // look-ups in the pair table: once for each distinct neighbour of a merge
    std::uint64_t pairs_kept = 0;          // pairs that were given a list and a place in the queue
    std::uint64_t pairs_pruned = 0;        // pairs born below the threshold, which were not
    std::uint64_t queue_pushes = 0;
    std::uint64_t queue_moves = 0;         // entries found out of date and moved down
    std::uint64_t queue_sorted = 0;        // entries looked at to sort some of a level
    std::uint64_t levels = 0;              // sets of equally frequent pairs
    std::uint64_t rescans = 0;
    std::uint64_t probes = 0;              // taken slots passed to put pairs into tables
    std::uint64_t token_bytes = 0;         // written to spell tokens, and moved to make room for more
    std::uint64_t text_bytes = 0;

    std::vector<Tally> listed() const {
        return {{"pair_updates", pair_updates}, {"positions_visited", positions_visited},
                {"occurrences_merged", occurrences_merged}, {"stale_positions", stale_positions},
                {"table_updates", table_updates}, {"pairs_kept", pairs_kept}, {"pairs_pruned", pairs_pruned},
                {"queue_pushes", queue_pushes}, {"queue_moves", queue_moves}, {"queue_sorted", queue_sorted},
                {"levels", levels}, {"rescans", rescans}, {"probes", probes}, {"token_bytes", token_bytes},
                {"text_bytes", text_bytes}};
    }
};

struct Answer : Training {
    Tallies tallies;
};

// Called when all words are in the text, so that their memory may be freed.
using WordsRead = void (*)(void* context);

using PairKey = std::uint64_t;

inline PairKey key_of(std::uint32_t left, std::uint32_t right) { return PairKey{left} << 32 | right; }
inline std::uint32_t left_of(PairKey key) { return static_cast<std::uint32_t>(key >> 32); }
inline std::uint32_t right_of(PairKey key) { return static_cast<std::uint32_t>(key); }

struct Bytes {
    const std::uint8_t* data;
    std::size_t size;
};

// The bytes of all tokens, in one buffer that grows at both ends; a token is a stretch of it, which never changes. If the left
// half ends where the buffer ends, only the right half is added behind it, and likewise at the front. So a token that grows
// to the end of a long word is not spelled at every stage, which would take memory quadratic in its length.
class TokenBytes {
  public:
    const std::uint8_t* at(std::int64_t place) const { return bytes_.data() + (origin_ + place); }

    std::int64_t add(const std::uint8_t* bytes, std::int64_t length) {
        make_room(length);
        std::copy_n(bytes, length, to(end_));
        end_ += length;
        return end_ - length;
    }

    // Where the token of two halves is. If neither is at an end, it is spelled at the end at which the longer half can grow on.
    std::int64_t join(std::int64_t left, std::int64_t left_length, std::int64_t right, std::int64_t right_length) {
        const bool behind = left + left_length == end_, before = !behind && right == begin_;
        const bool in_front = before || (!behind && left_length < right_length);
        const std::int64_t written = (behind ? 0 : left_length) + (before ? 0 : right_length);
        make_room(written);
        written_ += static_cast<std::uint64_t>(written);
        (in_front ? begin_ : end_) += in_front ? -written : written;
        const std::int64_t start = in_front ? begin_ : end_ - left_length - right_length;
        if (!behind) std::copy_n(at(left), left_length, to(start));
        if (!before) std::copy_n(at(right), right_length, to(start + left_length));
        return start;
    }

    // Bytes spelled by `join`, and moved to make room.
    std::uint64_t written() const { return written_; }

  private:
    std::uint8_t* to(std::int64_t place) { return bytes_.data() + (origin_ + place); }

    void make_room(std::int64_t written) {
        const std::int64_t size = static_cast<std::int64_t>(bytes_.size());
        if (written <= origin_ + begin_ && written <= size - (origin_ + end_)) return;
        const std::int64_t roomier = 2 * (size + written) + smallest, origin = (roomier - begin_ - end_) / 2;
        Array<std::uint8_t> bytes(static_cast<std::size_t>(roomier));
        if (size) std::copy_n(at(begin_), end_ - begin_, bytes.data() + (origin + begin_));
        written_ += static_cast<std::uint64_t>(end_ - begin_);
        bytes_ = std::move(bytes);
        origin_ = origin;
    }

    static constexpr std::int64_t smallest = 4096;
    Array<std::uint8_t> bytes_;
    std::int64_t origin_ = 0;               // where the place 0 is in the buffer
    std::int64_t begin_ = 0, end_ = 0;
    std::uint64_t written_ = 0;
};

class Tokens {
  public:
    // Bytes are kept if the order needs them, or the caller does (`with_bytes`).
    explicit Tokens(TieBreak tie_break, bool with_bytes = false)
        : by_bytes_(tie_break <= TieBreak::smallest_bytes), with_bytes_(by_bytes_ || with_bytes), tie_break_(tie_break) {
        add(0, 0, nullptr);
        add(0, 0, nullptr);
        for (unsigned byte = 0; byte < 256; ++byte) {
            const std::uint8_t value = static_cast<std::uint8_t>(byte);
            add(byte_number(byte, tie_break), 1, &value);
        }
    }

    // Learns the merge of two tokens and returns the new one's id.
    std::uint32_t merge(std::uint32_t left, std::uint32_t right) { return join(left, right, cells_[left] + cells_[right]); }
    // The same for a merge that was made before the text was laid out: its token takes one cell.
    std::uint32_t inherit(std::uint32_t left, std::uint32_t right) { return join(left, right, 1); }

    std::uint32_t size() const { return static_cast<std::uint32_t>(lengths_.size()); }
    std::uint64_t bytes_written() const { return bytes_.written(); }
    // In cells of the text.
    std::uint64_t length(std::uint32_t id) const { return cells_[id]; }
    // Where bytes are kept.
    Bytes bytes(std::uint32_t id) const { return {bytes_of(id), static_cast<std::size_t>(lengths_[id])}; }
    // Among equal counts the pair with the greater (order of left, order of right) goes first. Two tokens with the same
    // order may still differ in their later bytes; `before` knows.
    std::uint64_t order(std::uint32_t id) const { return order_[id]; }

    bool before(PairKey one, PairKey other) const {
        const int left = compare(left_of(one), left_of(other));
        return left ? left > 0 : compare(right_of(one), right_of(other)) > 0;
    }

  private:
    std::uint32_t join(std::uint32_t left, std::uint32_t right, std::uint64_t cells) {
        const std::uint64_t length = lengths_[left] + lengths_[right];
        const std::uint32_t id = size();
        const std::int64_t start =
            with_bytes_ ? bytes_.join(starts_[left], static_cast<std::int64_t>(lengths_[left]), starts_[right],
                                      static_cast<std::int64_t>(lengths_[right]))
                        : 0;
        append(by_bytes_ ? prefix_of(bytes_.at(start), length) : id - first_byte, length, cells, start);
        return id;
    }

    // Positive if `one` is preferred.
    int compare(std::uint32_t one, std::uint32_t other) const {
        if (one == other) return 0;
        if (order_[one] != order_[other]) return order_[one] > order_[other] ? 1 : -1;
        // Where both begin at one place, the shorter is a prefix of the other.
        const bool one_stretch = starts_[one] == starts_[other];
        const std::uint64_t common = one_stretch ? 0 : std::min(lengths_[one], lengths_[other]);
        const int bytes = std::memcmp(bytes_of(one), bytes_of(other), common);
        const int greater = bytes ? bytes : (lengths_[one] > lengths_[other] ? 1 : -1);
        return tie_break_ == TieBreak::greatest_bytes ? greater : -greater;
    }

    void add(std::uint64_t number, std::uint64_t length, const std::uint8_t* bytes) {
        const std::int64_t start = bytes_.add(bytes, static_cast<std::int64_t>(length));
        append(by_bytes_ ? prefix_of(bytes, length) : number, length, length, start);
    }

    // Smaller is preferred by every rule but the first, so theirs is stored upside down.
    void append(std::uint64_t ascending, std::uint64_t length, std::uint64_t cells, std::int64_t start) {
        order_.push_back(tie_break_ == TieBreak::greatest_bytes ? ascending : ~ascending);
        lengths_.push_back(length);
        cells_.push_back(cells);
        starts_.push_back(start);
    }

    const std::uint8_t* bytes_of(std::uint32_t id) const { return bytes_.at(starts_[id]); }

    bool by_bytes_, with_bytes_;
    TieBreak tie_break_;
    TokenBytes bytes_;   // of single bytes only, unless `with_bytes_`
    std::vector<std::int64_t> starts_;
    std::vector<std::uint64_t> lengths_;   // in bytes
    std::vector<std::uint64_t> cells_;     // the same, but 1 for what was inherited
    std::vector<std::uint64_t> order_;
};

// A place in a text, or a number of them: a text has fewer than 2**32 cells.
using Position = std::uint32_t;

// Open addressing with linear probing; a pair that is taken out leaves no trace, for the pairs behind it move up. So
// the table holds the live pairs only, however many have come and gone, and a slot is found again by its pair alone.
class PairTable {
  public:
    struct Slot {
        PairKey key;          // 0: empty (a separator pairs with nothing)
        std::int64_t count;
        Position* list;       // ascending, some entries perhaps stale
        Position entries;
    };

    const Slot* find(PairKey key) const {
        for (std::size_t at = home(key);; at = (at + 1) & mask()) {
            if (slots_[at].key == key) return &slots_[at];
            if (!slots_[at].key) return nullptr;
        }
    }
    Slot* find(PairKey key) { return const_cast<Slot*>(std::as_const(*this).find(key)); }

    // `key` must not be in the table.
    Slot* insert(PairKey key, std::int64_t count, Position* list, Position entries) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        ++size_;
        Slot& slot = slots_[free_place(key)];
        slot = {key, count, list, entries};
        return &slot;
    }

    void erase(Slot* slot) {
        --size_;
        std::size_t gap = static_cast<std::size_t>(slot - slots_.data());
        for (std::size_t at = (gap + 1) & mask(); slots_[at].key; at = (at + 1) & mask()) {
            // What probes for this pair starts at its home and must not meet the gap: it may stay only if its home
            // lies behind the gap.
            if (((at - home(slots_[at].key)) & mask()) >= ((at - gap) & mask())) {
                slots_[gap] = slots_[at];
                gap = at;
            }
        }
        slots_[gap].key = 0;
    }

    void prefetch(PairKey key) const { __builtin_prefetch(slots_.data() + home(key)); }

    // Taken slots that were passed to put pairs in, growing included.
    std::uint64_t probes() const { return probes_; }

    // Visits all pairs, a run of slots at a time, in an order that is evenly spread over the table after any number of steps,
    // as multiples of the golden ratio are. In the order of their homes the pairs would fill one end of any table that they
    // are put into while it grows, and leave ever longer chains there.
    template <class Visit>
    void each(Visit visit) {
        const std::size_t runs = slots_.size() / run, stride = golden_ratio >> (64 - log_ + run_log) | 1;   // odd: all come once
        for (std::size_t step = 0, at = 0; step < runs; ++step, at = (at + stride) & (runs - 1))
            for (Slot* slot = slots_.data() + at * run; slot < slots_.data() + (at + 1) * run; ++slot)
                if (slot->key) visit(*slot);
    }

  private:
    static constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15u;   // less 1, in 64 bits
    static constexpr unsigned first_log = 10, run_log = 4;   // runs of 512 bytes, for memory to be read and written in order
    static constexpr std::size_t run = std::size_t{1} << run_log;

    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t home(PairKey key) const {
        key ^= key >> 29;
        return static_cast<std::size_t>((key * golden_ratio) >> (64 - log_));
    }
    std::size_t free_place(PairKey key) {
        std::size_t at = home(key);
        for (; slots_[at].key; at = (at + 1) & mask()) ++probes_;
        return at;
    }
    void grow() {
        const Array<Slot> old = std::exchange(slots_, Array<Slot>(2 * slots_.size()));
        ++log_;
        for (std::size_t at = 0; at < old.size(); ++at)
            if (old[at].key) slots_[free_place(old[at].key)] = old[at];
    }

    unsigned log_ = first_log;
    Array<Slot> slots_ = Array<Slot>(std::size_t{1} << first_log);
    std::size_t size_ = 0;
    std::uint64_t probes_ = 0;
};

}  // namespace flat
