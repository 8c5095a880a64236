// The points that scan with OpenMP. To compile another, add a line.
#include "grid_module.hpp"
#include "grid_openmp.hpp"

using namespace grid;

using openmp_points = Grid<
    Point<std_map, boost_hash, node_set, openmp_lock, coarse>,
    Point<std_map, boost_hash, node_set, openmp_critical, coarse>,
    Point<std_map, boost_hash, node_set, openmp_slots, coarse>,
    Point<std_map, boost_hash, node_set, openmp_region, coarse>,
    Point<dense_map, boost_hash, node_set, openmp_critical, coarse>,
    Point<dense_map, boost_hash, inline_set, openmp_slots, fine_grained>,
    Point<dense_map, boost_hash, inline_set, openmp_region, fine_grained>>;

GRID_MODULE(_grid_openmp, openmp_points)
