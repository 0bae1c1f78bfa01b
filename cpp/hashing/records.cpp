// Records to hashed rows, and sums over streams of hashed keys.
//
//   Φ̄_j(x) = Σ_{features i of x: bucket(i) = j} sign(i) Φ_i(x)
//
//   a number in field f:       hash feature_hash(f, seed), value the number
//   a category v in field f:   hash combine(feature_hash(f, seed), feature_hash(v, seed)), value 1
//   a cross of f, g, …:        hash combine(combine(hash in f, hash in g), …), value the product
//
// A row does not depend on the order of its fields (see hashing/hashed_rows.hpp), and so records given as Python objects and as
// columns make the same rows, bit for bit.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>

#include "base/arrays.hpp"
#include "hashing/feature_hash.hpp"
#include "base/parallel.hpp"
#include "hashing/hashed_rows.hpp"
#include "hashing/text.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace mercer {

namespace {

__extension__ typedef unsigned __int128 Wide;
__extension__ typedef __int128 SignedWide;

[[noreturn]] void fail_at(int64_t row, std::string_view field, const std::string& what) {
  fail("row " + std::to_string(row) + ", field '" + std::string(field) + "': " + what);
}

// ---------------------------------------------------------------------------------------------- crosses

// The entries of one field in one row.
struct Part {
  const uint64_t* hashes;
  const double* values;
  size_t count;
};

// Calls take(hash, value, chosen) for every choice of one entry from each part.
template <class Take>
void cross(const std::vector<Part>& parts, std::vector<size_t>& chosen, size_t depth, uint64_t hash, double value,
           Take& take) {
  const Part& part = parts[depth];
  for (size_t k = 0; k < part.count; ++k) {
    chosen[depth] = k;
    const uint64_t h = depth ? combine(hash, part.hashes[k]) : part.hashes[k];
    const double v = depth ? value * part.values[k] : part.values[k];
    if (depth + 1 == parts.size())
      take(h, v, chosen);
    else
      cross(parts, chosen, depth + 1, h, v, take);
  }
}

template <class Take> void cross(const std::vector<Part>& parts, std::vector<size_t>& chosen, Take take) {
  for (const Part& part : parts)
    if (part.count == 0) return;
  chosen.resize(parts.size());
  cross(parts, chosen, 0, 0, 0.0, take);
}

[[noreturn]] void fail_product(int64_t row, const std::vector<std::string>& fields) {
  std::string text;
  for (const std::string& name : fields) text += (text.empty() ? "'" : ", '") + name + "'";
  fail("row " + std::to_string(row) + ", cross (" + text + "): the product of the values is too large");
}

// ---------------------------------------------------------------------------------------------- values as text

// A number as a category: the digits of an integer, whatever its type, and otherwise the shortest text that reads as
// the number.
std::string_view text_of(int64_t x, char* buffer) {
  return {buffer, size_t(std::to_chars(buffer, buffer + 32, x).ptr - buffer)};
}
std::string_view text_of(uint64_t x, char* buffer) {
  return {buffer, size_t(std::to_chars(buffer, buffer + 32, x).ptr - buffer)};
}

constexpr size_t kNumberText = 400;  // the largest double has 309 digits

std::string_view text_of(double x, char* buffer) {
  if (x == std::floor(x)) {
    if (std::abs(x) < 9e18) return text_of(int64_t(x), buffer);
    return {buffer, size_t(std::snprintf(buffer, kNumberText, "%.0f", x))};
  }
  return {buffer, size_t(std::to_chars(buffer, buffer + kNumberText, x).ptr - buffer)};
}

// Code points to UTF-8 in `out`, which has room for four bytes each; the end, or nullptr at one that is none. NumPy
// fills strings up with zeros.
char* utf8_of(const uint32_t* text, size_t n, char* out) {
  uint32_t all = 0;
  for (size_t i = 0; i < n; ++i) {
    all |= text[i];
    out[i] = char(text[i]);
  }
  while (n && text[n - 1] == 0) --n;
  if (all < 0x80) return out + n;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t c = text[i];
    if (c < 0x80) {
      *out++ = char(c);
    } else if (c < 0x800) {
      *out++ = char(0xC0 | c >> 6);
      *out++ = char(0x80 | (c & 63));
    } else if (c < 0x10000) {
      if (c >= 0xD800 && c < 0xE000) return nullptr;
      *out++ = char(0xE0 | c >> 12);
      *out++ = char(0x80 | (c >> 6 & 63));
      *out++ = char(0x80 | (c & 63));
    } else {
      if (c >= 0x110000) return nullptr;
      *out++ = char(0xF0 | c >> 18);
      *out++ = char(0x80 | (c >> 12 & 63));
      *out++ = char(0x80 | (c >> 6 & 63));
      *out++ = char(0x80 | (c & 63));
    }
  }
  return out;
}

// ---------------------------------------------------------------------------------------------- Python objects

// Where we are, for messages: a key of a stream has no field.
struct Place {
  int64_t row;
  const std::string_view* field;
  std::string text() const {
    return "row " + std::to_string(row) + (field ? ", field '" + std::string(*field) + "'" : std::string());
  }
};

[[noreturn]] void raise(PyObject* kind, const std::string& message) {
  PyErr_SetString(kind, message.c_str());
  throw nb::python_error();
}
[[noreturn]] void wrong_type(const Place& at, const char* expected, PyObject* found) {
  raise(PyExc_TypeError, at.text() + ": expected " + expected + ", found " + Py_TYPE(found)->tp_name);
}

// Puts the place in front of a TypeError, ValueError or OverflowError that is set; others stay as they are.
[[noreturn]] void raise_placed(const Place& at) {
  PyObject* kind = PyErr_ExceptionMatches(PyExc_TypeError) ? PyExc_TypeError : PyExc_ValueError;
  if (kind == PyExc_ValueError && !PyErr_ExceptionMatches(PyExc_ValueError) &&
      !PyErr_ExceptionMatches(PyExc_OverflowError))
    throw nb::python_error();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyErr_Format(kind, "%s: %S", at.text().c_str(), value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  throw nb::python_error();
}

bool is_text(PyObject* object) { return PyUnicode_Check(object) || PyBytes_Check(object); }

// The bytes of a str (as UTF-8) or of a bytes object.
std::string_view bytes_of(PyObject* object, const Place& at) {
  if (PyBytes_Check(object)) return {PyBytes_AS_STRING(object), size_t(PyBytes_GET_SIZE(object))};
  if (PyUnicode_IS_COMPACT_ASCII(object))
    return {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(object)), size_t(PyUnicode_GET_LENGTH(object))};
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(object, &size);
  if (!data) raise_placed(at);
  return {data, size_t(size)};
}

double number_of(PyObject* object, const Place& at) {
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  const double x = PyFloat_AsDouble(object);
  if (x == -1.0 && PyErr_Occurred()) raise_placed(at);
  return x;
}

// An integer as a category: its digits, whatever its size.
std::string digits_of(PyObject* object, const Place& at) {
  const nb::object number = nb::steal(PyNumber_Index(object));
  if (!number.is_valid()) raise_placed(at);
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  char buffer[32];
  if (!overflow) return std::string(text_of(int64_t(small), buffer));
  const nb::object text = nb::steal(PyNumber_ToBase(number.ptr(), 10));
  if (!text.is_valid()) raise_placed(at);
  return std::string(bytes_of(text.ptr(), at));
}

