// Examples as Python sees them: made from arrays (tests, arrays of a user), or by a reader; looked into, never changed.
#include "io/example_batch.hpp"

#include <algorithm>
#include <cmath>

#include "base/arrays.hpp"
#include "base/names.hpp"
#include "hashing/feature_hash.hpp"
#include "hashing/substrings.hpp"

namespace mercer {

namespace {

template <class T> std::vector<T> copied(const std::optional<In1<T>>& array) {
  return array ? std::vector<T>(array->data(), array->data() + array->shape(0)) : std::vector<T>();
}

Examples from_arrays(In1<int64_t> indptr, In1<uint64_t> hashes, std::optional<In1<float>> values,
                     std::optional<In1<float>> weights, std::optional<In1<double>> targets,
                     std::optional<In1<int32_t>> labels, std::vector<std::string> label_names, bool documents) {
  Examples e;
  e.documents = documents;
  e.indptr.assign(indptr.data(), indptr.data() + indptr.shape(0));
  e.hashes.assign(hashes.data(), hashes.data() + hashes.shape(0));
  e.values = copied<float>(values);
  e.weights = copied<float>(weights);
  e.targets = copied<double>(targets);
  e.labels = copied<int32_t>(labels);
  e.label_names = std::move(label_names);
  e.check();
  return e;
}

template <class T> nb::object copy_out(const std::vector<T>& data) { return to_numpy(std::vector<T>(data)); }

// Rows of a matrix in the order asked for, as examples. Columns are their own hashes as far as the table goes.
template <class T, class I>
Examples row_examples(In1<I> indptr, In1<I> indices, In1<T> data, In1<int64_t> order, int64_t n_columns, int n_bits,
                      uint64_t seed) {
  require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), "indptr, indices and data do not fit together");
  require(n_bits >= 1 && n_bits <= 32, "n_bits must lie between 1 and 32");
  const int64_t n_rows = int64_t(indptr.shape(0)) - 1, n_values = int64_t(data.shape(0));
  const int64_t own = int64_t(1) << n_bits;
  Examples out;
  out.indptr.reserve(order.shape(0) + 1);
  for (size_t i = 0; i < order.shape(0); ++i) {
    const int64_t row = order.data()[i];
    require(row >= 0 && row < n_rows, "the order names a row that does not exist");
    const int64_t begin = int64_t(indptr.data()[row]), end = int64_t(indptr.data()[row + 1]);
    require(0 <= begin && begin <= end && end <= n_values, "indptr is not that of a CSR matrix");
    for (int64_t k = begin; k < end; ++k) {
      const int64_t column = int64_t(indices.data()[k]);
      const float value = float(data.data()[k]);
      require(column >= 0 && column < n_columns, "a column index is out of range");
      require(std::isfinite(value), "values must be finite in single precision");
      if (value == 0) continue;
      out.hashes.push_back(column < own ? uint64_t(column) : feature_hash(uint64_t(column), seed));
      out.values.push_back(value);
    }
    out.indptr.push_back(int64_t(out.hashes.size()));
  }
  if (std::all_of(out.values.begin(), out.values.end(), [](float value) { return value == 1.0f; })) out.values.clear();
  return out;
}

Analyzer analyzer_named(const std::string& name) {
  if (name == "word") return Analyzer::word;
  if (name == "char") return Analyzer::chars;
  if (name == "char_wb") return Analyzer::char_wb;
  fail("unknown analyzer '" + name + "'");
}

TextSettings text_settings(const std::string& analyzer, int min_n, int max_n, bool lowercase, uint64_t seed) {
  require(min_n >= 1 && min_n <= max_n, "ngrams must be a pair of numbers 1 <= least <= most");
  TextSettings s;
  s.analyzer = analyzer_named(analyzer);
  s.min_n = min_n, s.max_n = max_n, s.lowercase = lowercase, s.seed = seed;
  return s;
}

