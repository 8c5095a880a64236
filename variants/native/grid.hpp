// The C++ grid: the series' parts 5 to 9 and 11 as the points of a product, made by the compiler.
//
// The loop is written once (grid_point.hpp); what it is made of is chosen per point:
//
//   hash map   std, absl, boost, dense                       grid_maps.hpp, grid_absl.cpp, grid_boost.cpp
//   hash       weak, boost, strong, absl                     grid_hash.hpp
//   index      node_set, dense_set, inline_set               grid_index.hpp
//   maximum    iterator_scan, bucket_scan, copied_scan,      grid_scan.hpp
//              openmp_lock, _critical, _slots, _region,      grid_openmp.hpp
//              heap                                          grid_heap.hpp
//   update     coarse, fine_grained                          grid_update.hpp
//
// A policy is a struct with a name and a template in it. The full product is some hundreds of instantiations; compiled
// are the points listed in grid_std.cpp, grid_dense.cpp, grid_openmp.cpp, grid_boost.cpp and grid_absl.cpp, a module
// each, so that the ones without a library are built where it is absent. Another point is another line there.
//
// Counts are 64 bits wide. Bytes are their own ids, and an id is never used as a truth value: the published
// fine-grained programs did that, and are wrong on words with a NUL.
#pragma once

#include "grid_point.hpp"
#include "grid_table.hpp"

namespace grid {

// Trains a point on words in columns; the merges are those made so far if `watch` is told to stop.
inline void train_columns(const Member& member, const Words& columns, const Options& options, Answer& answer,
                          Watch& watch) {
    try {
        Table table = table_of_columns(columns, watch);
        watch.lap(convert);
        member.learn(table, options, answer, watch);
    } catch (const Stopped&) {
    }
}

// The same on a table that is there already.
inline void train_table(const Member& member, Table& table, const Options& options, Answer& answer, Watch& watch) {
    try {
        member.learn(table, options, answer, watch);
    } catch (const Stopped&) {
    }
}

}  // namespace grid
