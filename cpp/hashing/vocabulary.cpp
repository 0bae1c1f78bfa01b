#include "hashing/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <stdexcept>

#include "base/arrays.hpp"
#include "hashing/hash.hpp"

namespace mercer {

namespace {

// A hash for tables that live in memory only.
constexpr uint64_t K1 = 0x9E3779B185EBCA87u, K2 = 0xC2B2AE3D27D4EB4Fu, K3 = 0x165667B19E3779F9u;

uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 Wide;
  const Wide product = Wide(a) * b;
  return uint64_t(product) ^ uint64_t(product >> 64);
}

constexpr size_t kRoom = Text::kRoom;

// Ones for the last n of 24 bytes, from n on.
alignas(16) constexpr auto kMasks = [] {
  std::array<unsigned char, 48> masks{};
  for (size_t i = 24; i < 48; ++i) masks[i] = 0xFF;
  return masks;
}();

uint64_t hash_of_words(const uint64_t* words, size_t size) {
  return mix(mix(words[2] ^ K1 ^ size, words[1] ^ K2) ^ words[0], K3);
}

}  // namespace

int64_t Vocabulary::column(std::string_view name, bool grow) {
  if (n_bits_) return bucket(name);
  prepare();
  return locate(name, hash_of(name), grow);
}

// The same as of the words of a short name.
uint64_t Vocabulary::hash_of(std::string_view name) {
  if (name.size() > kShort) return fast_hash(name);
  uint64_t words[3] = {0, 0, 0};
  if (!name.empty()) std::memcpy(reinterpret_cast<char*>(words) + kShort - name.size(), name.data(), name.size());
  return hash_of_words(words, name.size());
}

void Vocabulary::prepare() {
  if (n_bits_ || !slots_.empty()) return;
  size_t capacity = 64;
  while (crowded(capacity)) capacity *= 2;
  rehash(capacity);
}

int64_t Vocabulary::locate(std::string_view name, uint64_t hash, bool grow) {
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
  decltype(recent_)().swap(recent_);
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
bool TokenRows::take_in_order(const int32_t* columns, const double* values, size_t size) {
  if (order_.size() != size) return false;
  int32_t* out = rows.indices.room(size);
  size_t kept = 0;
  int32_t last = -1;
  bool ascending = true, ones = true;
  for (size_t k = 0; k < size; ++k) {
    const int32_t column = columns[identity_ ? k : order_[k]];
    ascending &= column < 0 || column > last;
    last = std::max(column, last);
    out[kept] = column;
    kept += column >= 0;
  }
  if (!ascending) return false;
  if (values)
    for (size_t k = 0; k < size; ++k) ones &= columns[k] < 0 || values[k] == 1.0;
  if (all_ones && !ones) return false;
  rows.indices.advance(kept);
  if (!all_ones)
    for (size_t k = 0; k < size; ++k) {
      const size_t at = identity_ ? k : order_[k];
      if (columns[at] >= 0) rows.values.push(values ? values[at] : 1.0);
    }
  return true;
}

void TokenRows::take_sorted(const int32_t* columns, const double* values, size_t size) {
  std::vector<uint32_t>& order = sorted_;
  order.resize(size);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return columns[a] != columns[b] ? columns[a] < columns[b] : a < b; });
  for (size_t k = 0; k < size;) {
    const int32_t column = columns[order[k]];
    double value = 0;
    for (; k < size && columns[order[k]] == column; ++k) value += values ? values[order[k]] : 1.0;
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
  const bool complete = order.empty() || columns[order[0]] >= 0;
  if (complete || order.size() != order_.size()) {
    order_.swap(order);
    identity_ = std::is_sorted(order_.begin(), order_.end());
  }
}

void TokenRows::close(const int32_t* columns, const double* values, size_t size) {
  if (!take_in_order(columns, values, size)) take_sorted(columns, values, size);
  rows.ends.push(int64_t(rows.indices.size()));
}

