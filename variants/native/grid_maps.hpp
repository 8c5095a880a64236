// The hash maps that count pairs and need no library beside the compiler's.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "grid_dense.hpp"
#include "grid_hash.hpp"

namespace grid {

// `cells` and `visit` cut a map into parts that threads can share: std's buckets, the dense map's entries.
struct std_map {
    static constexpr const char* name = "std";
    template <class Value, class Hash>
    using map = std::unordered_map<PairKey, Value, Hash>;

    template <class Map>
    static std::size_t cells(const Map& map) { return map.bucket_count(); }
    template <class Map, class Visit>
    static void visit(const Map& map, std::size_t cell, Visit visit) {
        for (auto entry = map.begin(cell); entry != map.end(cell); ++entry) visit(entry->first, entry->second);
    }
};

struct dense_map {
    static constexpr const char* name = "dense";
    template <class Value, class Hash>
    using map = DenseMap<Value, Hash>;

    template <class Map>
    static std::size_t cells(const Map& map) { return map.size(); }
    template <class Map, class Visit>
    static void visit(const Map& map, std::size_t cell, Visit visit) {
        visit(map.entry(cell).first, map.entry(cell).second);
    }
};

}  // namespace grid
