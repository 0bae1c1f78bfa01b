// Examples as Python sees them: made from arrays (tests, arrays of a user), or by a reader; looked into, never changed.
#include "io/example_batch.hpp"

#include <cmath>

#include "base/arrays.hpp"
#include "base/names.hpp"

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

}  // namespace

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
}

}  // namespace mercer