// Documents (str or bytes) in the order asked for, as examples.
Examples document_examples(nb::sequence documents, In1<int64_t> order, const std::string& analyzer, int min_n,
                           int max_n, bool lowercase, uint64_t seed, std::optional<StringSettings> strings,
                           int copies) {
  DocumentAnalyzer analyze(text_settings(analyzer, min_n, max_n, lowercase, seed), strings);
  const int64_t n = int64_t(nb::len(documents));
  Examples out;
  out.documents = true;
  out.indptr.reserve(order.shape(0) + 1);
  for (size_t i = 0; i < order.shape(0); ++i) {
    const int64_t at = order.data()[i];
    require(at >= 0 && at < n, "the order names a document that does not exist");
    nb::object document = documents[size_t(at)];
    const char* text = nullptr;
    Py_ssize_t length = 0;
    if (PyUnicode_Check(document.ptr())) {
      text = PyUnicode_AsUTF8AndSize(document.ptr(), &length);
      if (!text) {  // lone surrogates: bytes that are not UTF-8, which separate words
        PyErr_Clear();
        document = nb::steal(PyUnicode_AsEncodedString(document.ptr(), "utf-8", "surrogatepass"));
        if (!document.is_valid()) throw nb::python_error();
      }
    }
    if (!text) {
      char* bytes = nullptr;
      if (!PyBytes_Check(document.ptr()) || PyBytes_AsStringAndSize(document.ptr(), &bytes, &length) != 0) {
        PyErr_Clear();
        throw nb::type_error(
            ("documents must be str or bytes, but document " + std::to_string(at) + " is not").c_str());
      }
      text = bytes;
    }
    analyze(std::string_view(text, size_t(length)), [&](uint64_t hash) { out.hashes.push_back(hash); });
    out.indptr.push_back(int64_t(out.hashes.size()));
  }
  out.copy_features(copies);
  return out;
}

// The same for documents that lie in one stretch of bytes, as in a TextBuffer.
template <class Offset>
Examples buffer_examples(In1<uint8_t> data, In1<Offset> offsets, In1<int64_t> order, const std::string& analyzer,
                         int min_n, int max_n, bool lowercase, uint64_t seed, std::optional<StringSettings> strings,
                         int copies) {
  DocumentAnalyzer analyze(text_settings(analyzer, min_n, max_n, lowercase, seed), strings);
  const int64_t n = int64_t(offsets.shape(0)) - 1, size = int64_t(data.shape(0));
  Examples out;
  out.documents = true;
  out.indptr.reserve(order.shape(0) + 1);
  nb::gil_scoped_release released;
  for (size_t i = 0; i < order.shape(0); ++i) {
    const int64_t at = order.data()[i];
    require(at >= 0 && at < n, "the order names a document that does not exist");
    const int64_t begin = int64_t(offsets.data()[at]), end = int64_t(offsets.data()[at + 1]);
    require(0 <= begin && begin <= end && end <= size, "offsets must not decrease, nor go beyond the bytes");
    analyze(std::string_view(reinterpret_cast<const char*>(data.data()) + begin, size_t(end - begin)),
            [&](uint64_t hash) { out.hashes.push_back(hash); });
    out.indptr.push_back(int64_t(out.hashes.size()));
  }
  out.copy_features(copies);
  return out;
}

// The same features with other labels, targets and weights.
void set_outputs(Examples& e, std::optional<In1<int32_t>> labels, const nb::list& label_names,
                 std::optional<In1<double>> targets, std::optional<In1<float>> weights) {
  if (labels) e.labels.assign(labels->data(), labels->data() + labels->shape(0));
  if (targets) e.targets.assign(targets->data(), targets->data() + targets->shape(0));
  if (weights) e.weights.assign(weights->data(), weights->data() + weights->shape(0));
  e.label_names.clear();
  for (nb::handle name : label_names) e.label_names.push_back(bytes_of_name(name));
  e.check();
}

}  // namespace

void Examples::copy_features(int copies) {
  require(copies >= 1, "copies must be at least 1");
  if (copies == 1) return;
  const auto c = size_t(copies);
  std::vector<uint64_t> all;
  all.reserve(hashes.size() * c);
  for (const uint64_t hash : hashes) {
    all.push_back(hash);
    for (size_t k = 1; k < c; ++k) all.push_back(combine(hash, k));
  }
  if (!values.empty()) {
    std::vector<float> repeated;
    repeated.reserve(values.size() * c);
    for (const float value : values) repeated.insert(repeated.end(), c, value);
    values = std::move(repeated);
  }
  hashes = std::move(all);
  for (int64_t& end : indptr) end *= copies;
}

