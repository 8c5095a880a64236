// The points over absl::flat_hash_map. Abseil has to be linked, so where it is absent this module is not built at all.
#include <absl/container/flat_hash_map.h>
#include <absl/hash/hash.h>

#include "grid_module.hpp"

namespace grid {

struct absl_map {
    static constexpr const char* name = "absl";
    template <class Value, class Hash>
    using map = absl::flat_hash_map<PairKey, Value, Hash>;
};

// Abseil's own, which differs from process to process.
struct absl_hash : absl::Hash<PairKey> {
    static constexpr const char* name = "absl";
};

}  // namespace grid

using namespace grid;

using absl_points = Grid<
    Point<absl_map, boost_hash, node_set, iterator_scan, coarse>,
    Point<absl_map, weak_hash, node_set, iterator_scan, coarse>,
    Point<absl_map, absl_hash, node_set, iterator_scan, coarse>,
    Point<absl_map, strong_hash, node_set, iterator_scan, coarse>,
    Point<absl_map, absl_hash, node_set, iterator_scan, fine_grained>,
    Point<absl_map, absl_hash, inline_set, heap, fine_grained>>;

GRID_MODULE(_grid_absl, absl_points)
