// The points over boost::unordered_flat_map (Boost 1.81 or later). Without Boost this module is not built.
#include <boost/unordered/unordered_flat_map.hpp>

#include "grid_module.hpp"

namespace grid {

struct boost_map {
    static constexpr const char* name = "boost";
    template <class Value, class Hash>
    using map = boost::unordered_flat_map<PairKey, Value, Hash>;
};

}  // namespace grid

using namespace grid;

using boost_points = Grid<
    Point<boost_map, boost_hash, node_set, iterator_scan, coarse>,
    Point<boost_map, weak_hash, node_set, iterator_scan, coarse>,
    Point<boost_map, strong_hash, node_set, iterator_scan, coarse>,
    Point<boost_map, strong_hash, node_set, iterator_scan, fine_grained>,
    Point<boost_map, strong_hash, inline_set, heap, fine_grained>>;

GRID_MODULE(_grid_boost, boost_points)