void Examples::check() const {
  require(!indptr.empty() && indptr.front() == 0, "indptr must start with 0");
  for (size_t i = 1; i < indptr.size(); ++i) require(indptr[i - 1] <= indptr[i], "indptr must not decrease");
  require(indptr.back() == int64_t(hashes.size()), "indptr must end with the number of hashes");
  const size_t n = size_t(size());
  require(values.empty() || values.size() == hashes.size(), "values and hashes must have one length");
  require(values.empty() || !documents, "the features of documents have no values");
  require(all_finite(values.data(), int64_t(values.size())), "values must be finite");
  require(weights.empty() || weights.size() == n, "weights must hold one value for each example");
  require(all_finite(weights.data(), int64_t(weights.size())), "weights must be finite");
  for (float weight : weights) require(weight >= 0, "weights must not be negative");
  require(targets.empty() || targets.size() == n, "targets must hold one value for each example");
  for (double target : targets) require(!std::isinf(target), "targets must not be infinite");
  require(labels.empty() || labels.size() == n, "labels must hold one value for each example");
  for (int32_t label : labels)
    require(label >= -1 && label < int64_t(label_names.size()), "a label is not one of label_names");
}

void bind_examples(nb::module_& m) {
  nb::class_<Examples>(m, "Examples")
      .def(
          "__init__",
          [](Examples* self, In1<int64_t> indptr, In1<uint64_t> hashes, std::optional<In1<float>> values,
             std::optional<In1<float>> weights, std::optional<In1<double>> targets, std::optional<In1<int32_t>> labels,
             const nb::list& names, bool documents) {
            std::vector<std::string> label_names;
            for (nb::handle name : names) label_names.push_back(bytes_of_name(name));
            new (self) Examples(
                from_arrays(indptr, hashes, values, weights, targets, labels, std::move(label_names), documents));
          },
          "indptr"_a, "hashes"_a, "values"_a.none() = nb::none(), "weights"_a.none() = nb::none(),
          "targets"_a.none() = nb::none(), "labels"_a.none() = nb::none(), "label_names"_a = nb::list(),
          "documents"_a = false)
      .def("__len__", &Examples::size)
      .def_ro("documents", &Examples::documents)
      .def_prop_ro("indptr", [](const Examples& e) { return copy_out(e.indptr); })
      .def_prop_ro("hashes", [](const Examples& e) { return copy_out(e.hashes); })
      .def_prop_ro("values", [](const Examples& e) { return copy_out(e.values); })
      .def_prop_ro("weights", [](const Examples& e) { return copy_out(e.weights); })
      .def_prop_ro("targets", [](const Examples& e) { return copy_out(e.targets); })
      .def_prop_ro("labels", [](const Examples& e) { return copy_out(e.labels); })
      .def_prop_ro("label_names", [](const Examples& e) {
        // Names that are not UTF-8 come out with surrogates, as Python itself reads file names.
        nb::list names;
        for (const std::string& name : e.label_names)
          names.append(nb::steal(PyUnicode_DecodeUTF8(name.data(), Py_ssize_t(name.size()), "surrogateescape")));
        return names;
      });
  m.def("row_examples", &row_examples<double, int32_t>, "indptr"_a, "indices"_a, "data"_a, "order"_a, "n_columns"_a,
        "n_bits"_a, "seed"_a);
  m.def("row_examples", &row_examples<double, int64_t>, "indptr"_a, "indices"_a, "data"_a, "order"_a, "n_columns"_a,
        "n_bits"_a, "seed"_a);
  m.def("row_examples", &row_examples<float, int32_t>, "indptr"_a, "indices"_a, "data"_a, "order"_a, "n_columns"_a,
        "n_bits"_a, "seed"_a);
  m.def("row_examples", &row_examples<float, int64_t>, "indptr"_a, "indices"_a, "data"_a, "order"_a, "n_columns"_a,
        "n_bits"_a, "seed"_a);
  m.def("buffer_examples", &buffer_examples<int32_t>, "data"_a, "offsets"_a.noconvert(), "order"_a, "analyzer"_a,
        "min_n"_a, "max_n"_a, "lowercase"_a, "seed"_a, "strings"_a.none() = nb::none(), "copies"_a = 1);
  m.def("buffer_examples", &buffer_examples<int64_t>, "data"_a, "offsets"_a.noconvert(), "order"_a, "analyzer"_a,
        "min_n"_a, "max_n"_a, "lowercase"_a, "seed"_a, "strings"_a.none() = nb::none(), "copies"_a = 1);
  m.def("document_examples", &document_examples, "documents"_a, "order"_a, "analyzer"_a, "min_n"_a, "max_n"_a,
        "lowercase"_a, "seed"_a, "strings"_a.none() = nb::none(), "copies"_a = 1);
  m.def("set_outputs", &set_outputs, "examples"_a, "labels"_a.none() = nb::none(), "label_names"_a = nb::list(),
        "targets"_a.none() = nb::none(), "weights"_a.none() = nb::none());
  // For tests: the loops without vector instructions, or those of this machine again.
}

}  // namespace mercer