// A number as a category.
std::string category_of(PyObject* value, const Place& at) {
  if (PyIndex_Check(value)) return digits_of(value, at);
  const double x = number_of(value, at);
  if (!std::isfinite(x)) raise(PyExc_ValueError, at.text() + ": the number is not finite");
  char buffer[kNumberText];
  return std::string(text_of(x, buffer));
}

// Reads the fields of a record from Python objects. Every entry goes to take(field, name, hash, value, text): the hash
// of the field's name, that name, the hash and the value of the feature, and the text after "name=" if the feature is a
// category.
class FieldReader {
 public:
  // `categories`: numbers are categories; `limit`: the largest number that fits.
  FieldReader(uint64_t seed, bool categories, double limit) : seed_(seed), categories_(categories), limit_(limit) {}

  uint64_t field_hash(std::string_view name) const { return feature_hash(name, seed_); }

  // A record: a dict {name: value}, or a list of (name, value) pairs and names.
  template <class Take> void read_record(PyObject* record, int64_t row, Take&& take) const {
    if (PyDict_Check(record)) {
      PyObject *key, *value;
      Py_ssize_t position = 0;
      while (PyDict_Next(record, &position, &key, &value)) read_item(key, value, row, take);
      return;
    }
    const Place at{row, nullptr};
    const nb::object items = items_of(record, at);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
      const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i));
      if (PyUnicode_Check(item.ptr())) {
        const std::string_view name = bytes_of(item.ptr(), at);
        take(field_hash(name), name, field_hash(name), 1.0, nullptr);
        continue;
      }
      const bool pair =
          (PyTuple_Check(item.ptr()) || PyList_Check(item.ptr())) && PySequence_Fast_GET_SIZE(item.ptr()) == 2;
      if (!pair) wrong_type(at, "(name, value) pairs and feature names in the list", item.ptr());
      read_item(PySequence_Fast_GET_ITEM(item.ptr(), 0), PySequence_Fast_GET_ITEM(item.ptr(), 1), row, take);
    }
  }

  // The value of a field: text, a number, None, or a list of texts.
  template <class Take>
  void read_value(uint64_t field, std::string_view name, PyObject* value, int64_t row, Take&& take) const {
    const Place at{row, &name};
    if (is_text(value)) {
      take_category(field, name, bytes_of(value, at), take);
    } else if (value == Py_None) {
      return;
    } else if (PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value)) {
      take_number(field, name, value, at, take);
    } else if (PyList_Check(value) || PyTuple_Check(value)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(value, i);
        if (!is_text(item)) wrong_type(at, "strings in a list of categories", item);
        take_category(field, name, bytes_of(item, at), take);
      }
    } else if (PyNumber_Check(value)) {
      const nb::object kept = nb::borrow(value);  // its __float__ may run Python code, which may change the record
      const std::string kept_name(name);
      const std::string_view view(kept_name);
      take_number(field, view, kept.ptr(), Place{row, &view}, take);
    } else {
      wrong_type(at, "a string, a number, a bool, None or a list of strings", value);
    }
  }

 private:
  // A new reference to the items of a record that is no dict. Other mappings count as dicts: as sequences they would be
  // their names alone.
  static nb::object items_of(PyObject* record, const Place& at) {
    const char* expected = "a dict, or a list of (name, value) pairs and feature names";
    if (is_text(record)) wrong_type(at, expected, record);
    const bool mapping = PyObject_HasAttrString(record, "items");
    const nb::object items = nb::steal(mapping ? PyMapping_Items(record) : PySequence_Fast(record, ""));
    if (items.is_valid()) return items;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    wrong_type(at, expected, record);
  }
  template <class Take> void read_item(PyObject* key, PyObject* value, int64_t row, Take& take) const {
    const Place at{row, nullptr};
    if (!PyUnicode_Check(key)) wrong_type(at, "names of fields (str)", key);
    const std::string_view name = bytes_of(key, at);
    read_value(field_hash(name), name, value, row, take);
  }
  template <class Take>
  void take_category(uint64_t field, std::string_view name, std::string_view value, Take& take) const {
    take(field, name, combine(field, feature_hash(value, seed_)), 1.0, &value);
  }
  template <class Take>
  void take_number(uint64_t field, std::string_view name, PyObject* value, const Place& at, Take& take) const {
    if (categories_) return take_category(field, name, category_of(value, at), take);
    const double x = number_of(value, at);
    if (!(std::abs(x) <= limit_)) {
      const char* what = std::isfinite(x) ? ": the number is too large for the dtype" : ": the number is not finite";
      raise(PyExc_ValueError, at.text() + what);
    }
    if (x != 0) take(field, name, field, x, nullptr);
  }

  uint64_t seed_;
  bool categories_;
  double limit_;
};

// ---------------------------------------------------------------------------------------------- records

using Crosses = std::vector<std::vector<std::string>>;

// Features of records with their crosses: calls take(hash, value, name), the name empty unless `named`.
class RecordReader {
 public:
  RecordReader(FieldReader fields, const Crosses& crosses, bool pairs, bool named)
      : reader_(fields), crosses_(crosses), pairs_(pairs), named_(named) {
    for (const auto& names : crosses) {
      require(names.size() >= 2, "a cross needs at least two fields");
      cross_hashes_.emplace_back();
      for (const std::string& name : names) cross_hashes_.back().push_back(reader_.field_hash(name));
    }
  }

  template <class Take> void read(PyObject* record, int64_t row, Take take) {
    fields_.clear(), hashes_.clear(), values_.clear(), names_.clear(), field_names_.clear();
    reader_.read_record(
        record, row,
        [this](uint64_t field, std::string_view name, uint64_t hash, double value, const std::string_view* text) {
          fields_.push_back(field);
          hashes_.push_back(hash);
          values_.push_back(value);
          if (named_) names_.push_back(text ? std::string(name) + "=" + std::string(*text) : std::string(name));
          if (pairs_) field_names_.emplace_back(name);
        });
    const std::string none;
    for (size_t k = 0; k < hashes_.size(); ++k) take(hashes_[k], values_[k], named_ ? names_[k] : none);
    for (size_t c = 0; c < crosses_.size(); ++c) {
      chosen_fields_.clear();
      for (const uint64_t field : cross_hashes_[c]) {
        chosen_fields_.emplace_back();
        for (size_t k = 0; k < fields_.size(); ++k)
          if (fields_[k] == field) chosen_fields_.back().push_back(k);
      }
      take_cross(row, crosses_[c], take);
    }
    if (pairs_) read_pairs(row, take);
  }

