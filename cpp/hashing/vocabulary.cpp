#include "hashing/vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "base/arrays.hpp"
#include "hashing/hash.hpp"

namespace mercer {

int64_t Vocabulary::column(std::string_view name, bool grow) {
  prepare();
  return locate(name, hash_of(name), grow);
}

void Vocabulary::prepare() {
  if (n_bits_ || !slots_.empty()) return;
  size_t capacity = 64;
  while (crowded(capacity)) capacity *= 2;
  rehash(capacity);
}

int64_t Vocabulary::locate(std::string_view name, uint64_t hash, bool grow) {
  if (n_bits_) return int64_t(hash >> (64 - n_bits_));
  const uint32_t tag = uint32_t(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t at = home(hash);
  for (; slots_[at].column; at = (at + 1) & mask) {
    const Slot& s = slots_[at];
    if (s.tag == tag && s.size == name.size() && std::memcmp(bytes_.data() + s.begin, name.data(), name.size()) == 0)
      return int64_t(s.column) - 1;
  }
  if (!grow) return -1;
  if (ends_.size() >= size_t(INT32_MAX) - 1) throw std::length_error("more than 2^31 different features");
  if (name.size() >= NameEnds::kMaxName || bytes_.size() >= (size_t(1) << 39))
    throw std::length_error("a feature name is longer than 16 MiB, or all of them together are longer than 512 GiB");
  slots_[at] = Slot(tag, uint32_t(ends_.size() + 1), bytes_.size(), name.size());
  bytes_.append(name);
  ends_.push_back(bytes_.size());
  if (crowded(slots_.size())) rehash(slots_.size() * 2);
  return int64_t(ends_.size()) - 1;
}

void Vocabulary::rehash(size_t capacity) {
  decltype(slots_)().swap(slots_);
  slots_.assign(capacity, Slot{});
  for (size_t i = 0; i < ends_.size(); ++i) {
    const std::string_view text = name(int64_t(i));
    const uint64_t hash = hash_of(text);
    size_t at = home(hash);
    while (slots_[at].column) at = (at + 1) & (capacity - 1);
    slots_[at] = Slot(uint32_t(hash >> 32), uint32_t(i + 1), size_t(text.data() - bytes_.data()), text.size());
  }
}

std::vector<int32_t> Vocabulary::sort() {
  decltype(slots_)().swap(slots_);
  std::vector<int32_t> order(ends_.size()), place(ends_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return name(a) < name(b); });
  std::string bytes;
  bytes.reserve(bytes_.size());
  NameEnds ends;
  ends.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    bytes.append(name(order[i]));
    ends.push_back(bytes.size());
    place[order[i]] = int32_t(i);
  }
  bytes_ = std::move(bytes);
  ends_ = std::move(ends);
  return place;
}

// Writes the row in the order known; false, with nothing written, where that does not sort it or a column stands twice.
bool TokenRows::take_in_order() {
  if (order_.size() != row_.size()) return false;
  int32_t* out = rows.indices.room(row_.size());
  size_t size = 0;
  int32_t last = -1;
  bool ascending = true, ones = all_ones;
  for (const uint32_t k : order_) {
    const Entry& e = row_[k];
    const bool kept = e.column >= 0;
    ascending &= !kept || e.column > last;
    ones &= !kept || e.value == 1.0;
    last = kept ? e.column : last;
    out[size] = e.column;
    size += kept;
  }
  if (!ascending || ones != all_ones) return false;
  rows.indices.advance(size);
  if (!all_ones)
    for (const uint32_t k : order_)
      if (row_[k].column >= 0) rows.values.push(row_[k].value);
  return true;
}

void TokenRows::close_row() {
  if (!take_in_order()) {
    std::vector<uint32_t>& order = sorted_;
    order.resize(row_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return row_[a].column != row_[b].column ? row_[a].column < row_[b].column : a < b;
    });
    for (size_t k = 0; k < order.size();) {
      const int32_t column = row_[order[k]].column;
      double value = 0;
      for (; k < order.size() && row_[order[k]].column == column; ++k) value += row_[order[k]].value;
      if (column < 0) continue;
      if (value != 1.0 && all_ones) {
        all_ones = false;
        std::fill_n(rows.values.room(rows.indices.size()), rows.indices.size(), 1.0);
        rows.values.advance(rows.indices.size());
      }
      rows.indices.push(column);
      if (!all_ones) rows.values.push(value);
    }
    // A row with names left out says nothing about where they belong.
    const bool complete = order.empty() || row_[order[0]].column >= 0;
    if (complete || order.size() != order_.size()) order_.swap(order);
  }
  row_.clear();
  rows.ends.push(int64_t(rows.indices.size()));
}

