// Trains tables read from a file with points of the C++ grid in which every policy occurs, and prints the merges: the
// grid without Python, to be compiled with sanitizers.
//
// A case is a line of numbers (words, num_merges, min_count, tie-break, threads, two bits of switches, chunk), then its
// words. A line of token ids is printed for every case; that a point learned other merges than the first ends it.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "driver_words.hpp"
#include "grid.hpp"
#include "grid_point.hpp"
#ifdef _OPENMP
#include "grid_openmp.hpp"
#endif

using namespace grid;

using points = Grid<
    Point<std_map, boost_hash, node_set, iterator_scan, coarse>,
    Point<std_map, weak_hash, node_set, bucket_scan, coarse>,
    Point<std_map, strong_hash, node_set, heap, coarse>,
    Point<dense_map, weak_hash, node_set, copied_scan, coarse>,
    Point<dense_map, boost_hash, dense_set, iterator_scan, fine_grained>,
    Point<dense_map, weak_hash, inline_set, iterator_scan, fine_grained>,
    Point<dense_map, strong_hash, dense_set, heap, fine_grained>,
#ifdef _OPENMP
    Point<std_map, boost_hash, node_set, openmp_lock, coarse>,
    Point<dense_map, weak_hash, inline_set, openmp_critical, coarse>,
    Point<dense_map, boost_hash, dense_set, openmp_slots, fine_grained>,
    Point<std_map, boost_hash, node_set, openmp_region, fine_grained>,
#endif
    Point<dense_map, weak_hash, inline_set, heap, fine_grained>>;

static std::string answer_of(const Member& member, const CaseWords& words, const Options& options) {
    Table table;
    const Words columns = words.columns();
    const auto go_on = [](void*, const Training&) { return true; };
    const Answer answer = train(member, &columns, table, options, go_on, nullptr);
    std::ostringstream line;
    for (const Merge& merge : answer.merges) line << merge.left << ' ' << merge.right << ' ';
    return line.str();
}

int main(int, char** arguments) {
    std::ifstream file(arguments[1]);
    std::size_t number = 0;
    int tie_break = 0;
    unsigned switches = 0;
    for (Options options; file >> number; options = Options()) {
        file >> options.num_merges >> options.min_count >> tie_break >> options.threads >> switches >> options.chunk;
        options.tie_break = static_cast<TieBreak>(tie_break);
        options.reuse_returned = switches & 1;
        options.push_grown = switches & 2;
        CaseWords words;
        words.read(file, number);
        std::string first;
        for (const Member& member : points::members()) {
            const std::string line = answer_of(member, words, options);
            if (&member == points::members().data()) first = line;
            if (line != first) return std::fprintf(stderr, "%s %s differs\n", member.hash_map, member.maximum), 1;
        }
        std::puts(first.c_str());
    }
}