 private:
  // All pairs of fields, by name: the order of a dict says nothing.
  template <class Take> void read_pairs(int64_t row, Take& take) {
    const auto& names = field_names_;
    std::vector<size_t> order(names.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return names[a] < names[b]; });
    std::vector<std::vector<size_t>> groups;
    for (size_t k = 0; k < order.size(); ++k) {
      if (k == 0 || names[order[k]] != names[order[k - 1]]) groups.emplace_back();
      groups.back().push_back(order[k]);
    }
    for (size_t a = 0; a < groups.size(); ++a)
      for (size_t b = a + 1; b < groups.size(); ++b) {
        chosen_fields_ = {groups[a], groups[b]};
        take_cross(row, {names[groups[a][0]], names[groups[b][0]]}, take);
      }
  }

  // The cross of the entries listed in chosen_fields_.
  template <class Take> void take_cross(int64_t row, const std::vector<std::string>& crossed, Take& take) {
    parts_.clear();
    part_hashes_.clear();
    part_values_.clear();
    for (const auto& field : chosen_fields_)
      for (const size_t k : field) part_hashes_.push_back(hashes_[k]), part_values_.push_back(values_[k]);
    size_t begin = 0;
    for (const auto& field : chosen_fields_) {
      parts_.push_back({part_hashes_.data() + begin, part_values_.data() + begin, field.size()});
      begin += field.size();
    }
    std::string name;
    cross(parts_, chosen_, [&](uint64_t hash, double value, const std::vector<size_t>& chosen) {
      if (!std::isfinite(value)) fail_product(row, crossed);
      name.clear();
      if (named_)
        for (size_t d = 0; d < chosen.size(); ++d) name += (d ? " & " : "") + names_[chosen_fields_[d][chosen[d]]];
      if (value != 0) take(hash, value, name);
    });
  }

  FieldReader reader_;
  const Crosses& crosses_;
  bool pairs_, named_;
  std::vector<std::vector<uint64_t>> cross_hashes_;
  // The entries of the row at hand.
  std::vector<uint64_t> fields_, hashes_;
  std::vector<double> values_;
  std::vector<std::string> names_, field_names_;
  // The cross at hand: entries of each of its fields.
  std::vector<std::vector<size_t>> chosen_fields_;
  std::vector<Part> parts_;
  std::vector<uint64_t> part_hashes_;
  std::vector<double> part_values_;
  std::vector<size_t> chosen_;
};

// Calls work(record, row) for every item of an iterable, with a look at Ctrl-C now and then.
template <class Work> void for_each_row(nb::handle rows, const char* expected, Work work) {
  const nb::object items = nb::steal(PySequence_Fast(rows.ptr(), expected));
  if (!items.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
    if (i % 4096 == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
    if (i + 8 < PySequence_Fast_GET_SIZE(items.ptr())) __builtin_prefetch(PySequence_Fast_GET_ITEM(items.ptr(), i + 8));
    const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i));
    work(item.ptr(), int64_t(i));
  }
}

void check_bits(int n_bits) { require(n_bits >= 1 && n_bits <= 30, "n_bits must be between 1 and 30"); }

double largest(bool single) {
  return single ? double(std::numeric_limits<float>::max()) : std::numeric_limits<double>::max();
}

nb::object hash_records(nb::handle rows, int n_bits, uint64_t seed, bool is_signed, bool single, bool categories,
                        const Crosses& crosses, bool pairs) {
  const FieldReader fields(seed, categories, largest(single));
  RowWriter out(n_bits, is_signed, single);
  if (crosses.empty() && !pairs) {
    for_each_row(rows, "expected a list of records", [&](PyObject* record, int64_t row) {
      fields.read_record(record, row,
                         [&](uint64_t, std::string_view, uint64_t hash, double value, const std::string_view*) {
                           out.push(hash, value);
                         });
      out.close(row);
    });
    return out.rows.release();
  }
  RecordReader reader(fields, crosses, pairs, false);
  for_each_row(rows, "expected a list of records", [&](PyObject* record, int64_t row) {
    reader.read(record, row, [&](uint64_t hash, double value, const std::string&) { out.push(hash, value); });
    out.close(row);
  });
  return out.rows.release();
}

nb::tuple name_records(nb::handle rows, int64_t first_row, uint64_t seed, bool categories, const Crosses& crosses,
                       bool pairs) {
  require(first_row >= 0 && first_row <= std::numeric_limits<int64_t>::max() / 2,
          "first_row must be the number of a row");
  RecordReader reader(FieldReader(seed, categories, std::numeric_limits<double>::max()), crosses, pairs, true);
  nb::list names;
  std::vector<uint64_t> hashes;
  for_each_row(rows, "expected a list of records", [&](PyObject* record, int64_t row) {
    reader.read(record, first_row + row, [&](uint64_t hash, double, const std::string& name) {
      // Categories may be bytes of any kind: what is not UTF-8 is shown as such.
      names.append(nb::steal(PyUnicode_DecodeUTF8(name.data(), Py_ssize_t(name.size()), "replace")));
      hashes.push_back(hash);
    });
  });
  return nb::make_tuple(names, to_numpy(std::move(hashes)));
}

// ---------------------------------------------------------------------------------------------- columns

using Mask = std::optional<In1<bool>>;  // True: there is a value

void check_mask(const Mask& mask, size_t rows) {
  if (mask) require(mask->shape(0) == rows, "valid and the column must have one length");
}

// A field of all rows.
class Column {
 public:
  Column(std::string name, uint64_t seed)
      : name(std::move(name)), hash(feature_hash(this->name, seed)), seed_(seed), hash_of_(seed) {}
  virtual ~Column() = default;
  virtual int64_t rows() const = 0;
  // The entries of rows begin .. end, one a row; the value 0 is none. Not for columns of lists.
  virtual void fill(int64_t begin, int64_t end, uint64_t* hashes, double* values) const = 0;
  // The entries of a row of a column of lists.
  virtual bool has_lists() const { return false; }
  virtual Part entries(int64_t) const { return {}; }

  const std::string name;
  const uint64_t hash;

 protected:
  uint64_t category(std::string_view text) const { return combine(hash, feature_hash(text, seed_)); }
  // The same for text with 8 readable bytes before it.
  uint64_t category_read_back(std::string_view text) const {
    return combine(hash, hash_of_.read_back(text.data(), text.size()));
  }
  static double present(const Mask& mask, int64_t row) { return !mask || mask->data()[row] ? 1.0 : 0.0; }
  const uint64_t seed_;
  const PaddedHash hash_of_;
};

// Strings in one stretch of bytes, as Arrow keeps them.
template <class Offset> class TextColumn : public Column {
 public:
  TextColumn(std::string name, uint64_t seed, In1<uint8_t> bytes, In1<Offset> offsets, Mask mask)
      : Column(std::move(name), seed), bytes_(bytes), offsets_(offsets), mask_(mask) {
    require_offsets_within(offsets, int64_t(bytes.shape(0)), "offsets", "bytes");
    check_mask(mask, size_t(rows()));
  }
  int64_t rows() const override { return int64_t(offsets_.shape(0)) - 1; }
  std::string_view text(int64_t row) const {
    const Offset* o = offsets_.data();
    return {reinterpret_cast<const char*>(bytes_.data()) + o[row], size_t(o[row + 1] - o[row])};
  }
  void fill(int64_t begin, int64_t end, uint64_t* hashes, double* values) const override {
    for (int64_t i = begin; i < end; ++i) {
      hashes[i - begin] = offsets_.data()[i] >= 8 ? category_read_back(text(i)) : category(text(i));
      values[i - begin] = present(mask_, i);
    }
  }

 private:
  In1<uint8_t> bytes_;
  In1<Offset> offsets_;
  Mask mask_;
};

