// The bytes of token ids, which lie in memory as numbers of any width.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace encoder {

class Decoder {
  public:
    void add(std::uint64_t id, const std::string& token) {
        if (id < most_in_a_row) {
            if (id >= row_.size()) row_.resize(id + 1);
            row_[id] = {tokens_.size(), token.size(), true};
        } else {
            far_[id] = {tokens_.size(), token.size(), true};
        }
        tokens_ += token;
    }
    // To be called when all are added.
    void finish() { tokens_.append(step, '\0'); }

    // The number of bytes of some ids; or, if one of them is unknown, its place.
    struct Measured {
        std::size_t bytes, place;
        bool known;
    };
    Measured measure(const void* ids, std::size_t number, std::size_t width, bool with_sign) const {
        Measured measured{0, 0, true};
        each(ids, number, width, with_sign, [&](std::size_t place, std::uint64_t id) {
            const Token token = token_of(id);
            measured.bytes += token.length;
            if (token.known) return true;
            measured.place = place;
            return measured.known = false;
        });
        return measured;
    }

    // Writes just so many bytes as were measured.
    void write(const void* ids, std::size_t number, std::size_t width, bool with_sign, char* to, std::size_t bytes) const {
        const char* const end = to + bytes;
        each(ids, number, width, with_sign, [&](std::size_t, std::uint64_t id) {
            const Token token = token_of(id);
            const char* const from = tokens_.data() + token.start;
            // Most tokens are short: what is too much is written over.
            if (token.length <= step && static_cast<std::size_t>(end - to) >= step)
                std::memcpy(to, from, step);
            else
                std::memcpy(to, from, token.length);
            to += token.length;
            return true;
        });
    }

  private:
    struct Token {
        std::size_t start = 0, length = 0;
        bool known = false;
    };
    static constexpr std::size_t step = 16;
    static constexpr std::uint64_t most_in_a_row = std::uint64_t{1} << 21;   // a file may have a single huge id

    Token token_of(std::uint64_t id) const {
        if (id < row_.size()) return row_[id];
        const auto found = far_.find(id);
        return found == far_.end() ? Token{} : found->second;
    }

    // Calls visit(place, id) until it says no; a negative number becomes a huge one.
    template <class Visit>
    static void each(const void* ids, std::size_t number, std::size_t width, bool with_sign, Visit visit) {
        switch (width) {
            case 1: return with_sign ? each_of<std::int8_t>(ids, number, visit) : each_of<std::uint8_t>(ids, number, visit);
            case 2: return with_sign ? each_of<std::int16_t>(ids, number, visit) : each_of<std::uint16_t>(ids, number, visit);
            case 4: return with_sign ? each_of<std::int32_t>(ids, number, visit) : each_of<std::uint32_t>(ids, number, visit);
            default: return each_of<std::uint64_t>(ids, number, visit);
        }
    }
    template <class Id, class Visit>
    static void each_of(const void* ids, std::size_t number, Visit visit) {
        for (std::size_t place = 0; place < number; ++place) {
            Id id;
            std::memcpy(&id, static_cast<const char*>(ids) + place * sizeof id, sizeof id);   // a file may begin anywhere
            if (!visit(place, static_cast<std::uint64_t>(id))) return;
        }
    }

    std::vector<Token> row_;   // by id
    std::unordered_map<std::uint64_t, Token> far_;
    std::string tokens_;
};

}  // namespace encoder