NameBatch::NameBatch(Vocabulary& vocabulary, bool grow, TokenRows& out)
    : v_(vocabulary), grow_(grow), out_(out), arena_(kArena), items_(kItems), columns_(kItems) {
  top_ = arena_.data() + arena_.size();
  v_.prepare();
}

void NameBatch::weigh() {
  weighted_ = true;
  values_.assign(kItems, 1.0);
}

void NameBatch::make_room(size_t size) {
  settle();
  if (arena_.size() < size + kRoom) arena_.resize(size + kRoom);
  top_ = arena_.data() + arena_.size();
}

void NameBatch::add_copy(std::string_view name, double value) {
  char* end = room(name.size());
  top_ = end - name.size();
  if (!name.empty()) std::memcpy(top_, name.data(), name.size());
  push(top_, name.size(), value);
}

void NameBatch::close_row() {
  row_ends_.push_back(uint32_t(n_items_));
  ++rows_;
  if (row_ends_.size() >= kItems) settle();
}

void NameBatch::find_columns(int32_t* found) {
  constexpr size_t kShort = Vocabulary::kShort;
  v_.prepare();  // what gave the tokens may have sorted the vocabulary, which drops the table
  const size_t wanted = std::min(v_.slots_.size(), Vocabulary::kRecent);
  if (v_.recent_.size() * 4 < wanted || (grow_ && v_.recent_unknown_)) {
    v_.recent_.assign(wanted, Vocabulary::Recent());
    v_.recent_unknown_ = false;
  }
  Vocabulary::Recent* const recent = v_.recent_.data();
  const size_t mask = v_.recent_.size() - 1;
  for (size_t k = 0; k < n_items_; ++k) {
    Vocabulary::Name& item = items_[k];
    if (item.size > kShort) {
      item.hash = fast_hash(item.text());
      item.words[0] = item.words[1] = item.words[2] = 0;
    } else {
      uint64_t kept[3];
      std::memcpy(item.words, item.data + item.size - kShort, kShort);
      std::memcpy(kept, kMasks.data() + item.size, kShort);
      for (int i = 0; i < 3; ++i) item.words[i] &= kept[i];
      item.hash = hash_of_words(item.words, item.size);
    }
    __builtin_prefetch(&recent[item.hash & mask]);
  }
  missed_.clear();
  for (size_t k = 0; k < n_items_; ++k) {
    const Vocabulary::Name& item = items_[k];
    const Vocabulary::Recent& known = recent[item.hash & mask];
    found[k] = known.column;
    if (item.size <= kShort && known.is(item)) continue;
    __builtin_prefetch(&v_.slots_[v_.home(item.hash)]);
    missed_.push_back(uint32_t(k));
  }
  for (const uint32_t k : missed_) __builtin_prefetch(v_.bytes_.data() + v_.slots_[v_.home(items_[k].hash)].begin);
  for (const uint32_t k : missed_) {
    const Vocabulary::Name& item = items_[k];
    found[k] = int32_t(v_.locate(item.text(), item.hash, grow_));
    if (item.size > kShort) continue;
    v_.recent_unknown_ |= found[k] < 0;
    Vocabulary::Recent& place = recent[item.hash & mask];
    std::copy(item.words, item.words + 3, place.words);
    place.size = uint32_t(item.size);
    place.column = found[k];
  }
}