void NameBatch::add(std::string_view name, double value) {
  const size_t begin = text_.size();
  text_.append(name);
  finish(begin, value);
}

void NameBatch::add(std::string_view key, char separator, std::string_view name) {
  const size_t begin = text_.size();
  text_.append(key);
  text_.push_back(separator);
  text_.append(name);
  finish(begin, 1.0);
}

void NameBatch::finish(size_t begin, double value) {
  const size_t size = text_.size() - begin;
  const uint64_t hash = v_.hash_of(std::string_view(text_).substr(begin, size));
  if (!v_.slots_.empty()) __builtin_prefetch(&v_.slots_[v_.home(hash)]);
  items_.emplace_back();
  Item& item = items_.back();
  item.begin = begin;
  item.size = size;
  item.hash = hash;
  item.value = value;
}

void NameBatch::close_sequence() {
  v_.prepare();  // what gave the tokens may have sorted the vocabulary, which drops the table
  if (!v_.n_bits())
    for (const Item& item : items_) __builtin_prefetch(v_.bytes_.data() + v_.slots_[v_.home(item.hash)].begin);
  size_t k = 0;
  for (size_t end : row_ends_) {
    for (; k < end; ++k) {
      const Item& item = items_[k];
      out_.add(v_.locate(std::string_view(text_).substr(item.begin, item.size), item.hash, grow_), item.value);
    }
    out_.close_row();
  }
  out_.close_sequence();
  text_.clear();
  items_.clear();
  row_ends_.clear();
}

namespace {

// Where we are, for messages.
struct Place {
  Py_ssize_t sequence, token;
};

// Puts the place in front of the error that is set: of a string that is no UTF-8, of a number that is no float. What
// other errors the user's own __float__ raises stay as they are.
bool placed(const Place& at) {
  PyObject* kind = nullptr;
  if (PyErr_ExceptionMatches(PyExc_TypeError))
    kind = PyExc_TypeError;
  else if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_OverflowError))
    kind = PyExc_ValueError;
  if (!kind) return false;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyErr_Format(kind, "sequence %zd, token %zd: %S", at.sequence, at.token, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return false;
}

bool text_of(PyObject* object, const Place& at, std::string_view& out) {
  if (PyUnicode_IS_COMPACT_ASCII(object)) {  // the usual case, without a call: its bytes are UTF-8 as they are
    out = std::string_view(reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(object)),
                           size_t(PyUnicode_GET_LENGTH(object)));
    return true;
  }
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(object, &size);
  if (!data) return placed(at);
  out = std::string_view(data, size_t(size));
  return true;
}

bool wrong(const Place& at, const char* what, PyObject* found) {
  PyErr_Format(PyExc_TypeError, "sequence %zd, token %zd: expected %s, found %.100s", at.sequence, at.token, what,
               Py_TYPE(found)->tp_name);
  return false;
}

class TokenReader {
 public:
  explicit TokenReader(NameBatch& batch) : batch_(batch) {}

  bool read(PyObject* token, const Place& at) {
    bool good;
    if (PyDict_Check(token))
      good = read_dict(token, at);
    else if (PyUnicode_Check(token))
      good = add_text(token, at);
    else if (PyList_Check(token) || PyTuple_Check(token))
      good = read_list(token, at);
    else
      return wrong(at, "a dict of features, a list of feature strings or one string", token);
    if (good) batch_.close_row();
    return good;
  }

 private:
  bool add_text(PyObject* text, const Place& at) {
    std::string_view name;
    if (!text_of(text, at, name)) return false;
    batch_.add(name, 1.0);
    return true;
  }

