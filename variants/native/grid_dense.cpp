// The points over the dense map. To compile another, add a line.
#include "grid_module.hpp"

using namespace grid;

using dense_points = Grid<
    Point<dense_map, boost_hash, node_set, iterator_scan, coarse>,
    Point<dense_map, weak_hash, node_set, iterator_scan, coarse>,
    Point<dense_map, strong_hash, node_set, iterator_scan, coarse>,
    Point<dense_map, boost_hash, node_set, iterator_scan, fine_grained>,
    Point<dense_map, boost_hash, dense_set, iterator_scan, fine_grained>,
    Point<dense_map, boost_hash, inline_set, iterator_scan, fine_grained>,
    Point<dense_map, boost_hash, node_set, heap, fine_grained>,
    Point<dense_map, boost_hash, dense_set, heap, fine_grained>,
    Point<dense_map, boost_hash, inline_set, heap, fine_grained>,
    Point<dense_map, boost_hash, inline_set, heap, coarse>,
    Point<dense_map, strong_hash, inline_set, heap, fine_grained>>;

GRID_MODULE(_grid_dense, dense_points)
