// Compiled once for each instruction set, without fused products: sums are the same for vectors of any width.
#include "maps/signed_hash_loops.hpp"

#include <cstring>

namespace mercer::MERCER_ARCH {

namespace {

template <class T> void add_tile(const T* x, int64_t features, const uint32_t* places, int64_t n_hashes, char* sums) {
  constexpr int64_t L = kHashLine / int64_t(sizeof(T));
  typedef T Line __attribute__((vector_size(kHashLine)));
  for (int64_t t = 0; t < features; ++t) {
    Line both[2];
    std::memcpy(&both[0], x + t * L, kHashLine);
    both[1] = -both[0];
    for (int64_t s = 0; s < n_hashes; ++s) {
      const uint32_t place = places[t * n_hashes + s];
      char* to = sums + (place & ~kHashMinus);
      Line sum;
      std::memcpy(&sum, to, kHashLine);
      sum += both[place & kHashMinus];
      std::memcpy(to, &sum, kHashLine);
    }
  }
}

}  // namespace

template <> const SignedHashLoops<float>& table<SignedHashLoops<float>>() {
  static constexpr SignedHashLoops<float> loops = {
      .add_tile = add_tile<float>,
  };
  return loops;
}
template <> const SignedHashLoops<double>& table<SignedHashLoops<double>>() {
  static constexpr SignedHashLoops<double> loops = {
      .add_tile = add_tile<double>,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