// NumPy's strings of fixed length: code points (U) or bytes (S), filled up with zeros.
template <class Unit> class FixedText {
 public:
  explicit FixedText(const In2<Unit>& cells) : cells_(cells), buffer_(sizeof(Unit) == 4 ? 4 * cells.shape(1) + 1 : 1) {}
  // Good until the next call; no data where the cell is not valid Unicode.
  std::string_view operator()(int64_t row) {
    const Unit* cell = cells_.data() + size_t(row) * cells_.shape(1);
    size_t n = cells_.shape(1);
    if constexpr (sizeof(Unit) == 4) {
      const char* end = utf8_of(cell, n, buffer_.data());
      return end ? std::string_view(buffer_.data(), size_t(end - buffer_.data())) : std::string_view();
    } else {
      while (n && cell[n - 1] == 0) --n;
      return {n ? reinterpret_cast<const char*>(cell) : buffer_.data(), n};
    }
  }

 private:
  const In2<Unit>& cells_;
  std::vector<char> buffer_;
};

#if defined(__x86_64__)

// Up to 16 code points of a cell as bytes, without the zeros at the end.
struct ShortText {
  uint64_t low, high;
  size_t size;
};

// 16 code points are read; those from `width` on belong to other cells. False where one of them is beyond ASCII.
bool narrow_ascii(const uint32_t* cell, size_t width, ShortText& text) {
  const auto* in = reinterpret_cast<const __m128i*>(cell);
  const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1), c = _mm_loadu_si128(in + 2),
                d = _mm_loadu_si128(in + 3);
  const __m128i zero = _mm_setzero_si128(), all = _mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d));
  if (_mm_movemask_epi8(_mm_cmpeq_epi32(_mm_andnot_si128(_mm_set1_epi32(0x7F), all), zero)) != 0xFFFF) return false;
  const __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
  const uint32_t used = ~uint32_t(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, zero))) & ((uint32_t(1) << width) - 1);
  text = {uint64_t(_mm_cvtsi128_si64(bytes)), uint64_t(_mm_cvtsi128_si64(_mm_unpackhi_epi64(bytes, bytes))),
          used ? 32 - size_t(__builtin_clz(used)) : 0};
  return true;
}

#endif

template <class Unit> class FixedColumn : public Column {
 public:
  FixedColumn(std::string name, uint64_t seed, In2<Unit> cells) : Column(std::move(name), seed), cells_(cells) {}
  int64_t rows() const override { return int64_t(cells_.shape(0)); }
  void fill(int64_t begin, int64_t end, uint64_t* hashes, double* values) const override {
    FixedText<Unit> text_of(cells_);
    for (int64_t i = begin; i < end; ++i) {
      values[i - begin] = 1.0;
      if (quick_hash(i, hashes[i - begin])) continue;
      const std::string_view text = text_of(i);
      if (!text.data()) fail_at(i, name, "the string is not valid Unicode");
      hashes[i - begin] = category(text);
    }
  }

 private:
  // The hash of short ASCII text, without a copy of it; false where that is not at hand.
  bool quick_hash([[maybe_unused]] int64_t row, [[maybe_unused]] uint64_t& out) const {
#if defined(__x86_64__)
    if constexpr (sizeof(Unit) == 4) {
      const size_t width = cells_.shape(1), place = size_t(row) * width;
      ShortText text;
      if (width > 16 || cells_.size() - place < 16 || !narrow_ascii(cells_.data() + place, width, text)) return false;
      out = combine(hash, hash_of_.of_words(text.low, text.high, text.size));
      return true;
    }
#endif
    return false;
  }
  In2<Unit> cells_;
};

// Categories by number: the hash of each of them is computed once.
class CodeColumn : public Column {
 public:
  CodeColumn(std::string name, uint64_t seed, In1<int32_t> codes, In1<uint64_t> categories)
      : Column(std::move(name), seed), codes_(codes) {
    for (size_t k = 0; k < categories.shape(0); ++k) table_.push_back(combine(hash, categories.data()[k]));
    int32_t least = 0, most = -1;
    for (int64_t i = 0; i < rows(); ++i) {
      least = std::min(least, codes.data()[i]);
      most = std::max(most, codes.data()[i]);
    }
    require(least >= -1 && int64_t(most) < int64_t(table_.size()), "a code is out of range");
    table_.push_back(0);  // what code -1 reads
  }
  int64_t rows() const override { return int64_t(codes_.shape(0)); }
  void fill(int64_t begin, int64_t end, uint64_t* hashes, double* values) const override {
    const uint32_t none = uint32_t(table_.size()) - 1;
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t code = std::min(uint32_t(codes_.data()[i]), none);
      hashes[i - begin] = table_[code];
      values[i - begin] = code == none ? 0.0 : 1.0;
    }
  }

 private:
  In1<int32_t> codes_;
  std::vector<uint64_t> table_;
};

// Integers that are categories: by a table where they lie close together.
template <class Integer> class IntegerColumn : public Column {
 public:
  IntegerColumn(std::string name, uint64_t seed, In1<Integer> numbers, Mask mask)
      : Column(std::move(name), seed), numbers_(numbers), mask_(mask) {
    check_mask(mask, numbers.shape(0));
    if (!numbers.shape(0)) return;
    const auto [least, most] = std::minmax_element(numbers.data(), numbers.data() + numbers.shape(0));
    least_ = *least;
    const uint64_t span = uint64_t(*most) - uint64_t(*least);
    if (span >= numbers.shape(0) || span >= (uint64_t(1) << 20)) return;
    for (uint64_t k = 0; k <= span; ++k) table_.push_back(of(Integer(uint64_t(least_) + k)));
  }
  int64_t rows() const override { return int64_t(numbers_.shape(0)); }
  void fill(int64_t begin, int64_t end, uint64_t* hashes, double* values) const override {
    for (int64_t i = begin; i < end; ++i) {
      const Integer x = numbers_.data()[i];
      hashes[i - begin] = table_.empty() ? of(x) : table_[uint64_t(x) - uint64_t(least_)];
      values[i - begin] = present(mask_, i);
    }
  }

 private:
  uint64_t of(Integer x) const {
    char buffer[32];
    return category(text_of(x, buffer));
  }
  In1<Integer> numbers_;
  Mask mask_;
  Integer least_ = 0;
  std::vector<uint64_t> table_;
};

// Numbers: as values, or as categories.
class NumberColumn : public Column {
 public:
  NumberColumn(std::string name, uint64_t seed, In1<double> numbers, Mask mask, bool categories)
      : Column(std::move(name), seed), numbers_(numbers), mask_(mask), categories_(categories) {
    check_mask(mask, numbers.shape(0));
    for (int64_t i = 0; i < rows(); ++i)
      if (!std::isfinite(numbers.data()[i]) && present(mask, i) != 0)
        fail_at(i, this->name, "the number is not finite");
  }
  int64_t rows() const override { return int64_t(numbers_.shape(0)); }
  void check_limit(double limit) const {
    for (int64_t i = 0; i < rows(); ++i)
      if (std::abs(numbers_.data()[i]) > limit && present(mask_, i) != 0)
        fail_at(i, name, "the number is too large for the dtype");
  }
  bool categories() const { return categories_; }
  void fill(int64_t begin, int64_t end, uint64_t* hashes, double* values) const override {
    char buffer[kNumberText];
    for (int64_t i = begin; i < end; ++i) {
      const bool there = present(mask_, i) != 0;
      const double x = there ? numbers_.data()[i] : 0.0;
      hashes[i - begin] = categories_ ? category(text_of(x, buffer)) : hash;
      values[i - begin] = categories_ ? (there ? 1.0 : 0.0) : x;
    }
  }

 private:
  In1<double> numbers_;
  Mask mask_;
  bool categories_;
};

