// Fast maps of vectors: waves over given or structured angles (maps/trig_features.hpp), and count sketches
//   out[j] = Σ_{i : column(i) = j} sign(i) x[i].
#include <cmath>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "maps/trig_features.hpp"

namespace mercer {
namespace {

template <class T>
void run(WaveTask<T>& task, const In1<T>& phases, int64_t paired, double amplitude, Out2<T>& out, int threads) {
  require(paired >= 0 && paired <= task.m, "paired must lie between 0 and the number of angles");
  require(int64_t(phases.shape(0)) == task.m - paired, "there must be a phase for each angle that is not paired");
  require(std::isfinite(amplitude), "amplitude must be finite");
  require(int64_t(out.shape(0)) == task.n && int64_t(out.shape(1)) == task.m + paired,
          "the output has the wrong shape");
  task.phases = phases.data();
  task.paired = paired;
  task.amplitude = T(amplitude);
  task.out = out.data();
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<WaveLoops<T>>().waves(task, n_threads);
}

template <class T>
void waves(In2<T> angles, In1<T> phases, int64_t paired, double amplitude, Out2<T> out, int threads) {
  WaveTask<T> task{};
  task.angles = angles.data();
  task.n = int64_t(angles.shape(0));
  task.m = int64_t(angles.shape(1));
  if (!task.n || !task.m) return;
  run(task, phases, paired, amplitude, out, threads);
}

template <class T>
void structured_waves(In2<T> x, In3<T> signs, In1<T> scales, In1<T> phases, int64_t paired, double amplitude,
                      Out2<T> out, int threads) {
  WaveTask<T> task{};
  task.x = x.data();
  task.n = int64_t(x.shape(0));
  task.d = int64_t(x.shape(1));
  task.blocks = int64_t(signs.shape(0));
  task.size = int64_t(signs.shape(2));
  task.m = int64_t(scales.shape(0));
  require(signs.shape(1) == 3, "there must be three rows of signs for each block");
  require(task.size >= 64 && !(task.size & (task.size - 1)),
          "the size of a block must be a power of two of at least 64");
  require(task.d <= task.size, "the rows are longer than a block");
  require(task.m >= 1 && (task.m + task.size - 1) / task.size == task.blocks,
          "the number of blocks does not fit the number of waves");
  task.signs = signs.data();
  task.scales = scales.data();
  run(task, phases, paired, amplitude, out, threads);
}

template <class T> void count_sketch(In2<T> x, In1<int64_t> columns, In1<T> signs, Out2<T> out, int threads) {
  const int64_t n = int64_t(x.shape(0)), d = int64_t(x.shape(1)), width = int64_t(out.shape(1));
  require(int64_t(columns.shape(0)) == d && int64_t(signs.shape(0)) == d,
          "there must be a column and a sign for each feature");
  require(int64_t(out.shape(0)) == n, "the output has the wrong shape");
  for (int64_t i = 0; i < d; ++i)
    require(columns.data()[i] >= 0 && columns.data()[i] < width, "a column is out of range");
  const int n_threads = thread_count(threads);
  const T *from = x.data(), *sign = signs.data();
  const int64_t* column = columns.data();
  T* to = out.data();
  constexpr int64_t kRows = 32;
  nb::gil_scoped_release release;
  in_parallel((n + kRows - 1) / kRows, n_threads, [&](int64_t part) {
    for (int64_t i = part * kRows; i < std::min(n, (part + 1) * kRows); ++i) {
      T* row = to + i * width;
      std::fill(row, row + width, T(0));
      for (int64_t j = 0; j < d; ++j) row[column[j]] += sign[j] * from[i * d + j];
    }
  });
}

}  // namespace

void bind_fastmaps(nb::module_& m) {
  const auto both = [&m](const char* name, auto f32, auto f64, auto... args) {
    m.def(name, f32, args...);
    m.def(name, f64, args...);
  };
  both("waves", &waves<float>, &waves<double>, "angles"_a.noconvert(), "phases"_a.noconvert(), "paired"_a,
       "amplitude"_a, "out"_a.noconvert(), "threads"_a);
  both("structured_waves", &structured_waves<float>, &structured_waves<double>, "x"_a.noconvert(),
       "signs"_a.noconvert(), "scales"_a.noconvert(), "phases"_a.noconvert(), "paired"_a, "amplitude"_a,
       "out"_a.noconvert(), "threads"_a);
  both("count_sketch", &count_sketch<float>, &count_sketch<double>, "x"_a.noconvert(), "columns"_a.noconvert(),
       "signs"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

}  // namespace mercer
