// Vectors on whole cache lines, for loops that are compiled once for each instruction set. (What grows while results are
// written, and then becomes an array of NumPy's, is a Buffer: base/buffer.hpp.)
//
// Included inside a set's namespace, so that nothing here is shared between sets.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace mercer::MERCER_ARCH {

// Memory on whole cache lines: a vector that lies across two of them costs two loads.
template <class T> struct CacheAligned {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  CacheAligned() = default;
  template <class U> CacheAligned(const CacheAligned<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  template <class U> bool operator==(const CacheAligned<U>&) const { return true; }
  template <class U> bool operator!=(const CacheAligned<U>&) const { return false; }
};
template <class T> using AlignedVector = std::vector<T, CacheAligned<T>>;

}  // namespace mercer::MERCER_ARCH
