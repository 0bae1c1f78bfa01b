// The one mechanism for instruction sets.
//
// Loops that are compiled once for each set are the fields of a table, one table for each concern. A header declares it:
//   struct DenseLoops {
//     static constexpr const char* concern = "dense";
//     double (*inner_product)(const double*, const double*, int64_t);
//   };
//   MERCER_TABLE(DenseLoops)
// a file that CMakeLists.txt compiles once for each set (with fused products, or exact) fills it by name:
//   namespace mercer::MERCER_ARCH {
//   template <> const DenseLoops& table<DenseLoops>() {
//     static constexpr DenseLoops loops = {.inner_product = inner_product};
//     return loops;
//   }
//   }
// and others call loops<DenseLoops>().inner_product(…), which takes those of the set in use. Functions that are written
// for one set by hand are chosen by set_for("concern").
#pragma once

#include <atomic>

namespace mercer {

enum class InstructionSet : int { baseline, avx2, avx512 };

// What some machines have beyond the sets.
enum class Feature : int { popcounts_of_vectors };
bool machine_has(Feature feature);

inline std::atomic<InstructionSet> set_in_use{InstructionSet::baseline};  // chosen when the module is imported

// While choices are watched, notes which set a concern has got.
inline std::atomic<bool> choices_are_watched{false};
void note_choice(const char* concern, InstructionSet set);

inline InstructionSet set_for(const char* concern) {
  const InstructionSet set = set_in_use.load(std::memory_order_relaxed);
  if (choices_are_watched.load(std::memory_order_relaxed)) note_choice(concern, set);
  return set;
}

namespace baseline {
template <class Table> const Table& table();
}
namespace avx2 {
template <class Table> const Table& table();
}
namespace avx512 {
template <class Table> const Table& table();
}
#define MERCER_TABLE(...)                              \
  namespace baseline {                                 \
  template <> const __VA_ARGS__& table<__VA_ARGS__>(); \
  }                                                    \
  namespace avx2 {                                     \
  template <> const __VA_ARGS__& table<__VA_ARGS__>(); \
  }                                                    \
  namespace avx512 {                                   \
  template <> const __VA_ARGS__& table<__VA_ARGS__>(); \
  }

template <class Table> const Table& loops() {
#if defined(MERCER_X86)
  switch (set_for(Table::concern)) {
    case InstructionSet::avx512: return avx512::table<Table>();
    case InstructionSet::avx2: return avx2::table<Table>();
    case InstructionSet::baseline: break;
  }
#else
  set_for(Table::concern);
#endif
  return baseline::table<Table>();
}

}  // namespace mercer