void NameBatch::settle() {
  if (columns_.size() < open_ + n_items_) columns_.resize(open_ + n_items_);
  int32_t* const found = columns_.data() + open_;
  if (v_.n_bits_) {
    for (size_t k = 0; k < n_items_; ++k) found[k] = int32_t(v_.bucket(items_[k].text()));
  } else {
    find_columns(found);
  }
  const double* values = nullptr;
  if (weighted_ || !found_values_.empty()) {
    // A zero still names its feature: the vocabulary knows it, the row does not hold it.
    found_values_.resize(open_, 1.0);
    for (size_t k = 0; k < n_items_; ++k) {
      found_values_.push_back(weighted_ ? values_[k] : 1.0);
      if (found_values_.back() == 0.0) found[k] = -1;
    }
    values = found_values_.data();
  }
  size_t begin = 0;
  for (const uint32_t row_end : row_ends_) {
    const size_t end = open_ + row_end;
    out_.close(columns_.data() + begin, values ? values + begin : nullptr, end - begin);
    begin = end;
  }
  // What is left belongs to a row that goes on.
  const size_t left = open_ + n_items_ - begin;
  std::copy_n(columns_.begin() + ptrdiff_t(begin), left, columns_.begin());
  if (values) found_values_.erase(found_values_.begin(), found_values_.begin() + ptrdiff_t(begin));
  open_ = left;
  n_items_ = 0;
  weighted_ = false;
  row_ends_.clear();
  top_ = arena_.data() + arena_.size();
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

static_assert(sizeof(PyASCIIObject) >= Text::kRoom, "the header of a string is the room before its bytes");

[[gnu::cold, gnu::noinline]] bool utf8_of(PyObject* object, const Place& at, Text& out) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(object, &size);
  if (!data) return placed(at);
  out = {data, size_t(size), false};
  return true;
}

inline bool text_of(PyObject* object, const Place& at, Text& out) {
  if (!PyUnicode_IS_COMPACT_ASCII(object)) return utf8_of(object, at, out);
  // The usual case, without a call: its bytes are UTF-8 as they are.
  out = {reinterpret_cast<const char*>(reinterpret_cast<PyASCIIObject*>(object) + 1),
         size_t(PyUnicode_GET_LENGTH(object)), true};
  return true;
}

[[gnu::cold, gnu::noinline]] bool wrong(const Place& at, const char* what, PyObject* found) {
  PyErr_Format(PyExc_TypeError, "sequence %zd, token %zd: expected %s, found %.100s", at.sequence, at.token, what,
               Py_TYPE(found)->tp_name);
  return false;
}

class TokenReader {
 public:
  explicit TokenReader(NameBatch& batch) : batch_(batch) {}

  bool read(PyObject* token, const Place& at) {
    bool good;
    ran_code_ = false;
    if (PyDict_Check(token))
      good = read_dict(token, at);
    else if (PyUnicode_Check(token))
      good = add_text(token, at);
    else if (PyList_Check(token) || PyTuple_Check(token))
      good = read_list(token, at);
    else
      return wrong(at, "a dict of features, a list of feature strings or one string", token);
    if (good) batch_.close_row();
    if (good && ran_code_) batch_.settle();  // nothing else may hold the token now
    return good;
  }

 private:
  bool add_text(PyObject* text, const Place& at) {
    Text name;
    if (!text_of(text, at, name)) return false;
    batch_.add(name);
    return true;
  }

  bool read_list(PyObject* token, const Place& at) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(token);
    PyObject* const* items = PySequence_Fast_ITEMS(token);
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (!PyUnicode_Check(items[i])) return wrong(at, "feature strings in the list", items[i]);
      if (!add_text(items[i], at)) return false;
    }
    return true;
  }

  bool add_pair(const Text& key, PyObject* value, const Place& at) {
    Text text;
    if (!text_of(value, at, text)) return false;
    batch_.add_pair(key, '=', text);
    return true;
  }

  bool read_dict(PyObject* token, const Place& at) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(token, &position, &key, &value)) {
      Text name;
      if (!PyUnicode_Check(key)) return wrong(at, "feature names (str) as keys", key);
      if (!text_of(key, at, name)) return false;
      if (PyUnicode_Check(value)) {
        if (!add_pair(name, value, at)) return false;
      } else if (value == Py_None || value == Py_False) {
        continue;
      } else if (value == Py_True) {
        batch_.add(name);
      } else if (PyList_Check(value) || PyTuple_Check(value)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
          PyObject* item = PySequence_Fast_GET_ITEM(value, i);
          if (!PyUnicode_Check(item)) return wrong(at, "strings in a list of values", item);
          if (!add_pair(name, item, at)) return false;
        }
      } else {
        if (!add_number(name, value, at)) return false;
      }
    }
    return true;
  }

  bool add_number(Text name, PyObject* value, const Place& at) {
    if (!PyFloat_Check(value) && !PyNumber_Check(value))
      return wrong(at, "a string, number, bool, None or list of strings as value", value);
    std::string kept;
    const bool runs_code = !PyFloat_Check(value) && !PyLong_CheckExact(value);
    if (runs_code) {  // __float__ may do anything to the key, and to what was read
      ran_code_ = true;
      batch_.settle();
      kept.assign(name.data, name.size);
      name = {kept.data(), kept.size(), false};
    }
    Py_INCREF(value);
    const double x = PyFloat_AsDouble(value);
    Py_DECREF(value);
    if (x == -1.0 && PyErr_Occurred()) return placed(at);
    if (!std::isfinite(x)) {
      PyErr_Format(PyExc_ValueError, "sequence %zd, token %zd: feature '%s' is not finite", at.sequence, at.token,
                   std::string(name.data, name.size).c_str());
      return false;
    }
    batch_.add(name, x);
    return true;
  }

  NameBatch& batch_;
  bool ran_code_ = false;
};

