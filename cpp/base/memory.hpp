// Large tables in huge pages; memory given back to the system.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cstddef>
#include <cstdint>
#include <new>

namespace mercer {

// Memory for large tables that are read at random: in huge pages where the system gives them on request, so that an
// access does not have to look up its page first.
template <class T> struct HugePages {
  using value_type = T;
  static constexpr size_t kPage = size_t(1) << 21;
  HugePages() = default;
  template <class U> HugePages(const HugePages<U>&) {}
  T* allocate(size_t n) {
    if (n > (SIZE_MAX >> 1) / sizeof(T)) throw std::bad_alloc();
    const size_t bytes = n * sizeof(T);
    if (bytes < kPage) return static_cast<T*>(::operator new(bytes));
    void* p = ::operator new(bytes, std::align_val_t(kPage));
#if defined(__linux__)
    madvise(p, bytes, MADV_HUGEPAGE);  // advice: nothing is lost where it is not taken
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t n) {
    if (n * sizeof(T) < kPage)
      ::operator delete(p);
    else
      ::operator delete(p, std::align_val_t(kPage));
  }
  template <class U> bool operator==(const HugePages<U>&) const { return true; }
  template <class U> bool operator!=(const HugePages<U>&) const { return false; }
};

// What work on so many features has left behind goes back to the system, if it is much: the training that follows needs
// the room.
inline void give_back([[maybe_unused]] int64_t n_features) {
#if defined(__GLIBC__)
  if (n_features >= int64_t(1) << 20) malloc_trim(0);
#endif
}

}  // namespace mercer