// Any number of entries in a row: lists of categories, Python objects.
class ListColumn : public Column {
 public:
  // Lists of strings: row r has the strings starts[r] .. starts[r + 1].
  ListColumn(std::string name, uint64_t seed, In1<int64_t> starts, In1<uint64_t> categories)
      : Column(std::move(name), seed), starts_(starts.data(), starts.data() + starts.shape(0)) {
    require_offsets(starts, int64_t(categories.shape(0)), "starts", "strings");
    for (size_t k = 0; k < categories.shape(0); ++k) hashes_.push_back(combine(hash, categories.data()[k]));
    values_.assign(hashes_.size(), 1.0);
  }
  ListColumn(std::string name, uint64_t seed, nb::handle objects, bool categories, double limit)
      : Column(std::move(name), seed) {
    const FieldReader reader(seed, categories, limit);
    const size_t rows = PyList_Check(objects.ptr()) ? size_t(PyList_GET_SIZE(objects.ptr())) : 0;
    starts_.reserve(rows + 1);
    hashes_.reserve(rows);
    values_.reserve(rows);
    starts_.push_back(0);
    for_each_row(objects, "expected a list of values", [&](PyObject* value, int64_t row) {
      reader.read_value(hash, this->name, value, row,
                        [this](uint64_t, std::string_view, uint64_t h, double x, const std::string_view*) {
                          hashes_.push_back(h);
                          values_.push_back(x);
                        });
      starts_.push_back(int64_t(hashes_.size()));
    });
  }
  int64_t rows() const override { return int64_t(starts_.size()) - 1; }
  bool has_lists() const override { return true; }
  void fill(int64_t, int64_t, uint64_t*, double*) const override {}
  Part entries(int64_t row) const override {
    const int64_t begin = starts_[size_t(row)];
    return {hashes_.data() + begin, values_.data() + begin, size_t(starts_[size_t(row) + 1] - begin)};
  }

 private:
  template <class T> using Large = std::vector<T, HugePages<T>>;
  Large<int64_t> starts_;
  Large<uint64_t> hashes_;
  Large<double> values_;
};

// Python objects in a list, or in an array of objects: read where they are, while nothing else runs.
class Objects {
 public:
  explicit Objects(nb::handle objects) {
    if (PyObject_CheckBuffer(objects.ptr())) {
      if (PyObject_GetBuffer(objects.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT) != 0) throw nb::python_error();
      held_ = true;
      if (view_.ndim == 1 && view_.itemsize == sizeof(PyObject*) && view_.format &&
          std::string_view(view_.format) == "O")
        return;
      PyBuffer_Release(&view_);
      held_ = false;
    }
    items_ = nb::steal(PySequence_Fast(objects.ptr(), "expected a list of values"));
    if (!items_.is_valid()) throw nb::python_error();
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects() {
    if (held_) PyBuffer_Release(&view_);
  }
  // To be asked again when Python code may have run.
  int64_t size() const { return held_ ? int64_t(view_.shape[0]) : int64_t(PySequence_Fast_GET_SIZE(items_.ptr())); }
  PyObject* const* data() const {
    return held_ ? static_cast<PyObject* const*>(view_.buf) : PySequence_Fast_ITEMS(items_.ptr());
  }

 private:
  nb::object items_;
  Py_buffer view_{};
  bool held_ = false;
};

// Python objects that are strings or None, one in a row.
class StringsColumn : public Column {
 public:
  StringsColumn(std::string name, uint64_t seed) : Column(std::move(name), seed) {}
  // False where there is something else among the objects.
  bool read(const Objects& objects) {
    hashes_.reserve(size_t(objects.size() + PIECE));
    for (int64_t begin = 0; begin < objects.size(); begin += PIECE) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      PyObject* const* const items = objects.data();
      const int64_t size = objects.size(), end = std::min(size, begin + PIECE);
      uint64_t* const out = hashes_.room(size_t(PIECE));
      for (int64_t i = begin; i < end; ++i) {
        if (i + AHEAD < size) {
          const char* const ahead = reinterpret_cast<const char*>(items[i + AHEAD]);
          __builtin_prefetch(ahead);
          __builtin_prefetch(ahead + sizeof(PyASCIIObject) + 8);
        }
        if (!read(items[i], i, out[i - begin])) return false;
      }
      hashes_.advance(size_t(std::max<int64_t>(0, end - begin)));
    }
    return true;
  }
  int64_t rows() const override { return int64_t(hashes_.size()); }
  void fill(int64_t begin, int64_t end, uint64_t* hashes, double* values) const override {
    std::copy(hashes_.data() + begin, hashes_.data() + end, hashes);
    std::fill(values, values + (end - begin), 1.0);
    for (auto row = std::lower_bound(missing_.begin(), missing_.end(), begin); row != missing_.end() && *row < end;
         ++row)
      values[*row - begin] = 0.0;
  }

 private:
  static constexpr int64_t PIECE = 4096, AHEAD = 12;

  __attribute__((always_inline)) bool read(PyObject* item, int64_t row, uint64_t& out) {
    if (item && PyUnicode_CheckExact(item) && PyUnicode_IS_COMPACT_ASCII(item)) {  // its header lies before it
      out = category_read_back({reinterpret_cast<const char*>(reinterpret_cast<PyASCIIObject*>(item) + 1),
                                size_t(PyUnicode_GET_LENGTH(item))});
      return true;
    }
    return read_other(item, row, out);
  }
  __attribute__((noinline)) bool read_other(PyObject* item, int64_t row, uint64_t& out) {
    const std::string_view field(name);
    out = 0;
    if (item == nullptr || item == Py_None)
      missing_.push_back(row);  // places of an array that were never set are null
    else if (is_text(item))
      out = category(bytes_of(item, Place{row, &field}));
    else
      return false;
    return true;
  }
  Buffer<uint64_t> hashes_;
  std::vector<int64_t> missing_;
};

class RecordColumns {
 public:
  RecordColumns(int64_t rows, uint64_t seed, bool categories) : rows_(rows), seed_(seed), categories_(categories) {
    require(rows >= 0 && rows <= (int64_t(1) << 40), "rows must lie between 0 and 2^40");
  }
  RecordColumns(const RecordColumns&) = delete;
  RecordColumns& operator=(const RecordColumns&) = delete;
  template <class Kind, class... Arguments> void add(std::string name, Arguments&&... arguments) {
    take(std::make_unique<Kind>(std::move(name), seed_, std::forward<Arguments>(arguments)...));
  }
  void add_numbers(std::string name, In1<double> numbers, Mask mask) {
    auto column = std::make_unique<NumberColumn>(std::move(name), seed_, numbers, mask, categories_);
    if (!categories_) numbers_.push_back(column.get());
    take(std::move(column));
  }
  void add_objects(std::string name, nb::handle objects, bool single) {
    auto strings = std::make_unique<StringsColumn>(name, seed_);
    if (strings->read(Objects(objects))) return take(std::move(strings));
    add<ListColumn>(std::move(name), objects, categories_, largest(single));
  }