  bool read_list(PyObject* token, const Place& at) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(token); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(token, i);
      if (!PyUnicode_Check(item)) return wrong(at, "feature strings in the list", item);
      if (!add_text(item, at)) return false;
    }
    return true;
  }

  bool add_pair(std::string_view key, PyObject* value, const Place& at) {
    std::string_view text;
    if (!text_of(value, at, text)) return false;
    batch_.add(key, '=', text);
    return true;
  }

  bool read_dict(PyObject* token, const Place& at) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(token, &position, &key, &value)) {
      std::string_view name;
      if (!PyUnicode_Check(key)) return wrong(at, "feature names (str) as keys", key);
      if (!text_of(key, at, name)) return false;
      if (PyUnicode_Check(value)) {
        if (!add_pair(name, value, at)) return false;
      } else if (value == Py_None || value == Py_False) {
        continue;
      } else if (value == Py_True) {
        batch_.add(name, 1.0);
      } else if (PyList_Check(value) || PyTuple_Check(value)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
          PyObject* item = PySequence_Fast_GET_ITEM(value, i);
          if (!PyUnicode_Check(item)) return wrong(at, "strings in a list of values", item);
          if (!add_pair(name, item, at)) return false;
        }
      } else {
        if (!PyFloat_Check(value) && !PyNumber_Check(value))
          return wrong(at, "a string, number, bool, None or list of strings as value", value);
        const std::string kept(name);  // __float__ may run Python code
        Py_INCREF(value);
        const double x = PyFloat_AsDouble(value);
        Py_DECREF(value);
        if (x == -1.0 && PyErr_Occurred()) return placed(at);
        if (!std::isfinite(x)) {
          PyErr_Format(PyExc_ValueError, "sequence %zd, token %zd: feature '%s' is not finite", at.sequence, at.token,
                       kept.c_str());
          return false;
        }
        // A zero still names its feature: the vocabulary knows it, the row does not hold it.
        batch_.add(kept, x);
      }
    }
    return true;
  }

  NameBatch& batch_;
};

// A new reference to a list or tuple with the items of any iterable.
PyObject* items_of(PyObject* object, const char* message) { return PySequence_Fast(object, message); }

}  // namespace

bool read_tokens(PyObject* sequences, Vocabulary& vocabulary, bool grow, TokenRows& out) {
  NameBatch batch(vocabulary, grow, out);
  TokenReader reader(batch);
  PyObject* outer = items_of(sequences, "expected a list of sequences");
  if (!outer) return false;
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(outer); ++i) {
    if (i % 1024 == 0 && PyErr_CheckSignals() != 0) {
      good = false;
      break;
    }
    PyObject* item = PySequence_Fast_GET_ITEM(outer, i);
    if (PyUnicode_Check(item) || PyBytes_Check(item) || PyDict_Check(item)) {
      PyErr_Format(PyExc_TypeError, "sequence %zd: expected a list of tokens, found %.100s", i, Py_TYPE(item)->tp_name);
      good = false;
      break;
    }
    PyObject* tokens = items_of(item, "expected a list of tokens");
    if (!tokens) {
      good = false;
      break;
    }
    for (Py_ssize_t t = 0; good && t < PySequence_Fast_GET_SIZE(tokens); ++t) {
      PyObject* token = PySequence_Fast_GET_ITEM(tokens, t);
      Py_INCREF(token);
      good = reader.read(token, Place{i, t});
      Py_DECREF(token);
    }
    Py_DECREF(tokens);
    if (good) batch.close_sequence();
  }
  Py_DECREF(outer);
  return good;
}

