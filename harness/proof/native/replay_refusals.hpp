// The pairs that may not be merged, where claims go on from merges that were inherited.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>

#include "replay_job.hpp"
#include "replay_order.hpp"

namespace replay {

class Refusals {
  public:
    explicit Refusals(const Question& question) : veto_(question.veto), most_(question.longest) {}

    // A token that was inherited; no pair may spell it anew.
    void inherit(const Spelling& token) { inherited_.insert(std::string(token.begin(), token.end())); }

    bool refuses(const Spelling& spelt) const {
        const std::string token(spelt.begin(), spelt.end());
        switch (veto_) {
            case Vetoed::nothing: break;
            case Vetoed::by_superbpe:
                if (token.find(": ") != std::string::npos || words(token) > 4) return true;
                break;
            case Vetoed::by_bytes:
                if (token.size() > most_) return true;
                break;
            case Vetoed::by_characters:
                if (characters(token) > most_) return true;
                break;
        }
        return inherited_.count(token) > 0;
    }

  private:
    // Blanks part words, and nothing else does.
    static std::size_t words(const std::string& token) {
        std::size_t number = 0;
        for (std::size_t at = token.find_first_not_of(' '); at != std::string::npos;
             at = token.find_first_not_of(' ', token.find(' ', at)))
            ++number;
        return number;
    }
    static std::size_t characters(const std::string& token) {
        std::size_t number = token.size();
        for (const char byte : token) number -= (static_cast<unsigned char>(byte) >> 6) == 2;
        return number;
    }

    Vetoed veto_;
    std::uint64_t most_;
    std::unordered_set<std::string> inherited_;
};

}  // namespace replay