// Strings lie anywhere in memory: those of the next token are fetched while this one is read.
void fetch_ahead(PyObject* const* tokens, Py_ssize_t left) {
  constexpr Py_ssize_t kLine = 64 / sizeof(PyObject*);
  if (left > 3) __builtin_prefetch(tokens[3]);
  if (left > 2 && PyList_CheckExact(tokens[2])) {
    PyObject* const* items = PySequence_Fast_ITEMS(tokens[2]);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(tokens[2]); i += kLine) __builtin_prefetch(items + i);
  }
  if (left > 2 && PyDict_CheckExact(tokens[2])) {
    const char* entries = reinterpret_cast<const char*>(reinterpret_cast<PyDictObject*>(tokens[2])->ma_keys);
    for (int i = 0; i < 8; ++i) __builtin_prefetch(entries + 64 * i);
  }
  if (left > 1 && PyList_CheckExact(tokens[1])) {
    PyObject* const* items = PySequence_Fast_ITEMS(tokens[1]);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(tokens[1]); ++i) {
      __builtin_prefetch(items[i]);
      __builtin_prefetch(reinterpret_cast<const char*>(items[i]) + sizeof(PyASCIIObject));
    }
  }
}

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
    if (i % 1024 == 0) {
      batch.settle();
      if (PyErr_CheckSignals() != 0) {
        good = false;
        break;
      }
    }
    PyObject* item = PySequence_Fast_GET_ITEM(outer, i);
    if (PyUnicode_Check(item) || PyBytes_Check(item) || PyDict_Check(item)) {
      PyErr_Format(PyExc_TypeError, "sequence %zd: expected a list of tokens, found %.100s", i, Py_TYPE(item)->tp_name);
      good = false;
      break;
    }
    // Other iterables give their tokens by code of their own, and nothing else holds what they give.
    const bool held = PyList_CheckExact(item) || PyTuple_CheckExact(item);
    if (!held) batch.settle();
    PyObject* tokens = items_of(item, "expected a list of tokens");
    if (!tokens) {
      good = false;
      break;
    }
    for (Py_ssize_t t = 0; good && t < PySequence_Fast_GET_SIZE(tokens); ++t) {
      PyObject* token = PySequence_Fast_GET_ITEM(tokens, t);
      fetch_ahead(PySequence_Fast_ITEMS(tokens) + t, PySequence_Fast_GET_SIZE(tokens) - t);
      Py_INCREF(token);
      good = reader.read(token, Place{i, t});
      Py_DECREF(token);
    }
    if (good && !held) batch.settle();
    Py_DECREF(tokens);
    if (good) batch.close_sequence();
  }
  if (good) batch.settle();
  Py_DECREF(outer);
  return good;
}