  nb::object transform(int n_bits, bool is_signed, bool single, const std::vector<std::vector<int64_t>>& crosses,
                       int threads) const {
    check_bits(n_bits);
    threads = thread_count(threads);
    for (const auto& fields : crosses) {
      require(fields.size() >= 2, "a cross needs at least two fields");
      for (const int64_t f : fields)
        require(f >= 0 && f < int64_t(columns_.size()), "a cross names a column that does not exist");
    }
    require(rows_ == 0 || !columns_.empty(), "a table with rows needs at least one column");
    const int64_t part_rows = threads == 1 ? std::max<int64_t>(rows_, 1) : 1 << 16;
    const int64_t parts = std::max<int64_t>(1, (rows_ + part_rows - 1) / part_rows);
    std::vector<std::unique_ptr<RowWriter>> written(static_cast<size_t>(parts));
    {
      nb::gil_scoped_release released;
      for (const NumberColumn* column : numbers_) column->check_limit(largest(single));
      in_parallel(parts, threads, [&](int64_t part) {
        auto out = std::make_unique<RowWriter>(n_bits, is_signed, single);
        write_rows(part * part_rows, std::min(rows_, (part + 1) * part_rows), crosses, *out);
        written[size_t(part)] = std::move(out);
      });
      for (size_t p = 1; p < written.size(); ++p) {
        written[0]->rows.append(written[p]->rows);
        written[p].reset();
      }
    }
    return written[0]->rows.release();
  }

 private:
  static constexpr int64_t kBlock = SIDE_BY_SIDE;  // rows at a time: their entries stay in the first cache
  static constexpr size_t kStride =
      kBlock + 8;  // of a column's entries: not a power of two, which would crowd a few cache sets

  void take(std::unique_ptr<Column> column) {
    if (column->rows() != rows_)
      fail("field '" + column->name + "': expected " + std::to_string(rows_) + " rows, found " +
           std::to_string(column->rows()));
    columns_.push_back(std::move(column));
  }

  void write_rows(int64_t begin, int64_t end, const std::vector<std::vector<int64_t>>& crosses, RowWriter& out) const {
    const size_t n = columns_.size(), all = n + crosses.size();
    std::vector<uint64_t> hashes(all * kStride);
    std::vector<double> values(all * kStride);
    std::vector<size_t> lists;  // columns whose entries are not in the block: their values there stay 0
    for (size_t c = 0; c < n; ++c)
      if (columns_[c]->has_lists()) lists.push_back(c);
    std::vector<Part> parts;
    std::vector<size_t> chosen;
    // Enough for most tables; more may never be used where many fields are missing.
    const size_t expected = size_t(end - begin) * std::min<size_t>(n + crosses.size(), 64);
    out.rows.reserve(size_t(end - begin), expected);
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t last = std::min(end, first + kBlock);
      for (size_t c = 0; c < n; ++c)
        columns_[c]->fill(first, last, hashes.data() + c * kStride, values.data() + c * kStride);
      if (lists.empty() && all <= FEW) {
        for (size_t k = 0; k < crosses.size(); ++k)
          cross_block(crosses[k], n + k, size_t(last - first), hashes.data(), values.data());
        if (out.write_ones(hashes.data(), values.data(), kStride, all, size_t(last - first))) continue;
      }
      const auto part_of = [&](size_t c, int64_t row) -> Part {
        if (columns_[c]->has_lists()) return columns_[c]->entries(row);
        const size_t at = c * kStride + size_t(row - first);
        return {&hashes[at], &values[at], values[at] != 0 ? size_t(1) : size_t(0)};
      };
      for (int64_t row = first; row < last; ++row) {
        out.push_strided(hashes.data() + (row - first), values.data() + (row - first), kStride, n);
        for (const size_t c : lists) {
          const Part part = columns_[c]->entries(row);
          for (size_t k = 0; k < part.count; ++k) out.push(part.hashes[k], part.values[k]);
        }
        for (const auto& fields : crosses) {
          parts.clear();
          for (const int64_t f : fields) parts.push_back(part_of(size_t(f), row));
          cross(parts, chosen, [&](uint64_t hash, double value, const std::vector<size_t>&) {
            if (!std::isfinite(value)) fail_product(row, names_of(fields));
            if (value != 0) out.push(hash, value);
          });
        }
        out.close(row);
      }
    }
  }
  // The cross of some columns of a block, as one more column.
  static void cross_block(const std::vector<int64_t>& fields, size_t to, size_t count, uint64_t* hashes,
                          double* values) {
    uint64_t* const hash = hashes + to * kStride;
    double* const value = values + to * kStride;
    std::copy_n(hashes + size_t(fields[0]) * kStride, count, hash);
    std::copy_n(values + size_t(fields[0]) * kStride, count, value);
    for (size_t f = 1; f < fields.size(); ++f) {
      const uint64_t* const other_hash = hashes + size_t(fields[f]) * kStride;
      const double* const other_value = values + size_t(fields[f]) * kStride;
      for (size_t r = 0; r < count; ++r) {
        hash[r] = combine(hash[r], other_hash[r]);
        value[r] *= other_value[r];
      }
    }
  }
  std::vector<std::string> names_of(const std::vector<int64_t>& fields) const {
    std::vector<std::string> names;
    for (const int64_t f : fields) names.push_back(columns_[size_t(f)]->name);
    return names;
  }

  int64_t rows_;
  uint64_t seed_;
  bool categories_;
  std::vector<std::unique_ptr<Column>> columns_;
  std::vector<const NumberColumn*> numbers_;
};

// ---------------------------------------------------------------------------------------------- keys of streams

template <class Offset> nb::object hash_utf8(In1<uint8_t> bytes, In1<Offset> offsets, uint64_t seed) {
  const TextColumn<Offset> column("", seed, bytes, offsets, std::nullopt);  // its checks and its views
  std::vector<uint64_t> hashes(static_cast<size_t>(column.rows()));
  {
    nb::gil_scoped_release released;
    for (int64_t i = 0; i < column.rows(); ++i) hashes[size_t(i)] = feature_hash(column.text(i), seed);
  }
  return to_numpy(std::move(hashes));
}

template <class Unit> nb::object hash_fixed(In2<Unit> cells, uint64_t seed) {
  std::vector<uint64_t> hashes(cells.shape(0));
  {
    nb::gil_scoped_release released;
    FixedText<Unit> text_of(cells);
    for (size_t i = 0; i < hashes.size(); ++i) {
      const std::string_view text = text_of(int64_t(i));
      hashes[i] = feature_hash(text, seed);
      if (!text.data()) fail("row " + std::to_string(i) + ": the string is not valid Unicode");
    }
  }
  return to_numpy(std::move(hashes));
}

nb::object hash_numbers(In1<uint64_t> numbers, uint64_t seed) {
  std::vector<uint64_t> hashes(numbers.shape(0));
  {
    nb::gil_scoped_release released;
    for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = feature_hash(numbers.data()[i], seed);
  }
  return to_numpy(std::move(hashes));
}

// Keys: str, bytes, or integers of 64 bits, negative ones as two's complement.
uint64_t hash_key(PyObject* key, const Place& at, uint64_t seed) {
  if (is_text(key)) return feature_hash(bytes_of(key, at), seed);
  if (PyBool_Check(key) || !PyIndex_Check(key)) wrong_type(at, "a key: str, bytes or an integer", key);
  const nb::object number = nb::steal(PyNumber_Index(key));
  if (!number.is_valid()) raise_placed(at);
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return feature_hash(uint64_t(small), seed);
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_ValueError, at.text() + ": an integer key must lie in -2^63 .. 2^64 - 1");
  }
  return feature_hash(uint64_t(large), seed);
}

