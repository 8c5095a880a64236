// Pieces of a text that is still being read: equal ones are counted once, and of each only its tokens are kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "flat_encoding.hpp"
#include "flat_text.hpp"
#include "scanner_classes.hpp"

namespace flat {

// Whether these tokens spell a piece: no hash decides that two are equal.
template <class Symbol>
bool spell(const InheritedMerges& merges, const Symbol* tokens, const std::uint8_t* bytes, std::size_t length) {
    const std::uint8_t* const end = bytes + length;
    for (; *tokens != separator; ++tokens) {
        const Bytes token = merges.bytes(*tokens);
        if (token.size > static_cast<std::size_t>(end - bytes)) return false;
        if (std::memcmp(bytes, token.data, token.size) != 0) return false;
        bytes += token.size;
    }
    return bytes == end;
}

// The pieces whose hashes begin alike. For each its cells hold the weight, the tokens and a separator; a weight that a cell
// cannot hold is in a table of its own.
template <class Symbol>
class PieceShard {
  public:
    // The top of a slot is a part of the piece's hash, the rest is the place of its cells; 0 is free.
    static constexpr unsigned place_bits = 40, tag_bits = 24;

    void prefetch(std::uint64_t tag) const {
        if (slots_.size()) __builtin_prefetch(slots_.data() + home(tag));
    }
    void prefetch_cells(std::uint64_t tag) const {
        if (!slots_.size()) return;
        const std::uint64_t slot = slots_[home(tag)];
        if (slot >> place_bits == tag) __builtin_prefetch(cells_.data() + place_of(slot));
    }

    // Where the piece's cells begin; 0 if it is not there.
    std::size_t find(std::uint64_t tag, const InheritedMerges& merges, const std::uint8_t* bytes, std::size_t length) const {
        if (!slots_.size()) return 0;
        for (std::size_t at = home(tag); slots_[at]; at = next(at))
            if (slots_[at] >> place_bits == tag && spell(merges, cells_.data() + place_of(slots_[at]) + 1, bytes, length))
                return place_of(slots_[at]);
        return 0;
    }

    void weigh(std::size_t place, std::uint64_t weight) {
        Symbol& light = cells_.data()[place];
        if (light != heavy && weight < static_cast<std::uint64_t>(heavy - light)) {
            light = static_cast<Symbol>(light + weight);
            return;
        }
        heavy_weights_[place] += weight + (light == heavy ? 0 : light);
        light = heavy;
    }

    // Room for a new piece of so many bytes; its tokens go there.
    Symbol* room(std::size_t length) {
        cells_.reserve(size_ + length + 2);
        return cells_.data() + size_ + 1;
    }
    // Keeps the piece whose tokens were written there, up to `end`. What can fail comes first: other threads, which do not
    // know of it yet, find whole pieces only.
    void keep(std::uint64_t tag, Symbol* end, std::uint64_t weight) {
        if (4 * (pieces_ + 1) > 3 * slots_.size()) grow();
        cells_.data()[size_] = 0;
        weigh(size_, weight);
        enter(slots_, tag << place_bits | size_);
        pieces_ += 1;
        *end++ = static_cast<Symbol>(separator);
        size_ = static_cast<std::size_t>(end - cells_.data());
    }

    void forget_index() { slots_ = Array<std::uint64_t>(); }

    // Calls visit(weight, tokens, end) for each piece; `end` is behind its separator.
    template <class Visit>
    void each(Visit visit) const {
        const Symbol* const cells = cells_.data();
        for (std::size_t at = first; at < size_;) {
            const std::uint64_t weight = cells[at] == heavy ? heavy_weights_.at(at) : cells[at];
            const Symbol* const tokens = cells + at + 1;
            const Symbol* end = tokens;
            while (*end != separator) ++end;
            visit(weight, tokens, ++end);
            at = static_cast<std::size_t>(end - cells);
        }
    }

  private:
    static constexpr Symbol heavy = static_cast<Symbol>(-1);
    static constexpr std::size_t first = 1, few = 256;
    static std::size_t place_of(std::uint64_t slot) { return slot & ((std::uint64_t{1} << place_bits) - 1); }
    std::size_t home(std::uint64_t tag) const { return home_in(slots_, tag); }
    static std::size_t home_in(const Array<std::uint64_t>& slots, std::uint64_t tag) {
        return static_cast<std::size_t>(tag * slots.size() >> tag_bits);
    }
    std::size_t next(std::size_t at) const { return at + 1 == slots_.size() ? 0 : at + 1; }

    static void enter(Array<std::uint64_t>& slots, std::uint64_t slot) {
        std::size_t at = home_in(slots, slot >> place_bits);
        while (slots[at]) at = at + 1 == slots.size() ? 0 : at + 1;
        slots[at] = slot;
    }
    // Homes are in the order of the hashes, so an index is copied into a larger one from front to back.
    void grow() {
        Array<std::uint64_t> larger = Array<std::uint64_t>(std::max(few, slots_.size() + slots_.size() / 3));
        for (std::size_t at = 0; at < slots_.size(); ++at)
            if (slots_[at]) enter(larger, slots_[at]);
        slots_ = std::move(larger);
    }

