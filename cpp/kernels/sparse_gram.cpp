// Inner products of sparse rows under 64-bit keys.
//
//   K[i, j] = Σ_{keys of both} a_i(key) b_j(key)
//
// Keys become columns by one radix sort. Rows are then multiplied through the lists of rows that hold a column: row i
// adds its value times those of the list to a line of sums that stays in the cache. Columns that most rows hold are
// left to a dense product.
#include <algorithm>
#include <vector>

#include "base/csr_rows.hpp"
#include "base/parallel.hpp"

namespace mercer {
namespace {

// Columns for keys: equal keys get equal numbers, in ascending order of keys.
nb::tuple key_columns(In1<uint64_t> keys) {
  const size_t n = keys.shape(0);
  require(n < size_t(INT32_MAX), "too many keys");
  std::vector<int32_t> columns(n);
  int64_t n_columns = 0;
  {
    nb::gil_scoped_release unlocked;
    struct Entry {
      uint64_t key;
      uint32_t at;
    };
    std::vector<Entry> entries(n), other(n);
    for (size_t i = 0; i < n; ++i) entries[i] = {keys.data()[i], uint32_t(i)};
    constexpr int BITS = 11;
    for (int shift = 0; shift < 64; shift += BITS) {
      std::vector<size_t> starts((size_t(1) << BITS) + 1, 0);
      const uint64_t mask = (uint64_t(1) << BITS) - 1;
      for (const Entry& e : entries) ++starts[((e.key >> shift) & mask) + 1];
      if (std::any_of(starts.begin(), starts.end(), [n](size_t count) { return count == n; }))
        continue;  // all in one bucket
      for (size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
      for (const Entry& e : entries) other[starts[(e.key >> shift) & mask]++] = e;
      entries.swap(other);
    }
    for (size_t i = 0; i < n; ++i) {
      if (i == 0 || entries[i].key != entries[i - 1].key) ++n_columns;
      columns[entries[i].at] = int32_t(n_columns - 1);
    }
  }
  return nb::make_tuple(to_numpy(std::move(columns)), n_columns);
}

Rows<double> checked(const In1<int64_t>& offsets, const In1<int32_t>& columns, const In1<double>& values,
                     int64_t n_columns) {
  require_offsets(offsets, int64_t(columns.shape(0)), "offsets", "entries");
  require(all_finite(values.data(), int64_t(values.shape(0))), "values must be finite");
  return sparse_rows<double>(offsets, columns, values, n_columns);
}

// The rows that hold each column; columns with a place in the dense product are left out.
struct Postings {
  std::vector<int64_t> starts;
  std::vector<int32_t> rows;
  std::vector<double> values;
  std::vector<int64_t> place;  // of every entry of the matrix in its list, or -1

  Postings(const Rows<double>& m, int64_t n_columns, const int32_t* dense) : starts(size_t(n_columns) + 1, 0) {
    const int64_t nnz = m.indptr[m.n_rows];
    for (int64_t k = 0; k < nnz; ++k)
      if (dense[m.indices[k]] < 0) ++starts[size_t(m.indices[k]) + 1];
    for (int64_t c = 0; c < n_columns; ++c) starts[size_t(c) + 1] += starts[size_t(c)];
    rows.resize(size_t(starts[size_t(n_columns)]));
    values.resize(rows.size());
    place.assign(size_t(nnz), -1);
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (int64_t i = 0; i < m.n_rows; ++i)
      for (int64_t k = m.indptr[i]; k < m.indptr[i + 1]; ++k)
        if (dense[m.indices[k]] < 0) {
          const int64_t at = next[size_t(m.indices[k])]++;
          rows[size_t(at)] = int32_t(i);
          values[size_t(at)] = m.values[k];
          place[size_t(k)] = at;
        }
  }
};

// out += the products over columns that are not dense. Without right rows: of left with itself, both triangles.
template <class T>
void keyed_products(In1<int64_t> left_offsets, In1<int32_t> left_columns, In1<double> left_values,
                    std::optional<In1<int64_t>> right_offsets, std::optional<In1<int32_t>> right_columns,
                    std::optional<In1<double>> right_values, In1<int32_t> dense, Out2<T> out, int threads) {
  const int64_t n_columns = int64_t(dense.shape(0));
  const Rows<double> a = checked(left_offsets, left_columns, left_values, n_columns);
  const bool symmetric = !right_offsets;
  require(symmetric == !right_columns && symmetric == !right_values,
          "right rows come with offsets, columns and values");
  const Rows<double> b = symmetric ? a : checked(*right_offsets, *right_columns, *right_values, n_columns);
  require(a.n_rows <= INT32_MAX && b.n_rows <= INT32_MAX, "too many rows");
  require(int64_t(out.shape(0)) == a.n_rows && int64_t(out.shape(1)) == b.n_rows,
          "out must be of shape (left rows, right rows)");
  threads = thread_count(threads);
  nb::gil_scoped_release unlocked;
  const Postings lists(b, n_columns, dense.data());
  constexpr int64_t STRETCH = 16;  // rows of one task
  const int64_t tasks = (a.n_rows + STRETCH - 1) / STRETCH;
  in_parallel(tasks, threads, [&](int64_t task) {
    std::vector<double> line(size_t(b.n_rows), 0.0);
    for (int64_t i = task * STRETCH; i < std::min(a.n_rows, (task + 1) * STRETCH); ++i) {
      for (int64_t k = a.indptr[i]; k < a.indptr[i + 1]; ++k) {
        const int32_t c = a.indices[k];
        if (dense.data()[c] >= 0) continue;
        // Row i is itself in the list: entries before its place are those of earlier rows.
        const int64_t stop = symmetric ? lists.place[size_t(k)] + 1 : lists.starts[size_t(c) + 1];
        const double value = a.values[k];
        for (int64_t at = lists.starts[size_t(c)]; at < stop; ++at)
          line[size_t(lists.rows[size_t(at)])] += value * lists.values[size_t(at)];
      }
      const int64_t width = symmetric ? i + 1 : b.n_rows;
      T* row = out.data() + i * b.n_rows;
      for (int64_t j = 0; j < width; ++j) {
        row[j] += T(line[size_t(j)]);
        line[size_t(j)] = 0.0;
      }
    }
  });
  if (!symmetric) return;
  constexpr int64_t TILE = 32;
  const int64_t tiles = (a.n_rows + TILE - 1) / TILE;
  in_parallel(tiles, threads, [&](int64_t tile) {
    for (int64_t start = 0; start <= tile * TILE; start += TILE)
      for (int64_t i = tile * TILE; i < std::min(a.n_rows, (tile + 1) * TILE); ++i)
        for (int64_t j = start; j < std::min(i, start + TILE); ++j)
          out.data()[j * a.n_rows + i] = out.data()[i * a.n_rows + j];
  });
}

// The dense columns as a matrix: dense[column] is its place, or -1.
template <class T>
void keyed_dense(In1<int64_t> offsets, In1<int32_t> columns, In1<double> values, In1<int32_t> dense, Out2<T> out) {
  const int64_t n_columns = int64_t(dense.shape(0));
  const Rows<double> m = checked(offsets, columns, values, n_columns);
  const int64_t width = int64_t(out.shape(1));
  require(int64_t(out.shape(0)) == m.n_rows, "out must have one row for each row");
  for (int64_t c = 0; c < n_columns; ++c) require(dense.data()[c] < width, "a place is out of range");
  nb::gil_scoped_release unlocked;
  for (int64_t i = 0; i < m.n_rows; ++i)
    for (int64_t k = m.indptr[i]; k < m.indptr[i + 1]; ++k) {
      const int32_t place = dense.data()[m.indices[k]];
      if (place >= 0) out.data()[i * width + place] += T(m.values[k]);
    }
}

template <class T> void bind_type(nb::module_& m) {
  m.def("keyed_products", &keyed_products<T>, "left_offsets"_a.noconvert(), "left_columns"_a.noconvert(),
        "left_values"_a.noconvert(), "right_offsets"_a.noconvert().none(), "right_columns"_a.noconvert().none(),
        "right_values"_a.noconvert().none(), "dense"_a.noconvert(), "out"_a.noconvert(), "threads"_a = 1);
  m.def("keyed_dense", &keyed_dense<T>, "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
        "dense"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace

void bind_keyed_rows(nb::module_& m) {
  m.def("key_columns", &key_columns, "keys"_a.noconvert(),
        "Columns for keys, in ascending order of keys, and how many there are.");
  bind_type<double>(m);
  bind_type<float>(m);
}

}  // namespace mercer
