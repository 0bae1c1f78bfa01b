// Plans of the convolutions of maps/circulant.hpp, and their Python class.
#include "maps/circulant.hpp"

#include "base/arrays.hpp"
#include "base/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace mercer {
namespace {

constexpr int64_t kBatched = 1024;     // up to here a lane holds a whole vector
constexpr int64_t kLargestTail = 128;  // values of a block of the tail: its tile stays in the first-level cache
constexpr int64_t kCachedBytes =
    1 << 19;  // of a complex block that goes through all its passes in the second-level cache
constexpr int64_t kLongest = int64_t(1) << 26;

// Radices 4, 2, 3, 5, 7, 11, 13; empty if other primes divide n.
std::vector<int64_t> radices(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t p : {4, 2, 3, 5, 7, 11, 13})
    for (; n % p == 0; n /= p) found.push_back(p);
  if (n != 1) found.clear();
  return found;
}

// Radices of the tail leave `rest`: first 4 · 4, so that blocks of the head are whole vectors, then what else fits.
std::vector<int64_t> take_tail(std::vector<int64_t>& rest) {
  std::vector<int64_t> tail;
  int64_t size = 1;
  const auto take = [&](auto wanted) {
    for (size_t i = 0; i < rest.size();)
      if (wanted(rest[i]) && size * rest[i] <= kLargestTail) {
        size *= rest[i];
        tail.push_back(rest[i]);
        rest.erase(rest.begin() + int64_t(i));
      } else {
        ++i;
      }
  };
  take([&](int64_t p) { return p == 4 && size < 16; });
  take([](int64_t p) { return p % 2 == 1; });
  take([](int64_t) { return true; });
  return tail;
}

template <class T>
std::vector<typename ConvolutionPlan<T>::Pass> passes(int64_t n, const std::vector<int64_t>& radices) {
  std::vector<typename ConvolutionPlan<T>::Pass> all;
  for (int64_t p : radices) {
    typename ConvolutionPlan<T>::Pass pass{n, p, {}, {}, {}};
    const int64_t q = n / p;
    for (int64_t t = 0; t < p; ++t) pass.roots.push_back(T(std::cos(2 * M_PI * double(t) / double(p))));
    for (int64_t t = 0; t < p; ++t) pass.roots.push_back(T(std::sin(2 * M_PI * double(t) / double(p))));
    pass.cosines.resize(size_t((p - 1) * q));
    pass.sines.resize(pass.cosines.size());
    for (int64_t s = 1; s < p; ++s)
      for (int64_t j = 0; j < q; ++j) {
        const double angle = -2 * M_PI * double(s * j % n) / double(n);
        pass.cosines[size_t((s - 1) * q + j)] = T(std::cos(angle));
        pass.sines[size_t((s - 1) * q + j)] = T(std::sin(angle));
      }
    all.push_back(std::move(pass));
    n = q;
  }
  return all;
}

template <class T> ConvolutionPlan<T> make_plan(int64_t n) {
  ConvolutionPlan<T> plan;
  plan.n = n;
  std::vector<int64_t> all = radices(n);
  plan.batched = n <= kBatched;
  std::vector<int64_t> tail;
  if (plan.batched)
    std::swap(tail, all);
  else
    tail = take_tail(all);
  plan.m = 1;
  for (int64_t p : tail) plan.m *= p;
  plan.head = passes<T>(n, all);
  plan.tail = passes<T>(plan.m, tail);
  plan.cached_size = n;
  while (plan.cached < plan.head.size() && 2 * plan.cached_size * int64_t(sizeof(T)) > kCachedBytes)
    plan.cached_size /= plan.head[plan.cached++].radix;
  return plan;
}

// x ↦ the first n_bits entries of r ⊛ (signs ∘ x), or their signs as bits.
template <class T> class Circulant {
 public:
  Circulant(In1<T> r, std::optional<In1<T>> signs) {
    const int64_t n = int64_t(r.shape(0));
    require(n >= 1 && n <= kLongest && (n == 1 || !radices(n).empty()),
            "the length must be a product of primes up to 13, and at most 2^26");
    require(all_finite(r.data(), n), "r must be finite");
    require(!signs || int64_t(signs->shape(0)) == n, "r and signs must have one length");
    if (signs) signs_.assign(signs->data(), signs->data() + n);
    plan_ = make_plan<T>(n);
    spectrum_.resize(size_t(plan_.spectrum_size()));
    loops<ConvolutionLoops<T>>().spectrum(plan_, r.data(), spectrum_.data());
  }
  void project(In2<T> X, Out2<T> out, int threads) const {
    require(out.shape(0) == X.shape(0), "out must have a row for each row of X");
    run(X, int64_t(out.shape(1)), out.data(), nullptr, threads);
  }
  void codes(In2<T> X, int64_t n_bits, Out2<uint8_t> out, int threads) const {
    const bool fits =
        n_bits >= 0 && int64_t(out.shape(1)) == n_bits / 8 + (n_bits % 8 != 0);  // n_bits + 7 may overflow
    require(out.shape(0) == X.shape(0) && fits, "out must have a row for each row of X and a bit for each code bit");
    run(X, n_bits, nullptr, out.data(), threads);
  }

 private:
  void run(const In2<T>& X, int64_t n_bits, T* real, uint8_t* packed, int threads) const {
    require(int64_t(X.shape(1)) == plan_.n, "X must have as many columns as r has entries");
    require(n_bits >= 1 && n_bits <= plan_.n, "a circulant gives between 1 and n bits");
    threads = thread_count(threads);
    // Pairs of rows belong together whatever the number of threads: a row's partner may change the last bit of its
    // rounding.
    const int64_t rows = int64_t(X.shape(0)), step = plan_.batched ? 8 * plan_.lanes : 8,
                  parts = (rows + step - 1) / step;
    const ConvolutionLoops<T>& work = loops<ConvolutionLoops<T>>();
    const T* signs = signs_.empty() ? nullptr : signs_.data();
    const int64_t shares = std::min<int64_t>(parts, 4 * threads);
    std::vector<char> finite(size_t(shares), 1);
    {
      nb::gil_scoped_release release;
      in_parallel(shares, threads, [&](int64_t share) {
        const int64_t first = step * (parts * share / shares),
                      last = std::min(rows, step * (parts * (share + 1) / shares));
        finite[size_t(share)] = work.rows(plan_, spectrum_.data(), X.data(), signs, first, last, n_bits, real, packed);
      });
    }
    require(std::find(finite.begin(), finite.end(), 0) == finite.end(), "X contains NaN or infinity");
  }
  ConvolutionPlan<T> plan_;
  std::vector<T> spectrum_, signs_;
};

template <class T> void bind_circulant_of(nb::module_& m, const char* name) {
  nb::class_<Circulant<T>>(m, name)
      .def(nb::init<In1<T>, std::optional<In1<T>>>(), "r"_a.noconvert(), "signs"_a.noconvert().none())
      .def("project", &Circulant<T>::project, "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
      .def("codes", &Circulant<T>::codes, "X"_a.noconvert(), "n_bits"_a, "out"_a.noconvert(), "threads"_a);
}

}  // namespace

void bind_circulant(nb::module_& m) {
  m.def(
      "circulant_length", [](int64_t n) { return n == 1 || (n > 1 && n <= kLongest && !radices(n).empty()); }, "n"_a,
      "Whether vectors of this length have a compiled convolution.");
  bind_circulant_of<float>(m, "Circulant32");
  bind_circulant_of<double>(m, "Circulant64");
}

}  // namespace mercer