    Column<Symbol> cells_;
    std::size_t size_ = first;
    Array<std::uint64_t> slots_;
    std::size_t pieces_ = 0;
    std::unordered_map<std::size_t, std::uint64_t> heavy_weights_;
};

constexpr std::size_t pieces_together = std::size_t{1} << 16;   // that are looked for shard by shard

// All pieces, taken in batches by several threads at once: the shards have locks of their own.
template <class Symbol>
class PieceTable {
  public:
    PieceTable(const InheritedMerges& merges, const scanner::Seed& seed, std::size_t parts, const std::function<void()>& look)
        : merges_(merges), seed_(seed), shards_(shard_count) {
        for (std::size_t part = 0; part < parts; ++part) parts_.push_back(std::make_unique<Part>(merges, look));
    }

    // To be called by one thread at a time for each part.
    void take(std::size_t number, const Words& batch) {
        Part& part = *parts_.at(number);
        for (std::size_t begin = 0; begin < batch.number; begin += pieces_together)
            take_some(part, batch, begin, std::min(batch.number, begin + pieces_together), number);
    }

    // The bytes that were encoded, and a separator for each piece.
    std::uint64_t positions() const {
        std::uint64_t positions = 0;
        for (const auto& part : parts_) positions += part->positions;
        return positions;
    }
    // By rank: whether its pair ever occurred.
    std::vector<std::uint8_t> met() const {
        std::vector<std::uint8_t> met(merges_.size());
        for (const auto& part : parts_)
            for (std::size_t rank = 0; rank < met.size(); ++rank) met[rank] |= part->encoder.met()[rank];
        return met;
    }

    // The text, its tokens renumbered by `ids`, its pieces by weight in whole blocks. Nothing is left here.
    // Its cells are as wide as the ids of all merges to come: how many come is known only when all pieces are.
    template <class Cell>
    Text<Cell> finish(const std::vector<std::uint32_t>& ids, Progress& progress) {
        parts_.clear();
        std::map<std::uint64_t, std::size_t, std::greater<>> cells;   // of a weight
        std::uint64_t last = 0;
        std::size_t* of_last = &cells[last];   // nothing has no weight
        const auto cells_of = [&](std::uint64_t weight) -> std::size_t& {
            if (weight != last) of_last = &cells[last = weight];
            return *of_last;
        };
        for (Locked& locked : shards_) {
            locked.shard.forget_index();
            locked.shard.each([&](std::uint64_t weight, const Symbol* tokens, const Symbol* end) {
                cells_of(weight) += static_cast<std::size_t>(end - tokens);
                progress.advance(static_cast<std::uint64_t>(end - tokens), convert);
            });
        }
        std::size_t size = in_blocks(1);
        for (auto& [weight, number] : cells) size += number ? in_blocks(number) : 0;
        Text<Cell> text = empty_text<Cell>(size, block_shift);
        std::size_t next = text.begin;
        for (auto& [weight, number] : cells) {
            const std::size_t end = number ? next + in_blocks(number) : next;
            std::fill(text.weights.data() + (next >> block_shift), text.weights.data() + (end >> block_shift),
                      static_cast<std::int64_t>(weight));
            std::fill(text.symbols.data() + next + number, text.symbols.data() + end, static_cast<Cell>(separator));
            number = next;
            next = end;
        }
        for (Locked& locked : shards_) {
            locked.shard.each([&](std::uint64_t weight, const Symbol* tokens, const Symbol* end) {
                std::size_t& at = cells_of(weight);
                Cell* to = text.symbols.data() + at;
                at += static_cast<std::size_t>(end - tokens);
                progress.advance(static_cast<std::uint64_t>(end - tokens), convert);
                for (; tokens < end; ++tokens) *to++ = static_cast<Cell>(ids[*tokens]);
            });
            locked.shard = PieceShard<Symbol>();
        }
        return text;
    }

  private:
    static constexpr unsigned shard_bits = 6;       // more shards than threads, so that few wait
    static constexpr std::size_t shard_count = std::size_t{1} << shard_bits;
    static constexpr std::size_t ahead = 16;        // between a prefetch and its use

    struct Locked {
        std::mutex mutex;
        PieceShard<Symbol> shard;
    };
    struct Part {
        Part(const InheritedMerges& merges, const std::function<void()>& look) : encoder(merges, true, &look) {}
        Encoder encoder;
        std::vector<std::uint64_t> hashes;
        std::vector<std::uint32_t> order;
        std::uint64_t positions = 0;
    };

    std::uint64_t hash_of(const std::uint8_t* bytes, std::size_t length) const {
        if (length > scanner::longest_short) return scanner::hash_of_long(seed_, bytes, length);
        scanner::Key key{};
        std::memcpy(&key, bytes, length);
        key.high |= std::uint64_t{length} << 56;
        return scanner::product_hash(seed_, key);
    }