bool read_columns(PyObject* sentences, const std::vector<TemplatePattern>& patterns, Vocabulary& vocabulary, bool grow,
                  TokenRows& out) {
  PyObject* outer = items_of(sentences, "expected a list of sentences");
  if (!outer) return false;
  bool good = true;
  NameBatch batch(vocabulary, grow, out);
  std::vector<std::string_view> cells;
  std::string buffer;
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(outer); ++i) {
    if (i % 1024 == 0 && PyErr_CheckSignals() != 0) {
      good = false;
      break;
    }
    PyObject* sentence = PySequence_Fast_GET_ITEM(outer, i);
    if (!PyList_Check(sentence) && !PyTuple_Check(sentence)) {
      PyErr_Format(PyExc_TypeError, "sentence %zd: expected a list of tokens, found %.100s", i,
                   Py_TYPE(sentence)->tp_name);
      good = false;
      break;
    }
    const Py_ssize_t length = PySequence_Fast_GET_SIZE(sentence);
    Py_ssize_t width = -1;
    cells.clear();
    for (Py_ssize_t t = 0; good && t < length; ++t) {
      PyObject* token = PySequence_Fast_GET_ITEM(sentence, t);
      if (!PyTuple_Check(token) && !PyList_Check(token)) {
        good = wrong(Place{i, t}, "a tuple of columns", token);
        break;
      }
      if (width < 0) width = PySequence_Fast_GET_SIZE(token);
      if (PySequence_Fast_GET_SIZE(token) != width) {
        PyErr_Format(PyExc_ValueError, "sentence %zd, token %zd: expected %zd columns, found %zd", i, t, width,
                     PySequence_Fast_GET_SIZE(token));
        good = false;
        break;
      }
      for (Py_ssize_t c = 0; good && c < width; ++c) {
        PyObject* cell = PySequence_Fast_GET_ITEM(token, c);
        std::string_view text;
        if (!PyUnicode_Check(cell))
          good = wrong(Place{i, t}, "strings in the columns", cell);
        else
          good = text_of(cell, Place{i, t}, text);
        cells.push_back(text);
      }
    }
    for (Py_ssize_t t = 0; good && t < length; ++t) {
      for (const TemplatePattern& pattern : patterns) {
        buffer.clear();
        for (const TemplatePiece& piece : pattern) {
          if (piece.column < 0) {
            buffer.append(piece.literal);
            continue;
          }
          if (piece.column >= width) {
            PyErr_Format(PyExc_ValueError, "sentence %zd: the template needs column %d, the data has %zd columns", i,
                         piece.column, width);
            good = false;
            break;
          }
          const Py_ssize_t at = t + piece.row;
          if (at < 0)
            buffer.append("_B").append(std::to_string(at));
          else if (at >= length)
            buffer.append("_B+").append(std::to_string(at - length + 1));
          else
            buffer.append(cells[size_t(at * width + piece.column)]);
        }
        if (!good) break;
        batch.add(buffer, 1.0);
      }
      batch.close_row();
    }
    if (good) batch.close_sequence();
  }
  Py_DECREF(outer);
  return good;
}

// ------------------------------------------------------------------------------------------ binding

