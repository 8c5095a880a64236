// The points over boost::unordered_flat_map (Boost 1.81 or later); none where Boost was absent when this was compiled.
// To compile another, add a line.
#include "grid_module.hpp"

#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#define BOOST_IS_HERE
#include <boost/unordered/unordered_flat_map.hpp>

namespace grid {

struct boost_map {
    static constexpr const char* name = "boost";
    template <class Value, class Hash>
    using map = boost::unordered_flat_map<PairKey, Value, Hash>;
};

}  // namespace grid
#endif

using namespace grid;

#ifdef BOOST_IS_HERE
using boost_points = Grid<
    Point<boost_map, boost_hash, node_set, iterator_scan, coarse>,
    Point<boost_map, weak_hash, node_set, iterator_scan, coarse>,
    Point<boost_map, strong_hash, node_set, iterator_scan, coarse>,
    Point<boost_map, strong_hash, node_set, iterator_scan, fine_grained>,
    Point<boost_map, strong_hash, inline_set, heap, fine_grained>>;
#else
using boost_points = Grid<>;
#endif

GRID_MODULE(_grid_boost, boost_points)