    void take_some(Part& part, const Words& batch, std::size_t begin, std::size_t end, std::size_t number) {
        const auto bytes = [&](std::size_t word) { return batch.bytes + batch.offsets[word]; };
        const auto length = [&](std::size_t word) {
            return static_cast<std::size_t>(batch.offsets[word + 1] - batch.offsets[word]);
        };
        part.hashes.resize(end - begin);
        part.order.resize(end - begin);
        std::size_t bounds[shard_count + 1] = {};
        for (std::size_t word = begin; word < end; ++word) {
            part.hashes[word - begin] = hash_of(bytes(word), length(word));
            bounds[part.hashes[word - begin] >> (64 - shard_bits)] += 1;
        }
        std::size_t before = 0;
        for (std::size_t& bound : bounds) before += std::exchange(bound, before);
        for (std::size_t word = begin; word < end; ++word)
            part.order[bounds[part.hashes[word - begin] >> (64 - shard_bits)]++] = static_cast<std::uint32_t>(word - begin);
        // Now each bound is where the next shard begins. Threads begin at different ones.
        for (std::size_t turn = 0; turn < shard_count; ++turn) {
            const std::size_t one = (turn + number * (shard_count / 2 + 1)) % shard_count;
            const std::size_t first = one ? bounds[one - 1] : 0, last = bounds[one];
            if (first == last) continue;
            const std::lock_guard<std::mutex> lock(shards_[one].mutex);
            PieceShard<Symbol>& shard = shards_[one].shard;
            const auto tag = [&](std::size_t place) {
                return part.hashes[part.order[place]] << shard_bits >> (64 - PieceShard<Symbol>::tag_bits);
            };
            for (std::size_t place = first; place < last; ++place) {
                if (place + 2 * ahead < last) {
                    shard.prefetch(tag(place + 2 * ahead));
                    __builtin_prefetch(bytes(begin + part.order[place + ahead]));
                }
                if (place + ahead < last) shard.prefetch_cells(tag(place + ahead));
                const std::size_t word = begin + part.order[place];
                take_one(part, shard, tag(place), bytes(word), length(word), batch.counts[word], batch.bytes + batch.size);
            }
        }
    }

    void take_one(Part& part, PieceShard<Symbol>& shard, std::uint64_t tag, const std::uint8_t* bytes, std::size_t length,
                  std::uint64_t weight, const std::uint8_t* readable) {
        if (length < 2 || !weight) return;
        if (const std::size_t place = shard.find(tag, merges_, bytes, length)) {
            shard.weigh(place, weight);
            return;
        }
        Symbol* const start = shard.room(length);
        Symbol* const end = part.encoder.encode(bytes, length, readable, start,
                                                [](std::uint32_t token) { return static_cast<Symbol>(token); });
        part.positions += length + 1;
        // A single token holds no pair.
        if (end - start > 1) shard.keep(tag, end, weight);
    }

    const InheritedMerges& merges_;
    const scanner::Seed seed_;
    std::vector<Locked> shards_;
    std::vector<std::unique_ptr<Part>> parts_;
};

// The same with ids as wide as those of the merges that it is encoded by: both halves of each are made before it, and no
// token or pair is in them twice.
class Pieces {
  public:
    Pieces(const Merge* merges, std::size_t number, const scanner::Seed& seed) : merges_(merges, number), seed_(seed) {}

    // Forgets what was taken; from here on so many threads take pieces.
    void begin(std::size_t parts) {
        narrow_table_.reset();
        wide_table_.reset();
        if (has_narrow_ids(merges_.size())) {
            narrow_table_ = std::make_unique<PieceTable<std::uint16_t>>(merges_, seed_, parts, look_);
        } else {
            wide_table_ = std::make_unique<PieceTable<std::uint32_t>>(merges_, seed_, parts, look_);
        }
    }
    void take(std::size_t part, const Words& batch) {
        table([&](auto& one) { one.take(part, batch); });
    }
    // The same; false if it was stopped.
    bool take_unless_stopped(std::size_t part, const Words& batch) {
        try {
            take(part, batch);
            return true;
        } catch (const Stopped&) {
            return false;
        }
    }
    // Every 65,536 steps of a long piece `take` asks, in any of its threads, whether to go on, and throws Stopped if not.
    void ask_by(bool (*go_on)(void* context), void* context) {
        look_ = [=] {
            if (!go_on(context)) throw Stopped{};
        };
    }
    // Calls work(), in which `take` calls look() instead.
    template <class Work>
    void watched(std::function<void()> look, Work work) {
        look_.swap(look);
        try {
            work();
        } catch (...) {
            look_.swap(look);
            throw;
        }
        look_.swap(look);
    }

    const InheritedMerges& merges() const { return merges_; }
    // Calls visit(table) for the one that there is. Throws Refused before `begin`.
    template <class Visit>
    void table(Visit visit) {
        if (!wide_table_ && !narrow_table_) throw Refused("call Pieces.begin before pieces are taken or trained on");
        wide_table_ ? visit(*wide_table_) : visit(*narrow_table_);
    }

  private:
    const InheritedMerges merges_;
    const scanner::Seed seed_;
    std::function<void()> look_;
    std::unique_ptr<PieceTable<std::uint16_t>> narrow_table_;
    std::unique_ptr<PieceTable<std::uint32_t>> wide_table_;
};

}  // namespace flat
