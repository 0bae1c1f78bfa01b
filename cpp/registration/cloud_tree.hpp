// The k-d tree that Python holds: of 2, 3 or any number of dimensions.
#pragma once

#include <memory>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "registration/kdtree.hpp"

namespace mercer {

class CloudTree {
 public:
  explicit CloudTree(In2<double> points) : d_(int(points.shape(1))) {
    require(points.shape(1) >= 1 && points.shape(1) <= 64, "points must have between 1 and 64 coordinates");
    const int64_t n = int64_t(points.shape(0));
    require(n < (int64_t(1) << 31), "there are too many points");
    require(all_finite(points.data(), n * d_), "points must be finite");
    nb::gil_scoped_release release;
    if (d_ == 3)
      three = std::make_unique<KdTree<3>>(points.data(), n, 3);
    else if (d_ == 2)
      two = std::make_unique<KdTree<2>>(points.data(), n, 2);
    else
      any = std::make_unique<KdTree<0>>(points.data(), n, d_);
  }
  int dim() const { return d_; }
  template <class Work> auto visit(Work work) const { return three ? work(*three) : two ? work(*two) : work(*any); }
  int64_t size() const {
    return visit([](const auto& tree) { return tree.size(); });
  }

  std::unique_ptr<KdTree<3>> three;
  std::unique_ptr<KdTree<2>> two;
  std::unique_ptr<KdTree<0>> any;

 private:
  int d_;
};

// Ranges of so many items as one piece of work.
constexpr int64_t kPiece = 512;
inline int64_t pieces(int64_t n) { return (n + kPiece - 1) / kPiece; }

template <class T> nb::object to_numpy_2d(std::vector<T>&& data, size_t rows, size_t columns) {
  auto* kept = new std::vector<T>(std::move(data));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(kept->data(), {rows, columns}, owner));
}
template <class T> nb::object to_numpy_3d(std::vector<T>&& data, size_t a, size_t b, size_t c) {
  auto* kept = new std::vector<T>(std::move(data));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<3>>(kept->data(), {a, b, c}, owner));
}

}  // namespace mercer
