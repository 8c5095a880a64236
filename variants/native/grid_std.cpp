// The points over std::unordered_map. To compile another, add a line.
#include "grid_module.hpp"

using namespace grid;

using std_points = Grid<
    Point<std_map, boost_hash, node_set, iterator_scan, coarse>,
    Point<std_map, weak_hash, node_set, iterator_scan, coarse>,
    Point<std_map, strong_hash, node_set, iterator_scan, coarse>,
    Point<std_map, boost_hash, node_set, bucket_scan, coarse>,
    Point<std_map, weak_hash, node_set, bucket_scan, coarse>,
    Point<std_map, boost_hash, node_set, copied_scan, coarse>,
    Point<std_map, weak_hash, node_set, copied_scan, coarse>,
    Point<std_map, boost_hash, node_set, iterator_scan, fine_grained>,
    Point<std_map, boost_hash, node_set, heap, coarse>,
    Point<std_map, boost_hash, node_set, heap, fine_grained>>;

GRID_MODULE(_grid_std, std_points)
