// Inner products and sums of long vectors, in double, of narrower numbers too.
#include "base/arrays.hpp"
#include "base/vector_loops.hpp"

namespace mercer {

namespace {

template <class A, class B> double vector_dot(In1<A> x, In1<B> y) {
  require(x.shape(0) == y.shape(0), "vectors of one length are needed");
  const int64_t n = int64_t(x.shape(0));
  nb::gil_scoped_release release;
  if constexpr (sizeof(A) == 8)
    return loops<VectorLoops>().dot_dd(x.data(), y.data(), n);
  else if constexpr (sizeof(A) == 4 && sizeof(B) == 8)
    return loops<VectorLoops>().dot_fd(x.data(), y.data(), n);
  else if constexpr (sizeof(A) == 4)
    return loops<VectorLoops>().dot_ff(x.data(), y.data(), n);
  else if constexpr (sizeof(B) == 8)
    return loops<VectorLoops>().dot_hd(x.data(), y.data(), n);
  else if constexpr (sizeof(B) == 4)
    return loops<VectorLoops>().dot_hf(x.data(), y.data(), n);
  else
    return loops<VectorLoops>().dot_hh(x.data(), y.data(), n);
}

template <class A, class B> void vector_axpy(double alpha, In1<A> x, Out1<B> out) {
  require(x.shape(0) == out.shape(0), "vectors of one length are needed");
  const int64_t n = int64_t(x.shape(0));
  nb::gil_scoped_release release;
  if constexpr (sizeof(A) == 8)
    loops<VectorLoops>().axpy_dd(alpha, x.data(), out.data(), n);
  else if constexpr (sizeof(A) == 4 && sizeof(B) == 8)
    loops<VectorLoops>().axpy_fd(alpha, x.data(), out.data(), n);
  else if constexpr (sizeof(A) == 4)
    loops<VectorLoops>().axpy_ff(alpha, x.data(), out.data(), n);
  else if constexpr (sizeof(B) == 8)
    loops<VectorLoops>().axpy_hd(alpha, x.data(), out.data(), n);
  else
    loops<VectorLoops>().axpy_hf(alpha, x.data(), out.data(), n);
}

void vector_to_bfloat16(In1<float> x, Out1<bfloat16> out) {
  require(x.shape(0) == out.shape(0), "vectors of one length are needed");
  nb::gil_scoped_release release;
  loops<VectorLoops>().to_bfloat16(x.data(), out.data(), int64_t(x.shape(0)));
}

}  // namespace

void bind_vectors(nb::module_& m) {
#define MERCER_VECTORS(A, B)                                             \
  m.def("dot", &vector_dot<A, B>, "x"_a.noconvert(), "y"_a.noconvert()); \
  m.def("axpy", &vector_axpy<A, B>, "alpha"_a, "x"_a.noconvert(), "out"_a.noconvert());
  MERCER_VECTORS(double, double)
  MERCER_VECTORS(float, double)
  MERCER_VECTORS(float, float)
  MERCER_VECTORS(bfloat16, double)
  MERCER_VECTORS(bfloat16, float)
#undef MERCER_VECTORS
  m.def("dot", &vector_dot<bfloat16, bfloat16>, "x"_a.noconvert(), "y"_a.noconvert());
  m.def("to_bfloat16", &vector_to_bfloat16, "x"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace mercer