namespace {

nb::tuple built(TokenRows&& read) {
  nb::object values = read.all_ones ? nb::none() : read.rows.values.release();
  return nb::make_tuple(read.offsets.release(), read.rows.ends.release(), read.rows.indices.release(), values);
}

nb::tuple encode_tokens(Vocabulary& v, nb::handle sequences, bool grow) {
  TokenRows rows;
  if (!read_tokens(sequences.ptr(), v, grow, rows)) throw nb::python_error();
  return built(std::move(rows));
}

using PieceArgument = std::variant<std::string, std::pair<int, int>>;
nb::tuple encode_columns(Vocabulary& v, nb::handle sentences, const std::vector<std::vector<PieceArgument>>& patterns,
                         bool grow) {
  std::vector<TemplatePattern> compiled;
  for (const auto& pattern : patterns) {
    TemplatePattern pieces;
    for (const PieceArgument& piece : pattern) {
      if (std::holds_alternative<std::string>(piece)) {
        pieces.push_back({std::get<std::string>(piece), 0, -1});
      } else {
        const auto [row, column] = std::get<std::pair<int, int>>(piece);
        require(column >= 0, "a template's column must not be negative");
        pieces.push_back({"", row, column});
      }
    }
    compiled.push_back(std::move(pieces));
  }
  TokenRows rows;
  if (!read_columns(sentences.ptr(), compiled, v, grow, rows)) throw nb::python_error();
  return built(std::move(rows));
}

// Strings in Arrow's layout; token t has the strings token_offsets[t] .. token_offsets[t+1].
nb::tuple encode_utf8(Vocabulary& v, In1<uint8_t> bytes, In1<int64_t> string_offsets, In1<int64_t> token_offsets,
                      bool grow) {
  auto check = [](const In1<int64_t>& x, int64_t last, const char* what) {
    require(x.shape(0) >= 1 && x.data()[0] >= 0, what);
    for (size_t i = 1; i < x.shape(0); ++i) require(x.data()[i - 1] <= x.data()[i], what);
    require(x.data()[x.shape(0) - 1] <= last, what);
  };
  check(string_offsets, int64_t(bytes.shape(0)), "string offsets must not decrease nor leave the bytes");
  check(token_offsets, int64_t(string_offsets.shape(0)) - 1, "token offsets must not decrease nor leave the strings");
  TokenRows rows;
  const char* data = reinterpret_cast<const char*>(bytes.data());
  for (size_t t = 0; t + 1 < token_offsets.shape(0); ++t) {
    for (int64_t s = token_offsets.data()[t]; s < token_offsets.data()[t + 1]; ++s) {
      const int64_t begin = string_offsets.data()[s], end = string_offsets.data()[s + 1];
      rows.add(v.column(std::string_view(data + begin, size_t(end - begin)), grow), 1.0);
    }
    rows.close_row();
  }
  return built(std::move(rows));
}

// Sorts the names and carries the columns of rows read before along: each row stays ascending.
void sort_names(Vocabulary& v, In1<int64_t> indptr, Out1<int32_t> indices, std::optional<Out1<double>> values) {
  const int64_t size = int64_t(indices.shape(0)), n_rows = require_offsets(indptr, size, "indptr", "indices");
  require(v.n_bits() == 0, "a hashing vocabulary keeps no names");
  for (int64_t k = 0; k < size; ++k)
    require(indices.data()[k] >= 0 && indices.data()[k] < v.size(), "a column index is out of range");
  if (values) require(int64_t(values->shape(0)) == size, "values and indices must have one length");
  std::vector<int32_t> place = v.sort();
  std::vector<std::pair<int32_t, double>> row;
  for (int64_t i = 0; i < n_rows; ++i) {
    const int64_t begin = indptr.data()[i], end = indptr.data()[i + 1];
    row.clear();
    for (int64_t k = begin; k < end; ++k) row.emplace_back(place[indices.data()[k]], values ? values->data()[k] : 1.0);
    std::sort(row.begin(), row.end());
    for (int64_t k = begin; k < end; ++k) {
      indices.data()[k] = row[k - begin].first;
      if (values) values->data()[k] = row[k - begin].second;
    }
  }
  std::vector<int32_t>().swap(place);
  give_back(size);
}

nb::tuple vocabulary_state(const Vocabulary& v) {
  std::vector<uint8_t> bytes(v.bytes().begin(), v.bytes().end());
  std::vector<int64_t> offsets{0};
  for (size_t i = 0; i < v.ends().size(); ++i) offsets.push_back(int64_t(v.ends()[i]));
  return nb::make_tuple(to_numpy(std::move(bytes)), to_numpy(std::move(offsets)));
}

void add_names(Vocabulary& v, In1<uint8_t> bytes, In1<int64_t> offsets) {
  require(v.n_bits() == 0, "a hashing vocabulary keeps no names");
  require_offsets(offsets, int64_t(bytes.shape(0)), "offsets", "bytes");
  const char* data = reinterpret_cast<const char*>(bytes.data());
  for (size_t i = 0; i + 1 < offsets.shape(0); ++i) {
    const int64_t before = v.size();
    const int64_t begin = offsets.data()[i], end = offsets.data()[i + 1];
    require(v.column(std::string_view(data + begin, size_t(end - begin)), true) == before,
            "a feature name stands twice");
  }
}

}  // namespace

void bind_vocabulary(nb::module_& m) {
  nb::class_<Vocabulary>(m, "Vocabulary", "Feature names to columns, by a table or by hashing.")
      .def(
          "__init__",
          [](Vocabulary* v, int n_bits) {
            require(n_bits >= 0 && n_bits <= 30, "n_bits must be between 0 (no hashing) and 30");
            new (v) Vocabulary(n_bits);
          },
          "n_bits"_a = 0)
      .def("__len__", &Vocabulary::size)
      .def_prop_ro("n_bits", &Vocabulary::n_bits)
      .def(
          "name",
          [](const Vocabulary& v, int64_t i) {
            require(v.n_bits() == 0 && i >= 0 && i < v.size(), "no such feature");
            const std::string_view s = v.name(i);
            return nb::str(s.data(), s.size());
          },
          "column"_a)
      .def(
          "find", [](Vocabulary& v, const std::string& name) { return v.column(name, false); }, "name"_a)
      .def("encode_tokens", &encode_tokens, "sequences"_a, "grow"_a)
      .def("encode_columns", &encode_columns, "sentences"_a, "patterns"_a, "grow"_a)
      .def("encode_utf8", &encode_utf8, "bytes"_a.noconvert(), "string_offsets"_a.noconvert(),
           "token_offsets"_a.noconvert(), "grow"_a)
      .def("sort", &sort_names, "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert().none())
      .def("state", &vocabulary_state, "The names as (bytes, offsets).")
      .def("add_names", &add_names, "bytes"_a.noconvert(), "offsets"_a.noconvert());
}

}  // namespace mercer