namespace {

// The pieces of the patterns with room before their literals.
class Patterns {
 public:
  explicit Patterns(const std::vector<TemplatePattern>& patterns) {
    for (const TemplatePattern& pattern : patterns) {
      for (const TemplatePiece& piece : pattern) {
        pieces_.push_back({int64_t(literals_.size()), int64_t(piece.literal.size()), piece.row, piece.column});
        if (piece.column < 0) literals_.append(kRoom, ' ').append(piece.literal);
      }
      ends_.push_back(pieces_.size());
      longest_ = std::max(longest_, pattern.size());
    }
  }
  struct Piece {
    int64_t literal, size;
    int row, column;
  };
  size_t size() const { return ends_.size(); }
  size_t longest() const { return longest_; }
  const Piece* begin(size_t k) const { return pieces_.data() + (k ? ends_[k - 1] : 0); }
  const Piece* end(size_t k) const { return pieces_.data() + ends_[k]; }
  Text literal(const Piece& piece) const {
    return {literals_.data() + piece.literal + kRoom, size_t(piece.size), true};
  }

 private:
  std::vector<Piece> pieces_;
  std::vector<size_t> ends_;
  std::string literals_;
  size_t longest_ = 0;
};

// What stands for a cell before the first and after the last token.
class Outside {
 public:
  const std::string& text(Py_ssize_t beyond) {
    std::string& found = texts_[beyond];
    if (found.empty()) found = std::string(kRoom, ' ') + (beyond < 0 ? "_B" : "_B+") + std::to_string(beyond);
    return found;
  }

 private:
  std::map<Py_ssize_t, std::string> texts_;
};

}  // namespace

bool read_columns(PyObject* sentences, const std::vector<TemplatePattern>& patterns, Vocabulary& vocabulary, bool grow,
                  TokenRows& out) {
  PyObject* outer = items_of(sentences, "expected a list of sentences");
  if (!outer) return false;
  bool good = true;
  const Patterns compiled(patterns);
  Outside outside;
  NameBatch batch(vocabulary, grow, out);
  std::vector<Text> cells, parts(compiled.longest());
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(outer); ++i) {
    if (i % 1024 == 0) {
      batch.settle();
      if (PyErr_CheckSignals() != 0) {
        good = false;
        break;
      }
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
        Text text;
        if (!PyUnicode_Check(cell))
          good = wrong(Place{i, t}, "strings in the columns", cell);
        else
          good = text_of(cell, Place{i, t}, text);
        cells.push_back(text);
      }
    }
    for (Py_ssize_t t = 0; good && t < length; ++t) {
      for (size_t k = 0; k < compiled.size(); ++k) {
        size_t n = 0;
        for (const Patterns::Piece* piece = compiled.begin(k); piece != compiled.end(k); ++piece) {
          if (piece->column < 0) {
            parts[n++] = compiled.literal(*piece);
            continue;
          }
          if (piece->column >= width) {
            PyErr_Format(PyExc_ValueError, "sentence %zd: the template needs column %d, the data has %zd columns", i,
                         piece->column, width);
            good = false;
            break;
          }
          const Py_ssize_t at = t + piece->row;
          if (at >= 0 && at < length) {
            parts[n++] = cells[size_t(at * width + piece->column)];
          } else {
            const std::string& text = outside.text(at < 0 ? at : at - length + 1);
            parts[n++] = {text.data() + kRoom, text.size() - kRoom, true};
          }
        }
        if (!good) break;
        batch.add_joined(parts.data(), n);
      }
      batch.close_row();
    }
    if (good) batch.close_sequence();
  }
  if (good) batch.settle();
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
  NameBatch batch(v, grow, rows);
  const char* data = reinterpret_cast<const char*>(bytes.data());
  for (size_t t = 0; t + 1 < token_offsets.shape(0); ++t) {
    for (int64_t s = token_offsets.data()[t]; s < token_offsets.data()[t + 1]; ++s) {
      const int64_t begin = string_offsets.data()[s], end = string_offsets.data()[s + 1];
      batch.add({data + begin, size_t(end - begin), size_t(begin) >= kRoom});
    }
    batch.close_row();
  }
  batch.settle();
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