nb::object hash_keys(nb::handle keys, uint64_t seed) {
  std::vector<uint64_t> hashes;
  for_each_row(keys, "expected a list of keys",
               [&](PyObject* key, int64_t row) { hashes.push_back(hash_key(key, {row, nullptr}, seed)); });
  return to_numpy(std::move(hashes));
}

// Hashes of categories of a field, without the field's name: text as it is, numbers as text.
nb::object hash_categories(nb::handle values, uint64_t seed, const std::string& field) {
  std::vector<uint64_t> hashes;
  const std::string_view name(field);
  for_each_row(values, "expected a list of categories", [&](PyObject* value, int64_t row) {
    const Place at{row, &name};
    if (is_text(value)) {
      hashes.push_back(feature_hash(bytes_of(value, at), seed));
    } else {
      if (!PyNumber_Check(value)) wrong_type(at, "a category: a string or a number", value);
      hashes.push_back(feature_hash(category_of(value, at), seed));
    }
  });
  return to_numpy(std::move(hashes));
}

// ---------------------------------------------------------------------------------------------- accumulators

// Sums in fixed point, so that they do not depend on the order of their terms: a bucket is whole + fraction / 2^64, 128
// bits. A weight is taken to the nearest multiple of 2^-64; from 2^-12 on every double is one.
constexpr double kWeightLimit = 4611686018427387904.0;  // 2^62

Wide fixed_point(double magnitude) {
  const double whole = std::trunc(magnitude);
  return Wide(uint64_t(whole)) << 64 | uint64_t(std::nearbyint((magnitude - whole) * 18446744073709551616.0));
}

// Σ |w| in fixed point and whether any weight has a fraction; fails where a weight is not finite or the sum with `mass`
// could leave the range of a bucket.
nb::tuple weigh(In1<double> weights, uint64_t mass_whole, uint64_t mass_fraction) {
  Wide mass = Wide(mass_whole) << 64 | mass_fraction;
  bool fractional = false;
  {
    nb::gil_scoped_release released;
    for (size_t i = 0; i < weights.shape(0); ++i) {
      const double w = std::abs(weights.data()[i]);
      if (!(w < kWeightLimit))
        fail("weights must be finite and below 2^62 in size: weight " + std::to_string(i) + " is not");
      fractional |= w != std::trunc(w);
      mass += fixed_point(w);
      require(mass >> 127 == 0, "the sum of the sizes of all weights must stay below 2^63");
    }
  }
  return nb::make_tuple(uint64_t(mass >> 64), uint64_t(mass), fractional);
}

void add_weights(Out1<int64_t> whole, std::optional<Out1<uint64_t>> fraction, In1<uint64_t> hashes,
                 std::optional<In1<double>> weights, bool is_signed) {
  const size_t buckets = whole.shape(0);
  require(buckets >= 2 && (buckets & (buckets - 1)) == 0, "the number of buckets must be a power of two");
  if (fraction) require(fraction->shape(0) == buckets, "whole and fraction must have one length");
  if (weights) require(weights->shape(0) == hashes.shape(0), "weights and hashes must have one length");
  if (weights)
    for (size_t i = 0; i < hashes.shape(0); ++i) {
      const double w = weights->data()[i];
      require(std::abs(w) < kWeightLimit, "a weight is out of range");
      require(fraction || w == std::trunc(w), "weights with a fraction need a place for it");
    }
  nb::gil_scoped_release released;
  const uint64_t mask = buckets - 1;
  for (size_t i = 0; i < hashes.shape(0); ++i) {
    const uint64_t hash = hashes.data()[i];
    const double w = weights ? weights->data()[i] : 1.0;
    const bool negative = (is_signed && hash >> 63) != (w < 0);
    const Wide x = fixed_point(std::abs(w)), term = negative ? Wide(0) - x : x;
    int64_t& high = whole.data()[hash & mask];
    if (!fraction) {
      high = int64_t(uint64_t(high) + uint64_t(term >> 64));
      continue;
    }
    uint64_t& low = fraction->data()[hash & mask];
    const Wide total = (Wide(uint64_t(high)) << 64 | low) + term;
    high = int64_t(uint64_t(total >> 64));
    low = uint64_t(total);
  }
}

// The sums as floating-point numbers, each rounded once.
template <class T> nb::object round_sums(In1<int64_t> whole, std::optional<In1<uint64_t>> fraction) {
  if (fraction) require(fraction->shape(0) == whole.shape(0), "whole and fraction must have one length");
  std::vector<T> values(whole.shape(0));
  for (size_t i = 0; i < values.size(); ++i) {
    const Wide x = Wide(uint64_t(whole.data()[i])) << 64 | (fraction ? fraction->data()[i] : 0);
    values[i] = std::ldexp(T(SignedWide(x)), -64);
  }
  return to_numpy(std::move(values));
}

// ---------------------------------------------------------------------------------------------- count-min sketch

// Row r of a sketch puts key x into h_r(x) = ((a_r x + b_r) mod p) w / p of its w cells, with p = 2^61 - 1: for random
// a_r and b_r any two keys fall independently of each other, which is what "pairwise independent" means.
constexpr uint64_t kPrime = (uint64_t(1) << 61) - 1;

uint64_t modulo_prime(Wide x) {
  uint64_t y = uint64_t(x & kPrime) + uint64_t(x >> 61 & kPrime) + uint64_t(x >> 122);
  y = (y & kPrime) + (y >> 61);
  return y >= kPrime ? y - kPrime : y;
}

class Sketch {
 public:
  Sketch(size_t depth, size_t width, uint64_t seed) : width_(width) {
    require(width >= 1, "a sketch needs at least one column");
    for (size_t r = 0; r < depth; ++r) {
      a_.push_back(1 + modulo_prime(feature_hash(uint64_t(2 * r), seed)) % (kPrime - 1));
      b_.push_back(modulo_prime(feature_hash(uint64_t(2 * r + 1), seed)));
    }
  }
  size_t depth() const { return a_.size(); }
  size_t cell(size_t row, uint64_t hash) const {
    const uint64_t x = hash >= kPrime ? modulo_prime(hash) : hash;
    const uint64_t y = modulo_prime(Wide(a_[row]) * x + b_[row]);
    return row * width_ + size_t(Wide(y) * width_ >> 61);
  }

 private:
  size_t width_;
  std::vector<uint64_t> a_, b_;
};

void update_sketch(Out2<double> table, uint64_t seed, In1<uint64_t> hashes, std::optional<In1<double>> weights,
                   bool conservative) {
  if (weights) {
    require(weights->shape(0) == hashes.shape(0), "weights and hashes must have one length");
    for (size_t i = 0; i < hashes.shape(0); ++i)
      require(weights->data()[i] >= 0 && std::isfinite(weights->data()[i]), "weights must be finite and not negative");
  }
  nb::gil_scoped_release released;
  const Sketch sketch(table.shape(0), table.shape(1), seed);
  double* const cells = table.data();
  std::vector<size_t> at(sketch.depth());
  for (size_t i = 0; i < hashes.shape(0); ++i) {
    const double w = weights ? weights->data()[i] : 1.0;
    for (size_t r = 0; r < at.size(); ++r) at[r] = sketch.cell(r, hashes.data()[i]);
    if (!conservative) {
      for (const size_t c : at) cells[c] += w;
      continue;
    }
    // Only cells below the new estimate have to grow.
    double estimate = std::numeric_limits<double>::infinity();
    for (const size_t c : at) estimate = std::min(estimate, cells[c]);
    for (const size_t c : at) cells[c] = std::max(cells[c], estimate + w);
  }
}

nb::object query_sketch(In2<double> table, uint64_t seed, In1<uint64_t> hashes) {
  std::vector<double> estimates(hashes.shape(0), std::numeric_limits<double>::infinity());
  {
    nb::gil_scoped_release released;
    const Sketch sketch(table.shape(0), table.shape(1), seed);
    for (size_t i = 0; i < hashes.shape(0); ++i)
      for (size_t r = 0; r < sketch.depth(); ++r)
        estimates[i] = std::min(estimates[i], table.data()[sketch.cell(r, hashes.data()[i])]);
  }
  return to_numpy(std::move(estimates));
}

}  // namespace

void bind_records(nb::module_& m) {
  m.def(
      "hash_records",
      [](nb::object rows, int n_bits, uint64_t seed, bool is_signed, bool categories, const Crosses& crosses,
         bool pairs, bool single) {
        check_bits(n_bits);
        return hash_records(rows, n_bits, seed, is_signed, single, categories, crosses, pairs);
      },
      "rows"_a, "n_bits"_a, "seed"_a, "signed"_a, "categories"_a, "crosses"_a, "pairs"_a, "single"_a,
      "Records (dicts, lists of pairs) to (indptr, indices, values).");
  m.def(
      "name_records",
      [](nb::object rows, int64_t first_row, uint64_t seed, bool categories, const Crosses& crosses, bool pairs) {
        return name_records(rows, first_row, seed, categories, crosses, pairs);
      },
      "rows"_a, "first_row"_a, "seed"_a, "categories"_a, "crosses"_a, "pairs"_a,
      "Names and hashes of the features of records.");

  nb::class_<RecordColumns>(m, "RecordColumns", "Fields of records as columns.")
      .def(nb::init<int64_t, uint64_t, bool>(), "rows"_a, "seed"_a, "categories"_a)
      .def(
          "add_text",
          [](RecordColumns& self, std::string name, In1<uint8_t> bytes, In1<int32_t> offsets, Mask valid) {
            self.add<TextColumn<int32_t>>(std::move(name), bytes, offsets, valid);
          },
          "name"_a, "bytes"_a, "offsets"_a, "valid"_a.none())
      .def(
          "add_text",
          [](RecordColumns& self, std::string name, In1<uint8_t> bytes, In1<int64_t> offsets, Mask valid) {
            self.add<TextColumn<int64_t>>(std::move(name), bytes, offsets, valid);
          },
          "name"_a, "bytes"_a, "offsets"_a, "valid"_a.none())
      .def(
          "add_fixed",
          [](RecordColumns& self, std::string name, In2<uint32_t> cells) {
            self.add<FixedColumn<uint32_t>>(std::move(name), cells);
          },
          "name"_a, "cells"_a)
      .def(
          "add_fixed",
          [](RecordColumns& self, std::string name, In2<uint8_t> cells) {
            self.add<FixedColumn<uint8_t>>(std::move(name), cells);
          },
          "name"_a, "cells"_a)
      .def(
          "add_codes",
          [](RecordColumns& self, std::string name, In1<int32_t> codes, In1<uint64_t> categories) {
            self.add<CodeColumn>(std::move(name), codes, categories);
          },
          "name"_a, "codes"_a, "categories"_a)
      .def(
          "add_integers",
          [](RecordColumns& self, std::string name, In1<int64_t> numbers, Mask valid) {
            self.add<IntegerColumn<int64_t>>(std::move(name), numbers, valid);
          },
          "name"_a, "numbers"_a, "valid"_a.none())
      .def(
          "add_integers",
          [](RecordColumns& self, std::string name, In1<uint64_t> numbers, Mask valid) {
            self.add<IntegerColumn<uint64_t>>(std::move(name), numbers, valid);
          },
          "name"_a, "numbers"_a, "valid"_a.none())
      .def("add_numbers", &RecordColumns::add_numbers, "name"_a, "numbers"_a, "valid"_a.none())
      .def(
          "add_lists",
          [](RecordColumns& self, std::string name, In1<int64_t> starts, In1<uint64_t> categories) {
            self.add<ListColumn>(std::move(name), starts, categories);
          },
          "name"_a, "starts"_a, "categories"_a)
      .def(
          "add_objects",
          [](RecordColumns& self, std::string name, nb::object values, bool single) {
            self.add_objects(std::move(name), values, single);
          },
          "name"_a, "values"_a, "single"_a)
      .def(
          "transform",
          [](const RecordColumns& self, int n_bits, bool is_signed, const std::vector<std::vector<int64_t>>& crosses,
             bool single, int threads) { return self.transform(n_bits, is_signed, single, crosses, threads); },
          "n_bits"_a, "signed"_a, "crosses"_a, "single"_a, "threads"_a, "(indptr, indices, values).");

  m.def("hash_utf8", &hash_utf8<int32_t>, "bytes"_a, "offsets"_a, "seed"_a,
        "Hashes of strings that lie in one stretch of bytes.");
  m.def("hash_utf8", &hash_utf8<int64_t>, "bytes"_a, "offsets"_a, "seed"_a);
  m.def("hash_fixed", &hash_fixed<uint32_t>, "cells"_a, "seed"_a, "Hashes of strings of fixed length.");
  m.def("hash_fixed", &hash_fixed<uint8_t>, "cells"_a, "seed"_a);
  m.def("hash_numbers", &hash_numbers, "numbers"_a, "seed"_a, "Hashes of 64-bit numbers.");
  m.def(
      "hash_keys", [](nb::object keys, uint64_t seed) { return hash_keys(keys, seed); }, "keys"_a, "seed"_a,
      "Hashes of keys: str, bytes, integers.");
  m.def(
      "hash_categories",
      [](nb::object values, uint64_t seed, const std::string& field) { return hash_categories(values, seed, field); },
      "values"_a, "seed"_a, "field"_a, "Hashes of categories: text, or numbers as text.");
  m.def(
      "number_text", [](nb::object number) { return category_of(number.ptr(), {0, nullptr}); }, "number"_a,
      "A number as the name of a category.");
  m.def("weigh", &weigh, "weights"_a, "mass_whole"_a, "mass_fraction"_a,
        "The sum of all weights in fixed point, and whether a weight has a fraction.");
  m.def("add_weights", &add_weights, "whole"_a.noconvert(), "fraction"_a.none().noconvert(), "hashes"_a,
        "weights"_a.none(), "signed"_a, "Add weights to the buckets of hashes.");
  m.def(
      "round_sums",
      [](In1<int64_t> whole, std::optional<In1<uint64_t>> fraction, bool single) {
        return single ? round_sums<float>(whole, fraction) : round_sums<double>(whole, fraction);
      },
      "whole"_a, "fraction"_a.none(), "single"_a, "Sums in fixed point as floating-point numbers.");
  m.def("update_sketch", &update_sketch, "table"_a.noconvert(), "seed"_a, "hashes"_a, "weights"_a.none(),
        "conservative"_a, "Count keys in a count-min sketch.");
  m.def("query_sketch", &query_sketch, "table"_a, "seed"_a, "hashes"_a, "Estimated counts of keys.");
}

}  // namespace mercer
